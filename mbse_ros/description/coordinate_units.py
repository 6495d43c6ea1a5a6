# SPDX-License-Identifier: Apache-2.0
"""Units of the coordinates, inputs, sensors and states of a mechanism, in SI and as people read them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .model import FORCES, MechanismDescription, sensor_unit

TURNING = ('revolute', 'slot', 'cylindrical', 'universal')
RATES = {'': '', '_dot': '/s', '_ddot': '/s2'}
DEGREES = 180 / math.pi
LENGTHS = {'position': ('mm', 1e3), 'velocity': ('mm/s', 1e3), 'acceleration': ('m/s²', 1.0)}
ANGLES = {'position': ('deg', DEGREES), 'velocity': ('deg/s', DEGREES), 'acceleration': ('deg/s²', DEGREES)}
OTHERS = {'pressure': ('MPa', 1e-6), 'supply': ('MPa', 1e-6), 'spool': ('V', 1.0), 'flow': ('l/min', 6e4),
          'inclination': ('deg', DEGREES), 'gyro': ('deg/s', DEGREES), 'accelerometer': ('m/s²', 1.0),
          'base_acceleration': ('m/s²', 1.0), 'payload': ('kg', 1.0), 'moment': ('kg m', 1.0),
          'swing': ('', 1.0), 'swing_rate': ('1/s', 1.0)}
SMALL = {'pressure': ('kPa', 1e-3), 'supply': ('kPa', 1e-3)}     # of differences, where they are others


def unit_of(description: MechanismDescription, name: str) -> str:
    """'rad', 'm' or '' (Euler parameters) of a coordinate of any type."""
    named = description.coordinates.get(name)
    if named is not None:
        kind = description.joints[named.joint].type if named.kind == 'joint' else ''
        return 'rad' if named.kind == 'angle' or kind in TURNING and kind != 'slot' else 'm'
    if name in description.joints:
        return 'rad' if description.joints[name].type in TURNING else 'm'
    last = name.rpartition('.')[2]
    if last in ('angle', 'first', 'second'):
        return 'rad'
    return '' if last in ('e0', 'e1', 'e2', 'e3') else 'm'


def input_unit(description: MechanismDescription, name: str) -> str:
    """'N' or 'N m' of an input; both, where forces of both kinds have it."""
    units = []
    for force in description.forces.values():
        if force.input == name:
            on = FORCES[unit_of(description, force.coordinate) or '1'] if force.coordinate else ''
            units.append(on.replace('*', ' ') or ('N' if force.point is not None else 'N m'))
    return ' or '.join(dict.fromkeys(units))


def measured_unit(description: MechanismDescription, name: str) -> str:
    """Unit of what a sensor gives."""
    sensor = description.sensors[name]
    if sensor.drive:
        return effort_unit(description, sensor.drive)
    on = description.drivers[sensor.driver].coordinate if sensor.kind == 'force' else sensor.coordinate
    return sensor_unit(sensor.kind, lambda: unit_of(description, on) or '1').replace('*', ' ')


def columns_of(description: MechanismDescription, names: Sequence[str], *suffixes: str) -> list[str]:
    """Headings of columns, such as 'theta [rad]', of all names with each suffix: '', '_dot' or '_ddot'."""
    found = []
    for rates, suffix in ((RATES[suffix], suffix) for suffix in suffixes):
        for name in names:
            unit = unit_of(description, name)
            found.append(f'{name}{suffix} [{(unit + rates if unit else "1" + rates) or "1"}]')
    return found


def shown(value: float, unit: str) -> str:
    """A value with its unit; angles in degrees too."""
    value = 0.0 if abs(value) < 1e-12 else value
    degrees = f' ({math.degrees(value):.6g} deg)' if unit == 'rad' else ''
    return f'{value:.7g} {unit}'.strip() + degrees


def unit_and_scale(description: MechanismDescription, name: str, difference: bool = False) -> tuple[str, float]:
    """Unit, and the factor from SI to it, of an entry of the state or a channel such as 'position/boom'."""
    kind, _, owner = name.partition('/')
    if difference and kind in SMALL:
        return SMALL[kind]
    if kind in OTHERS:
        return OTHERS[kind]
    if kind == 'effort':
        return effort_unit(description, owner), 1.0
    return (LENGTHS if _unit(description, owner) == 'm' else ANGLES)[kind]


def effort_unit(description: MechanismDescription, drive: str) -> str:
    """Of what a sensor measures of a drive: 'N m', 'N', or 'A' of its motor's current."""
    currents = {sensor.drive for sensor in description.sensors.values() if sensor.kind == 'current'}
    return 'A' if drive in currents else description.drives[drive].effort


def _unit(description: MechanismDescription, owner: str) -> str:
    """'m' or 'rad' of a coordinate, a sensor or an angle of the base."""
    sensor = description.sensors.get(owner)
    if owner in description.coordinates or owner in description.joints:
        return unit_of(description, owner)
    return 'm' if sensor is not None and sensor.kind == 'distance' else 'rad'
