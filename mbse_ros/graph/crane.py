# SPDX-License-Identifier: Apache-2.0
"""A log of a hydraulic machine as a factor graph: the payload's mass is one constant node.

Nodes of an instant: piston positions ``z``, velocities ``zd``, accelerations ``zdd``, pressures ``p``, MPa, and
``force``, kN: what the model does not know of (bending of the boom, tyres), as a force that forgets. Constant nodes:
``payload``, kg, and ``parameters``, the uncertain numbers of the machine's file in their standard deviations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import GraphError, SettingError
from ..machine import Machine
from ..settings import Settings, setting
from .crane_factors import KILO, MPA, CraneKinds, damped_walk
from .graph import ALWAYS, FactorGraph
from .integration_factors import equality, prior

STATE = ('z', 'zd', 'zdd')


@dataclass(frozen=True)
class CraneGraphSettings(Settings):
    """Tuning of the machine's factor graph; the noise of the sensors stands in the machine's YAML."""

    acceleration_psd: float = setting(10.0, 'Random walk of the piston acceleration', '(m/s^2)^2/s', 1e-6, 1e6)
    pressure_psd: float = setting(20.0, 'Random walk of the pressures', 'MPa^2/s', 1e-6, 1e6)
    unknown_force: float = setting(0.0, 'Standard deviation of the force that the model does not know of; 0: as likely '
                                        'as the log says', 'N', 0.0, 1e6)
    unknown_time: float = setting(0.1, 'Time after which this force has forgotten', 's', 1e-3, 100.0)
    balance_stddev: float = setting(5.0, 'Standard deviation of the balance of forces at one instant', 'N', 1e-3, 1e6)
    min_speed: float = setting(0.006, 'Slowest piston whose friction is trusted', 'm/s', 0.0, 1.0)
    guard_time: float = setting(0.15, 'A balance counts when the piston moves this long before and after it; '
                                      'each speed is taken over this long before and after, too', 's', 0.01, 10.0)
    stroke_margin: float = setting(0.005, 'Distance from the ends of the stroke in which forces are not trusted', 'm',
                                   0.0, 1.0)


@dataclass(frozen=True)
class CraneLog:
    """Samples of a machine: instants ``t`` (n,), s, and ``measured`` (n, channels), SI, NaN where missing."""

    t: np.ndarray
    measured: np.ndarray

    def __post_init__(self) -> None:
        t, measured = np.asarray(self.t, dtype=float), np.asarray(self.measured, dtype=float)
        if t.ndim != 1 or len(t) < 3 or not np.isfinite(t).all() or not (np.diff(t) > 0).all():
            raise SettingError('instants of a log', t.shape, 'three or more, finite, each later than the one before')
        if measured.ndim != 2 or len(measured) != len(t):
            raise SettingError('samples of a log', measured.shape, f'({len(t)}, channels)')
        if np.isinf(measured).any():
            raise SettingError('samples of a log', 'infinity', 'finite numbers; NaN where one is missing')
        object.__setattr__(self, 't', t)
        object.__setattr__(self, 'measured', measured)

    def part(self, begin: int, end: int) -> CraneLog:
        """Some of the instants."""
        return CraneLog(self.t[begin:end], self.measured[begin:end])


def check_log(machine: Machine, log: CraneLog) -> None:
    """Raise GraphError where a position or pressure that the forces need is never measured."""
    if log.measured.shape[1] != len(machine.channels):
        raise SettingError('samples of a log', log.measured.shape, f'{len(machine.channels)} channels: '
                           + ', '.join(machine.channels))
    needed = [*(f'position/{c}' for c in machine.cylinders), *(f'pressure/{v}' for v in machine.volumes)]
    count = dict(zip(machine.channels, np.isfinite(log.measured).sum(axis=0)))
    silent = [name for name in needed if count.get(name, 0) < 2]
    if silent:
        raise GraphError('the forces need what is not measured', silent, ['sensor'])


def crane_graph(machine: Machine, kinds: CraneKinds, log: CraneLog, s: CraneGraphSettings, balanced: np.ndarray,
                force: float) -> FactorGraph:
    """Graph of a log; ``balanced`` (n,) instants whose forces count, ``force``: stddev of the unknown force, N."""
    n, g, volumes = len(log.t), len(machine.cylinders), len(machine.volumes)
    graph, steps, dt = FactorGraph(), np.arange(n), np.diff(log.t)
    for name in (*STATE, 'force'):
        graph.add_variables(name, g, steps, machine.cylinders)
    graph.add_variables('p', volumes, steps, machine.volumes)
    graph.add_variables('payload', 1)
    chain = {f'{name}{k}': (name, steps[:-1] + k) for k in (0, 1) for name in STATE}
    graph.add(kinds.jerk, chain, np.sqrt(s.acceleration_psd), {'dt': dt})
    add_sensors(graph, machine, log)
    between = {'x0': ('p', steps[:-1]), 'x1': ('p', steps[1:])}
    graph.add(equality(volumes), between, np.sqrt(s.pressure_psd * dt)[:, None] * np.ones(volumes), label='pressure')
    decay = np.exp(-dt / s.unknown_time)
    graph.add(prior(g), {'x': ('force', 0)}, force / KILO, {'x0': np.zeros(g)}, label='start')
    graph.add(damped_walk(g), {'x0': ('force', steps[:-1]), 'x1': ('force', steps[1:])},
              (force / KILO * np.sqrt(1 - decay ** 2))[:, None] * np.ones(g), {'a': decay})
    add_balance(graph, machine, kinds, log, s, np.flatnonzero(balanced))
    return graph


def add_sensors(graph: FactorGraph, machine: Machine, log: CraneLog) -> None:
    """What was measured, at the instants at which it was."""
    sensors = machine.description.sensors
    for channel, column in zip(machine.channels, log.measured.T):
        kind, owner = channel.split('/')
        seen = np.flatnonzero(np.isfinite(column))
        name, owners, stddev, unit = (('z', machine.cylinders, sensors.position, 1.0) if kind == 'position' else
                                      ('p', machine.volumes, sensors.pressure, MPA))
        if len(seen):
            graph.add(prior(len(owners), (owners.index(owner),)), {'x': (name, seen)}, stddev[owner] / unit,
                      {'x0': column[seen] / unit}, label=f'sensor {channel}')


def add_balance(graph: FactorGraph, machine: Machine, kinds: CraneKinds, log: CraneLog, s: CraneGraphSettings,
                steps: np.ndarray) -> None:
    """Balance of forces at some instants, and what is known of the machine's uncertain numbers."""
    count = len(kinds.names)
    if count:
        graph.add_variables('parameters', count, components=kinds.names)
        graph.add(prior(count), {'x': ('parameters', ALWAYS)}, 1.0, {'x0': np.zeros(count)}, label='known')
    if len(steps):
        roles = {name: (name, steps) for name in (*STATE, 'p', 'force')}
        graph.add(kinds.balance, roles | {name: (name, ALWAYS) for name in kinds.constant}, s.balance_stddev / KILO,
                  {'joints': joints_of(machine, kinds, filled(log, machine))[steps]})


def filled(log: CraneLog, machine: Machine) -> np.ndarray:
    """Piston positions (n, cylinders), m, with missing ones between their neighbours."""
    columns = [log.measured[:, machine.channels.index(f'position/{c}')] for c in machine.cylinders]
    return np.column_stack([fill(log.t, column) for column in columns])


def fill(t: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Values (n,) without holes, linear between those that are there."""
    seen = np.isfinite(column)
    return np.interp(t, t[seen], column[seen])


def joints_of(machine: Machine, kinds: CraneKinds, z: np.ndarray) -> np.ndarray:
    """Joint angles (n, joints) at piston positions (n, cylinders), m, inside the stroke."""
    inside = np.clip(z, machine.stroke[:, 0], machine.stroke[:, 1])
    start = machine.position_problem.solve(inside[0])[:len(machine.system.joints)]
    return kinds.joints(start, inside, machine.parameters.mean)[1]


def speeds(log: CraneLog, machine: Machine, s: CraneGraphSettings) -> np.ndarray:
    """Piston velocities (n, cylinders), m/s: the slope of the positions over the guard time before and after."""
    t = log.t
    begin, end = (np.searchsorted(t, t + sign * (s.guard_time + 1e-9)) for sign in (-1, 1))

    def sums(column: np.ndarray) -> np.ndarray:
        total = np.concatenate([[0.0], np.cumsum(column)])
        return total[end] - total[begin]

    found = []
    for cylinder in machine.cylinders:
        y = log.measured[:, machine.channels.index(f'position/{cylinder}')]
        seen = np.isfinite(y)
        x, y = np.where(seen, t - t[0], 0.0), np.where(seen, y, 0.0)
        count, sx, sy, sxx, sxy = (sums(column) for column in (seen.astype(float), x, y, x * x, x * y))
        spread = count * sxx - sx ** 2
        enough = (count >= 3) & (spread > 0)
        found.append(np.where(enough, count * sxy - sx * sy, 0.0) / np.where(enough, spread, 1.0))
    return np.column_stack(found)


def moving(log: CraneLog, machine: Machine, s: CraneGraphSettings) -> np.ndarray:
    """Instants (n,) at which all pistons move, by the guard time before and after, away from the ends of the stroke,
    and the pressures are measured. Friction at standstill may be anything: no balance there says anything of
    the mass."""
    z, velocity, (low, high) = filled(log, machine), speeds(log, machine, s), machine.stroke.T
    good = (np.abs(velocity) >= s.min_speed).all(axis=1)
    good &= ((z - low > s.stroke_margin) & (high - z > s.stroke_margin)).all(axis=1)
    good[[0, -1]] = False           # what was before or comes after is not known
    bad = np.concatenate([[-np.inf], log.t[~good], [np.inf]])
    at = np.searchsorted(bad, log.t)
    near = np.minimum(np.abs(bad[np.minimum(at, len(bad) - 1)] - log.t), log.t - bad[np.maximum(at - 1, 0)])
    pressures = [k for k, channel in enumerate(machine.channels) if channel.startswith('pressure/')]
    return good & (near >= s.guard_time - 1e-9) & np.isfinite(log.measured[:, pressures]).all(axis=1)
