# SPDX-License-Identifier: Apache-2.0
"""Units in which a report shows the entries of a machine's state and its channels."""

from __future__ import annotations

from math import pi

from ..machine import Machine
from .mechanism_units import unit_of

DEGREES = 180 / pi
LENGTHS = {'position': ('mm', 1e3), 'velocity': ('mm/s', 1e3), 'acceleration': ('m/s²', 1.0)}
ANGLES = {'position': ('deg', DEGREES), 'velocity': ('deg/s', DEGREES), 'acceleration': ('deg/s²', DEGREES)}
OTHERS = {'pressure': ('MPa', 1e-6), 'supply': ('MPa', 1e-6), 'spool': ('V', 1.0), 'flow': ('l/min', 6e4),
          'inclination': ('deg', DEGREES), 'gyro': ('deg/s', DEGREES), 'accelerometer': ('m/s²', 1.0)}
SMALL = {'pressure': ('kPa', 1e-3), 'supply': ('kPa', 1e-3)}     # of differences, where they are others


def shown(machine: Machine, name: str, difference: bool = False) -> tuple[str, float]:
    """Unit, and the factor from SI to it, of an entry of the state or a channel such as 'position/boom'."""
    kind, _, owner = name.partition('/')
    if difference and kind in SMALL:
        return SMALL[kind]
    if kind in OTHERS:
        return OTHERS[kind]
    return (LENGTHS if _unit(machine, owner) == 'm' else ANGLES)[kind]


def _unit(machine: Machine, owner: str) -> str:
    """'m' or 'rad' of a coordinate, a sensor or an angle of the base."""
    sensor = machine.description.sensors.get(owner)
    if owner in machine.description.coordinates or owner in machine.description.joints:
        return unit_of(machine.description, owner)
    return 'm' if sensor is not None and sensor.kind == 'distance' else 'rad'
