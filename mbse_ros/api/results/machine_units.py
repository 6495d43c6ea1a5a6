# SPDX-License-Identifier: Apache-2.0
"""SI units of a machine's channels and of the entries of its observer's state."""

from __future__ import annotations

from ...description.coordinate_units import measured_unit, unit_of
from ...machine import Machine
from ...machine.channels import Channel

OTHERS = {'pressure': 'Pa', 'supply': 'Pa', 'spool': 'V', 'flow': 'm^3/s', 'inclination': 'rad', 'payload': 'kg',
          'moment': 'kg m', 'command': 'V', 'swing_rate': '1/s'}
RATES = {'position': '', 'velocity': '/s', 'acceleration': '/s^2'}


def channel_unit(machine: Machine, channel: Channel) -> str:
    """Unit of what a sensor of a machine gives."""
    return measured_unit(machine.description, channel.sensor.name)


def entry_unit(machine: Machine, name: str) -> str:
    """Unit of an entry of the state such as 'position/lift', SI; '1' of one that has none."""
    kind, _, owner = name.partition('/')
    if kind in RATES:
        return (unit_of(machine.description, owner) or '1') + RATES[kind]
    return OTHERS.get(kind, '1')
