# SPDX-License-Identifier: Apache-2.0
"""One step of the model inside a filter, with a fixed number of operations, and its Jacobian.

Of a position that a filter does not know it predicts that it rests where it was last known. The derivatives of the
model hold near the mean. Where a position is known no better than ``UNKNOWN`` they are invalid, and a covariance that
follows them grows to thousands of rad/s, which the next sample then turns into a speed; a force estimated long ago
drives the mean round and round. So the mean is held still, without the forces, and the squares of what it leaves out go
into the covariance; the velocity's error is forgotten with the time constant ``RELAX`` while its variance stays, and
the position's grows as the root of time. The next sample finds it again. """

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import casadi as ca

from ...dynamics.integrators.ali3p import ali3p_motion
from ...errors import did_you_mean
from ...transition.exponential import exact_step, transition
from .all_coordinates import step
from .problem import Problem

TRANSITIONS = ('forward_euler', 'augmented_euler', 'exponential_1', 'exponential_2', 'exponential_3', 'exponential_4',
              'exact', 'heun', 'trapezoid', 'ali3p')
HALVINGS = 4        # of the step of the exact transition: |A dt| up to 4 at machine precision
ITERATIONS = 3      # of Newton's method in the trapezoidal rule; its error is the cube of the predictor's, squared
SWEEPS = 4          # of ALI3P: to rounding with steps of 5 ms; to 1e-6 rad after a linearised correction of 0.2 rad
UNKNOWN = 3.0       # standard deviation of a position, rad or m
RELAX = 1.0         # s


@dataclass(frozen=True)
class ModelRates:
    """Model at one state: rates of all coordinates and of the independent ones, Jacobian, multipliers."""

    zd: ca.SX
    zdd: ca.SX
    A: ca.SX
    B: ca.SX
    qdd: ca.SX
    qd: ca.SX
    lam: ca.SX

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
    zdd, A, B, qdd, lam, qd = problem.rates(q, zd, ca.vertcat(u, force), t, p)
    return ModelRates(zd, zdd, A, B, qdd, qd, lam)


def advance(problem: Problem, kind: str, q: ca.SX, zd: ca.SX, u: ca.SX, force: ca.SX, t: ca.SX, dt: ca.SX,
            p: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Coordinates (n,) and independent velocities (g,) at ``t``, one step ``dt`` later, and the exact ``F`` (2g, 2g) of
    the transition ``kind`` (of the trapezoidal rule: of its linearisation at the end). ValueError for another kind."""
    if kind not in TRANSITIONS:
        raise ValueError('one of ' + ', '.join(TRANSITIONS) + did_you_mean(kind, TRANSITIONS))
    now = rates(problem, q, zd, u, force, t - dt, p)
    if problem.formulated is not None:
        q, qd = step(problem, problem.formulated, kind, q, now.qd, ca.vertcat(u, force), t, dt, p)
        return ended(problem, now, q, qd, u, force, t, dt, p)
    X = ca.vertcat(problem.independent(q), zd)
    ahead = q + now.qd * dt + now.qdd * (dt ** 2 / 2)
    if kind == 'trapezoid':
        return trapezoid(problem, now, X, ahead, u, force, t, dt, p)
    if kind == 'heun':
        return heun(problem, now, X, ahead, u, force, t, dt, p)
    if kind == 'ali3p':
        return ali3p(problem, now, q, ahead, u, force, t, dt, p)
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


def heun(problem: Problem, now: ModelRates, X: ca.SX, ahead: ca.SX, u: ca.SX, force: ca.SX, t: ca.SX, dt: ca.SX,
         p: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Explicit Runge-Kutta method of order two (Naya et al., review, section 4.3): the trapezoidal rule with the rates
    at the end of an Euler step. As ``trapezoid``."""
    g, eye = problem.g, type(now.A).eye(2 * problem.g)
    guess = X + dt * now.f
    at = rates(problem, problem.close(ahead, guess[:g], t, p), guess[g:], u, force, t, p)
    X = X + dt / 2 * (now.f + at.f)
    return problem.close(ahead, X[:g], t, p), X[g:], eye + dt / 2 * (now.A + at.A @ (eye + dt * now.A))


def ali3p(problem: Problem, now: ModelRates, q: ca.SX, ahead: ca.SX, u: ca.SX, force: ca.SX, t: ca.SX, dt: ca.SX,
          p: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    """ALI3P in all coordinates, from the accelerations and multipliers of the model at ``q``, with ``SWEEPS``
    iterations. ``now`` and ``ahead`` as of ``trapezoid``; ``F`` is that of the trapezoidal rule in z, equal up to the
    third order in dt."""
    motion = ali3p_motion(problem.system, problem.kind, SWEEPS)
    q, qd, *_ = motion(q, now.qd, now.qdd, now.lam, ahead, ca.vertcat(u, force), t, dt, p)
    return ended(problem, now, q, qd, u, force, t, dt, p)


def ended(problem: Problem, now: ModelRates, q: ca.SX, qd: ca.SX, u: ca.SX, force: ca.SX, t: ca.SX, dt: ca.SX, p: ca.SX
          ) -> tuple[ca.SX, ca.SX, ca.SX]:
    """As ``advance`` from the coordinates and velocities (n,) at the end of a step in all of them."""
    zd = problem.independent(qd)
    end = rates(problem, q, zd, u, force, t, p)
    return q, zd, trapezoid_jacobian(2 * problem.g)(now.A, end.A, dt / 2)


def linearised(problem: Problem, q: ca.SX, z: ca.SX, t: ca.SX, p: ca.SX) -> ca.SX:
    """Coordinates (n,) ``q + R dz`` at the independent ones ``z``, not quite on the constraints (Naya et al., review,
    Eq. 76)."""
    inputs, still = problem.zeros(problem.system.u.numel()), problem.zeros(problem.g)
    qd = [problem.rates(q, zd, inputs, t, p)[-1] for zd in (z - problem.independent(q), still)]
    return q + qd[0] - qd[1]        # R dz + Phi_t's part, less that part


def newton_correction(size: int) -> ca.Function:
    """``(A, r, h) -> (I - h A)^-1 r``."""
    A, r, h = ca.SX.sym('A', size, size), ca.SX.sym('r', size), ca.SX.sym('h')
    return ca.Function('newton_correction', [A, r, h], [ca.solve(ca.SX.eye(size) - h * A, r)])


def trapezoid_jacobian(size: int) -> ca.Function:
    """``(A0, A1, h) -> (I - h A1)^-1 (I + h A0)``."""
    A0, A1, h = ca.SX.sym('A0', size, size), ca.SX.sym('A1', size, size), ca.SX.sym('h')
    eye = ca.SX.eye(size)
    return ca.Function('trapezoid_jacobian', [A0, A1, h], [ca.solve(eye - h * A1, eye + h * A0)])


def stood_still(problem: Problem, P: ca.SX, q: ca.SX, ahead: ca.SX, zd: ca.SX, F: ca.SX, t: ca.SX, dt: ca.SX, p: ca.SX
                ) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX, ca.SX]:
    """``(lost, q, zd, F, Sigma)`` of a prediction from ``P`` (l, l) and ``q`` (n,) to the coordinates ``ahead`` and
    velocities ``zd`` (g,) with the transition ``F`` (l, l), of which the first 2g are z and zd.

    ``lost`` (g,) is 1 where a position was unknown, ``Sigma`` (l, l) what that adds to the plant noise. Where none was
    nothing changes.
    """
    z, end = (problem.independent(vector) for vector in (q, ahead))
    lost, end, zd, F, Sigma = _standing(problem.g, P.size1())(P, z, end, zd, F, dt)
    held = problem.close(ahead, end, t, p)
    return lost, ca.if_else(ca.sum1(lost) > 0, held, ahead), zd, F, Sigma


@lru_cache(maxsize=64)
def _standing(g: int, size: int) -> ca.Function:
    """``(P, z, z ahead, zd ahead, F, dt) -> (lost, z, zd, F, Sigma)``."""
    P, F, dt = ca.SX.sym('P', size, size), ca.SX.sym('F', size, size), ca.SX.sym('dt')
    z, ahead, zd = (ca.SX.sym(name, g) for name in ('z', 'ahead', 'zd'))
    lost = ca.if_else(ca.diag(P)[:g] > UNKNOWN ** 2, 1.0, 0.0)
    keep, eye, rows, added = ca.exp(-dt / RELAX), ca.SX.eye(size), ca.vertsplit(F), ca.SX.zeros(size)
    for k in range(g):
        rows[k] = ca.if_else(lost[k], eye[k, :] + RELAX * (1 - keep) * eye[g + k, :], rows[k])
        rows[g + k] = ca.if_else(lost[k], keep * eye[g + k, :], rows[g + k])
        added[g + k] = ca.if_else(lost[k], (1 - keep ** 2) * P[g + k, g + k] + zd[k] ** 2, 0.0)
    outputs = [lost, ca.if_else(lost, z, ahead), ca.if_else(lost, 0.0, zd), ca.vertcat(*rows), ca.diag(added)]
    return ca.Function('standing', [P, z, ahead, zd, F, dt], [ca.densify(part) for part in outputs])


@lru_cache(maxsize=64)
def dropped(g: int, number: int, size: int, first: int) -> ca.Function:
    """``(gone, values, B) -> (values, Sigma)``: ``values`` (number,) without those that are gone, and what that adds to
    the noise (size, size) of the g states from ``first`` on, by their effects ``B values``, B (g, number)."""
    gone, values, B = ca.SX.sym('gone', number), ca.SX.sym('values', number), ca.SX.sym('B', g, number)
    effect, rest = B @ ca.if_else(gone, values, 0.0), size - first - g
    Sigma = ca.diagcat(ca.SX(first, first), effect @ effect.T, ca.SX(rest, rest))
    return ca.Function('dropped', [gone, values, B], [ca.if_else(gone, 0.0, values), ca.densify(Sigma)])
