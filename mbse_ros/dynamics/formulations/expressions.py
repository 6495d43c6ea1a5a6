# SPDX-License-Identifier: Apache-2.0
"""The formulations as expressions of a fixed number of operations, with exact derivatives, for compiled steps in all
coordinates.

Each is a way to solve ``M x + J' mu = f``, ``J x = g + r mu``, r = 0 but for the penalty. Accelerations have Q and c
(of the penalty less the stabilisation) on the right, and their derivatives, by the implicit function theorem, those of
``G = Q - M qdd - J' lam`` and ``H = c + r lam - J qdd``. The rows of J are independent ones.

M may be singular, if the constraints hold what has no mass: ``W = M + w J'J`` is definite, and what this adds to both
sides is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca

from ...mechanism.system import System
from ..state_equations import Maps, Pieces, definite_solver, state_symbols
from .kkt import PENALTY, STABILISED


@dataclass(frozen=True)
class Saddle:
    """Matrices of the equations at one instant; ``W`` (n, n), ``weight`` w, ``give`` r, ``maps`` of the dependent
    columns of J, ``scalar``: of scalar operations."""

    M: ca.SX
    J: ca.SX
    W: ca.SX
    weight: ca.SX
    give: float
    maps: Maps
    scalar: bool

    @classmethod
    def of(cls, M: ca.SX, J: ca.SX, give: float, maps: Maps, scalar: bool) -> Saddle:
        """With w the mean mass, but no larger than half of the penalty."""
        weight = ca.trace(M) / M.size1()
        weight = ca.fmin(weight, 0.5 / give) if give else weight
        return cls(M, J, ca.densify(M + weight * J.T @ J), weight, give, maps, scalar)

    def pushed(self, f: ca.SX, g: ca.SX) -> ca.SX:
        """What is on the right beside W."""
        return f + self.weight * self.J.T @ g

    def multipliers(self, f: ca.SX, x: ca.SX) -> ca.SX:
        """mu (m, k) of a solution x (n, k) without give."""
        return self.maps.S_transposed(f - self.M @ x)

    def definite(self, A: ca.SX) -> Callable[[ca.SX], ca.SX]:
        """Solver with a positive definite matrix."""
        return definite_solver(A, self.scalar)


def whole(of: Saddle, f: ca.SX, g: ca.SX) -> tuple[ca.SX, ca.SX]:
    """All unknowns at once (Naya et al., review, Eqs. 1, 28): ``L D L'`` without pivots, first W, then what is left of
    the rows, which is negative definite."""
    m, kept = of.J.size1(), 1 - of.weight * of.give
    K = ca.vertcat(ca.horzcat(of.W, of.J.T), ca.horzcat(of.J, -of.give / kept * type(f).eye(m)))
    x = of.definite(ca.densify(K))(ca.vertcat(of.pushed(f, g), g))
    return x[:of.M.size1(), :], x[of.M.size1():, :] / kept


def udwadia_kalaba(of: Saddle, f: ca.SX, g: ca.SX) -> tuple[ca.SX, ca.SX]:
    """``x0 + W^-1 J' (J W^-1 J')^-1 (g - J x0)`` with ``W x0 = f + w J' g`` (Orsino, modular modelling, Eq. 4.9)."""
    both = of.definite(of.W)(ca.horzcat(of.J.T, of.pushed(f, g)))
    lifted, free = both[:, :of.J.size1()], both[:, of.J.size1():]
    pull = of.definite(of.J @ lifted)(of.J @ free - g)
    return free - lifted @ pull, pull


def recursive(of: Saddle, f: ca.SX, g: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Row after row, as a Kalman filter takes measurements without noise (Orsino, modular modelling, Eqs. 4.14 to
    4.18)."""
    P = of.definite(of.W)(type(f).eye(of.W.size1()))
    x = P @ of.pushed(f, g)
    for i in range(of.J.size1()):
        row = of.J[i, :]
        column = P @ row.T
        gain = column / (row @ column)
        x, P = x + gain @ (g[i, :] - row @ x), P - gain @ column.T
    return x, of.multipliers(f, x)


def complement(of: Saddle, f: ca.SX, g: ca.SX) -> tuple[ca.SX, ca.SX]:
    """By an orthonormal basis S (n, g) of the kernel of J (Orsino, modular modelling, theorem 3.2)."""
    S = orthonormal(of.maps.R.T).T
    least = of.J.T @ of.definite(of.J @ of.J.T)(g)
    x = least + S @ of.definite(S.T @ of.M @ S)(S.T @ (f - of.M @ least))
    return x, of.multipliers(f, x)


def _projected(of: Saddle, f: ca.SX, g: ca.SX, S: ca.SX, particular: ca.SX) -> tuple[ca.SX, ca.SX]:
    """By a projector S (n, n) onto the kernel of J and one solution of ``J x = g``."""
    A = S.T @ of.M @ S + of.weight * of.J.T @ of.J
    x = of.definite(ca.densify(A))(of.pushed(S.T @ (f - of.M @ particular), g))
    return x, of.multipliers(f, x)


def inverse(of: Saddle, f: ca.SX, g: ca.SX) -> tuple[ca.SX, ca.SX]:
    """``S = I - J^+ J`` (Orsino, modular modelling, corollary 3.3)."""
    found = of.J.T @ of.definite(of.J @ of.J.T)(ca.horzcat(of.J, g))
    n = of.M.size1()
    return _projected(of, f, g, type(f).eye(n) - found[:, :n], found[:, n:])


def orthonormalization(of: Saddle, f: ca.SX, g: ca.SX) -> tuple[ca.SX, ca.SX]:
    """``S = I - N'N`` of the orthonormalized rows N (Orsino, modular modelling, proposition 3.1 iv)."""
    N = orthonormal(of.J)
    return _projected(of, f, g, type(f).eye(of.M.size1()) - N.T @ N, of.J.T @ of.definite(of.J @ of.J.T)(g))


def one_inverse(of: Saddle, f: ca.SX, g: ca.SX) -> tuple[ca.SX, ca.SX]:
    """``S = I - G J``, oblique, with the inverse of the dependent columns as {1}-inverse G of J (Orsino, modular
    modelling, proposition 3.1 ii)."""
    return _projected(of, f, g, type(f).eye(of.M.size1()) - of.maps.S(of.J), of.maps.S(g))


def orthonormal(rows: ca.SX) -> ca.SX:
    """Rows (k, n), orthonormalized by Gram and Schmidt, twice each."""
    found: list[ca.SX] = []
    for i in range(rows.size1()):
        row = rows[i, :]
        for _ in range(2):
            for other in found:
                row = row - (row @ other.T) @ other
        found.append(row / ca.norm_2(row))
    return ca.densify(ca.vertcat(*found))


Way = Callable[[Saddle, ca.SX, ca.SX], tuple[ca.SX, ca.SX]]
WAYS: dict[str, Way] = {
    'kkt': whole, 'kkt_sparse': whole, 'penalty': whole, 'udwadia_kalaba': udwadia_kalaba,
    'udwadia_kalaba_recursive': recursive, 'projection_complement': complement, 'projection_inverse': inverse,
    'projection_one_inverse': one_inverse, 'projection_orthonormal': orthonormalization}


@dataclass(frozen=True)
class Formulated:
    """Functions of a system by a formulation.

    ``field (q, qd, u, t, p) -> (qdd, K, D)``: accelerations (n,) of any state and their derivatives (n, n) by q and qd;
    ``rates (q, zd, u, t, p) -> (zdd, A, B, qdd, lam, qd)`` as ``state_function``, of one on the constraints;
    ``closed (q, qd, t, p) -> (q, qd)``: back on the constraints by the least change, where they are exact.
    """

    field: ca.Function
    rates: ca.Function
    closed: ca.Function | None


def formulated(system: System, parameters: ca.SX, name: str, alpha: float = PENALTY, scalar: bool = True) -> Formulated:
    """Functions of the formulation of a name among ``WAYS``; ``alpha`` of the penalty; ``scalar`` as of
    ``state_function``. The system has no redundant rows."""
    pieces, kind, g, give = Pieces(system, parameters), ca.SX if scalar else ca.MX, len(system.independent), 0.0
    damping, stiffness, way = 0.0, 0.0, WAYS[name] if system.m else whole
    if name == 'penalty':
        zeta, omega = STABILISED
        give, damping, stiffness = 1 / alpha, 2 * zeta * omega, omega ** 2
    q, zd, u, t, p = state_symbols(system, parameters, kind)
    position = ca.Function('position', [system.q, system.t, parameters], [system.Phi])

    def derived(q: ca.SX, qd: ca.SX) -> tuple[list[ca.SX], Saddle, ca.SX]:
        """Accelerations, multipliers and derivatives by q, qd and u; the matrices; derivative of Phidot by q."""
        J, b = pieces.constraints(q, t, p)
        M, Q, Q_u, c = pieces.dynamics(q, qd, u, t, p)
        of = Saddle.of(M, J, give, Maps.of(system, J, scalar), scalar)
        if give:
            c = c - damping * (J @ qd - b) - stiffness * position(q, t, p)
        qdd, lam = way(of, Q, c)
        G_q, G_qd = pieces.force_tangents(q, qd, u, t, p, qdd, lam)
        H_q, H_qd, rate_q = pieces.constraint_tangents(q, qd, t, p, qdd)
        if give:
            H_q, H_qd = H_q - damping * rate_q - stiffness * J, H_qd - damping * J
        slopes, _ = way(of, ca.densify(ca.horzcat(G_q, G_qd, Q_u)),
                        ca.densify(ca.horzcat(H_q, H_qd, kind(system.m, u.numel()))))
        return [qdd, lam, *ca.horzsplit(slopes, [0, system.n, 2 * system.n, 2 * system.n + u.numel()])], of, rate_q

    qd = kind.sym('qd', system.n)
    (qdd, _, K, D, _), _, _ = derived(q, qd)
    field = ca.Function('mbse_field', [q, qd, u, t, p], [qdd, K, D], {'cse': True})
    J, b = pieces.constraints(q, t, p)
    maps, z = Maps.of(system, J, scalar), system.independent
    on = maps.R @ zd + maps.S(b)
    (qdd, lam, K, D, B), of, rate_q = derived(q, on)
    along = -of.maps.S(rate_q @ of.maps.R)              # velocities change with q at constant zd
    lower = ca.horzcat(K @ of.maps.R + D @ along, D @ of.maps.R)[z, :]
    A = ca.vertcat(ca.horzcat(kind(g, g), kind.eye(g)), lower)
    rates = ca.Function('mbse_state', [q, zd, u, t, p],
                        [qdd[z], A, ca.vertcat(kind(g, u.numel()), B[z, :]), qdd, lam, on],
                        ['q', 'zd', 'u', 't', 'p'], ['zdd', 'A', 'B', 'qdd', 'lam', 'qd'], {'cse': True})
    return Formulated(field, rates, None if give else _closed(pieces, position, q, qd, t, p, scalar))


def _closed(pieces: Pieces, position: ca.Function, q: ca.SX, qd: ca.SX, t: ca.SX, p: ca.SX, scalar: bool
            ) -> ca.Function:
    """Two corrections of least size of the position, one of the velocity."""
    near = q
    for _ in range(2):
        J, _ = pieces.constraints(near, t, p)
        near = near - J.T @ definite_solver(J @ J.T, scalar)(position(near, t, p))
    J, b = pieces.constraints(near, t, p)
    return ca.Function('closed', [q, qd, t, p], [near, qd - J.T @ definite_solver(J @ J.T, scalar)(J @ qd - b)],
                       {'cse': True})
