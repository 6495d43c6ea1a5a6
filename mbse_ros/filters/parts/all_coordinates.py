# SPDX-License-Identifier: Apache-2.0
"""A step of the model in all coordinates inside a filter, by any formulation, as ``simulate`` takes it: the error
filters ask of their model only where it goes (Naya et al., review, section 7)."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca

from ...dynamics.formulations.by_name import FORMULATIONS
from ...dynamics.formulations.expressions import Formulated, formulated
from ...dynamics.formulations.kkt import PENALTY
from ...errors import SettingError, check_choice
from .problem import Problem

STEPS = 'trapezoid', 'heun', 'forward_euler'
ITERATIONS = 3      # of Newton's method in the trapezoidal rule


def with_formulation(problem: Problem, name: str, motion: str, alpha: float | None = None) -> Problem:
    """The problem with its model by a formulation of ``FORMULATIONS``; ``motion``: what moves it; ``alpha`` > 0 of the
    penalty, default 1e7. Raises SettingError for what does not go together."""
    check_choice('formulation', name, FORMULATIONS)
    if alpha is not None and name != 'penalty':
        raise SettingError('alpha', alpha, f'none with the formulation {name}: it is of the penalty')
    if name == 'matrix_r':
        return problem
    if motion not in STEPS:
        raise SettingError('motion', motion, f'{", ".join(STEPS)} with the formulation {name}, which is in all '
                           'coordinates')
    alpha = PENALTY if alpha is None else alpha
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float)) or not 0 < alpha < float('inf'):
        raise SettingError('alpha', alpha, 'a positive number')
    found = formulated(problem.system, problem.system.values.symbol, name, alpha, problem.scalar)
    return replace(problem, formulated=found, rates=found.rates)


def step(problem: Problem, of: Formulated, kind: str, q: ca.SX, qd: ca.SX, u: ca.SX, t: ca.SX, dt: ca.SX, p: ca.SX
         ) -> tuple[ca.SX, ca.SX]:
    """Coordinates and velocities (n,) at ``t``, one step ``dt`` of a kind among ``STEPS`` later, under all inputs u; on
    the constraints, where they are exact.

    The trapezoidal rule by Newton's method with the exact derivatives K and D: for the velocity v at the end
    ``v - qd - h (qdd + field(q + h (qd + v), v)) = 0``, h = dt/2, the derivative is ``I - h D - h^2 K``.
    """
    before, h, eye = of.field(q, qd, u, t - dt, p)[0], dt / 2, type(q).eye(problem.n)
    if kind == 'forward_euler':
        ahead, v = q + dt * qd, qd + dt * before
    elif kind == 'heun':
        v = qd + h * (before + of.field(q + dt * qd, qd + dt * before, u, t, p)[0])
        ahead = q + h * (2 * qd + dt * before)
    else:
        v, solve = qd + dt * before, _solver(problem.n)
        for _ in range(ITERATIONS):
            after, K, D = of.field(q + h * (qd + v), v, u, t, p)
            v = v - solve(ca.densify(eye - h * D - h ** 2 * K), v - qd - h * (before + after))
        ahead = q + h * (qd + v)
    if of.closed is not None:
        ahead, v = of.closed(ahead, v, t, p)
    return ahead, v


def _solver(n: int) -> ca.Function:
    """``(A, b) -> A^-1 b``."""
    A, b = ca.SX.sym('A', n, n), ca.SX.sym('b', n)
    return ca.Function('solved', [A, b], [ca.solve(A, b)], {'cse': True})
