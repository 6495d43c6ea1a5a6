# SPDX-License-Identifier: Apache-2.0
"""The sections `named`, `independent`, `initial`, `drivers`, `nonholonomic`, `quasi_velocities`, and `modules` with
`levels` (the hierarchy of Orsino, modular modelling)."""

from __future__ import annotations

import math
from graphlib import CycleError, TopologicalSorter

from ..basics import GROUND, Scalar
from ..language.entry import Entry
from ..language.expressions import motion
from ..language.quantity import ValueKind, not_negative, positive
from ..language.references import References, joint_coordinate, unit_of
from ..model import RATES, Coordinate, Driver, Initial, Joint, Level, NonHolonomic, QuasiVelocity

_AXES = ('x', 'y', 'z')
_KINDS = ('angle', 'distance', 'joint', *_AXES)
_JOINTS = {2: ('revolute', 'prismatic', 'slot'), 3: ('revolute', 'prismatic', 'cylindrical')}
ALL = 'all'


def read_named(entry: Entry, references: References) -> None:
    """Fill ``references.coordinates``."""
    for name, item in entry.named('coordinates').items():
        with item.kept():
            found = _coordinate(name, item, references)
            if references.coordinates.get(name, found) != found:
                raise item.error('another name, a damper of the URDF makes a coordinate of this name')
            references.coordinates[name] = found


def relative_angle(name: str, entry: Entry, references: References, branches: bool = False) -> Coordinate:
    """The angle of the second of two bodies relative to the first."""
    bodies = tuple(references.body(item) for item in entry.items('two bodies', 2))
    if bodies[0] == bodies[1]:
        raise entry.error('two different bodies')
    return Coordinate(name, 'angle', bodies, branches=branches)


def _coordinate(name: str, entry: Entry, references: References) -> Coordinate:
    """Exactly one kind."""
    parts = entry.mapping([], [*_KINDS, 'branches'])
    kind = entry.one_of(_KINDS)
    item = parts[kind]
    if 'branches' in parts and kind != 'angle':
        raise parts['branches'].error('no branches, these are for an angle')
    if kind == 'angle':
        return _angle(name, item, parts, references)
    if kind == 'joint':
        return _joint(name, item, references)
    if kind == 'distance':
        return Coordinate(name, 'distance', points=references.two_points(item))
    if kind == 'z' and references.planar:
        raise item.error('x or y, a plane has no z')
    return Coordinate(name, 'component', points=(references.point(item, on_body=True),), component=_AXES.index(kind))


def _angle(name: str, entry: Entry, parts: dict[str, Entry], references: References) -> Coordinate:
    """Absolute of one body, or relative of two."""
    if not references.planar:
        raise entry.error('{joint: ...} of a revolute joint; the angle of a body is for a plane')
    branches = 'branches' in parts and parts['branches'].flag()
    if isinstance(entry.value, list):
        return relative_angle(name, entry, references, branches)
    return Coordinate(name, 'angle', (references.body(entry),), branches=branches)


def _joint(name: str, entry: Entry, references: References) -> Coordinate:
    """Angle or displacement of a joint."""
    joint: Joint = references.joints[entry.choice(references.joints, 'a joint')]
    allowed = _JOINTS[references.dimension]
    if joint.type not in allowed:
        raise entry.error(f'a joint that is {", ".join(allowed)}; this one is {joint.type}')
    return joint_coordinate(name, joint, references.planar)


def read_drivers(entry: Entry, references: References) -> dict[str, Driver]:
    """Prescribed motions, one for a coordinate at most."""
    drivers: dict[str, Driver] = {}
    for name, item in entry.named('drivers').items():
        with item.kept():
            drivers[name] = _driver(name, item, references, drivers)
    return drivers


def _driver(name: str, entry: Entry, references: References, others: dict[str, Driver]) -> Driver:
    parts = entry.mapping(['coordinate', 'motion'])
    coordinate = references.coordinate(parts['coordinate'])
    for other in others.values():
        if other.coordinate == coordinate.name:
            raise parts['coordinate'].error(f'a coordinate that no other driver moves, as {other.name} does')
    text, factor = references.numbers.motion(parts['motion'], unit_of(coordinate, references.joints))
    _check_motion(parts['motion'], text, references.numbers.parameters)
    return Driver(name, coordinate.name, text, factor)


def _check_motion(entry: Entry, text: str, parameters: dict[str, Scalar]) -> None:
    """The motion is a finite number over the first 10 s."""
    values = {name: item.value for name, item in parameters.items()}
    for step in range(101):
        try:
            motion(text, values, step / 10.0)
        except ValueError as error:
            raise entry.error(f'a motion that is a finite number from 0 to 10 s ({error} at t = {step / 10.0:g} s)'
                              ) from error


def read_independent(entry: Entry, references: References, drivers: dict[str, Driver]) -> tuple[str, ...]:
    """Names of coordinates, empty for `auto`."""
    if entry.value == 'auto':
        return ()
    items = entry.items('coordinates of `named`, or auto')
    if not items:
        raise entry.error('at least one coordinate of `named`, or auto')
    names: list[str] = []
    for item in items:
        name = references.coordinate(item).name
        if name in names:
            raise item.error('each coordinate once')
        if any(driver.coordinate == name for driver in drivers.values()):
            raise item.error('a coordinate that no driver moves')
        names.append(name)
    return tuple(names)


def read_initial(entry: Entry, references: References, drivers: dict[str, Driver],
                 quasi: dict[str, QuasiVelocity]) -> Initial:
    """Positions and velocities of named coordinates, and quasi-velocities; whether the inputs hold the start."""
    parts = entry.mapping([], ['position', 'velocity', 'held'])
    held = 'held' in parts and parts.pop('held').flag()
    found: dict[str, dict[str, Scalar]] = {'position': {}, 'velocity': {}}
    for what, section in parts.items():
        others = quasi if what == 'velocity' else {}
        for name, item in section.mapping([], [*references.known_coordinates(), *others]).items():
            if name in others:
                found[what][name] = references.numbers.scalar(item, ValueKind(others[name].unit))
                continue
            with item.kept():
                references.coordinate(Entry(item.file, item.key, name))
                if any(driver.coordinate == name for driver in drivers.values()):
                    raise item.error('no start: a driver moves this coordinate from t = 0')
                found[what][name] = references.numbers.scalar(item, _start_kind(references, name, what))
    return Initial(found['position'], found['velocity'], held)


def _start_kind(references: References, name: str, what: str) -> ValueKind:
    coordinate = references.coordinates[name]
    unit = unit_of(coordinate, references.joints)
    if what == 'velocity':
        return ValueKind(RATES[unit])
    return not_negative(unit) if coordinate.kind == 'distance' else ValueKind(unit, -math.inf, math.inf)


def read_nonholonomic(entry: Entry, references: References) -> dict[str, NonHolonomic]:
    """Constraints on velocities, by name."""
    return entry.each('nonholonomic', lambda name, item: _constraint(name, item, references))


def _constraint(name: str, entry: Entry, references: References) -> NonHolonomic:
    entry.mapping([], ['point', 'along', 'rolls', 'radius', 'axis', 'on'])
    if entry.one_of(('point', 'rolls')) == 'point':
        parts = entry.mapping(['point', 'along'])
        point = references.point(parts['point'], on_body=True)
        return NonHolonomic(name, point, references.numbers.direction(parts['along'], references.dimension))
    parts = entry.mapping(['rolls', 'radius'], ['on'] if references.planar else ['axis', 'on'])
    ground = references.point(parts['on']) if 'on' in parts else None
    if ground is not None and ground.body != GROUND:
        raise parts['on'].error('a point of the ground: the wheel rolls on what is level there')
    return NonHolonomic(name, references.point(parts['rolls'], on_body=True),
                        radius=references.numbers.scalar(parts['radius'], positive('m', 100.0)), on=ground,
                        axis=references.numbers.direction(parts['axis'], 3) if 'axis' in parts else ())


def read_quasi_velocities(entry: Entry, references: References) -> dict[str, QuasiVelocity]:
    """Names of velocities that are derivatives of no coordinates."""
    return entry.each('quasi_velocities', lambda name, item: _quasi_velocity(name, item, references))


def _quasi_velocity(name: str, entry: Entry, references: References) -> QuasiVelocity:
    if name in references.known_coordinates():
        raise entry.error('another name, this one is of a coordinate', name)
    entry.mapping([], ['point', 'body', 'along'])
    kind = entry.one_of(('point', 'body'))
    parts = entry.mapping([kind] if references.planar and kind == 'body' else [kind, 'along'])
    along = references.numbers.direction(parts['along'], references.dimension) if 'along' in parts else ()
    point = references.point(parts['point'], on_body=True) if kind == 'point' else None
    body = references.body(parts['body']) if point is None else point.body
    return QuasiVelocity(name, body, along, point)


def read_modules(entry: Entry, references: References) -> dict[str, tuple[str, ...]]:
    """Names of bodies or other modules, by module; each in no circle."""
    entries = entry.named('modules')
    for name, item in entries.items():
        if name in references.bodies or name == ALL:
            raise item.error('another name of the module, this one is taken', name)
    modules = {name: tuple(part.choice([*references.bodies, *entries], 'a body or a module')
                           for part in item.items('bodies or modules')) for name, item in entries.items()}
    try:
        TopologicalSorter(modules).prepare()
    except CycleError as error:
        name = next(name for name in modules if name in error.args[1])
        raise entries[name].error('modules that do not contain themselves') from None
    for name, parts in modules.items():
        if not parts or len(set(parts)) < len(parts):
            raise entries[name].error('at least one body or module, each once')
        _check_disjoint(entries[name], parts, modules)
    return modules


def read_levels(entry: Entry, modules: dict[str, tuple[str, ...]]) -> tuple[Level, ...]:
    """From the lowest upwards; the last one is `all`, so that no joint is forgotten."""
    items = entry.items('levels, each a list of modules, the last one `all`')
    if not items or items[-1].value != ALL:
        raise entry.error('levels of which the last one is `all`, else joints between modules would be left out')
    levels = []
    for item in items[:-1]:
        names = tuple(part.choice(modules, 'a module') for part in item.items('modules, or `all` as the last level'))
        if not names:
            raise item.error('at least one module')
        _check_disjoint(item, names, modules)
        levels.append(Level(names))
    return (*levels, Level(()))


def bodies_of(name: str, modules: dict[str, tuple[str, ...]]) -> set[str]:
    """Bodies of a module, those of its modules included; a body is its own."""
    return set().union(*(bodies_of(part, modules) for part in modules[name])) if name in modules else {name}


def _check_disjoint(entry: Entry, names: tuple[str, ...], modules: dict[str, tuple[str, ...]]) -> None:
    taken: dict[str, str] = {}
    for name in names:
        for body in sorted(bodies_of(name, modules)):
            if body in taken:
                raise entry.error(f'modules that do not overlap: {body} belongs to {taken[body]} and to {name}')
            taken[body] = name
