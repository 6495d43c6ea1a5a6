# SPDX-License-Identifier: Apache-2.0
"""The two functions of a step of ALI3P: an iteration of the positions, and the projections of the rates."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import casadi as ca

from ...mechanism.assembly import MechanismSystem
from ..formulations.matrix_r import constraint_rates

LARGEST_SCALAR = 10     # coordinates up to which all is written out in scalar operations
VIOLATION = 1e-3        # weight of Phi beside dq, so that no iteration ends far from the constraints
PASSES = 3              # of a projection; each divides what is left of the violation by about dt^2 alpha J J' / 4 M

Expression: TypeAlias = 'ca.SX | ca.MX'


class Symbols(NamedTuple):
    """Arguments of both functions: positions q (n,) and multipliers ``lam`` (m,) of the iteration, ``q0, qd0, qdd0`` at
    the start of the step."""

    q: Expression
    lam: Expression
    u: Expression
    t: Expression
    dt: Expression
    alpha: Expression
    p: Expression
    q0: Expression
    qd0: Expression
    qdd0: Expression

    @classmethod
    def of(cls, system: MechanismSystem) -> Symbols:
        """Symbols of the kind that suits the size of the system."""
        kind, n = ca.SX if system.n <= LARGEST_SCALAR else ca.MX, system.n
        sizes = (n, system.m, system.u.numel(), 1, 1, 1, system.values.symbol.numel(), n, n, n)
        return cls(*(kind.sym(name, size) for name, size in zip(cls._fields, sizes)))

    @property
    def trapezoidal(self) -> tuple[Expression, Expression]:
        """Velocities and accelerations (n,) that the trapezoidal rule gives at q."""
        change = self.q - self.q0
        return 2 / self.dt * change - self.qd0, 4 / self.dt ** 2 * change - 4 / self.dt * self.qd0 - self.qdd0


def iteration_function(system: MechanismSystem) -> ca.Function:
    """Function ``-> (q, lam, size of dq and of what is left of Phi)`` after one iteration (arguments: ``Symbols``).

    Residual ``dt^2/4 (M qdd + J' (lam + alpha Phi) - Q)``, tangent ``M + dt/2 C + dt^2/4 (alpha J'J + K)``, then
    ``lam += alpha Phi`` at the new positions (Naya et al., review, section 12.1; mathematics of the augmented
    Lagrangian).
    """
    s, terms, constraints = Symbols.of(system), _terms(system), _constraints(system)
    qd, qdd = s.trapezoidal
    M, Q, K, C = terms(s.q, qd, s.u, s.t, s.p)
    phi, J, _, _ = constraints(s.q, qd, s.t, s.p)
    scale = s.dt ** 2 / 4
    residual = scale * (M @ qdd + J.T @ (s.lam + s.alpha * phi) - Q)
    dq = -_solver(M + s.dt / 2 * C + scale * (s.alpha * (J.T @ J) + K))(residual)
    q = s.q + dq
    phi = constraints(q, qd, s.t, s.p)[0]
    size = ca.sqrt(ca.sumsqr(dq) + ca.sumsqr(VIOLATION * phi))        # norm_inf would pass over NaN
    return ca.Function('mbse_ali3p', s, [q, s.lam + s.alpha * phi, size], {'cse': True})


def projection_function(system: MechanismSystem) -> ca.Function:
    """Function ``-> (qd, qdd, q a step ahead, lam)`` on the constraints (arguments: ``Symbols``).

    ``T qd = W qd* - dt^2/4 J' alpha Phi_t`` and ``T qdd = W qdd* - dt^2/4 J' alpha (Jdot qd + Phidot_t)`` with ``W``
    the tangent T without constraints, repeated with multipliers so that the rest of the violation goes too. ``lam``
    takes those of the accelerations in: with the trapezoidal accelerations alone it is of first order in dt.
    """
    s, terms, constraints = Symbols.of(system), _terms(system), _constraints(system)
    qd, qdd = s.trapezoidal
    M, _, K, C = terms(s.q, qd, s.u, s.t, s.p)
    _, J, b, _ = constraints(s.q, qd, s.t, s.p)
    scale = s.dt ** 2 / 4
    W = M + s.dt / 2 * C + scale * K
    solve = _solver(W + scale * s.alpha * (J.T @ J))
    qd, _ = _project(solve, W @ qd, J, b, scale * s.alpha)
    c = constraints(s.q, qd, s.t, s.p)[3]
    qdd, change = _project(solve, W @ qdd, J, c, scale * s.alpha)
    ahead = s.q + s.dt * (qd + s.dt / 2 * qdd)
    return ca.Function('mbse_ali3p_projection', s, [qd, qdd, ahead, s.lam + change], {'cse': True})


def _project(solve: Callable[[Expression], Expression], right: Expression, J: Expression, rate: Expression,
             weight: Expression) -> tuple[Expression, Expression]:
    """Rates x (n,) with ``J x = rate`` and the multipliers mu (m,) of ``W x + J' mu = right``."""
    mu = type(J)(J.shape[0], 1)
    for _ in range(PASSES):
        x = solve(right + J.T @ (weight * rate - mu))
        mu = mu + weight * (J @ x - rate)
    return x, mu


def _solver(T: Expression) -> Callable[[Expression], Expression]:
    """Solver with a matrix that is positive definite up to small terms: inverse by QR, or sparse QR at run time."""
    if isinstance(T, ca.SX):
        inverse = ca.solve(ca.densify(T), ca.SX.eye(T.shape[0]))
        return lambda right: inverse @ right
    return lambda right: ca.solve(T, ca.densify(right), 'qr')


def _terms(system: MechanismSystem) -> ca.Function:
    """``(q, qd, u, t, p) -> (M, Q, K = -dQ/dq, C = -dQ/dqd)``."""
    K, C = -ca.jacobian(system.Q, system.q), -ca.jacobian(system.Q, system.qd)
    return ca.Function('terms', [system.q, system.qd, system.u, system.t, system.values.symbol],
                       [system.M, system.Q, K, C])


def _constraints(system: MechanismSystem) -> ca.Function:
    """``(q, qd, t, p) -> (Phi, J, b, c)``."""
    J, b, c = constraint_rates(system)
    return ca.Function('constraints', [system.q, system.qd, system.t, system.values.symbol], [system.Phi, J, b, c])
