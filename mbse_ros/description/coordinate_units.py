# SPDX-License-Identifier: Apache-2.0
"""Units of the coordinates of a mechanism."""

from __future__ import annotations

from .model import MechanismDescription

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
