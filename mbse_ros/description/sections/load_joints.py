# SPDX-License-Identifier: Apache-2.0
"""The section `joints`, and the revolute joints that the points of the sketch make."""

from __future__ import annotations

from ..basics import GROUND, ZERO, PointRef, Vector
from ..language.entry import Entry
from ..language.quantity import Kind, positive
from ..language.references import References
from ..language.scalar import Numbers
from ..model import Joint

# Keys beside type, parent and child: required ones and optional ones.
_PLANE = {'revolute': ((), ('start', 'limits')), 'prismatic': (('axis',), ('angle', 'start', 'limits')),
          'slot': (('axis',), ('start',)), 'fixed': ((), ('angle',)), 'distance': (('length',), ())}
_SPACE = {'revolute': (('axis',), ('rpy', 'start', 'limits')), 'prismatic': (('axis',), ('rpy', 'start', 'limits')),
          'cylindrical': (('axis',), ('rpy', 'start')), 'spherical': ((), ('rpy',)),
          'universal': (('axis', 'axis2'), ('rpy',)), 'fixed': ((), ('rpy',)), 'distance': (('length',), ())}


def shared_joints(references: References, points: Entry) -> dict[str, Joint]:
    """Revolute joints of the points that bodies of a plane share with each other or with the ground.

    Named by the point; where it joins more than two, by point and child. The ground, else the first body is parent.
    """
    joints: dict[str, Joint] = {}
    for point in references.sketch if references.planar else ():
        owners = [GROUND] * (point in references.ground)
        owners += [name for name, body in references.bodies.items() if point in body.points]
        if not owners:
            raise points.error('a point that a body uses (or {fixed: [x, y]}, a point of the ground)',
                               'a guess of no use', point)
        for child in owners[1:]:
            name = point if len(owners) == 2 else f'{point}_{child}'
            if name in joints:
                raise points.error(f'another name: there is a joint {name} between bodies already', point, point)
            joints[name] = Joint(name, 'revolute', PointRef(owners[0], point), PointRef(child, point), rpy=(ZERO,))
    return joints


def read_joints(entry: Entry, references: References) -> dict[str, float]:
    """Add the written joints to ``references.joints``; returns the starts that they give, rad or m."""
    starts: dict[str, float] = {}
    for name, item in entry.named('joints').items():
        if name in references.joints:
            raise item.error('another name, the points of the sketch make a joint of this name', name)
        references.joints[name] = _joint(name, item, references, starts)
    return starts


def _joint(name: str, entry: Entry, references: References, starts: dict[str, float]) -> Joint:
    kind = _type(entry, references)
    needed, allowed = (_PLANE if references.planar else _SPACE)[kind]
    parts = entry.mapping(['type', 'parent', 'child', *needed], allowed)
    parent, child = references.point(parts['parent']), references.point(parts['child'], on_body=True)
    if parent.body == child.body:
        raise parts['child'].error(f'a point of another body than the parent, {parent.body}')
    if references.same_place(parent, child):
        raise entry.error(f'no joint here: the point {child.point} of `points` is one already', f'{parent} and {child}')
    numbers, size = references.numbers, references.dimension
    axes = [numbers.direction(parts[key], size) if key in parts else () for key in ('axis', 'axis2')]
    if 'start' in parts:
        starts[name] = numbers.number(parts['start'], Kind('rad' if kind == 'revolute' else 'm'))
    length = numbers.optional(parts, 'length', positive('m'))
    limits = _limits(parts, kind, numbers, starts.get(name, 0.0)) if 'limits' in parts else None
    return Joint(name, kind, parent, child, axes[0], _rpy(parts, references), axes[1], length, limits)


def _limits(parts: dict[str, Entry], kind: str, numbers: Numbers, start: float) -> tuple[float, float]:
    """Range of the coordinate, with the start inside."""
    unit = 'rad' if kind == 'revolute' else 'm'
    low, high = (numbers.number(item, Kind(unit)) for item in parts['limits'].items('a lower and a higher limit', 2))
    if low >= high:
        raise parts['limits'].error('a lower and a higher limit')
    if 'start' in parts and not low <= start <= high:
        raise parts['start'].error(f'a start inside the limits, {low:g} to {high:g} {unit}')
    return low, high


def _type(entry: Entry, references: References) -> str:
    """Type of the joint, one of the plane's or of space's."""
    here, there = (_PLANE, _SPACE) if references.planar else (_SPACE, _PLANE)
    if not isinstance(entry.value, dict) or 'type' not in entry.value:
        entry.mapping(['type', 'parent', 'child'], ['axis', 'length', 'start', 'angle' if references.planar else 'rpy'])
    item = Entry(entry.file, f'{entry.key}.type', entry.value['type'])
    if isinstance(item.value, str) and item.value in there and item.value not in here:
        raise item.error(f'a type of joint of dimension {references.dimension}: ' + ', '.join(here))
    return item.choice(here, f'a type of joint of dimension {references.dimension}')


def _rpy(parts: dict[str, Entry], references: References) -> Vector:
    """Rotation between the frames: one angle in a plane, roll, pitch, yaw in space."""
    if 'angle' in parts:
        return (references.numbers.scalar(parts['angle'], Kind('rad')),)
    if 'rpy' in parts:
        return references.numbers.vector(parts['rpy'], Kind('rad'), 3, 'three angles roll, pitch, yaw')
    return (ZERO,) * (1 if references.planar else 3)
