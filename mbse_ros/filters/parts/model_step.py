# SPDX-License-Identifier: Apache-2.0
"""One step of the model inside a filter, with a fixed number of operations, and its Jacobian."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from ...transition.exponential import exact_step, transition
from .problem import Problem

TRANSITIONS = ('forward_euler', 'augmented_euler', 'exponential_1', 'exponential_2', 'exponential_3', 'exponential_4',
               'exact', 'trapezoid')
HALVINGS = 4        # of the step of the exact transition: |A dt| up to 4 at machine precision
ITERATIONS = 3      # of Newton's method in the trapezoidal rule; its error is the cube of the predictor's, squared


@dataclass(frozen=True)
class ModelRates:
    """Model at one state: velocities and accelerations of all coordinates and of the independent ones, Jacobian."""

    zd: ca.SX
    zdd: ca.SX
    A: ca.SX
    B: ca.SX
    qdd: ca.SX
    qd: ca.SX

    @property
    def f(self) -> ca.SX:
        """Rate of ``[z, zd]``."""
        return ca.vertcat(self.zd, self.zdd)

    @property
    def a(self) -> ca.SX:
        """``dzdd/dz`` (g, g)."""
        g = self.zd.numel()
        return self.A[g:, :g]

    @property
    def b(self) -> ca.SX:
        """``dzdd/dzd`` (g, g)."""
        g = self.zd.numel()
        return self.A[g:, g:]


def rates(problem: Problem, q: ca.SX, zd: ca.SX, u: ca.SX, force: ca.SX, t: ca.SX, p: ca.SX) -> ModelRates:
    """Rates with the force (g,) that the filter adds along the independent coordinates."""
    zdd, A, B, qdd, _, qd = problem.rates(q, zd, ca.vertcat(u, force), t, p)
    return ModelRates(zd, zdd, A, B, qdd, qd)


def advance(problem: Problem, kind: str, q: ca.SX, zd: ca.SX, u: ca.SX, force: ca.SX, t: ca.SX, dt: ca.SX,
            p: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Coordinates (n,) and independent velocities (g,) at ``t``, one step ``dt`` later, and the exact ``F`` (2g, 2g) of
    the transition ``kind`` (of the trapezoidal rule: of its linearisation at the end)."""
    now = rates(problem, q, zd, u, force, t - dt, p)
    X = ca.vertcat(problem.independent(q), zd)
    ahead = q + now.qd * dt + now.qdd * (dt ** 2 / 2)
    if kind == 'trapezoid':
        return trapezoid(problem, now, X, ahead, u, force, t, dt, p)
    increment, F = _increment(problem, kind, now, dt)
    X = X + increment
    g = problem.g
    return problem.close(ahead, X[:g], t, p), X[g:], F


def _increment(problem: Problem, kind: str, now: ModelRates, dt: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Change of the state and Jacobian of an explicit transition (Pyrhönen et al., state transition, sections 3.2 and
    3.4)."""
    g, kindof = problem.g, type(now.A)
    eye, zero = kindof.eye(g), kindof(g, g)
    if kind == 'forward_euler':
        return now.f * dt, kindof.eye(2 * g) + ca.vertcat(ca.horzcat(zero, eye), ca.horzcat(zero, zero)) * dt
    if kind == 'augmented_euler':
        return (ca.vertcat(now.zd * dt + now.zdd * (dt ** 2 / 2), now.zdd * dt),
                ca.vertcat(ca.horzcat(eye, eye * dt), ca.horzcat(zero, eye)))
    if kind == 'exact':
        increment, F = _exact(2 * g)(now.A, now.f, dt)
        return increment, F
    F, G = transition_function(2 * g, kind[-1])(now.A, dt)
    return G @ now.f, F


def _exact(size: int) -> ca.Function:
    A, f, dt = ca.SX.sym('A', size, size), ca.SX.sym('f', size), ca.SX.sym('dt')
    flows, increment = exact_step(A, f, dt, HALVINGS)
    return ca.Function('exact', [A, f, dt], [increment, ca.densify(flows[-1])])


def transition_function(size: int, order: str) -> ca.Function:
    """``(A, dt) -> (F, G)`` of a truncated series."""
    A, dt = ca.SX.sym('A', size, size), ca.SX.sym('dt')
    F, G = transition(A, dt, order)
    return ca.Function('series', [A, dt], [ca.densify(F), ca.densify(G)])


def trapezoid(problem: Problem, now: ModelRates, X: ca.SX, ahead: ca.SX, u: ca.SX, force: ca.SX, t: ca.SX, dt: ca.SX,
              p: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Implicit trapezoidal rule, from an explicit prediction, by Newton's method with the exact Jacobian.

    ``now`` are the rates at ``X = [z, zd]``, ``ahead`` a guess of the coordinates at the end. As ``advance``.
    """
    g = problem.g
    half, solve = dt / 2, newton_correction(2 * g)
    right = X + half * now.f
    guess = X + ca.vertcat(now.zd * dt + now.zdd * (dt ** 2 / 2), now.zdd * dt)
    q = ahead
    for _ in range(ITERATIONS):
        q = problem.close(q, guess[:g], t, p, 1)
        at = rates(problem, q, guess[g:], u, force, t, p)
        guess = guess - solve(at.A, guess - right - half * at.f, half)
    q = problem.close(q, guess[:g], t, p)
    F = trapezoid_jacobian(2 * g)(now.A, at.A, half)
    return q, guess[g:], F


def newton_correction(size: int) -> ca.Function:
    """``(A, r, h) -> (I - h A)^-1 r``."""
    A, r, h = ca.SX.sym('A', size, size), ca.SX.sym('r', size), ca.SX.sym('h')
    return ca.Function('newton_correction', [A, r, h], [ca.solve(ca.SX.eye(size) - h * A, r)])


def trapezoid_jacobian(size: int) -> ca.Function:
    """``(A0, A1, h) -> (I - h A1)^-1 (I + h A0)``."""
    A0, A1, h = ca.SX.sym('A0', size, size), ca.SX.sym('A1', size, size), ca.SX.sym('h')
    eye = ca.SX.eye(size)
    return ca.Function('trapezoid_jacobian', [A0, A1, h], [ca.solve(eye - h * A1, eye + h * A0)])
