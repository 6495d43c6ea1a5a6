# SPDX-License-Identifier: Apache-2.0
"""Units of coordinates, channels and entries of a state, and their values as people read them."""

from __future__ import annotations

import math

from ..description.coordinate_units import unit_of
from ..dynamics.model import Model
from ..machine import Machine

DEGREES = 180 / math.pi
LENGTHS = {'position': ('mm', 1e3), 'velocity': ('mm/s', 1e3), 'acceleration': ('m/s²', 1.0)}
ANGLES = {'position': ('deg', DEGREES), 'velocity': ('deg/s', DEGREES), 'acceleration': ('deg/s²', DEGREES)}
OTHERS = {'pressure': ('MPa', 1e-6), 'supply': ('MPa', 1e-6), 'spool': ('V', 1.0), 'flow': ('l/min', 6e4),
          'inclination': ('deg', DEGREES), 'gyro': ('deg/s', DEGREES), 'accelerometer': ('m/s²', 1.0),
          'payload': ('kg', 1.0), 'moment': ('kg m', 1.0), 'swing': ('', 1.0), 'swing_rate': ('1/s', 1.0)}
SMALL = {'pressure': ('kPa', 1e-3), 'supply': ('kPa', 1e-3)}     # of differences, where they are others


def columns_of(model: Model, suffix: str = '') -> list[str]:
    """Headings of columns, such as 'theta [rad]'; ``suffix``: '', '_dot' or '_ddot'."""
    rates = {'': '', '_dot': '/s', '_ddot': '/s2'}[suffix]
    units = [unit_of(model.description, name) for name in model.names]
    return [f'{name}{suffix} [{(unit + rates if unit else "1" + rates) or "1"}]' for name, unit in
            zip(model.names, units)]


def shown(value: float, unit: str) -> str:
    """A value with its unit; angles in degrees too."""
    value = 0.0 if abs(value) < 1e-12 else value
    degrees = f' ({math.degrees(value):.6g} deg)' if unit == 'rad' else ''
    return f'{value:.7g} {unit}'.strip() + degrees


def unit_and_scale(machine: Machine, name: str, difference: bool = False) -> tuple[str, float]:
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
