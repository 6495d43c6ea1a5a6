# SPDX-License-Identifier: Apache-2.0
"""The sections `ground`, `bodies` and `joints` of a machine file."""

from __future__ import annotations

import math

import numpy as np

from ...description.entry import Entry
from .model import GROUND, Body, Joint, PointRef, Quantity, Vector
from ...description.quantity import Kind, not_negative, positive, read_number, read_quantity, read_vector

Points = dict[str, dict[str, Vector]]   # by body, then by point

_MOMENTS, _PRODUCTS = ('xx', 'yy', 'zz'), ('xy', 'xz', 'yz')
_TYPES = {'revolute': 'rad', 'prismatic': 'm', 'fixed': ''}
_NO_ROTATION = (Quantity(0.0), Quantity(0.0), Quantity(0.0))


def read_points(entry: Entry) -> dict[str, Vector]:
    """Named points of a body or of the ground."""
    return {name: read_vector(item, 'm') for name, item in entry.named('points').items()}


def point_ref(entry: Entry, points: Points, on_body: bool = False) -> PointRef:
    """Reference 'body.point'; raises DescriptionError that lists the known bodies or points."""
    body, dot, point = entry.text("a point as 'body.point'").partition('.')
    if not dot:
        raise entry.error("a point as 'body.point'")
    entry.choice([name for name in points if not (on_body and name == GROUND)], 'a point of one of the bodies', body)
    entry.choice(points[body], f'a point of {body}', point)
    return PointRef(body, point)


def read_body(name: str, entry: Entry) -> Body:
    """One rigid body."""
    parts = entry.mapping(['mass', 'center_of_mass', 'inertia', 'points'], ['outline'])
    points = read_points(parts['points'])
    outline = parts['outline'].items('points') if 'outline' in parts else []
    return Body(name, read_quantity(parts['mass'], positive('kg')), read_vector(parts['center_of_mass'], 'm'),
                _inertia(parts['inertia']), points,
                tuple(item.choice(points, f'a point of {name}') for item in outline))


def _inertia(entry: Entry) -> tuple[Quantity, ...]:
    """Tensor about the centre of mass; what is left out is 0 (the consistency check knows where that is allowed)."""
    parts = entry.mapping([], [*_MOMENTS, *_PRODUCTS])
    if not set(_MOMENTS) <= set(parts) and set(_PRODUCTS) & set(parts):
        raise entry.error('xx, yy and zz beside products of inertia')
    kinds = {**dict.fromkeys(_MOMENTS, not_negative('kg*m^2')), **dict.fromkeys(_PRODUCTS, Kind('kg*m^2'))}
    inertia = tuple(read_quantity(parts[name], kind) if name in parts else Quantity(0.0)
                    for name, kind in kinds.items())
    if set(_MOMENTS) <= set(parts) and not plausible_inertia(*(item.value for item in inertia)):
        raise entry.error('moments of inertia of a real body: no principal moment above the sum of the other two',
                          [item.value for item in inertia])
    return inertia


def plausible_inertia(xx: float, yy: float, zz: float, xy: float, xz: float, yz: float) -> bool:
    """Triangle inequality of the principal moments: the second moments of mass must be positive semidefinite."""
    moments = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return bool(2.0 * moments.max() <= moments.sum() * (1.0 + 1e-6))


def read_joint(name: str, entry: Entry, points: Points) -> Joint:
    """One joint; a fixed one has neither axis nor start nor limits."""
    if not isinstance(entry.value, dict) or 'type' not in entry.value:
        entry.mapping(['type', 'parent', 'child'], ['axis', 'start', 'limits', 'rpy'])
    kind = Entry(entry.file, f'{entry.key}.type', entry.value['type']).choice(_TYPES, 'a type of joint')
    free = [] if kind == 'fixed' else ['axis', 'start']
    parts = entry.mapping(['type', 'parent', 'child', *free], ['rpy', 'limits'] if free else ['rpy'])
    parent, child = point_ref(parts['parent'], points), point_ref(parts['child'], points, on_body=True)
    if parent.body == child.body:
        raise parts['child'].error(f'a point of another body than the parent, {parent.body}')
    rpy = read_vector(parts['rpy'], 'rad') if 'rpy' in parts else _NO_ROTATION
    if not free:
        return Joint(name, kind, parent, child, (1.0, 0.0, 0.0), 0.0, (0.0, 0.0), rpy)
    start, limits = _range(parts, Kind(_TYPES[kind]))
    return Joint(name, kind, parent, child, _axis(parts['axis']), start, limits, rpy)


def _axis(entry: Entry) -> tuple[float, float, float]:
    """Direction, made a unit vector."""
    x, y, z = (read_number(item, Kind('1')) for item in entry.items('three numbers x, y, z', 3))
    length = math.hypot(x, y, z)
    if length < 1e-6:
        raise entry.error('a direction, not a zero vector')
    return x / length + 0.0, y / length + 0.0, z / length + 0.0


def _range(parts: dict[str, Entry], kind: Kind) -> tuple[float, tuple[float, float]]:
    """Start and limits of a coordinate."""
    start = read_number(parts['start'], kind)
    if 'limits' not in parts:
        return start, (-math.inf, math.inf)
    low, high = (read_number(item, kind) for item in parts['limits'].items('a lower and a higher limit', 2))
    if low >= high:
        raise parts['limits'].error('a lower and a higher limit')
    if not low <= start <= high:
        raise parts['start'].error(f'a start inside the limits, {low:g} to {high:g} {kind.unit}')
    return start, (low, high)
