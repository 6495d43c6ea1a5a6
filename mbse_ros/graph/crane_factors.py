# SPDX-License-Identifier: Apache-2.0
"""Factors of a hydraulic machine: how the pistons move between two instants, and what forces move them.

Paper 003 Eqs. 50 to 55 as one factor with the payload's mass and the uncertain numbers of the machine as variables.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..compiled import Scan
from ..dynamics.position_problem import newton_step
from ..machine import Machine
from .kinds import FactorKind

MPA = 1e6       # pressures of the graph are in MPa, as the observer's
KILO = 1e3      # and forces in kN: no variable is far from one
NEWTON = 2


@dataclass(frozen=True)
class CraneKinds:
    """Kinds of one machine; ``names`` of the uncertain numbers that forces depend on, ``scale`` their stddev."""

    balance: FactorKind
    jerk: FactorKind
    names: tuple[str, ...]
    scale: np.ndarray
    joints: Scan

    @property
    def constant(self) -> tuple[str, ...]:
        """Names of the constant nodes."""
        return ('payload', 'parameters') if self.names else ('payload',)


def crane_kinds(machine: Machine, backend: str = 'auto') -> CraneKinds:
    """All kinds of a machine, compiled once."""
    symbols = machine.parameters.symbol
    force = _imbalance(machine)
    used = [k for k in range(symbols.numel()) if ca.jacobian_sparsity(force.e, symbols[k]).nnz()]
    names = tuple(machine.parameters.names[k] for k in used)
    theta, values = ca.SX.sym('theta', len(used)), ca.SX(machine.parameters.mean)
    for i, k in enumerate(used):
        values[k] += machine.parameters.stddev[k] * theta[i]
    e = ca.substitute(force.e, symbols, values)
    variables = {'z': force.z, 'zd': force.zd, 'zdd': force.zdd, 'p': force.p, 'force': force.d,
                 'payload': machine.system.payload, **({'parameters': theta} if used else {})}
    balance = FactorKind('force_balance', variables, {'joints': force.joints}, e, backend=backend)
    return CraneKinds(balance, constant_jerk(len(machine.cylinders)), names, machine.parameters.stddev[used],
                      _joints(machine))


@dataclass(frozen=True)
class _Imbalance:
    e: ca.SX
    z: ca.SX
    zd: ca.SX
    zdd: ca.SX
    p: ca.SX
    d: ca.SX
    joints: ca.SX


def _imbalance(machine: Machine) -> _Imbalance:
    """``Mbar zdd - Qbar - F_hyd + F_fric - d`` (cylinders,), kN, at joint angles solved for the piston positions."""
    count, circuit, reduced = len(machine.cylinders), machine.circuit, machine.reduced
    z, zd, zdd, d = (ca.SX.sym(name, count) for name in ('z', 'zd', 'zdd', 'd'))
    p, start = ca.SX.sym('p', len(machine.volumes)), ca.SX.sym('joints', len(machine.system.joints))
    joints = start
    for _ in range(NEWTON):
        joints = newton_step(machine.system, joints, z)
    inertia = ca.substitute(reduced.Mbar @ zdd - reduced.Qbar, ca.vertcat(machine.system.q, reduced.zd),
                            ca.vertcat(joints, z, zd))
    force = circuit.hydraulic_forces(p * MPA) - circuit.friction_forces(zd, p * MPA)
    return _Imbalance((inertia - force) / KILO - d, z, zd, zdd, p, d, start)


def constant_jerk(size: int) -> FactorKind:
    """Piston motion under white jerk, exactly discrete: roles z0, zd0, zdd0, z1, zd1, zdd1; constants dt, s.

    ``L^-1 (x1 - F x0)`` with ``L L' = [dt^5/20 dt^4/8 dt^3/6; . dt^3/3 dt^2/2; . . dt]``: sigma is the root of the
    density.
    """
    before, after = ([ca.SX.sym(f'{name}{k}', size) for name in ('z', 'zd', 'zdd')] for k in (0, 1))
    dt, (z0, v0, a0), (z1, v1, a1) = ca.SX.sym('dt'), before, after
    e = [z1 - z0 - dt * v0 - dt ** 2 / 2 * a0, v1 - v0 - dt * a0, a1 - a0]
    # The inverse in closed form, the last entry first: no small number is the difference of two others.
    w2 = e[2] / ca.sqrt(dt)
    w1 = (e[1] - dt / 2 * e[2]) / ca.sqrt(dt ** 3 / 12)
    w0 = (e[0] - dt / 2 * e[1] + dt ** 2 / 12 * e[2]) / ca.sqrt(dt ** 5 / 720)
    roles = {'z0': z0, 'zd0': v0, 'zdd0': a0, 'z1': z1, 'zd1': v1, 'zdd1': a1}
    return FactorKind('constant_jerk', roles, {'dt': dt}, ca.vertcat(w0, w1, w2), backend='vm')


def damped_walk(size: int) -> FactorKind:
    """``x1 - a x0``: a force that forgets, stationary of stddev s with sigma ``s sqrt(1 - a^2)``: roles x0, x1."""
    x0, x1, a = ca.SX.sym('x0', size), ca.SX.sym('x1', size), ca.SX.sym('a')
    return FactorKind('damped_walk', {'x0': x0, 'x1': x1}, {'a': a}, x1 - a * x0, backend='vm')


def _joints(machine: Machine) -> Scan:
    """Joint angles of piston positions, each from those before it."""
    joints, z = ca.SX.sym('joints', len(machine.system.joints)), ca.SX.sym('z', len(machine.cylinders))
    solved = joints
    for _ in range(NEWTON):
        solved = newton_step(machine.system, solved, z)
    p = machine.parameters.symbol
    return Scan(ca.Function('mbse_joints', [joints, z, p], [solved, solved]), 'vm')
