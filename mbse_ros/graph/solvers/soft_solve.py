# SPDX-License-Identifier: Apache-2.0
"""Gauss-Newton on graphs without exact rows: a step that does not lower the cost is halved, then damped.

Friction bends near standstill, where whole steps can oscillate without end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...errors import DivergenceError
from ..check import check_graph
from ..graph import FactorGraph
from .batch_solver import Solution, gauss_newton_step
from .elimination import Packing
from .linearise import Linear, Lineariser, cost

ITERATIONS = 60
HALVINGS = 4
DAMPINGS = (1e-2, 1.0, 1e2, 1e4, 1e6)
STILL = 1e-5        # fall of the cost, in halves of a chi-squared: 0.4 % of a standard deviation
NEARLY = 1e-2       # the same after the last iteration: friction can make an end very slow


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
    for iteration in range(1, ITERATIONS + 1):
        if not now.finite:
            raise DivergenceError('factor graph', iteration, 'not a number in the residuals')
        for step in _steps(packing, linear):
            fresh = x + step
            there = linearise(fresh)
            after = cost(there)
            if after.finite and after.soft <= now.soft:
                break
        else:
            raise DivergenceError('factor graph', iteration, f'no step helps: cost {now.soft:.6g}', False)
        fall, x, linear, now = now.soft - after.soft, fresh, there, after
        if fall < STILL or iteration == roughly or (iteration == ITERATIONS and fall < NEARLY):
            return Solution(graph, x, now, iteration)
    raise DivergenceError('factor graph', ITERATIONS, f'the cost {now.soft:.6g} still falls '
                          f'by {fall:.3g}', False)


def _steps(packing: Packing, linear: Sequence[Linear]) -> Iterator[np.ndarray]:
    """Steps to try, the boldest first."""
    step = gauss_newton_step(packing, linear)
    yield from (step / 2 ** halving for halving in range(HALVINGS))
    yield from (packing.solve(linear, damping) for damping in DAMPINGS)
