# SPDX-License-Identifier: Apache-2.0
"""Units of the coordinates, inputs and sensors of a mechanism."""

from __future__ import annotations

from .model import FORCES, MechanismDescription, sensor_unit

TURNING = ('revolute', 'slot', 'cylindrical', 'universal')


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
    on = description.drivers[sensor.driver].coordinate if sensor.kind == 'force' else sensor.coordinate
    return sensor_unit(sensor.kind, lambda: unit_of(description, on) or '1').replace('*', ' ')
