# SPDX-License-Identifier: Apache-2.0
"""Constraints of position, velocity and acceleration, dependent and independent (paper 002, 6.4, 6.5, 6.7 to 6.9)."""

from __future__ import annotations

import casadi as ca

from .equations import Equations
from .kinds import FactorKind

ROLES = {'position': ('q',), 'velocity': ('q', 'qd'), 'position_independent': ('q', 'z'),
         'velocity_independent': ('q', 'qd', 'zd'), 'acceleration_independent': ('q', 'qd', 'qdd', 'zdd')}


def constraint(equations: Equations, name: str, unknown: bool = False) -> FactorKind:
    """Constraint of a name in ``ROLES``: roles those, where ``unknown`` also parameters; constants t.

    ``Phi(q, t)`` (Eq. 24), ``Phi_q qd + Phi_t`` (Eq. 25); independent ``[Phi; q_z - z]`` (Eq. 30), ``[Phi_q qd + Phi_t;
    qd_z - zd]`` (Eq. 31), ``[Phi_q qdd - c; qdd_z - zdd]`` (Eq. 32).
    """
    level, _, independent = name.partition('_')
    residual, roles, s = equations.residuals[level], ROLES[name], equations.symbols
    if independent:
        residual = ca.vertcat(residual, s[roles[-2]][equations.z] - s[roles[-1]])
    return equations.kind(name, (*roles, 'parameters') if unknown else roles, residual, ('t',))
