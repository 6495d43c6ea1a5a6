# SPDX-License-Identifier: Apache-2.0
"""Where along a log the forces of a machine can be trusted: which of its equations count at which instant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import GraphError
from ...machine import Machine
from ...payload.gates import margins, slowest
from ..factors.machine_factors import MachineKinds
from .machine_log import MachineLog, check_log, held, readings
from .machine_settings import MachineGraphSettings

STATE = ('z', 'zd', 'zdd')


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


