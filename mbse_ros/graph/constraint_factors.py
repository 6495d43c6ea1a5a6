# SPDX-License-Identifier: Apache-2.0
"""Constraints of position, velocity and acceleration, dependent and independent (paper 002, 6.4, 6.5, 6.7 to 6.9)."""

from __future__ import annotations

import casadi as ca

from .equations import Equations
from .kinds import FactorKind


def position_constraint(equations: Equations, unknown: bool = False) -> FactorKind:
    """``Phi(q, t)`` (Eq. 24): roles q [, parameters]; constants t."""
    return equations.kind('position', _roles('q', unknown=unknown), equations.residuals['position'], ('t',))


def velocity_constraint(equations: Equations, unknown: bool = False) -> FactorKind:
    """``Phi_q qd + Phi_t`` (Eq. 25): roles q, qd [, parameters]; constants t."""
    return equations.kind('velocity', _roles('q', 'qd', unknown=unknown), equations.residuals['velocity'], ('t',))


def position_independent(equations: Equations, unknown: bool = False) -> FactorKind:
    """``[Phi; q_z - z]`` (Eq. 30): roles q, z [, parameters]; constants t."""
    return _independent(equations, 'position', 'q', ('q', 'z'), unknown)


def velocity_independent(equations: Equations, unknown: bool = False) -> FactorKind:
    """``[Phi_q qd + Phi_t; qd_z - zd]`` (Eq. 31): roles q, qd, zd [, parameters]; constants t."""
    return _independent(equations, 'velocity', 'qd', ('q', 'qd', 'zd'), unknown)


def acceleration_independent(equations: Equations, unknown: bool = False) -> FactorKind:
    """``[Phi_q qdd - c; qdd_z - zdd]`` (Eq. 32): roles q, qd, qdd, zdd [, parameters]; constants t."""
    return _independent(equations, 'acceleration', 'qdd', ('q', 'qd', 'qdd', 'zdd'), unknown)


def _independent(equations: Equations, level: str, of: str, roles: tuple[str, ...], unknown: bool) -> FactorKind:
    s = equations.symbols
    chosen = s[of][equations.z] - s[roles[-1]]
    residual = ca.vertcat(equations.residuals[level], chosen)
    return equations.kind(f'{level}_independent', _roles(*roles, unknown=unknown), residual, ('t',))


def _roles(*roles: str, unknown: bool) -> tuple[str, ...]:
    return (*roles, 'parameters') if unknown else roles
