# SPDX-License-Identifier: Apache-2.0
"""What follows from a machine's file: its coordinates, its channels and commands, how far its cylinders reach."""

from __future__ import annotations

from collections.abc import Iterable

from ..description.tables import Row, Section, show
from ..machine import Machine
from ..machine.channels import Channel
from ..machine.reach import reach_of
from .mechanism_units import unit_of

_UNITS = {'gyro': 'rad/s', 'accelerometer': 'm/s^2', 'pressure': 'Pa'}


def machine_section(machine: Machine) -> Section:
    """Independent coordinates with their ranges, and what moves them."""
    rows = []
    for k, (name, (low, high)) in enumerate(zip(machine.coordinates, machine.range)):
        unit = unit_of(machine.description, name)
        moved = 'moved by cylinders' if k in machine.actuated else 'moved by no cylinder'
        rows.append(Row(name, f'{show(low, unit)} to {show(high, unit)}', moved))
    return Section('coordinates of the state', tuple(rows))


def channel_section(machine: Machine) -> Section:
    """Channels of the sensors, as bags and topics have them, and the commands that the observer needs."""
    return Section('channels and commands', (
        *(Row(channel.name, f'sensor {channel.sensor.name}', _noise(machine, channel))
          for channel in machine.all_channels),
        *(Row(name, 'command, V') for name in machine.commands),
        *(Row(f'command/{name}', 'not needed', 'kind unknown: its flows are estimated')
          for name in machine.unknown_valves)))


def reach_section(machine: Machine) -> Section:
    """What each cylinder moves over its stroke; raises DescriptionError for one that cannot make it."""
    strokes = dict(zip(machine.cylinders, machine.stroke))
    return Section('reach, one cylinder at a time', tuple(
        Row(item.cylinder, f'{show(strokes[item.cylinder][0], "m")} to {show(strokes[item.cylinder][1], "m")}',
            ', '.join(_moved(machine, item.moved)) or 'moves no coordinate of a joint') for item in reach_of(machine)))


def _noise(machine: Machine, channel: Channel) -> str:
    sensor = channel.sensor
    unit = _UNITS.get(channel.kind) or (unit_of(machine.description, sensor.coordinate) if sensor.coordinate else
                                        'm' if sensor.kind == 'distance' else 'rad')
    return f'1 sigma {show(float(f"{sensor.noise:.3g}"), unit + "/s" * (channel.kind == "velocity"))}'


def _moved(machine: Machine, moved: dict[str, tuple[float, float]]) -> Iterable[str]:
    for name, (low, high) in moved.items():
        unit = unit_of(machine.description, name)
        yield f'{name} {show(low, unit)} to {show(high, unit)}'
