# SPDX-License-Identifier: Apache-2.0
"""Factors of a hydraulic machine: how its coordinates move between two instants, and what forces move them.

Pyrhönen et al., mass estimation, Eqs. 50 to 55 as one factor with the payload's mass and the uncertain numbers of the
machine as variables.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from ...compiled import Scan
from ...filters.force_balance import without_sensor_errors
from ...filters.hydraulic_model import coordinate_scale
from ...filters.hydraulic_state import state_names
from ...machine import Machine
from ...machine.equations import check_weighs
from ...payload.inverse_dynamics import Residual, residual
from .kinds import FactorKind

MPA = 1e6       # pressures of the graph are in MPa, as the observer's
KILO = 1e3      # and forces in kN or kN m: no variable is far from one
NODE = {'position': ('z', 1.0), 'velocity': ('zd', 1.0), 'acceleration': ('zdd', 1.0), 'pressure': ('p', MPA),
        'inclination': ('base', 1.0)}       # of a kind of entries of the observer's state, and the node's unit


@dataclass(frozen=True)
class MachineKinds:
    """Kinds of one machine; ``names`` of the uncertain numbers that forces depend on, ``scale`` their stddev.

    ``factor`` (p, p): of their covariance, where a calibration has made them depend on each other not diagonal.
    ``follow``: dependent coordinates, piston positions and speeds along a motion. ``needs`` (a, cylinders): which
    cylinders are in each equation; ``levers`` (g,): metres of piston motion for a unit of each coordinate, NaN where
    no cylinder moves it.
    """

    balance: FactorKind
    jerk: FactorKind
    names: tuple[str, ...]
    scale: np.ndarray
    factor: np.ndarray
    follow: Scan
    needs: np.ndarray
    levers: np.ndarray

    @property
    def constant(self) -> tuple[str, ...]:
        """Names of the constant nodes."""
        return ('payload', 'parameters') if self.names else ('payload',)


def machine_kinds(machine: Machine, backend: str = 'auto') -> MachineKinds:
    """All kinds of a machine, compiled once. Raises DescriptionError where nothing weighs a load."""
    check_weighs(machine)
    found, symbols = residual(machine), machine.parameters.symbol
    force = found.g0 + found.G1 @ machine.payload
    used = [k for k in range(symbols.numel()) if ca.jacobian_sparsity(force, symbols[k]).nnz()]
    balance = _balance(machine, found, force, used, backend)
    rates = ca.sparsify(machine.piston_rates)[:, machine.weighed]
    levers = [np.nan if lever is None else lever for lever in coordinate_scale(machine)]
    return MachineKinds(balance, constant_jerk(len(machine.coordinates)),
                        tuple(machine.parameters.names[k] for k in used), machine.parameters.stddev[used],
                        machine.parameters.factor(used),
                        _follow(machine), np.array(ca.DM(rates.sparsity(), 1.0).full(), dtype=bool).T, np.array(levers))


def _balance(machine: Machine, found: Residual, force: ca.SX, used: list[int], backend: str) -> FactorKind:
    """``on (Mbar zdd - Qbar - S' F - d)`` (a,), kN or kN m, at coordinates solved for the independent ones.

    Constants: ``near``, dependent coordinates close by; ``on`` (a,), 1 for an equation that counts, 0 for another. The
    derivatives are those of one Newton step at the solution, which are exact.
    """
    names, _ = state_names(machine)
    symbols, theta = machine.parameters.symbol, ca.SX.sym('theta', len(used))
    values = ca.SX(machine.parameters.mean)
    if used:
        values[used] += ca.sparsify(ca.DM(machine.parameters.factor(used))) @ theta
    nodes, X = _nodes(names)
    unknown, d = machine.payload, ca.SX.sym('d', len(machine.weighed))
    variables = {**nodes, 'force': d, 'payload': unknown, **({'parameters': theta} if used else {})}
    e, = ca.substitute([force / KILO - d], [found.X, symbols], [X, values])
    every = [found.near, *variables.values()]
    parts = ca.Function('balance', every, [e, ca.jacobian(e, ca.vertcat(*variables.values()))], {'cse': True})
    near, on = ca.SX.sym('near', found.near.numel()), ca.SX.sym('on', d.numel())
    true = without_sensor_errors(machine, names, found.X)[:nodes['z'].numel()]
    place, = ca.substitute([true], [found.X, symbols], [X, values])
    solved, = ca.substitute([machine.closed(near, place)[machine.system.dependent]], [symbols], [values])
    e, J = parts(solved, *variables.values())
    return FactorKind('force_balance', variables, {'near': near, 'on': on}, on * e, ca.diag(on) @ J, backend=backend)


def _nodes(names: tuple[str, ...]) -> tuple[dict[str, ca.SX], ca.SX]:
    """Nodes of an instant that forces depend on, and the observer's state (nx,), SI, made of them (0 elsewhere)."""
    nodes, X = {}, ca.SX.zeros(len(names))
    for kind, (node, unit) in NODE.items():
        places = [i for i, name in enumerate(names) if name.startswith(f'{kind}/')]
        if places:
            nodes[node] = ca.SX.sym(node, len(places))
            X[places] = nodes[node] * unit
    return nodes, X


def constant_jerk(size: int) -> FactorKind:
    """Motion under white jerk, exactly discrete: roles z0, zd0, zdd0, z1, zd1, zdd1; constants dt, s.

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


def _follow(machine: Machine) -> Scan:
    """``(dependent, [z, zd], parameters) -> dependent, [dependent, pistons, speeds]``, each from those before it."""
    system, g, p = machine.system, len(machine.coordinates), machine.parameters.symbol
    near, u = ca.SX.sym('near', len(system.dependent)), ca.SX.sym('u', 2 * g)
    q = machine.closed(near, u[:g])
    speeds, = ca.substitute([machine.piston_rates @ u[g:]], [system.q], [q])
    solved = q[system.dependent]
    return Scan(ca.Function('mbse_follow', [near, u, p], [solved, ca.vertcat(solved, q[machine.pistons], speeds)],
                            {'cse': True}), 'vm')
