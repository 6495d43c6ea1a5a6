# SPDX-License-Identifier: Apache-2.0
"""The section `urdf`: the file of a robot, and what the mechanism file says of its links and joints besides."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..basics import Scalar, Vector
from ..language.entry import Entry
from ..language.quantity import ValueKind, not_negative, positive
from ..language.references import References, nominal
from ..language.scalar import Numbers
from ..model import Body, Joint
from .load_bodies import plausible_inertia

if TYPE_CHECKING:
    from ..robots.urdf import Robot

Guess = Callable[[str, str], 'float | None']       # by joint and unit: where the loops are closed from, rad or m
_MOMENTS = {'xx': 0, 'yy': 1, 'zz': 2, 'xy': 3, 'xz': 4, 'yz': 5}       # places in Body.inertia


def read_robot(entry: Entry, references: References, needed: Collection[str]) -> Robot:
    """Fill the references with a robot's ground, bodies, joints and coordinates.

    The entry is the path of the file, or a mapping of ``file``, ``bodies`` and ``joints``. ``needed``: links that stay
    bodies of their own. Raises DescriptionError.
    """
    from ..robots.urdf import read_urdf  # here: slow to import
    parts = entry.mapping(['file'], ['bodies', 'joints']) if isinstance(entry.value, dict) else {'file': entry}
    path = parts['file'].text('a path to a .urdf file, from the folder of this file')
    joints = parts['joints'].named('joints of the URDF') if 'joints' in parts else {}

    def guess(name: str, unit: str) -> float | None:
        given = joints[name].mapping([], ['start', 'limits']).get('start') if name in joints else None
        return None if given is None else references.numbers.number(given, ValueKind(unit))

    robot = read_urdf(Path(entry.file).parent / path, entry.file, parts['file'].key, needed, guess)
    for name, item in joints.items():
        item.choice(robot.joints, 'a joint of the URDF that moves', name)
        robot.joints[name] = _joint(item, robot.joints[name], guess, references.numbers)
    for name, item in (parts['bodies'].named('links of the URDF') if 'bodies' in parts else {}).items():
        item.choice(robot.bodies, 'a link of the URDF that moves', name)
        robot.bodies[name] = _body(item, robot.bodies[name], references.numbers)
    for kind in ('ground', 'bodies', 'joints', 'coordinates', 'aliases'):
        getattr(references, kind).update(getattr(robot, kind))
    return robot


def _joint(entry: Entry, joint: Joint, guess: Guess, numbers: Numbers) -> Joint:
    """A joint with limits of its own; its start lies within them, or within those of the URDF."""
    parts, unit = entry.mapping([], ['start', 'limits']), 'rad' if joint.type == 'revolute' else 'm'
    if joint.type == 'fixed':
        raise entry.error('a joint that moves')
    if 'limits' in parts:
        ends = parts['limits'].items('a lower and a higher limit', 2)
        low, high = (numbers.number(item, ValueKind(unit)) for item in ends)
        if low >= high:
            raise parts['limits'].error('a lower and a higher limit')
        joint = replace(joint, limits=(low, high))
    start = guess(joint.name, unit)
    if start is not None and joint.limits is not None and not joint.limits[0] <= start <= joint.limits[1]:
        raise parts['start'].error(f'a start inside the limits, {joint.limits[0]:g} to {joint.limits[1]:g} {unit}')
    return joint


def _body(entry: Entry, body: Body, numbers: Numbers) -> Body:
    """A body with other numbers, or with standard deviations of those in the URDF."""
    parts = entry.mapping([], ['mass', 'center_of_mass', 'inertia', 'points'])
    mass, center, inertia, points = body.mass, body.center_of_mass, list(body.inertia), dict(body.points)
    if 'mass' in parts:
        mass = _scalar(parts['mass'], mass, positive('kg'), numbers)
    if 'center_of_mass' in parts:
        center = _vector(parts['center_of_mass'], center, numbers)
    for name, item in (parts['inertia'].mapping([], _MOMENTS) if 'inertia' in parts else {}).items():
        kind = not_negative('kg*m^2') if name[0] == name[1] else ValueKind('kg*m^2')
        inertia[_MOMENTS[name]] = _scalar(item, inertia[_MOMENTS[name]], kind, numbers)
    if 'inertia' in parts and not plausible_inertia(*nominal(tuple(inertia))):
        raise parts['inertia'].error('moments of inertia of a real body: no principal moment above the sum of the other'
                                     ' two', list(nominal(tuple(inertia))))
    for name, item in (parts['points'].named('points of the link') if 'points' in parts else {}).items():
        item.choice(points, f'a point of {body.name}', name)
        points[name] = _vector(item, points[name], numbers)
    return replace(body, mass=mass, center_of_mass=center, inertia=tuple(inertia), points=points)


def _scalar(entry: Entry, known: Scalar, kind: ValueKind, numbers: Numbers) -> Scalar:
    """The number of the file, or that of the URDF with the file's deviation; by its key as a free parameter."""
    return replace(numbers.scalar(_stated(entry, repr(known.value)), kind), key=known.key)


def _vector(entry: Entry, known: Vector, numbers: Numbers) -> Vector:
    found = numbers.vector(_stated(entry, [repr(item.value) for item in known]), ValueKind('m'), 3)
    return tuple(replace(item, key=other.key) for item, other in zip(found, known))


def _stated(entry: Entry, value: object) -> Entry:
    """A number with the value of the URDF where the file states none."""
    if isinstance(entry.value, dict) and 'value' not in entry.value and 'stddev' in entry.value:
        return replace(entry, value={'value': value, **entry.value})
    return entry
