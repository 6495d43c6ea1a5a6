# SPDX-License-Identifier: Apache-2.0
"""The sections `bodies` (bars and shapes by the points of the sketch, and bodies with a frame of their own) and
`joints` (with the revolute ones that the points make)."""

from __future__ import annotations

import math

import numpy as np

from ..basics import GROUND, MISSING, ZERO, PointRef, Scalar, Vector
from ..language.entry import Entry
from ..language.problems import KNOWN
from ..language.quantity import ValueKind, not_negative, positive
from ..language.references import References, nominal
from ..language.scalar import Numbers, derived
from ..model import Body, Joint
from ..start import FrameGuess, planar_rotation, rpy_rotation

_MOMENTS, _PRODUCTS = ('xx', 'yy', 'zz'), ('xy', 'xz', 'yz')
_MASS = ('mass', 'uniform', 'center_of_mass', 'inertia')
_NEAR = 1e-9   # m: nearer points are the same
_SHAPE = ('((X3-X1)*(X2-X1) + (Y3-Y1)*(Y2-Y1))/hypot(X2-X1, Y2-Y1)',
          '((X2-X1)*(Y3-Y1) - (Y2-Y1)*(X3-X1))/hypot(X2-X1, Y2-Y1)')
# Keys beside type, parent and child: required ones and optional ones.
_PLANE = {'revolute': ((), ('start', 'limits')), 'prismatic': (('axis',), ('angle', 'start', 'limits')),
          'slot': (('axis',), ('start',)), 'fixed': ((), ('angle',)), 'distance': (('length',), ())}
_SPACE = {'revolute': (('axis',), ('rpy', 'start', 'limits')), 'prismatic': (('axis',), ('rpy', 'start', 'limits')),
          'cylindrical': (('axis',), ('rpy', 'start')), 'spherical': ((), ('rpy',)),
          'universal': (('axis', 'axis2'), ('rpy',)), 'fixed': ((), ('rpy',)), 'distance': (('length',), ())}


def read_bodies(entry: Entry, references: References) -> dict[str, FrameGuess]:
    """Fill ``references.bodies``; what the file says of the places of their frames is returned."""
    guesses = {}
    for name, item in entry.named('bodies').items():
        with item.kept():
            if name == GROUND:
                raise item.error("another name, 'ground' is the ground", name)
            listed = isinstance(item.value, dict) and isinstance(item.value.get('points'), list)
            read = _sketched if listed else _framed
            references.bodies[name], guesses[name] = read(name, item, references)
    return guesses


def _sketched(name: str, entry: Entry, references: References) -> tuple[Body, FrameGuess]:
    """A bar or a shape between points of the sketch: frame at the first, x axis through the second."""
    if not references.planar:
        raise entry.error('a mapping of points to coordinates in the frame of the body; a list is for a plane',
                          key='points')
    for key in ('position', 'angle'):
        if key in entry.value:
            raise entry.error(f'no `{key}` together with a list of points, whose places are given in `points`',
                              entry.value[key], key)
    parts = entry.mapping(['points', 'mass'], ['length', 'outline', *_MASS[1:]])
    names = [item.choice(references.sketch, 'a point of `points`') for item in parts['points'].items('points')]
    if len(names) < 2 or len(set(names)) < len(names):
        raise parts['points'].error('at least two different points; a mapping of coordinates serves for a single one')
    first, second = (np.array(nominal(references.sketch[point])) for point in names[:2])
    if np.linalg.norm(second - first) < _NEAR:
        raise parts['points'].error(f'points apart from each other, {names[0]} and {names[1]} coincide')
    points = dict(zip(names, _local_points(entry, parts, [references.sketch[item] for item in names], references)))
    rotation = planar_rotation(math.atan2(*(second - first)[::-1]))
    return _body(name, entry, parts, points, references), FrameGuess(first, rotation)


def _local_points(entry: Entry, parts: dict[str, Entry], places: list[Vector], references: References) -> list[Vector]:
    """Coordinates in the frame of the body: two points by the length, more by the shape of the guess."""
    values = {f'{axis}{index}': item for index, place in enumerate(places[:2], 1) for axis, item in zip('XY', place)}
    length = derived('hypot(X2-X1, Y2-Y1)', values, f'{entry.key}.length')
    if 'length' in parts:
        if len(places) > 2:
            raise parts['length'].error('no length: the shape of three or more points is that of `points`')
        length = references.numbers.scalar(parts['length'], positive('m'))
    found: list[Vector] = [(ZERO, ZERO), (length, ZERO)]
    for place, name in zip(places[2:], parts['points'].value[2:]):
        values.update(zip(('X3', 'Y3'), place))
        found.append(tuple(derived(text, values, f'{entry.key}.points.{name}[{index}]')
                           for index, text in enumerate(_SHAPE)))
    return found


def _framed(name: str, entry: Entry, references: References) -> tuple[Body, FrameGuess]:
    """A body whose points are given in a frame of its own."""
    turn = 'angle' if references.planar else 'rpy'
    wrong = 'rpy' if references.planar else 'angle'
    if isinstance(entry.value, dict) and wrong in entry.value:
        raise entry.error(f'`{turn}`, which turns a body in {"a plane" if references.planar else "space"}',
                          entry.value[wrong], wrong)
    parts = entry.mapping(['points', 'mass'], ['position', turn, 'outline', *_MASS[1:]])
    points = {point: references.numbers.vector(item, ValueKind('m'), references.dimension)
              for point, item in parts['points'].named('points').items()}
    guess = _guess(parts, points, references)
    return _body(name, entry, parts, points, references), guess


def _guess(parts: dict[str, Entry], points: dict[str, Vector], references: References) -> FrameGuess:
    """Place of the frame: `position`, `angle` or `rpy`, else by the points that it shares with the sketch."""
    numbers = references.numbers
    position = (np.array(numbers.numbers(parts['position'], ValueKind('m'), references.dimension))
                if 'position' in parts else None)
    rotation = None
    if 'angle' in parts:
        rotation = planar_rotation(numbers.number(parts['angle'], ValueKind('rad')))
    elif 'rpy' in parts:
        rotation = rpy_rotation(numbers.numbers(parts['rpy'], ValueKind('rad'), 3))
    shared = [point for point in points if point in references.sketch] if references.planar else []
    if not shared:
        return FrameGuess(position, rotation)
    if position is not None:
        raise parts['position'].error(f'no position: the body is placed by its point {shared[0]} of `points`')
    local, place = ([np.array(nominal(source[point])) for point in shared] for source in (points, references.sketch))
    if len(shared) > 1:
        _check_apart(parts, shared, local, place)
        if rotation is None:
            there, here = place[1] - place[0], local[1] - local[0]
            rotation = planar_rotation(math.atan2(there[1], there[0]) - math.atan2(here[1], here[0]))
    return FrameGuess(None, rotation, (local[0], place[0]))


def _check_apart(parts: dict[str, Entry], names: list[str], *places: list[np.ndarray]) -> None:
    for first, second, *_ in places:
        if np.linalg.norm(second - first) < _NEAR:
            raise parts['points'].error(f'points apart from each other, {names[0]} and {names[1]} coincide')


def _body(name: str, entry: Entry, parts: dict[str, Entry], points: dict[str, Vector],
          references: References) -> Body:
    """Mass properties and outline; the pose is filled in later."""
    numbers, size = references.numbers, references.dimension
    mass = numbers.scalar(parts['mass'], positive('kg'))
    uniform = 'uniform' in parts and parts['uniform'].flag()
    for key in ('center_of_mass', 'inertia'):
        if uniform and key in parts:
            raise parts[key].error(f'no `{key}` together with `uniform: true`, a slender rod has its own')
        if not uniform and key not in parts:
            entry.wrong('this key (or `uniform: true` for a slender rod), which is missing', None, key)
            parts[key] = entry.part(key, KNOWN)
    if uniform:
        _check_rod(parts['points'], points)
    center = () if uniform else numbers.vector(parts['center_of_mass'], ValueKind('m'), size)
    inertia: Vector = ()
    if not uniform:
        inertia = parts['inertia'].tried(lambda: _inertia(parts['inertia'], references), inertia)
    outline = (tuple(item.choice(points, f'a point of {name}') for item in parts['outline'].items('points'))
               if 'outline' in parts else tuple(points))
    nowhere, level = (0.0,) * size, tuple(map(tuple, np.eye(size).tolist()))
    return Body(name, mass, center, inertia, points, nowhere, level, uniform, outline)


def _check_rod(entry: Entry, points: dict[str, Vector]) -> None:
    if len(points) < 2:
        raise entry.error('two points, the ends of the rod that `uniform: true` asks for')
    first, second = (nominal(point) for point in list(points.values())[:2])
    if math.dist(first, second) < _NEAR:
        raise entry.error('points apart from each other, the ends of the rod coincide')


def _inertia(entry: Entry, references: References) -> tuple[Scalar, ...]:
    """About the centre of mass: one number in a plane, the tensor's elements in space."""
    numbers = references.numbers
    if references.planar:
        if isinstance(entry.value, dict) and set(entry.value) & {*_MOMENTS, *_PRODUCTS}:
            raise entry.error('one number, the moment of inertia in the plane; a tensor is for space')
        return (numbers.scalar(entry, not_negative('kg*m^2')),)
    parts = entry.mapping([], [*_MOMENTS, *_PRODUCTS])
    if not set(_MOMENTS) <= set(parts):     # the joints decide whether one moment is enough: see the consistency check
        if set(_PRODUCTS) & set(parts) or not parts:
            raise entry.error('xx, yy and zz' + (' together with products of inertia' if parts else ''))
        return tuple(numbers.optional(parts, name, not_negative('kg*m^2'), MISSING) for name in _MOMENTS) + (ZERO,) * 3
    kinds = {**dict.fromkeys(_MOMENTS, not_negative('kg*m^2')), **dict.fromkeys(_PRODUCTS, ValueKind('kg*m^2'))}
    inertia = tuple(numbers.optional(parts, name, kind, ZERO) for name, kind in kinds.items())
    if all(map(math.isfinite, nominal(inertia))) and not plausible_inertia(*nominal(inertia)):
        raise entry.error('moments of inertia of a real body: no principal moment above the sum of the other two',
                          list(nominal(inertia)))
    return inertia


def plausible_inertia(xx: float, yy: float, zz: float, xy: float, xz: float, yz: float) -> bool:
    """Triangle inequality of the principal moments: the second moments of mass must be positive semidefinite."""
    moments = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return bool(2.0 * moments.max() <= moments.sum() * (1.0 + 1e-6))


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
        with item.kept():
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
        starts[name] = numbers.number(parts['start'], ValueKind('rad' if kind == 'revolute' else 'm'))
    length = numbers.optional(parts, 'length', positive('m'))
    limits = parts['limits'].tried(lambda: _limits(parts, kind, numbers, starts.get(name, 0.0)), None
                                   ) if 'limits' in parts else None
    return Joint(name, kind, parent, child, axes[0], _rpy(parts, references), axes[1], length, limits)


def _limits(parts: dict[str, Entry], kind: str, numbers: Numbers, start: float) -> tuple[float, float]:
    """Range of the coordinate, with the start inside."""
    unit = 'rad' if kind == 'revolute' else 'm'
    limits = parts['limits'].items('a lower and a higher limit', 2)
    low, high = (numbers.number(item, ValueKind(unit)) for item in limits)
    if low >= high:
        parts['limits'].wrong('a lower and a higher limit')
    elif 'start' in parts and (start < low or start > high):
        parts['start'].wrong(f'a start inside the limits, {low:g} to {high:g} {unit}')
    return low, high


def _type(entry: Entry, references: References) -> str:
    """Type of the joint, one of the plane's or of space's."""
    here, there = (_PLANE, _SPACE) if references.planar else (_SPACE, _PLANE)
    if not isinstance(entry.value, dict) or 'type' not in entry.value:
        entry.mapping(['type', 'parent', 'child'], ['axis', 'length', 'start', 'angle' if references.planar else 'rpy'])
    item = entry.part('type', entry.value['type'])
    if isinstance(item.value, str) and item.value in there and item.value not in here:
        raise item.error(f'a type of joint of dimension {references.dimension}: ' + ', '.join(here))
    return item.choice(here, f'a type of joint of dimension {references.dimension}')


def _rpy(parts: dict[str, Entry], references: References) -> Vector:
    """Rotation between the frames: one angle in a plane, roll, pitch, yaw in space."""
    if 'angle' in parts:
        return (references.numbers.scalar(parts['angle'], ValueKind('rad')),)
    if 'rpy' in parts:
        return references.numbers.vector(parts['rpy'], ValueKind('rad'), 3, 'three angles roll, pitch, yaw')
    return (ZERO,) * (1 if references.planar else 3)
