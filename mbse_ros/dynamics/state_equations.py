# SPDX-License-Identifier: Apache-2.0
"""Accelerations of the independent coordinates and their exact Jacobian (replaces Pyrhönen et al., state transition,
Eqs. 30-40)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import casadi as ca

from ..mechanism.force_derivatives import force_derivatives
from ..mechanism.system import MechanismSystem, System
from .formulations.articulated import of_all, state_of_tree
from .formulations.matrix_r import constraint_rates, dependent_solver, places

LARGEST_BLOCK = 12      # coupled dependent coordinates up to which all is written out in scalar operations
LARGEST_TREE = {2: 12, 3: 10}      # ... joints of a tree in a plane and in space

Expression: TypeAlias = 'ca.SX | ca.MX'
Solve = Callable[[Expression], Expression]


def is_small(system: System) -> bool:
    """Whether the system is written out in scalar operations: its loops, taken one after the other, are small.

    A chain of forty four-bars is small, its blocks have two rows; the time then grows in proportion to its length.
    """
    if isinstance(system, MechanismSystem) and system.tree is not None:
        return system.n <= LARGEST_TREE[system.tree.gravity.numel()]
    if not system.m:
        return True
    J = ca.jacobian(system.Phi, system.q)
    return max(len(rows) for rows in dependent_solver(system, J).rows) <= LARGEST_BLOCK


def state_function(system: System, parameters: ca.SX, scalar: bool | None = None, guard: bool = False,
                   pieces: Pieces | None = None) -> ca.Function:
    """Function ``(q, zd, u, t, p) -> (zdd, A, B, qdd, lam, qd)`` of the state ``X = [z, zd]``, ``f = [zd, zdd]``.

    ``zdd`` (g,), ``A`` (2g, 2g) = df/dX along the constraints (Pyrhönen et al., state transition, Eq. 21), ``B`` (2g,
    k) = df/du, ``qdd`` (n,), multipliers ``lam`` (m,) with ``M qdd + J' lam = Q``, velocities ``qd`` (n,). ``scalar``:
    written out in scalar operations, fastest for small systems; else with sparse QR factorisations at run time, whose
    cost grows with the number of nonzeros; default: ``is_small``. ``guard`` adds an output, the largest entry of R,
    which grows without bounds at a dead point. ``pieces``: those of the system, where they exist already.

    With ``G = Q - M qdd - J' lam`` and ``H = c - J qdd``, which are zero, the derivative along ``dq = R e_k`` (with the
    velocities that keep the constraints) or ``dqd = R e_k`` is ``dzdd = Mbar^-1 R' (dG - M S dH)``.
    """
    if scalar is None:
        scalar = is_small(system)
    kind = ca.SX if scalar else ca.MX
    g = len(system.independent)
    q, zd, u, t, p = symbols = state_symbols(system, parameters, kind)
    if isinstance(system, MechanismSystem) and system.tree is not None and not scalar:
        out = [*state_of_tree(system, parameters, symbols), kind(0, 1), of_all(system, zd), kind(1)]
        return ca.Function('mbse_state', symbols, out[:6 + guard], ['q', 'zd', 'u', 't', 'p'],
                           ['zdd', 'A', 'B', 'qdd', 'lam', 'qd', 'largest'][:6 + guard])
    pieces = pieces or Pieces(system, parameters)
    J, b = pieces.constraints(q, t, p)
    maps = Maps.of(system, J, scalar)
    R = maps.R
    qd = R @ zd + maps.S(b)
    M, Q, Q_u, c = pieces.dynamics(q, qd, u, t, p)
    free = maps.S(c)
    reduced = definite_solver(R.T @ M @ R, scalar)
    zdd = reduced(R.T @ (Q - M @ free))
    qdd = R @ zdd + free
    lam = maps.S_transposed(Q - M @ qdd)
    G_q, G_qd = pieces.force_tangents(q, qd, u, t, p, qdd, lam)
    H_q, H_qd, rate_q = pieces.constraint_tangents(q, qd, t, p, qdd)
    along = -maps.S(rate_q @ R)                            # velocities change with q at constant zd
    dG = ca.horzcat(G_q @ R + G_qd @ along, G_qd @ R)
    dH = ca.horzcat(H_q @ R + H_qd @ along, H_qd @ R)
    lower = reduced(R.T @ (dG - M @ maps.S(dH)))
    A = ca.vertcat(ca.horzcat(kind(g, g), kind.eye(g)), lower)
    B = ca.vertcat(kind(g, u.numel()), reduced(R.T @ Q_u))
    out, names = [zdd, A, B, qdd, lam, qd], ['zdd', 'A', 'B', 'qdd', 'lam', 'qd']
    if guard:
        out, names = [*out, largest_entry(R)], [*names, 'largest']
    return ca.Function('mbse_state', [q, zd, u, t, p], out, ['q', 'zd', 'u', 't', 'p'], names, {'cse': True})


def state_symbols(system: System, parameters: ca.SX, kind: type[Expression],
                  names: str = 'q zd u t p') -> list[Expression]:
    """Symbols of a kind by their names, with blanks between: q, zd, zdd, u, t, p, arguments of functions of a state."""
    g = len(system.independent)
    sizes = {'q': system.n, 'zd': g, 'zdd': g, 'u': system.u.numel(), 't': 1, 'p': parameters.numel()}
    return [kind.sym(name, sizes[name]) for name in names.split()]


def largest_entry(R: Expression) -> Expression:
    """Largest absolute entry, 0 of an empty matrix."""
    return ca.norm_inf(ca.vec(ca.densify(R))) if R.numel() else type(R)(0)


@dataclass(frozen=True)
class Maps:
    """``R`` (n, g) and the products with ``S`` (n, m) and its transpose, by the dependent block of J."""

    R: Expression
    S: Solve
    S_transposed: Solve

    @classmethod
    def of(cls, system: System, J: Expression, scalar: bool) -> Maps:
        """Maps of the system's partition; singular at a dead point."""
        dependent, independent = system.dependent, system.independent
        g = len(independent)
        place = places(dependent + independent)
        J_d = J[:, dependent]
        if not (scalar and system.m):
            solve, solve_transposed = _sparse_solvers(J_d)
        else:
            blocks = dependent_solver(system, J)
            solve, solve_transposed = blocks.solve, blocks.solve_transposed
        identity = type(J).eye(g)
        R = ca.vertcat(-solve(J[:, independent]), identity)[place, :]
        return cls(R, lambda x: ca.vertcat(solve(x), type(J)(g, x.shape[1]))[place, :],
                   lambda x: solve_transposed(x[dependent, :]))


def _sparse_solvers(A: Expression) -> tuple[Solve, Solve]:
    """Solvers with A and with its transpose by sparse QR factorisations."""
    if A.shape[0] == 0:
        return (lambda x: x), (lambda x: x)
    return lambda x: ca.solve(A, ca.densify(x), 'qr'), lambda x: ca.solve(A.T, ca.densify(x), 'qr')


def definite_solver(A: Expression, scalar: bool) -> Solve:
    """Solver with the reduced mass matrix, which is symmetric and positive definite: no pivots are needed."""
    if not scalar or A.shape[0] == 0:
        return _sparse_solvers(A)[0]
    if A.shape[0] == 1:
        return lambda x: x / A
    factors = ca.ldl(A, False)
    return lambda x: ca.ldl_solve(ca.densify(x), *factors)


class Pieces:
    """Functions of all coordinates that need no linear solve; taken with SX or MX arguments.

    ``constraints (q, t, p) -> (J, b)``, ``dynamics (q, qd, u, t, p) -> (M, Q, dQ/du, c)``, ``force_tangents (q, qd, u,
    t, p, qdd, lam)`` -> derivatives of G by q and qd, ``constraint_tangents (q, qd, t, p, qdd)`` -> those of H, and of
    the constraints' rate by q.
    """

    def __init__(self, system: System, parameters: ca.SX) -> None:
        q, qd, u, t = system.q, system.qd, system.u, system.t
        self._system, self._parameters = system, parameters
        J, b, c = self._rates = constraint_rates(system)
        self.constraints = ca.Function('constraints', [q, t, parameters], [J, b], {'cse': True})
        self.dynamics = ca.Function('dynamics', [q, qd, u, t, parameters],
                                    [system.M, system.Q, ca.jacobian(system.Q, u), c], {'cse': True})
        self._qdd, self._lam = ca.SX.sym('qdd', system.n), ca.SX.sym('lam', system.m)

    @cached_property
    def force_tangents(self) -> ca.Function:
        """By far the largest one, made when it is first asked for: most sensors do without, and positions."""
        s, qdd, lam, (J, _, _) = self._system, self._qdd, self._lam, self._rates
        if isinstance(s, MechanismSystem) and s.tree is not None:
            by_q, by_qd = force_derivatives(s.tree, s.qd, qdd)
            G_q, G_qd = ca.jacobian(s.applied, s.q) - by_q, ca.jacobian(s.applied, s.qd) - by_qd
        else:
            G = s.Q - s.M @ qdd - J.T @ lam
            G_q, G_qd = ca.jacobian(G, s.q), ca.jacobian(G, s.qd)
        return ca.Function('force_tangents', [s.q, s.qd, s.u, s.t, self._parameters, qdd, lam], [G_q, G_qd],
                           {'cse': True})

    @cached_property
    def constraint_tangents(self) -> ca.Function:
        """As above, made when it is first asked for."""
        s, qdd, (J, b, c) = self._system, self._qdd, self._rates
        H, rate = c - J @ qdd, J @ s.qd - b
        return ca.Function('constraint_tangents', [s.q, s.qd, s.t, self._parameters, qdd],
                           [ca.jacobian(H, s.q), ca.jacobian(H, s.qd), ca.jacobian(rate, s.q)], {'cse': True})

    @property
    def operations(self) -> int:
        """Scalar operations of all of them."""
        return sum(f.n_instructions() for f in (self.constraints, self.dynamics, self.force_tangents,
                                                self.constraint_tangents))
