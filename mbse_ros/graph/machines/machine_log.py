# SPDX-License-Identifier: Apache-2.0
"""Samples of a machine for its factor graph: what each channel says of a node, and values without holes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import GraphError, SettingError
from ...filters.hydraulic_state import direct, state_names
from ...machine import Machine
from ..factors.machine_factors import NODE


@dataclass(frozen=True)
class MachineLog:
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

    def part(self, begin: int, end: int) -> MachineLog:
        """Some of the instants."""
        return MachineLog(self.t[begin:end], self.measured[begin:end])


@dataclass(frozen=True)
class ChannelValues:
    """What a channel says of one entry of a node: ``values`` (n,) and ``stddev`` in the node's unit."""

    channel: str
    node: str
    place: int
    values: np.ndarray
    stddev: float


def readings(machine: Machine, log: MachineLog) -> list[ChannelValues]:
    """Of all channels that measure an entry of the observer's state that forces depend on, in the channels' order.

    Gain, offset and zero of the sensor are taken off by the numbers of the file.
    """
    names, _ = state_names(machine)
    found = []
    for entry, channel in direct(machine).items():
        kind = entry.partition('/')[0]
        if kind not in NODE:
            continue
        node, unit = NODE[kind]
        own = [name for name in names if name.startswith(f'{kind}/')]
        gain, offset, zero = channel.nominal
        column = log.measured[:, machine.channels.index(channel.name)]
        values = (column - offset) / gain + zero
        if channel.sensor.wraps:
            values = unwrapped(values, float(np.mean(machine.range[own.index(entry)])))
        found.append(ChannelValues(channel.name, node, own.index(entry), values / unit,
                                   channel.sensor.noise / abs(gain) / unit))
    return sorted(found, key=lambda item: machine.channels.index(item.channel))


def unwrapped(angles: np.ndarray, middle: float) -> np.ndarray:
    """Angles (n,), rad, that count their turns, the first within half a turn of ``middle``; NaN stays."""
    seen = np.isfinite(angles)
    if not seen.any():
        return angles
    found = angles.copy()
    found[seen] = np.unwrap(angles[seen])
    return found - 2 * np.pi * np.round((found[seen][0] - middle) / (2 * np.pi))


def unused(machine: Machine) -> tuple[str, ...]:
    """Channels of which the graph makes no use: no entry of the state that forces depend on."""
    used = {channel.name for entry, channel in direct(machine).items() if entry.partition('/')[0] in NODE}
    return tuple(name for name in machine.channels if name not in used)


def check_log(machine: Machine, log: MachineLog) -> None:
    """Raise GraphError where a position or pressure that the forces need is never measured."""
    if log.measured.shape[1] != len(machine.channels):
        raise SettingError('samples of a log', log.measured.shape, f'{len(machine.channels)} channels: '
                           + ', '.join(machine.channels))
    count = {(item.node, item.place): int(np.isfinite(item.values).sum()) for item in readings(machine, log)}
    needed = {('z', k): f'position/{name}' for k, name in enumerate(machine.coordinates)}
    needed |= {('p', k): f'pressure/{name}' for k, name in enumerate(machine.volumes)}
    needed |= {('base', k): f'inclination/{name}' for k, name in enumerate(machine.inclinations)}
    silent = [name for key, name in needed.items() if count.get(key, 0) < 2]
    if silent:
        raise GraphError('the forces need what is not measured', silent, ['sensor'])


def held(machine: Machine, log: MachineLog, node: str) -> np.ndarray:
    """Measured values (n, size) of a node, a missing one as the one before it."""
    columns = {item.place: hold(item.values) for item in readings(machine, log) if item.node == node}
    return np.column_stack([columns[k] for k in range(len(columns))])


def hold(column: np.ndarray) -> np.ndarray:
    """Values (n,) without holes: the last one seen, at the start the first; no later sample changes it after that."""
    seen = np.flatnonzero(np.isfinite(column))
    return column[seen[np.maximum(np.searchsorted(seen, np.arange(len(column)), 'right') - 1, 0)]]
