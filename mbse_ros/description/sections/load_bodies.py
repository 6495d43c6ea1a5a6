# SPDX-License-Identifier: Apache-2.0
"""The section `bodies`: bars and shapes by the points of the sketch, and bodies with a frame of their own."""

from __future__ import annotations

import math

import numpy as np

from ..basics import GROUND, MISSING, ZERO, Scalar, Vector
from ..language.entry import Entry
from ..language.quantity import Kind, not_negative, positive
from ..language.references import References, nominal
from ..language.scalar import derived
from ..model import Body
from ..start import Guess, planar_rotation, rpy_rotation

_MOMENTS, _PRODUCTS = ('xx', 'yy', 'zz'), ('xy', 'xz', 'yz')
_MASS = ('mass', 'uniform', 'center_of_mass', 'inertia')
_NEAR = 1e-9   # m: nearer points are the same
_SHAPE = ('((X3-X1)*(X2-X1) + (Y3-Y1)*(Y2-Y1))/hypot(X2-X1, Y2-Y1)',
          '((X2-X1)*(Y3-Y1) - (Y2-Y1)*(X3-X1))/hypot(X2-X1, Y2-Y1)')


def read_bodies(entry: Entry, references: References) -> dict[str, Guess]:
    """Fill ``references.bodies``; what the file says of the places of their frames is returned."""
    guesses = {}
    for name, item in entry.named('bodies').items():
        if name == GROUND:
            raise item.error("another name, 'ground' is the ground", name)
        listed = isinstance(item.value, dict) and isinstance(item.value.get('points'), list)
        read = _sketched if listed else _framed
        references.bodies[name], guesses[name] = read(name, item, references)
    return guesses


def _sketched(name: str, entry: Entry, references: References) -> tuple[Body, Guess]:
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
    return _body(name, entry, parts, points, references), Guess(first, rotation)


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


def _framed(name: str, entry: Entry, references: References) -> tuple[Body, Guess]:
    """A body whose points are given in a frame of its own."""
    turn = 'angle' if references.planar else 'rpy'
    wrong = 'rpy' if references.planar else 'angle'
    if isinstance(entry.value, dict) and wrong in entry.value:
        raise entry.error(f'`{turn}`, which turns a body in {"a plane" if references.planar else "space"}',
                          entry.value[wrong], wrong)
    parts = entry.mapping(['points', 'mass'], ['position', turn, 'outline', *_MASS[1:]])
    points = {point: references.numbers.vector(item, Kind('m'), references.dimension)
              for point, item in parts['points'].named('points').items()}
    guess = _guess(parts, points, references)
    return _body(name, entry, parts, points, references), guess


def _guess(parts: dict[str, Entry], points: dict[str, Vector], references: References) -> Guess:
    """Place of the frame: `position`, `angle` or `rpy`, else by the points that it shares with the sketch."""
    numbers = references.numbers
    position = (np.array(numbers.numbers(parts['position'], Kind('m'), references.dimension))
                if 'position' in parts else None)
    rotation = None
    if 'angle' in parts:
        rotation = planar_rotation(numbers.number(parts['angle'], Kind('rad')))
    elif 'rpy' in parts:
        rotation = rpy_rotation(numbers.numbers(parts['rpy'], Kind('rad'), 3))
    shared = [point for point in points if point in references.sketch] if references.planar else []
    if not shared:
        return Guess(position, rotation)
    if position is not None:
        raise parts['position'].error(f'no position: the body is placed by its point {shared[0]} of `points`')
    local, place = ([np.array(nominal(source[point])) for point in shared] for source in (points, references.sketch))
    if len(shared) > 1:
        _check_apart(parts, shared, local, place)
        if rotation is None:
            there, here = place[1] - place[0], local[1] - local[0]
            rotation = planar_rotation(math.atan2(there[1], there[0]) - math.atan2(here[1], here[0]))
    return Guess(None, rotation, (local[0], place[0]))


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
            raise entry.error('this key (or `uniform: true` for a slender rod), which is missing', None, key)
    if uniform:
        _check_rod(parts['points'], points)
    center = () if uniform else numbers.vector(parts['center_of_mass'], Kind('m'), size)
    inertia = () if uniform else _inertia(parts['inertia'], references)
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
    kinds = {**dict.fromkeys(_MOMENTS, not_negative('kg*m^2')), **dict.fromkeys(_PRODUCTS, Kind('kg*m^2'))}
    inertia = tuple(numbers.optional(parts, name, kind, ZERO) for name, kind in kinds.items())
    if not plausible_inertia(*nominal(inertia)):
        raise entry.error('moments of inertia of a real body: no principal moment above the sum of the other two',
                          list(nominal(inertia)))
    return inertia


def plausible_inertia(xx: float, yy: float, zz: float, xy: float, xz: float, yz: float) -> bool:
    """Triangle inequality of the principal moments: the second moments of mass must be positive semidefinite."""
    moments = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return bool(2.0 * moments.max() <= moments.sum() * (1.0 + 1e-6))
