# SPDX-License-Identifier: Apache-2.0
"""The equations of a mechanism as factors, forward and inverse, dependent and independent, and the linear ones beside
them: prior, soft equality, integrators (Blanco-Claraco et al., factor graphs, 5.2 and 6.1 to 6.9)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import casadi as ca

from ...dynamics.partitioned import newton_function
from ...dynamics.state_equations import Maps
from .equations import FactorEquations
from .kinds import FactorKind

ROLES = {'position': ('q',), 'velocity': ('q', 'qd'), 'position_independent': ('q', 'z'),
         'velocity_independent': ('q', 'qd', 'zd'), 'acceleration_independent': ('q', 'qd', 'qdd', 'zdd')}
ITERATIONS = 3      # of Newton's method from the q of the graph: beyond them q* does not depend on where it began


@lru_cache
def prior(size: int, places: Sequence[int] | None = None) -> FactorKind:
    """``x - x0`` (Eq. 21), of all components or of those at ``places``: roles x; constants x0."""
    x = ca.SX.sym('x', size)
    seen = x if places is None else x[list(places)]
    x0 = ca.SX.sym('x0', seen.numel())
    return FactorKind('prior', {'x': x}, {'x0': x0}, seen - x0, backend='vm')


@lru_cache
def equality(size: int) -> FactorKind:
    """``x1 - x0``, soft (5.2); also the random walk of a force, a parameter or a bias: roles x0, x1."""
    x0, x1 = (ca.SX.sym(name, size) for name in ('x0', 'x1'))
    return FactorKind('equality', {'x0': x0, 'x1': x1}, {}, x1 - x0, backend='vm')


@lru_cache
def euler(size: int) -> FactorKind:
    """``x1 - x0 - dt xd0`` (Eq. 22): roles x0, x1, xd0; constants dt, s."""
    x0, x1, xd0, dt = *(ca.SX.sym(name, size) for name in ('x0', 'x1', 'xd0')), ca.SX.sym('dt')
    return FactorKind('euler', {'x0': x0, 'x1': x1, 'xd0': xd0}, {'dt': dt}, x1 - x0 - dt * xd0, backend='vm')


@lru_cache
def trapezoid(size: int, places: Sequence[int] | None = None) -> FactorKind:
    """``x1 - x0 - dt/2 (xd0 + xd1)`` (Eq. 23), of all components or of those at ``places``: roles x0, x1, xd0, xd1;
    constants dt, s."""
    x0, x1, xd0, xd1 = (ca.SX.sym(name, size) for name in ('x0', 'x1', 'xd0', 'xd1'))
    dt = ca.SX.sym('dt')
    e = x1 - x0 - dt / 2 * (xd0 + xd1)
    return FactorKind('trapezoid', {'x0': x0, 'x1': x1, 'xd0': xd0, 'xd1': xd1}, {'dt': dt},
                      e if places is None else e[list(places)], backend='vm')


def constraint(equations: FactorEquations, name: str, unknown: bool = False) -> FactorKind:
    """Constraint of a name in ``ROLES``: roles those, where ``unknown`` also parameters; constants t.

    ``Phi(q, t)`` (Eq. 24), ``Phi_q qd + Phi_t`` (Eq. 25); independent ``[Phi; q_z - z]`` (Eq. 30), ``[Phi_q qd + Phi_t;
    qd_z - zd]`` (Eq. 31), ``[Phi_q qdd - c; qdd_z - zdd]`` (Eq. 32).
    """
    level, _, independent = name.partition('_')
    residual, roles, s = equations.residuals[level], ROLES[name], equations.symbols
    if independent:
        residual = ca.vertcat(residual, s[roles[-2]][equations.z] - s[roles[-1]])
    return equations.kind(name, (*roles, 'parameters') if unknown else roles, residual, ('t',))


def dynamics(equations: FactorEquations, force: bool = False, unknown: bool = False) -> FactorKind:
    """``qdd*(q, qd, Q) - qdd`` (Eqs. 26 and 28): roles q, qd, qdd [, Q] [, parameters]; constants u, t.

    ``qdd*`` solves the full equations ``[M Phi_q'; Phi_q 0] [qdd; lam] = [Q; c]``, which are regular for a singular
    mass matrix too; where M is regular this is Eq. 6. The derivative solves the same equations for theirs.
    """
    eq, (s, numbers) = equations, equations.matrix_symbols()
    Q = s['Q'] if force else ca.MX.zeros(len(eq.forces))
    p = eq.with_unknown(numbers, s['parameters']) if unknown else numbers
    M, forces, J, c, _ = eq.terms(s['q'], s['qd'], Q, s['u'], s['t'], p)
    qdd, lam, K = eq.accelerations(M, forces, J, c)
    by_q, by_qd, by_Q, by_p, *_ = eq.tangents(s['q'], s['qd'], Q, s['u'], s['t'], p, qdd, lam)
    slopes = ca.horzcat(by_q, by_qd, *([by_Q] if force else []), *([by_p] if unknown else []))
    D = ca.solve(K, ca.densify(slopes), 'qr')[:eq.n, :]
    jacobian = ca.horzcat(D[:, :2 * eq.n], -ca.MX.eye(eq.n), D[:, 2 * eq.n:])
    return _kind(eq, 'inverse_dynamics' if force else 'dynamics', ('q', 'qd', 'qdd'), s, numbers, qdd - s['qdd'],
                 jacobian, force, unknown)


def dynamics_independent(equations: FactorEquations, force: bool = False, unknown: bool = False) -> FactorKind:
    """``zdd*(z, zd, Q) - zdd`` (Eqs. 27 and 29): roles z, zd, zdd, q [, Q] [, parameters]; constants u, t.

    ``q`` is where the position problem starts, which decides the branch; e does not change with it.
    """
    eq, (s, numbers) = equations, equations.matrix_symbols()
    n, g = eq.n, eq.g
    Q = s['Q'] if force else ca.MX.zeros(len(eq.forces))
    p = eq.with_unknown(numbers, s['parameters']) if unknown else numbers
    q = _closed(eq, s, p)
    _, _, J, _, b = eq.terms(q, ca.MX.zeros(n), Q, s['u'], s['t'], p)
    maps = Maps.of(eq.system, J, False)
    R = maps.R
    qd = R @ s['zd'] + maps.S(b)
    M, forces, J, c, _ = eq.terms(q, qd, Q, s['u'], s['t'], p)
    qdd, lam, K = eq.accelerations(M, forces, J, c)
    by_q, by_qd, by_Q, by_p, rate_q, rate_p, Phi_p = eq.tangents(q, qd, Q, s['u'], s['t'], p, qdd, lam)
    slopes = [by_q @ R - by_qd @ maps.S(rate_q @ R), by_qd @ R]
    if force:
        slopes.append(by_Q)
    if unknown:
        dq = -maps.S(ca.densify(Phi_p))
        slopes.append(by_q @ dq - by_qd @ maps.S(rate_q @ dq + rate_p) + by_p)
    D = ca.solve(K, ca.densify(ca.horzcat(*slopes)), 'qr')[eq.z, :]
    jacobian = ca.horzcat(D[:, :2 * g], -ca.MX.eye(g), ca.MX.zeros(g, n), D[:, 2 * g:])
    name = 'inverse_dynamics_independent' if force else 'dynamics_independent'
    return _kind(eq, name, ('z', 'zd', 'zdd', 'q'), s, numbers, qdd[eq.z] - s['zdd'], jacobian, force, unknown, ('q',))


def _closed(eq: FactorEquations, s: dict[str, ca.MX], p: ca.MX) -> ca.MX:
    """Coordinates at z on the branch of q."""
    entries = ca.vertsplit(s['q'])
    for k, place in enumerate(eq.z):
        entries[place] = s['z'][k]
    q, newton = ca.vertcat(*entries), newton_function(eq.system)
    for _ in range(ITERATIONS):
        q, _ = newton(q, s['t'], p)
    return q


def _kind(eq: FactorEquations, name: str, roles: tuple[str, ...], s: dict[str, ca.MX], numbers: ca.MX, residual: ca.MX,
          jacobian: ca.MX, force: bool, unknown: bool, blind: tuple[str, ...] = ()) -> FactorKind:
    roles = (*roles, *(['Q'] if force else []), *(['parameters'] if unknown else []))
    constants = {role: s[role] for role in ('u', 't') if s[role].numel()}
    return FactorKind(name, {role: s[role] for role in roles}, constants, residual, jacobian, numbers, eq.numbers,
                      blind, eq.model.backend, eq.terms.n_instructions() + eq.tangents.n_instructions())
