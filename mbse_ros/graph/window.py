# SPDX-License-Identifier: Apache-2.0
"""Windows that slide over time: their instants are solved together, and what leaves stays as a prior of the others.

``solve_fixed_lag`` is for any graph, by GTSAM; ``marginal_prior`` is what stays of it, and of the windows over the log
of a hydraulic machine (``lag_machine``). ``ChainWindow`` is for the chain of a mechanism's smoother, in compiled code:
the same problem with its exact rows eliminated beforehand. Forward dynamics, whose windows hold their oldest instant,
has ``ForwardLag``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import DivergenceError, SettingError, check_choice
from .factors.dynamics_factors import prior
from .factors.kinds import FactorKind
from .graph import ALWAYS, FactorGraph, Factors, key_name
from .solvers.batch_solver import TOLERANCE, solve_batch
from .solvers.chain import Chain, ChainPoints, Gaussian
from .solvers.elimination import Lineariser, Packing, gtsam_module, stacked

ANCHORS = ('held', 'marginal')
ITERATIONS = 15         # Blanco-Claraco et al., factor graphs, 7.1
CHAIN_ITERATIONS = 3    # Gauss-Newton steps of a chain's window with each solution, at most
SMALL = 1e-2            # of a standard deviation: a step in a window that is small enough
LARGE = 1.0             # of a standard deviation: a last step that is too large where it comes again and again:
FEWEST = 5              # for so many samples, or half of the window

Row = tuple[float, np.ndarray, np.ndarray]      # t, samples (s,), inputs (u,)


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
        self._part = FactorGraph()      # the window solved last
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
            self._prior = marginal_prior(self._part, self.x_of(self._part), self.instants[self._first:first])
        self._first = first

    def solve(self, first: int, last: int, held: bool, iterations: int, tolerance: float) -> None:
        """Solve a window and keep its values."""
        part = self._part = self._window(first, last)
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

    def _window(self, first: int, last: int) -> FactorGraph:
        """Factors on instants first to last alone; the marginal prior."""
        begin, end = int(self.instants[first]), int(self.instants[last])
        chosen = [group.within(begin, end) for group in self._groups]
        return _part_of(self.graph, chosen if self._prior is None else [*chosen, self._prior])


class _Sorted:
    """Factors in the order of their oldest instant."""

    def __init__(self, factors: Factors) -> None:
        steps = np.where(factors.steps == ALWAYS, np.iinfo(np.int64).max, factors.steps)
        oldest = steps.min(axis=1) if len(factors) else np.zeros(0, dtype=np.int64)
        order = np.argsort(oldest, kind='stable')
        self._factors, self._oldest = factors.take(order), oldest[order]
        self._newest = self._factors.steps.max(axis=1) if len(factors) else self._oldest

    def within(self, begin: int, end: int) -> Factors:
        """Those from ``begin`` to ``end``; on constants alone: at the start."""
        low, high = np.searchsorted(self._oldest, [begin, end + 1])
        chosen = np.arange(low, high)[self._newest[low:high] <= end]
        if begin == 0:
            chosen = np.concatenate([chosen, np.flatnonzero(self._newest == ALWAYS)])
        return self._factors.take(chosen)


class MarginalPrior(FactorKind):
    """What the instants that left a window say about the others: ``A (x - x0) = b``, as a kind of one factor."""

    def __init__(self, variables: Mapping[str, int], A: np.ndarray, b: np.ndarray, x0: np.ndarray) -> None:
        self.name, self.blind, self.constants, self.numbers = 'marginal', (), {}, np.zeros(0)
        self.variables, self.rows, self.width = dict(variables), len(b), A.shape[1]
        self._A, self._b, self._x0 = A, b, x0

    def evaluate(self, x: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Residual (1, rows) and Jacobian (1, rows, width)."""
        return ((x - self._x0) @ self._A.T - self._b), self._A[None]


def marginal_prior(graph: FactorGraph, x: np.ndarray, leaving: np.ndarray) -> Factors | None:
    """What a graph solved at x (size,) says of its other variables once the instants ``leaving`` (k,) are eliminated,
    as one factor; None where that is nothing.

    It holds all factors on these instants, on constants alone, and the marginal prior of the graph itself.
    """
    chosen = [factors.take(np.flatnonzero(np.isin(factors.steps, leaving).any(axis=1)
                                          | (factors.steps == ALWAYS).all(axis=1)
                                          | isinstance(factors.kind, MarginalPrior))) for factors in graph.factors]
    part = _part_of(graph, chosen)
    at = np.concatenate([graph.series[name].places(series.steps).ravel() for name, series in part.series.items()])
    gtsam, packing, x = gtsam_module(), Packing(part), x[at]
    order = gtsam.Ordering()
    for key in leaving.tolist():
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


def _part_of(graph: FactorGraph, factors: Sequence[Factors]) -> FactorGraph:
    """Graph of some of the factors of a graph and the variables that they touch."""
    part = FactorGraph([some for some in factors if len(some)], graph.components)
    touched: dict[str, list[np.ndarray]] = {}
    for some in part.factors:
        for i, name in enumerate(some.names):
            touched.setdefault(name, []).append(some.steps[:, i])
    for name, series in graph.series.items():
        if name in touched:
            part.add_variables(name, series.size, np.unique(np.concatenate(touched[name])))
    return part


class ChainWindow:
    """The last ``width`` instants of a chain; one that leaves gives its estimate and stays as a prior of others.

    It takes instants one by one, or several at once for a solver that runs less often: a solution serves all that came
    since the last one. The first instant is known as ``start`` and begins at q (n,).
    """

    def __init__(self, chain: Chain, width: int, start: Gaussian, q: np.ndarray) -> None:
        self.chain, self.width, self.start, self._first_q = chain, width, start, q
        self._points = ChainPoints(*[np.zeros(0)] * 5)       # none yet
        self._unconverged = 0       # samples
        self._ahead = 0     # instants since the last solution

    def extend(self, step: int, rows: Sequence[Row]) -> list[tuple[np.ndarray, ...]]:
        """Take instants that follow each other, ``step`` the first one's; the estimates of those that leave the window:
        t, q, qd, qdd, mean, covariance, s of data after it.

        Raises DivergenceError with the step, also where it does not converge for half of a window.
        """
        if not len(self._points.t) and len(rows) > 1:      # nothing to continue from yet
            return self.extend(step, rows[:1]) + self.extend(step + 1, rows[1:])
        for row in rows:
            self._append(*row)
        leaving = max(0, len(self._points.t) - self.width)
        try:
            base, ratio = self._solve(leaving + 1)
            self._check_convergence(step, len(rows), ratio)
            for i in range(leaving):        # the first of two instants becomes a prior of the second one
                pair = self._swept if i == 0 else self.chain.sweep(base.part(slice(i, i + 2)), self.start)
                self.start = Gaussian(base.x[i + 1] + pair.ahead.mean, pair.ahead.covariance)
        except DivergenceError as error:
            raise DivergenceError('smoother', step, error.detail, error.finite) from error
        out = [self._estimate(i) for i in range(leaving)]
        self._points = self._points.part(slice(leaving, None))
        return out

    def rest(self) -> list[tuple[np.ndarray, ...]]:
        """Estimates of the instants that are left."""
        shift = len(self._swept.step) - len(self._points.t)
        return [self._estimate(i + shift) for i in range(len(self._points.t))]

    def _append(self, t: float, y: np.ndarray, u: np.ndarray) -> None:
        """A new instant, by the Taylor series from the last solution."""
        if not len(self._points.t):
            self._points = ChainPoints(self._first_q[None].copy(), self.start.mean[None].copy(), y[None], u[None],
                                       np.array([t]))
            return
        p, dt, g = self._points, self.chain.dt, self.chain.g
        last, z = self._swept, self.chain.problem.z
        self._ahead += 1
        x, ahead = p.x[-1].copy(), self._ahead * dt
        x[:g] += dt * x[g:2 * g] + dt ** 2 / 2 * last.qdd[-1, z]
        x[g:2 * g] += dt * last.qdd[-1, z]
        q = last.q[-1] + ahead * last.qd[-1] + ahead ** 2 / 2 * last.qdd[-1]
        self._points = ChainPoints(np.vstack([p.q, q]), np.vstack([p.x, x]), np.vstack([p.y, y]), np.vstack([p.u, u]),
                                   np.append(p.t, t))

    def _solve(self, kept: int) -> tuple[ChainPoints, float]:
        """Gauss-Newton steps, twice as many where several are new: the first points ``kept`` at the last
        linearisation, and the largest last step in squared standard deviations."""
        points = self._points
        for _ in range(2 * CHAIN_ITERATIONS if self._ahead > 1 else CHAIN_ITERATIONS):
            swept = self._swept = self.chain.sweep(points, self.start)
            base = points.part(slice(kept), copy=True)
            self.chain.move(points, swept)
            with np.errstate(divide='ignore', invalid='ignore'):     # infinity and NaN do not converge
                ratio = (swept.step ** 2 / np.diagonal(swept.covariance, axis1=1, axis2=2)).max()
            if ratio <= SMALL ** 2:
                break
        self._ahead = 0
        return base, ratio

    def _check_convergence(self, step: int, count: int, ratio: float) -> None:
        """Raise DivergenceError where it has not converged for too long."""
        self._unconverged = self._unconverged + count if not ratio <= LARGE ** 2 else 0
        if self._unconverged > max(FEWEST * count, self.width // 2):
            raise DivergenceError('smoother', step, f'for {self._unconverged} samples, the last step is '
                                  f'{np.sqrt(ratio):.3g} standard deviations', False)

    def _estimate(self, i: int) -> tuple[np.ndarray, ...]:
        swept, p = self._swept, self._points
        at = i - (len(swept.step) - len(p.t))
        return p.t[at], swept.q[i], swept.qd[i], swept.qdd[i], p.x[at], swept.covariance[i], p.t[-1] - p.t[at]
