# SPDX-License-Identifier: Apache-2.0
"""Units of a mechanism's coordinates, and their values as people read them."""

from __future__ import annotations

import math

from ..dynamics.model import Model
from ..description.model import MechanismDescription

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
