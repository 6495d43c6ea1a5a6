# SPDX-License-Identifier: Apache-2.0
"""Implicit trapezoidal rule in independent coordinates, solved by Newton's method with the exact Jacobian."""

from __future__ import annotations

from functools import partial

import numpy as np

from ...transition.exponential import transition
from .fixed_step import Scheme, march
from .point import Field, Point
from .task import Record, Task

ITERATIONS = 25
ROUNDING = 1e-7     # corrections below it that no longer fall are rounding errors, as beside a singular position


def trapezoid(task: Task, record: Record, tolerance: float = 1e-12) -> None:
    """Fill the record by ``X+ = X + dt/2 (f(X) + f(X+))``, second order in dt, stable at any dt for linear systems.

    Newton's method ends with a correction below ``tolerance`` times max(1, |X|); DivergenceError where it does not.
    """
    march(task, record, Scheme(partial(_step, tolerance)))


def _step(tolerance: float, field: Field, point: Point, t: float) -> Point:
    dt, f = t - point.t, point.f
    X, guess = point.X + transition(point.A, dt, '1')[1] @ f, point.ahead(dt)
    last = np.inf
    for _ in range(ITERATIONS):
        new = field.at(X, guess, t)
        residual = X - point.X - (dt / 2) * (f + new.f)
        change = np.linalg.solve(np.eye(len(X)) - (dt / 2) * new.A, residual)
        size, scale = np.abs(change).max(initial=0.0), max(1.0, np.abs(X).max(initial=0.0))
        if size <= tolerance * scale or last / 2 < size <= ROUNDING * scale:
            return new
        X, guess, last = X - change, new.q, size
    raise ArithmeticError(f'Newton: correction {size:.3g} after {ITERATIONS} iterations; take a shorter step')
