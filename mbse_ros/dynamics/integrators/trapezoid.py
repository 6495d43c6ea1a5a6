# SPDX-License-Identifier: Apache-2.0
"""Implicit trapezoidal rule in independent coordinates, solved by Newton's method with the exact Jacobian."""

from __future__ import annotations

from functools import partial

import casadi as ca
import numpy as np

from ...transition.exponential import psi_series, transition
from .compiled_steps import Iterate, Rule, StepSymbols
from .fixed_step import Scheme, march
from .point import Field, Point
from .task import MotionRecord, MotionTask

ITERATIONS = 25
CORRECTIONS = 2     # of a compiled step; the error falls from 1e-8 to rounding with the first
ROUNDING = 1e-7     # corrections below it that no longer fall are rounding errors, as beside a singular position


def trapezoid(task: MotionTask, record: MotionRecord, tolerance: float = 1e-12) -> None:
    """Fill the record by ``X+ = X + dt/2 (f(X) + f(X+))``, second order in dt, stable at any dt for linear systems.

    Newton's method ends with a correction below ``tolerance`` times max(1, |X|); DivergenceError where it does not.
    """
    march(task, record, trapezoid_scheme(tolerance))


def trapezoid_scheme(tolerance: float = 1e-12) -> Scheme:
    """Its steps; compiled ones have ``CORRECTIONS``, and are left to the march where these are too few."""
    key = f'trapezoid_{np.float64(tolerance).tobytes().hex()}'
    rule = Rule(key, _predicted, partial(_corrected, tolerance), CORRECTIONS)
    return Scheme(partial(_step, tolerance), lambda A, dt: rule)


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


def _predicted(s: StepSymbols) -> tuple[ca.SX, ca.SX]:
    """The first X of the iteration."""
    return s.X + psi_series(s.A, s.dt, 1) @ (s.f * s.dt), ca.SX(0)


def _corrected(tolerance: float, s: Iterate) -> tuple[ca.SX, ca.SX]:
    """A step of Newton's method with ``I - dt/2 A``, ``A = [[0, I], [a, b]]``, its velocities first."""
    g, h = s.X.shape[0] // 2, s.dt / 2
    a, b, residual = s.A[g:, :g], s.A[g:, g:], s.X - s.X0 - h * (s.f0 + s.f)
    matrix, right = ca.SX.eye(g) - h * b - h ** 2 * a, residual[g:] + h * (a @ residual[:g])
    velocity = right / matrix if g == 1 else ca.solve(ca.densify(matrix), right)
    change = ca.vertcat(residual[:g] + h * velocity, velocity)
    return s.X - change, ca.norm_inf(change) / (tolerance * ca.fmax(1, ca.norm_inf(s.X)))
