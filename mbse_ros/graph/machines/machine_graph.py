# SPDX-License-Identifier: Apache-2.0
"""A log of a hydraulic machine as a factor graph: the payload's mass is one constant node.

Nodes of an instant: independent coordinates ``z``, their ``zd`` and ``zdd``, pressures ``p``, MPa, inclinations
``base`` where they are measured, and ``force``, kN or kN m: what the model does not know of (bending of the boom,
tyres), as a force that forgets. Constant nodes: ``payload``, kg, and ``parameters``, the uncertain numbers of the
machine's file in their standard deviations.

``moving``, ``followed``: which equations of a machine count at which instant of a log.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import GraphError
from ...machine import Machine
from ...payload.gates import margins, slowest
from ...settings import Settings, setting
from ..factors.dynamics_factors import equality, prior
from ..factors.machine_factors import KILO, MachineKinds, damped_walk
from ..graph import ALWAYS, FactorGraph
from .machine_log import MachineLog, check_log, held, readings

STATE = ('z', 'zd', 'zdd')


@dataclass(frozen=True)
class MachineGraphSettings(Settings):
    """Tuning of the machine's factor graph; the noise of the sensors is in the machine's YAML."""

    acceleration_psd: float = setting(10.0, 'Random walk of the piston acceleration', '(m/s^2)^2/s', 1e-6, 1e6)
    free_psd: float = setting(1.0, 'Random walk of the acceleration of a coordinate that no cylinder moves', '(SI)^2/s',
                              1e-9, 1e6)
    pressure_psd: float = setting(20.0, 'Random walk of the pressures', 'MPa^2/s', 1e-6, 1e6)
    inclination_psd: float = setting(1e-5, 'Random walk of a measured inclination of the base', 'rad^2/s', 1e-12, 1e2)
    unknown_force: float = setting(0.0, 'Standard deviation of the force at a piston that is not in the model; '
                                        '0: as likely as the log says', 'N', 0.0, 1e6)
    unknown_time: float = setting(0.1, 'Correlation time of this force', 's', 1e-3, 100.0)
    balance_stddev: float = setting(5.0, 'Standard deviation of the balance of forces at one instant', 'N', 1e-3, 1e6)
    min_speed: float = setting(0.0, "Slowest piston whose friction is trusted; 0: 1.2 times each cylinder's "
                                    "transition velocity", 'm/s', 0.0, 1.0)
    guard_time: float = setting(0.15, 'A balance counts when the piston moves this long before and after it; '
                                      'each speed is taken over this long before and after, too', 's', 0.01, 10.0)
    stroke_margin: float = setting(0.005, "Distance from the stroke's ends in which forces are not trusted; at "
                                          "least the end stop's length", 'm',
                                   0.0, 1.0)


@dataclass(frozen=True)
class Followed:
    """The motion that the samples show: dependent coordinates ``near`` (n, n_q - g), ``pistons`` and ``speeds``
    (n, cylinders), m and m/s; ``start``: values (n, size) of the nodes that it shows, by name."""

    near: np.ndarray
    pistons: np.ndarray
    speeds: np.ndarray
    start: dict[str, np.ndarray]

    def part(self, begin: int, end: int) -> Followed:
        """Some of the instants."""
        return Followed(self.near[begin:end], self.pistons[begin:end], self.speeds[begin:end],
                        {name: values[begin:end] for name, values in self.start.items()})


def trusted_motion(machine: Machine, kinds: MachineKinds, log: MachineLog, s: MachineGraphSettings
                   ) -> tuple[Followed, np.ndarray]:
    """The motion of a whole log and the equations (n, a) that count.

    Raises GraphError where something needed is not measured or no instant says anything of the mass,
    PositionProblemError.
    """
    check_log(machine, log)
    motion = followed(machine, kinds, log, s)
    balanced = moving(machine, kinds, log, s, motion)
    if not balanced.any():
        fastest = 1e3 * float(np.abs(motion.speeds).max())
        least = 1e3 * min(slowest(machine, s.min_speed))
        raise GraphError(f'the pistons never move at {least:g} mm/s or more for {2 * s.guard_time:g} s, '
                         f'inside the stroke and measured (fastest {fastest:.3g} mm/s): friction at standstill may be '
                         'anything', ['payload'], ['force_balance'])
    return motion, balanced


def followed(machine: Machine, kinds: MachineKinds, log: MachineLog, s: MachineGraphSettings) -> Followed:
    """Along a whole log; positions are clipped to the range of their coordinates. Raises PositionProblemError."""
    start = {name: held(machine, log, name) for name in ('z', 'p', *(('base',) if machine.inclinations else ()))}
    return along(machine, kinds, start | {'zd': speeds(machine, log, s)})


def along(machine: Machine, kinds: MachineKinds, start: dict[str, np.ndarray]) -> Followed:
    """The same from positions ``z`` and velocities ``zd`` (n, g)."""
    z = np.clip(start['z'], *machine.range.T)
    first = machine.position(z[0])[machine.system.dependent]
    _, found = kinds.follow(first, np.hstack([z, start['zd']]), machine.parameters.mean)
    near, pistons, rates = np.split(found, [len(first), len(first) + len(machine.cylinders)], axis=1)
    return Followed(near, pistons, rates, start)


def speeds(machine: Machine, log: MachineLog, s: MachineGraphSettings) -> np.ndarray:
    """Velocities (n, g), SI: the slope of the measured positions over the guard time before and after."""
    found = {item.place: slope(log.t, item.values, s.guard_time)
             for item in readings(machine, log) if item.node == 'z'}
    return np.column_stack([found[k] for k in range(len(machine.coordinates))])


def slope(t: np.ndarray, y: np.ndarray, half: float) -> np.ndarray:
    """Slopes (n,) of straight lines through the samples within ``half``, s, of each; 0 where there are too few."""
    begin, end = (np.searchsorted(t, t + sign * (half + 1e-9)) for sign in (-1, 1))

    def sums(column: np.ndarray) -> np.ndarray:
        total = np.concatenate([[0.0], np.cumsum(column)])
        return total[end] - total[begin]

    seen = np.isfinite(y)
    x, y = np.where(seen, t - t[0], 0.0), np.where(seen, y, 0.0)
    count, sx, sy, sxx, sxy = (sums(column) for column in (seen.astype(float), x, y, x * x, x * y))
    spread = count * sxx - sx ** 2
    enough = (count >= 3) & (spread > 0)
    return np.where(enough, count * sxy - sx * sy, 0.0) / np.where(enough, spread, 1.0)


def moving(machine: Machine, kinds: MachineKinds, log: MachineLog, s: MachineGraphSettings, motion: Followed,
           times: float = 1.0) -> np.ndarray:
    """Equations (n, a) that count: their cylinders move, by the guard time before and after, away from the ends of the
    stroke, and their pressures are measured. ``times``: the slowest speed. Friction at
    standstill may be anything: no balance there says anything of the mass."""
    (low, high), margin = machine.stroke.T, np.array(margins(machine, s.stroke_margin))
    good = np.abs(motion.speeds) >= times * np.array(slowest(machine, s.min_speed))
    good &= (motion.pistons - low > margin) & (high - motion.pistons > margin)
    chambers = np.any(machine.circuit.T_Vcyl.reshape(len(machine.volumes), len(machine.cylinders), 2), axis=2)
    seen = np.ones((len(log.t), len(machine.volumes)), dtype=bool)
    for item in readings(machine, log):
        if item.node == 'p':
            seen[:, item.place] &= np.isfinite(item.values)
    found = []
    for row in kinds.needs:
        calm = guarded(log.t, good[:, row].all(axis=1), s.guard_time)
        found.append(calm & seen[:, np.any(chambers[:, row], axis=1)].all(axis=1))
    return np.column_stack(found)


def guarded(t: np.ndarray, good: np.ndarray, guard: float) -> np.ndarray:
    """Instants (n,) that are good with all others within ``guard``, s; at both ends of the log nothing is known."""
    good = good.copy()
    good[[0, -1]] = False
    bad = np.concatenate([[-np.inf], t[~good], [np.inf]])
    at = np.searchsorted(bad, t)
    near = np.minimum(np.abs(bad[np.minimum(at, len(bad) - 1)] - t), t - bad[np.maximum(at - 1, 0)])
    return good & (near >= guard - 1e-9)


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
