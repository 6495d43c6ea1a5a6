# SPDX-License-Identifier: Apache-2.0
"""The sections `springs` and `forces`."""

from __future__ import annotations

from ..basics import ZERO, Scalar
from ..language.entry import Entry
from ..language.quantity import ValueKind, not_negative, positive
from ..language.references import References, unit_of
from ..model import FORCES, Force, JointFriction, Spring
from .load_coordinates import relative_angle

SLIDING = 'revolute', 'prismatic', 'slot'
SPEED = Scalar(0.01)        # m/s
# Units of stiffness, free length or angle, and damping.
_UNITS = {'rad': ('N*m/rad', 'rad', 'N*m*s/rad'), 'm': ('N/m', 'm', 'N*s/m')}


def read_springs(entry: Entry, references: References) -> dict[str, Spring]:
    """Springs and dampers; one between two bodies adds their relative angle as a coordinate of its own name."""
    return entry.each('springs', lambda name, item: _spring(name, item, references))


def _spring(name: str, entry: Entry, references: References) -> Spring:
    parts = entry.mapping([], ['points', 'coordinate', 'bodies', 'stiffness', 'free', 'damping'])
    target = entry.one_of(('points', 'coordinate', 'bodies'))
    if not {'stiffness', 'damping'} & set(parts):
        raise entry.error('stiffness and free, damping, or all three')
    if ('stiffness' in parts) != ('free' in parts):
        raise entry.error('`stiffness` and `free` (where it is without force) together')
    points, coordinate = None, ''
    if target == 'points':
        points = references.two_points(parts['points'])
    else:
        coordinate = _spring_coordinate(name, target, parts[target], references)
    unit = unit_of(references.coordinates[coordinate], references.joints) if coordinate else 'm'
    stiffness, free, damping = _UNITS[unit]
    kinds = {'stiffness': not_negative(stiffness), 'free': not_negative(free) if points else ValueKind(free),
             'damping': not_negative(damping)}
    values = {key: references.numbers.optional(parts, key, kind, ZERO) for key, kind in kinds.items()}
    return Spring(name, points, coordinate, **values)


def _spring_coordinate(name: str, target: str, entry: Entry, references: References) -> str:
    """Name of the coordinate the spring acts on."""
    if target == 'coordinate':
        return references.coordinate(entry).name
    if not references.planar:
        raise entry.error('`coordinate`, the angle of a revolute joint; `bodies` is for a plane')
    if name in references.coordinates:
        raise entry.error(f'another name of the spring, there is a coordinate {name}')
    references.coordinates[name] = relative_angle(name, entry, references)
    return name


def read_forces(entry: Entry, references: References) -> dict[str, Force]:
    """Constant forces and named inputs on points, bodies and coordinates."""
    return entry.each('forces', lambda name, item: _force(name, item, references))


def _force(name: str, entry: Entry, references: References) -> Force:
    parts = entry.mapping([], ['point', 'body', 'coordinate', 'force', 'value', 'input', 'direction'])
    target = entry.one_of(('point', 'body', 'coordinate'))
    what = entry.one_of(('force', 'input') if target == 'point' else ('value', 'input'))
    _check_extra(entry, parts, {target, what} | _direction_keys(target, what, references))
    numbers = references.numbers
    name_of_input = parts['input'].name() if what == 'input' else ''
    direction = numbers.direction(parts['direction'], references.dimension) if 'direction' in parts else ()
    if target == 'point':
        point = references.point(parts['point'], on_body=True)
        value = numbers.vector(parts['force'], ValueKind('N'), references.dimension) if what == 'force' else ()
        return Force(name, point=point, value=value, direction=direction, input=name_of_input)
    if target == 'body':
        value = (numbers.scalar(parts['value'], ValueKind('N*m')),) if what == 'value' else ()
        return Force(name, body=references.body(parts['body']), value=value, direction=direction, input=name_of_input)
    coordinate = references.coordinate(parts['coordinate'])
    unit = FORCES[unit_of(coordinate, references.joints)]
    value = (numbers.scalar(parts['value'], ValueKind(unit)),) if what == 'value' else ()
    return Force(name, coordinate=coordinate.name, value=value, input=name_of_input)


def read_friction(entry: Entry, references: References) -> dict[str, JointFriction]:
    """Coulomb friction of joints, one for a joint at most."""
    found: dict[str, JointFriction] = {}
    for name, item in entry.named('friction').items():
        with item.kept():
            parts = item.mapping(['joint', 'coefficient'], ['radius', 'speed'])
            joint = references.joints[parts['joint'].choice(references.joints, 'a joint')]
            if joint.type not in SLIDING:
                raise parts['joint'].error(f'a joint that is {", ".join(SLIDING)}; this one is {joint.type}')
            if any(other.joint == joint.name for other in found.values()):
                raise parts['joint'].error('a joint without another friction')
            if ('radius' in parts) != (joint.type == 'revolute'):
                raise item.error('`radius`, m, of the pin of a revolute joint, and of no other', key='radius')
            radius = references.numbers.scalar(parts['radius'], positive('m', 10.0)) if 'radius' in parts else None
            found[name] = JointFriction(
                name, joint.name, references.numbers.scalar(parts['coefficient'], not_negative('1', 10.0)),
                references.numbers.optional(parts, 'speed', positive('m/s', 1.0), SPEED), radius)
    return found


def _direction_keys(target: str, what: str, references: References) -> set[str]:
    """Where a direction belongs: an input force on a point, a torque in space."""
    wanted = (target, what) == ('point', 'input') or (target == 'body' and not references.planar)
    return {'direction'} if wanted else set()


def _check_extra(entry: Entry, parts: dict[str, Entry], keys: set[str]) -> None:
    for key in parts:
        if key not in keys:
            raise parts[key].error(f'no `{key}` here, only ' + ', '.join(sorted(keys)))
    for key in keys:
        if key not in parts:
            raise entry.error('this key, which is missing', None, key)
