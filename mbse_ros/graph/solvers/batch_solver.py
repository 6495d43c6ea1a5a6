# SPDX-License-Identifier: Apache-2.0
"""All variables of a graph at once by Gauss-Newton, damped where a step does not help.

On graphs without exact rows a step is halved first: friction bends near standstill, where whole steps can oscillate
without end.

``marginals``: covariances of a solution, from the eliminated graph; exact rows give zero variance across them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...errors import DivergenceError, GraphError
from ..check import check_graph
from ..graph import FactorGraph
from .elimination import Cost, Linear, Lineariser, Packing, cost, reach

ITERATIONS = 50
TOLERANCE = 1e-9        # of a step, of each value above 1 in proportion
FEASIBLE = 1e-10        # largest residual of a row that holds exactly, in a solution
DAMPINGS = (0.0, 1e-3, 1e-1, 1e1, 1e3, 1e5)
LINEAR = 0.5            # largest share of the change of an exact row that may be curvature
WORSE = 1.0 + 1e-9      # rounding errors allowed in a cost that does not grow
SOFT_ITERATIONS = 60
HALVINGS = 4
SOFT_DAMPINGS = (1e-2, 1.0, 1e2, 1e4, 1e6)
STILL = 1e-5        # fall of the cost, in halves of a chi-squared: 0.4 % of a standard deviation
NEARLY = 1e-2       # the same after the last iteration: friction can make an end very slow


@dataclass(frozen=True)
class Marginals:
    """Covariances by node (instant, or variable that does not change) of a graph's variables."""

    graph: FactorGraph
    _nodes: dict[int, tuple[np.ndarray, np.ndarray]]
    _node_of: np.ndarray

    def covariance(self, name: str) -> np.ndarray:
        """Covariances (k, size, size) of all variables of a name."""
        series = self.graph.series[name]
        found = np.empty((len(series.steps), series.size, series.size))
        for out, places in zip(found, series.places(series.steps)):
            out[...] = self.joint(places)
        return found

    def stddev(self, name: str) -> np.ndarray:
        """Standard deviations (k, size) of all variables of a name."""
        return np.sqrt(np.maximum(np.diagonal(self.covariance(name), axis1=1, axis2=2), 0.0))

    def joint(self, places: np.ndarray) -> np.ndarray:
        """Covariance of places of one node in the vector of all values."""
        own, covariance = self._nodes[int(self._node_of[places[0]])]
        at = np.searchsorted(own, places)
        return covariance[np.ix_(at, at)]


def marginals(solution: Solution) -> Marginals:
    """Marginal covariances at a solution, in time proportional to the number of instants.

    From the last conditional ``R x = d - S s + noise`` to the first: ``P = R^-1 (D + S P_s S') R^-T``.
    """
    packing = Packing(solution.graph)
    net = packing.net(solution.linear)
    joint: dict[int, tuple[list[int], np.ndarray]] = {}
    nodes = {}
    for i in range(len(packing.nodes) - 1, -1, -1):
        keys, covariance = _with_parents(net.at(i), joint, packing)
        joint[keys[0]] = keys, covariance
        own = packing.nodes[keys[0]]
        order = np.argsort(own)
        nodes[keys[0]] = own[order], covariance[np.ix_(order, order)]
    return Marginals(solution.graph, nodes, packing.node_of)


def _with_parents(conditional: Any, joint: dict[int, tuple[list[int], np.ndarray]], packing: Packing
                  ) -> tuple[list[int], np.ndarray]:
    """Keys of a node and of those it depends on, and their joint covariance."""
    from scipy.linalg import solve_triangular  # here: slow to import
    keys = list(conditional.keys())
    R, S = conditional.R(), conditional.S()
    G = solve_triangular(R, np.diag(packing.sigmas(conditional, len(R))))
    if len(keys) == 1:
        return keys, G @ G.T
    parents = _select(*joint[min(keys[1:])], keys[1:], packing)       # the next node has all of them with it
    T = -solve_triangular(R, S)
    cross = T @ parents
    return keys, np.block([[G @ G.T + cross @ T.T, cross], [cross.T, parents]])


def _select(keys: list[int], covariance: np.ndarray, wanted: list[int], packing: Packing) -> np.ndarray:
    """Part of a joint covariance."""
    first = dict(zip(keys, np.cumsum([0, *(len(packing.nodes[key]) for key in keys)])))
    at = np.concatenate([first[key] + np.arange(len(packing.nodes[key])) for key in wanted])
    return covariance[np.ix_(at, at)]


@dataclass(frozen=True)
class Solution:
    """Values ``x`` (size,) of a graph; ``cost`` there, ``iterations`` it took.

    ``solution['qd']`` gives the values (k, size) of a name, in the order of ``steps('qd')``.
    """

    graph: FactorGraph
    x: np.ndarray
    cost: Cost
    iterations: int

    def __getitem__(self, name: str) -> np.ndarray:
        return self.graph.of(self.x, name)

    def steps(self, name: str) -> np.ndarray:
        """Steps (k,) of the variables of a name."""
        return self.graph.series[name].steps

    @cached_property
    def linear(self) -> list[Linear]:
        """The graph linearised at the solution."""
        return Lineariser(self.graph)(self.x)


def solve_batch(graph: FactorGraph, initial: np.ndarray, iterations: int = ITERATIONS, tolerance: float = TOLERANCE,
                check: bool = True, connected: bool = True) -> Solution:
    """The most likely values of all variables, from a vector of initial ones (``graph.values``).

    A step that makes both the cost and the violation of the exact rows worse is damped (Levenberg-Marquardt).
    ``check``: look for undetermined variables first; ``connected``: parts without a link are an error there.
    Raises GraphError before the solver is started, DivergenceError where it does not converge.
    """
    if check:
        check_graph(graph, initial, connected)
    linearise, packing = Lineariser(graph), Packing(graph)
    x = np.array(initial, dtype=float)
    linear = linearise(x)
    now, last = cost(linear), np.inf
    for iteration in range(iterations):
        if not now.finite:
            raise DivergenceError('factor graph', iteration, 'not a number in the residuals')
        x, linear, after, size = _improved(linearise, packing, x, linear, now, iteration)
        done = after.hard <= FEASIBLE and (size <= tolerance or (size <= 1e3 * tolerance and size >= 0.5 * last))
        now, last = after, size
        if done:
            return Solution(graph, x, now, iteration + 1)
    raise DivergenceError('factor graph', iterations, f'last step {last:.3g}, constraints '
                          f'{now.hard:.3g}{" in " + now.worst if now.worst else ""}', False)


def _improved(linearise: Lineariser, packing: Packing, x: np.ndarray, linear: list[Linear], now: Cost,
              iteration: int) -> tuple[np.ndarray, list[Linear], Cost, float]:
    """Values after a step, the graph linearised there, its cost, and the size of the step."""
    for damping in DAMPINGS:
        step = gauss_newton_step(packing, linear, damping, f'at iteration {iteration} ')
        if not np.isfinite(step).all():
            raise DivergenceError('factor graph', iteration, 'not a number in a step')
        fresh = x + step
        there = linearise(fresh)
        after = cost(there)
        size = float(np.max(np.abs(step) / (1.0 + np.abs(fresh)), initial=0.0))
        nearer = now.hard > FEASIBLE and after.hard <= max(0.5 * now.hard, FEASIBLE)
        better = nearer or after.soft <= WORSE * now.soft
        bounded = after.hard <= max(now.hard, LINEAR * reach(linear, linearise.places, step))
        if after.finite and (size < 1e-6 or (better and bounded)):
            return fresh, there, after, size
    raise DivergenceError('factor graph', iteration, f'no step helps: cost {now.soft:.6g}, constraints {now.hard:.3g}',
                          False)


def gauss_newton_step(packing: Packing, linear: Sequence[Linear], damping: float = 0.0, when: str = '') -> np.ndarray:
    """Step dx (size,) of a linearised graph; raises GraphError where it is indeterminate."""
    try:
        return packing.solve(linear, damping)
    except RuntimeError as error:            # what GTSAM raises for an indeterminate system
        raise GraphError(f'not determined {when}({str(error).strip().splitlines()[0]})', ['all']) from error


def solve_soft(graph: FactorGraph, initial: np.ndarray, check: bool = True, roughly: int | None = None) -> Solution:
    """The most likely values, from initial ones (size,), until a step lowers the cost by less than STILL.

    ``roughly``: what so many iterations lead to will do. Raises GraphError for what the graph leaves open,
    DivergenceError where it does not converge.
    """
    if check:
        check_graph(graph, initial)
    linearise, packing = Lineariser(graph), Packing(graph)
    x, linear = np.array(initial, dtype=float), linearise(initial)
    now = cost(linear)
    for iteration in range(1, SOFT_ITERATIONS + 1):
        if not now.finite:
            raise DivergenceError('factor graph', iteration, 'not a number in the residuals')
        rise = np.inf       # by the whole step, which comes first
        for step in _steps(packing, linear):
            fresh = x + step
            there = linearise(fresh)
            after = cost(there)
            if after.finite and after.soft <= now.soft:
                break
            rise = rise if np.isfinite(rise) else after.soft - now.soft
        else:
            if rise < STILL:
                return Solution(graph, x, now, iteration)       # at the minimum but for rounding
            raise DivergenceError('factor graph', iteration, f'no step helps: cost {now.soft:.6g}', False)
        fall, x, linear, now = now.soft - after.soft, fresh, there, after
        if fall < STILL or iteration == roughly or (iteration == SOFT_ITERATIONS and fall < NEARLY):
            return Solution(graph, x, now, iteration)
    raise DivergenceError('factor graph', SOFT_ITERATIONS, f'the cost {now.soft:.6g} still falls '
                          f'by {fall:.3g}', False)


def _steps(packing: Packing, linear: Sequence[Linear]) -> Iterator[np.ndarray]:
    """Steps to try, the boldest first."""
    step = gauss_newton_step(packing, linear)
    yield from (step / 2 ** halving for halving in range(HALVINGS))
    yield from (packing.solve(linear, damping) for damping in SOFT_DAMPINGS)
