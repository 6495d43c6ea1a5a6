# SPDX-License-Identifier: Apache-2.0
"""A log of a hydraulic machine as a factor graph: the payload's mass is one constant node.

Nodes of an instant: independent coordinates ``z``, their ``zd`` and ``zdd``, pressures ``p``, MPa, inclinations
``base`` where they are measured, and ``force``, kN or kN m: what the model does not know of (bending of the boom,
tyres), as a force that forgets. Constant nodes: ``payload``, kg, and ``parameters``, the uncertain numbers of the
machine's file in their standard deviations.
"""

from __future__ import annotations

import numpy as np

from ...machine import Machine
from ..factors.dynamics_factors import equality, prior
from ..factors.machine_factors import KILO, MachineKinds, damped_walk
from ..graph import ALWAYS, FactorGraph
from .machine_log import MachineLog, readings
from .machine_motion import STATE, Followed
from .machine_settings import MachineGraphSettings


def sizes_of(machine: Machine, kinds: MachineKinds) -> tuple[dict[str, int], dict[str, int]]:
    """Sizes of the nodes of an instant and of the constant ones."""
    instant = {**{name: len(machine.coordinates) for name in STATE}, 'force': len(machine.weighed),
               'p': len(machine.volumes)}
    if machine.inclinations:
        instant['base'] = len(machine.inclinations)
    return instant, dict(zip(kinds.constant, (machine.payload.numel(), len(kinds.names))))


def machine_graph(machine: Machine, kinds: MachineKinds, log: MachineLog, s: MachineGraphSettings, motion: Followed,
                  balanced: np.ndarray, force: float, rough: np.ndarray | float = 1.0) -> FactorGraph:
    """Graph of a log; ``balanced`` (n, a) equations that count, ``force``: stddev of the unknown force, N; ``rough``
    (g,): times the density of the accelerations."""
    graph, steps, dt = FactorGraph(), np.arange(len(log.t)), np.diff(log.t)
    instant, constant = sizes_of(machine, kinds)
    components = {**{name: machine.coordinates for name in STATE}, 'p': machine.volumes, 'base': machine.inclinations,
                  'force': [machine.coordinates[k] for k in machine.weighed], 'parameters': kinds.names}
    for name, size in instant.items():
        graph.add_variables(name, size, steps, components[name])
    for name, size in constant.items():
        graph.add_variables(name, size, components=components.get(name, ()))
    chain = {f'{name}{k}': (name, steps[:-1] + k) for k in (0, 1) for name in STATE}
    density = np.where(np.isnan(kinds.levers), s.free_psd, s.acceleration_psd / kinds.levers ** 2)
    graph.add(kinds.jerk, chain, np.tile(np.sqrt(rough * density), 3), {'dt': dt})
    add_sensors(graph, machine, log, instant)
    for name, psd, label in (('p', s.pressure_psd, 'pressure'), ('base', s.inclination_psd, 'inclination')):
        if name in instant:
            graph.add(equality(instant[name]), {'x0': (name, steps[:-1]), 'x1': (name, steps[1:])},
                      np.sqrt(psd * dt)[:, None] * np.ones(instant[name]), label=label)
    a, decay = instant['force'], np.exp(-dt / s.unknown_time)
    stddev = force / KILO * kinds.levers[machine.weighed]
    graph.add(prior(a), {'x': ('force', 0)}, stddev, {'x0': np.zeros(a)}, label='start')
    graph.add(damped_walk(a), {'x0': ('force', steps[:-1]), 'x1': ('force', steps[1:])},
              np.sqrt(1 - decay ** 2)[:, None] * stddev, {'a': decay})
    add_balance(graph, machine, kinds, s, motion, balanced)
    return graph


def add_sensors(graph: FactorGraph, machine: Machine, log: MachineLog, sizes: dict[str, int]) -> None:
    """What was measured, at the instants at which it was."""
    for item in readings(machine, log):
        seen = np.flatnonzero(np.isfinite(item.values))
        if len(seen):
            graph.add(prior(sizes[item.node], (item.place,)), {'x': (item.node, seen)}, item.stddev,
                      {'x0': item.values[seen]}, label=f'sensor {item.channel}')


def add_balance(graph: FactorGraph, machine: Machine, kinds: MachineKinds, s: MachineGraphSettings, motion: Followed,
                balanced: np.ndarray) -> None:
    """Balance of forces at some instants, and what is known of the machine's uncertain numbers."""
    count, steps = len(kinds.names), np.flatnonzero(balanced.any(axis=1))
    if count:
        graph.add(prior(count), {'x': ('parameters', ALWAYS)}, 1.0, {'x0': np.zeros(count)}, label='known')
    if len(steps):
        roles = {name: (name, ALWAYS if name in kinds.constant else steps) for name in kinds.balance.variables}
        graph.add(kinds.balance, roles, s.balance_stddev / KILO * kinds.levers[machine.weighed],
                  {'near': motion.near[steps], 'on': balanced[steps].astype(float)})
