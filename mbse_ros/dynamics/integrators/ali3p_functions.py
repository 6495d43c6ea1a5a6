# SPDX-License-Identifier: Apache-2.0
"""The two functions of a step of ALI3P: an iteration of the positions, and the projections of the rates."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import casadi as ca

from ...compiled.iterated import Iterated
from ...mechanism.assembly import MechanismSystem
from ..formulations.matrix_r import constraint_rates
from ..sparse_lu import SparseLU

WRITTEN_OUT = 8_000     # scalar operations of an iteration up to which all is written out, else functions are called
ITERATIONS = 60
PATIENCE = 10           # iterations after which the penalty of the step is raised
RAISE = 100.0           # ... by this factor, three times at most
VIOLATION = 1e-3        # weight of Phi beside dq, so that no iteration ends far from the constraints
PASSES = 3              # of a projection; each divides what is left of the violation by about dt^2 alpha J J' / 4 M

Expression: TypeAlias = 'ca.SX | ca.MX'
Solve: TypeAlias = 'Callable[[Expression], Expression]'


class Symbols(NamedTuple):
    """State of a step and what it is given.

    Positions q (n,) and multipliers ``lam`` (m,) of the iteration with its penalty ``alpha``, the number of its
    ``sweeps`` and what its last correction is above the tolerance (``left``); ``q0, qd0, qdd0`` at the start of the
    step. ``t`` its end, ``dt`` its length, ``penalty`` where alpha starts.
    """

    q: Expression
    lam: Expression
    alpha: Expression
    sweeps: Expression
    left: Expression
    q0: Expression
    qd0: Expression
    qdd0: Expression
    t: Expression
    dt: Expression
    penalty: Expression
    tolerance: Expression
    u: Expression
    p: Expression

    @classmethod
    def of(cls, system: MechanismSystem, kind: type[Expression]) -> Symbols:
        """Symbols of a kind."""
        n = system.n
        sizes = (n, system.m, 1, 1, 1, n, n, n, 1, 1, 1, 1, system.u.numel(), system.values.symbol.numel())
        return cls(*(kind.sym(name, size) for name, size in zip(cls._fields, sizes)))

    @property
    def arguments(self) -> list[Expression]:
        """State, row of the series ``(t, dt, penalty, tolerance, inputs)`` and parameters."""
        return [ca.vertcat(*self[:8]), ca.vertcat(*self[8:13]), self.p]

    @property
    def trapezoidal(self) -> tuple[Expression, Expression]:
        """Velocities and accelerations (n,) that the trapezoidal rule gives at q."""
        change = self.q - self.q0
        return 2 / self.dt * change - self.qd0, 4 / self.dt ** 2 * change - 4 / self.dt * self.qd0 - self.qdd0


def ali3p_step(system: MechanismSystem) -> Iterated:
    """The step of a scan: ``x = (q ahead, lam, alpha, 0, 1, q, qd, qdd)``, series ``(t, dt, penalty, tolerance, u)``,
    ``y = (q, qd, qdd, lam, iterations, correction above the tolerance)``."""
    parts = _Parts(system)
    step = parts.step(ca.SX)
    if step.iterate.n_instructions() > WRITTEN_OUT:
        step = parts.step(ca.MX)
    return step


class _Parts:
    """What both functions are made of."""

    def __init__(self, system: MechanismSystem) -> None:
        self.system, q, qd, Q = system, system.q, system.qd, system.Q
        J, b, c = constraint_rates(system)
        symbols = [q, qd, system.u, system.t, system.values.symbol]
        options = {'cse': True}
        self.phi = ca.Function('phi', [q, system.t, system.values.symbol], [system.Phi], options)
        self.tangents = ca.Function('tangents', symbols, [system.M, Q, -ca.jacobian(Q, q), -ca.jacobian(Q, qd),
                                                          system.Phi, J, b, c], options)
        self.rate = ca.Function('rate', symbols, [c], options)
        M, _, K, C, _, J, _, _ = (self.tangents.sparsity_out(i) for i in range(8))
        self.lu = SparseLU(M + C + K + ca.mtimes(J.T, J))

    def step(self, kind: type[Expression]) -> Iterated:
        """Both functions, written out (SX) or with calls of their parts (MX)."""
        s = Symbols.of(self.system, kind)
        return Iterated(self.iteration(s), self.projection(s), ITERATIONS)

    def solver(self, T: Expression) -> Solve:
        """Solver with a tangent, which is positive definite up to small terms."""
        factors = self.lu.factor(ca.project(T, self.lu.factor.sparsity_in(0)))
        return lambda right: self.lu.solve(factors, ca.densify(right))

    def iteration(self, s: Symbols) -> ca.Function:
        """Function of a scan's step ``-> (q, lam, alpha, sweeps, size of dq and of what is left of Phi - tolerance)``.

        Residual ``dt^2/4 (M qdd + J' (lam + alpha Phi) - Q)``, tangent ``M + dt/2 C + dt^2/4 (alpha J'J + K)``, then
        ``lam += alpha Phi`` at the new positions (Naya et al., review, section 12.1; mathematics of the augmented
        Lagrangian).
        """
        qd, qdd = s.trapezoidal
        M, Q, K, C, phi, J, _, _ = self.tangents(s.q, qd, s.u, s.t, s.p)
        scale = s.dt ** 2 / 4
        residual = scale * (M @ qdd + J.T @ (s.lam + s.alpha * phi) - Q)
        dq = -self.solver(M + s.dt / 2 * C + scale * (s.alpha * (J.T @ J) + K))(residual)
        q, sweeps = s.q + dq, s.sweeps + 1
        phi = self.phi(q, s.t, s.p)
        size = ca.sqrt(ca.sumsqr(dq) + ca.sumsqr(VIOLATION * phi))        # norm_inf would pass over NaN
        raised = ca.fmin(s.alpha * RAISE, s.penalty * RAISE ** 3)
        alpha = ca.if_else(ca.fmod(sweeps, PATIENCE) == 0, raised, s.alpha)
        v = ca.vertcat(q, s.lam + s.alpha * phi, alpha, sweeps, size - s.tolerance)
        return ca.Function('mbse_ali3p_iteration', s.arguments, [v], {'cse': True})

    def projection(self, s: Symbols) -> ca.Function:
        """Function of a scan's step: velocities and accelerations on the constraints, and the next step's start.

        ``T qd = W qd* - dt^2/4 J' alpha Phi_t`` and ``T qdd = W qdd* - dt^2/4 J' alpha (Jdot qd + Phidot_t)`` with
        ``W`` the tangent T without constraints, repeated with multipliers so that the rest of the violation goes too.
        ``lam`` takes those of the accelerations in: with the trapezoidal accelerations alone it is of first order in
        dt.
        """
        qd, qdd = s.trapezoidal
        M, _, K, C, _, J, b, _ = self.tangents(s.q, qd, s.u, s.t, s.p)
        scale = s.dt ** 2 / 4
        W = M + s.dt / 2 * C + scale * K
        solve = self.solver(W + scale * s.alpha * (J.T @ J))
        qd, _ = _project(solve, W @ qd, J, b, scale * s.alpha)
        qdd, change = _project(solve, W @ qdd, J, self.rate(s.q, qd, s.u, s.t, s.p), scale * s.alpha)
        ahead, lam = s.q + s.dt * (qd + s.dt / 2 * qdd), s.lam + change
        return ca.Function('mbse_ali3p', s.arguments, [ca.vertcat(ahead, lam, s.penalty, 0, 1, s.q, qd, qdd),
                                                       ca.vertcat(s.q, qd, qdd, lam, s.sweeps, s.left)], {'cse': True})


def _project(solve: Solve, right: Expression, J: Expression, rate: Expression,
             weight: Expression) -> tuple[Expression, Expression]:
    """Rates x (n,) with ``J x = rate`` and the multipliers mu (m,) of ``W x + J' mu = right``."""
    mu = type(J)(J.shape[0], 1)
    for _ in range(PASSES):
        x = solve(right + J.T @ (weight * rate - mu))
        mu = mu + weight * (J @ x - rate)
    return x, mu
