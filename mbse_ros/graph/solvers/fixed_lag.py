# SPDX-License-Identifier: Apache-2.0
"""A graph solved over its last instants only, a window that slides over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...errors import DivergenceError, SettingError, check_choice
from ..factors.dynamics_factors import prior
from ..factors.kinds import FactorKind
from ..graph import ALWAYS, FactorGraph, Factors, key_name
from .batch_solver import TOLERANCE, solve_batch
from .elimination import Packing, gtsam_module, stacked
from .linearise import Lineariser

ANCHORS = ('held', 'marginal')
ITERATIONS = 15         # Blanco-Claraco et al., factor graphs, 7.1


@dataclass(frozen=True)
class LagSolution:
    """Estimates of a graph by windows: ``newest`` (size,), each variable when its instant was the newest; ``lagged``
    (size,), each when it was the oldest of its window (or at the end). ``of(x, name)`` as in the graph."""

    graph: FactorGraph
    newest: np.ndarray
    lagged: np.ndarray

    def of(self, x: np.ndarray, name: str) -> np.ndarray:
        """Values (k, size) of a name."""
        return self.graph.of(x, name)


class MarginalPrior(FactorKind):
    """What the instants that left a window say about the others: ``A (x - x0) = b``, as a kind of one factor."""

    def __init__(self, variables: Mapping[str, int], A: np.ndarray, b: np.ndarray, x0: np.ndarray) -> None:
        self.name, self.blind, self.constants, self.numbers = 'marginal', (), {}, np.zeros(0)
        self.variables, self.rows, self.width = dict(variables), len(b), A.shape[1]
        self._A, self._b, self._x0 = A, b, x0

    def evaluate(self, x: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Residual (1, rows) and Jacobian (1, rows, width)."""
        return ((x - self._x0) @ self._A.T - self._b), self._A[None]


def solve_fixed_lag(graph: FactorGraph, initial: np.ndarray, window: int, anchor: str = 'held', stride: int = 1,
                    iterations: int = ITERATIONS, tolerance: float = TOLERANCE) -> LagSolution:
    """Estimates by windows of so many instants, the newest ``stride`` instants new in each.

    ``anchor``: 'held' keeps the oldest instant of a window at its estimate, as in forward dynamics (Blanco-Claraco
    et al., factor graphs, 7.1); 'marginal' gives the next window what the instants that leave it say, as a smoother of
    measurements needs it.
    ``initial`` (size,): where each instant starts from; NaN is extrapolated from the two before. Raises SettingError,
    GraphError, DivergenceError with the step.
    """
    check_choice('anchor', anchor, ANCHORS)
    if not 1 <= stride < window:
        raise SettingError('window, stride', (window, stride), 'a window of 2 instants or more, and a shorter stride')
    instants = graph.instants
    run = _LagPass(graph, np.array(initial, dtype=float), instants)
    newest = run.x.copy()
    for last in [*range(min(window, len(instants)) - 1 if anchor == 'marginal' else stride, len(instants) - 1, stride),
                 len(instants) - 1]:
        first = max(0, last - window + 1)
        run.slide(first, anchor == 'marginal')
        fresh = run.extrapolate(last)
        run.solve(first, last, anchor == 'held', iterations, tolerance)
        newest[fresh] = run.x[fresh]
    newest[run.constant] = run.x[run.constant]
    return LagSolution(graph, newest, run.x)


class _LagPass:
    """The state of a pass over a graph."""

    def __init__(self, graph: FactorGraph, x: np.ndarray, instants: np.ndarray) -> None:
        self.graph, self.x, self.instants = graph, x, instants
        self._groups = [_Sorted(factors) for factors in graph.factors]
        self._places = graph.places_of_steps()
        self.constant = np.concatenate([np.zeros(0, dtype=int), *(s.places(s.steps).ravel() for s in
                                        graph.series.values() if s.steps[0] == ALWAYS)])
        self._first, self._done = 0, -1
        self._prior: Factors | None = None

    def extrapolate(self, last: int) -> np.ndarray:
        """Places of the new instants; those without an initial value start on the line through the two before."""
        fresh = [np.zeros(0, dtype=int)]
        for k in range(self._done + 1, last + 1):
            here, *before = (self._places[int(self.instants[j])] for j in range(k, max(k - 3, -1), -1))
            self.graph.extrapolate(self.x, here, *before)
            fresh += here.values()
        self._done = last
        return np.concatenate(fresh)

    def slide(self, first: int, keep: bool) -> None:
        """Leave instants behind; what they say is kept in a marginal prior."""
        if keep and first > self._first:
            leaving = self.instants[self._first:first]
            inside = self._window(self._first, first - 1, reach=self._done)
            self._prior = _marginal(inside, self.x_of(inside), leaving.tolist())
        self._first = first

    def solve(self, first: int, last: int, held: bool, iterations: int, tolerance: float) -> None:
        """Solve a window and keep its values."""
        part = self._window(first, last)
        if held:
            for name, at in self._places[int(self.instants[first])].items():
                part.factors = [f for f in part.factors if not (f.names == (name,) and f.kind.name == 'prior'
                                                                and (f.steps == self.instants[first]).all())]
                part.add(prior(len(at)), {'x': (name, int(self.instants[first]))}, 0.0, {'x0': self.x[at]})
        try:
            found = solve_batch(part, self.x_of(part), iterations, tolerance, check=last <= 2)
        except DivergenceError as error:
            raise DivergenceError('fixed-lag smoother', int(self.instants[last]), error.detail,
                                  error.finite) from error
        for name, series in part.series.items():
            self.x[self.graph.series[name].places(series.steps)] = found[name]

    def x_of(self, part: FactorGraph) -> np.ndarray:
        """Values of the variables of a part."""
        return np.concatenate([self.x[self.graph.series[name].places(series.steps)].ravel()
                               for name, series in part.series.items()])

    def _window(self, first: int, last: int, reach: int | None = None) -> FactorGraph:
        """Factors that touch instants first to last, and none before or beyond ``reach``; the marginal prior."""
        begin, end, beyond = (int(self.instants[k]) for k in (first, last, last if reach is None else reach))
        part = FactorGraph(components=self.graph.components)
        chosen = [group.within(begin, end, beyond) for group in self._groups]
        part.factors = [factors for factors in chosen if len(factors)]
        if self._prior is not None:
            part.factors.append(self._prior)
        touched: dict[str, list[np.ndarray]] = {}
        for factors in part.factors:
            for i, name in enumerate(factors.names):
                touched.setdefault(name, []).append(factors.steps[:, i])
        for name, series in self.graph.series.items():
            if name in touched:
                part.add_variables(name, series.size, np.unique(np.concatenate(touched[name])))
        return part


class _Sorted:
    """Factors in the order of their oldest instant."""

    def __init__(self, factors: Factors) -> None:
        steps = np.where(factors.steps == ALWAYS, np.iinfo(np.int64).max, factors.steps)
        oldest = steps.min(axis=1) if len(factors) else np.zeros(0, dtype=np.int64)
        order = np.argsort(oldest, kind='stable')
        self._factors, self._oldest = factors.take(order), oldest[order]
        self._newest = self._factors.steps.max(axis=1) if len(factors) else self._oldest

    def within(self, begin: int, end: int, beyond: int) -> Factors:
        """Those that begin from ``begin`` to ``end`` and reach ``beyond`` at most; on constants alone: at the start."""
        low, high = np.searchsorted(self._oldest, [begin, end + 1])
        chosen = np.arange(low, high)[self._newest[low:high] <= beyond]
        if begin == 0:
            chosen = np.concatenate([chosen, np.flatnonzero(self._newest == ALWAYS)])
        return self._factors.take(chosen)


def _marginal(part: FactorGraph, x: np.ndarray, leaving: list[int]) -> Factors | None:
    """What a part of a graph says about its other variables once some instants are eliminated, as one factor."""
    gtsam, packing = gtsam_module(), Packing(part)
    order = gtsam.Ordering()
    for key in leaving:
        order.push_back(key)
    _, rest = packing.factors(Lineariser(part)(x)).eliminatePartialSequential(order, gtsam.EliminateQR)
    widths = {key: len(node) for key, node in packing.nodes.items()}
    rows, right, sigmas = [], [], []
    for factor in (rest.at(i) for i in range(rest.size())):
        if factor is None or factor.size() == 0:
            continue
        jacobian = gtsam.JacobianFactor(factor)
        A, b = jacobian.jacobianUnweighted()
        keys = list(jacobian.keys())
        rows.append(list(zip(keys, np.split(A, np.cumsum([widths[key] for key in keys])[:-1], axis=1))))
        right.append(b)
        sigmas.append(packing.sigmas(jacobian, len(b)))
    if not rows:
        return None
    others = {key: width for key, width in widths.items() if key not in leaving}
    places = np.concatenate([packing.nodes[key] for key in others])
    variables = list(dict.fromkeys(part.key_at(place) for place in places))
    names, steps = zip(*variables)
    sizes = {key_name(*variable): part.series[variable[0]].size for variable in variables}
    kind = MarginalPrior(sizes, stacked(rows, others), np.concatenate(right), x[places])
    return Factors(kind, 'marginal', names, np.array([steps]), np.zeros((1, 0)), np.concatenate(sigmas)[None])
