# SPDX-License-Identifier: Apache-2.0
"""Mechanism and machine YAML to MechanismDescription, by name or path; docs/mechanism_yaml.md and docs/machine_yaml.md
describe it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import DescriptionError, did_you_mean
from ..resources import read_text, share_directory
from .age import aged_today
from .assumptions import with_assumptions
from .basics import ZERO, Vector
from .consistency import check_machine, check_mechanism
from .generate import CHAIN, chain_of
from .language.document import read_document
from .language.entry import Entry
from .language.problems import Problems
from .language.quantity import ValueKind, not_negative
from .language.references import References, read_sketch
from .language.scalar import Numbers
from .machine_parts import NO_HYDRAULICS, Drive
from .model import Driver, Initial, Level, MechanismDescription, QuasiVelocity, Spring
from .sections.load_bodies import read_bodies, read_joints, shared_joints
from .sections.load_calibration import read_calibration
from .sections.load_coordinates import (
    read_drivers,
    read_independent,
    read_initial,
    read_levels,
    read_modules,
    read_named,
    read_nonholonomic,
    read_quasi_velocities,
)
from .sections.load_drives import read_drives
from .sections.load_forces import read_forces, read_friction, read_springs
from .sections.load_hydraulics import read_cylinders, read_hydraulics
from .sections.load_payload import read_base, read_payload, read_payloads
from .sections.load_robot import read_robot
from .sections.load_sensors import MachineParts, read_sensors
from .start import FrameGuess, place_bodies

if TYPE_CHECKING:
    from .robots.urdf import Robot


T = TypeVar('T')
FORMAT = 'mbse/machine/2'
FORMATS = (FORMAT, 'mbse/mechanism/1')      # the older name of the same language, for files without cylinders
OLD = 'mbse/machine/1'
MACHINE = ('cylinders', 'drives', 'hydraulics', 'payload', 'payloads', 'base', 'calibration')   # sections of machines
_REQUIRED = ('format', 'name', 'gravity')
_OPTIONAL = ('source', 'dimension', 'coordinates', 'parameters', 'points', 'bodies', 'urdf', 'joints', 'named',
             'independent', 'initial', 'springs', 'forces', 'drivers', 'sensors', 'modules', 'levels',
             'nonholonomic', 'friction', 'quasi_velocities', 'sources', 'scale', *MACHINE)
_SUFFIXES = ('.yaml', '.yml')
_COORDINATES = ('natural', 'reference_point', 'relative')
_GRAVITY = 100.0   # m/s^2; more is a mistaken unit
SUFFIXES = ('.yaml', '.yml')


def load_mechanism(name_or_path: str | Path) -> MechanismDescription:
    """Read and check a mechanism: a name out of config/mechanisms, 'n_four_bar:N', or a path to a YAML file.

    Raises DescriptionError (file, key path, value, expected) for a file that cannot be read, is not YAML, or says
    something that cannot be used.
    """
    name = str(name_or_path)
    if name.startswith(f'{CHAIN}:'):
        return parse_mechanism(chain_of(name), name)
    path = Path(name_or_path)
    if path.suffix not in _SUFFIXES:
        known = {**known_mechanisms(), **every_machine()}
        if name not in known:
            raise DescriptionError(
                name, 'mechanism', name, f'a path to a .yaml file, {CHAIN}:N, or one of the mechanisms '
                + ', '.join(known) + did_you_mean(name, known))
        path = known[name]
    return parse_mechanism(read_text(path), str(path))


def known_mechanisms() -> dict[str, Path]:
    """The files of config/mechanisms by name."""
    return _files('mechanisms')


def known_machines() -> dict[str, Path]:
    """The files of config/machines by name."""
    return _files('machines')


def known_arms() -> dict[str, Path]:
    """The files of config/arms by name: machines with drives."""
    return _files('arms')


def every_machine() -> dict[str, Path]:
    """All machines that have names."""
    return {**known_machines(), **known_arms()}


def _files(folder: str) -> dict[str, Path]:
    return {path.stem: path for path in sorted((share_directory() / 'config' / folder).glob('*.yaml'))}


def parse_mechanism(text: str, file: str = 'text') -> MechanismDescription:
    """As load_mechanism, from the text itself; ``file`` is the name that errors give and a `urdf` is found beside.

    All sections are read before errors are raised: DescriptionErrors of several. Zeros of sensors that drift are as
    old as they are today, see ``description.age``.
    """
    return Entry(file, '', read_document(text, file)).whole(_read)


def _read(root: Entry, problems: Problems) -> MechanismDescription:
    _check_format(root)
    parts = root.mapping(_REQUIRED, _OPTIONAL)
    if ('bodies' in parts) == ('urdf' in parts):
        raise root.error('exactly one of the keys bodies, urdf', 'both' if 'urdf' in parts else None, 'bodies')
    if not _complete(parts):
        problems.check()
    references = References(_dimension(parts), Numbers())
    robot = _structure(parts, references, problems)
    mechanism = _mechanism(parts, root.file, references, robot)
    problems.check()
    check_mechanism(mechanism, _placed(parts, mechanism))
    check_machine(mechanism)
    mechanism = with_assumptions(mechanism)
    if 'calibration' in parts:
        mechanism = replace(mechanism, calibration=read_calibration(parts['calibration'], mechanism))
    problems.check()
    return aged_today(mechanism)


def _check_format(root: Entry) -> None:
    """One of the formats, for of another nothing can be said; the first machine format is led to `mbse convert`."""
    if not isinstance(root.value, dict) or root.value.get('format') in FORMATS:
        return
    given = root.value.get('format')
    if given == OLD:
        raise root.error(f'{FORMAT}; the file is in the old format: `mbse convert {root.file} -o NEW.yaml` rewrites it',
                         given, 'format')
    if given is not None:
        raise root.error(FORMAT, given, 'format')
    root.wrong(FORMAT, None, 'format')


def _complete(parts: dict[str, Entry]) -> bool:
    """Whether no section lacks the cylinders that it needs, or excludes another."""
    if 'cylinders' not in parts:
        lacking = ('hydraulics',) if 'drives' in parts else (
            'hydraulics', 'payload', 'payloads', 'sources', 'scale', 'calibration')
        for one in lacking:
            if one in parts:
                drives = ', or `drives`' * (one != 'hydraulics')
                parts[one].wrong(f'the section `cylinders` as well, which is missing{drives}')
    if 'payload' in parts and 'payloads' in parts:
        parts['payloads'].wrong('only one of the sections `payload` and `payloads`')
    return all(parts[name].sound for name in (*MACHINE, 'sources', 'scale') if name in parts)


def _pressed(parts: dict[str, Entry]) -> bool:
    """Whether sensors measure pressures."""
    return 'sensors' in parts and isinstance(parts['sensors'].value, dict) and any(
        isinstance(item, dict) and item.get('kind') == 'pressure' for item in parts['sensors'].value.values())


def _dimension(parts: dict[str, Entry]) -> int:
    """2 where nothing else is said, 3 for a URDF."""
    if 'dimension' not in parts:
        return 3 if 'urdf' in parts else 2
    dimension = int(parts['dimension'].choice(('2', '3'), '2 for a plane or 3 for space'))
    if 'urdf' in parts and dimension == 2:
        raise parts['dimension'].error('3, a URDF is a robot in space')
    return dimension


def _structure(parts: dict[str, Entry], references: References, problems: Problems) -> Robot | None:
    """Fill the references with parameters, points, bodies, joints and coordinates; the robot of a URDF is returned."""
    if 'parameters' in parts:
        references.numbers.read_parameters(parts['parameters'])
    if 'points' in parts:
        read_sketch(parts['points'], references)
    robot: Robot | None = None
    guesses: dict[str, FrameGuess] = {}
    if 'urdf' in parts:
        sketched = set(references.ground)
        robot = read_robot(parts['urdf'], references, _needed(parts))
        for name in sketched & set(robot.ground):
            raise parts['points'].error('another name, the ground has a point of this name in the URDF', name, name)
    else:
        guesses = read_bodies(parts['bodies'], references)
    if references.planar:
        problems.check()        # which joints there are hangs on all of them
    if 'points' in parts:
        references.joints.update(shared_joints(references, parts['points']))
    starts = read_joints(parts['joints'], references) if 'joints' in parts else {}
    if not problems.found:
        references.bodies = place_bodies(parts['format'].file, references, guesses, starts)
    if 'named' in parts:
        read_named(parts['named'], references)
    return robot


def _needed(parts: dict[str, Entry]) -> set[str]:
    """Links that the file needs as bodies, for it speaks of their frames, or of themselves, and not only of points.

    The sections are not read yet: words that mean something else do no harm.
    """
    values = [parts[section].value for section in ('joints', 'modules', 'payload', 'payloads') if section in parts]
    for section in ('sensors', 'forces'):
        items = parts[section].value if section in parts else {}
        for item in items.values() if isinstance(items, dict) else ():
            if isinstance(item, dict):
                values += [item.get('body'), item.get('point') if item.get('kind') == 'accelerometer' else None]
    return {word.strip().partition('.')[0] for word in _words(values)}


def _words(value: object) -> Iterator[str]:
    """All texts in a value of the YAML tree, without the keys."""
    if isinstance(value, str):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _words(item)


def _mechanism(parts: dict[str, Entry], file: str, references: References,
               robot: Robot | None) -> MechanismDescription:
    """The sections that refer to the structure."""
    def read(key: str, reader: Callable[..., T], *others: Any, default: T) -> T:
        if key in parts:
            with parts[key].kept():
                return reader(parts[key], references, *others)
        return default

    circuit = parts.get('hydraulics')
    if circuit is None and 'cylinders' in parts and _pressed(parts):
        circuit = replace(parts['cylinders'], key='hydraulics', value={})      # all of it is typical
    cylinders = read_cylinders(parts['cylinders'], references, circuit is not None) if 'cylinders' in parts else {}
    springs = robot.springs if robot is not None else {}
    own: dict[str, Spring] = read('springs', read_springs, default={})
    for name in own:
        if name in springs:
            raise parts['springs'].error('another name, a damper of the URDF has it', name, name)
    drivers: dict[str, Driver] = read('drivers', read_drivers, default={})
    quasi: dict[str, QuasiVelocity] = read('quasi_velocities', read_quasi_velocities, default={})
    modules: dict[str, tuple[str, ...]] = read('modules', read_modules, default={})
    hydraulics = (read_hydraulics(circuit, references.numbers, cylinders) if circuit is not None
                  else NO_HYDRAULICS if cylinders or 'drives' in parts else None)
    drives: dict[str, Drive] = read('drives', read_drives, default={})
    base = read('base', read_base, default=None)
    machine = MachineParts(cylinders, hydraulics, base, drives)
    return MechanismDescription(
        file=file, name=read('name', lambda entry, _: entry.name(), default=''),
        source=read('source', lambda entry, _: entry.text('text that names the source'), default=''),
        dimension=references.dimension, gravity=read('gravity', _gravity, default=()),
        parameters=references.numbers.parameters, ground=references.ground, bodies=references.bodies,
        joints=references.joints, coordinates=references.coordinates, springs={**springs, **own},
        forces=read('forces', read_forces, default={}), drivers=drivers,
        sensors=read('sensors', read_sensors, drivers, machine, default={}),
        coordinate_type=_coordinate_type(parts, references),
        independent=read('independent', read_independent, drivers, default=()),
        initial=read('initial', read_initial, drivers, quasi, default=Initial()), modules=modules,
        levels=_levels(parts, modules), cylinders=cylinders, hydraulics=hydraulics,
        payload=read('payload', read_payload, default=None), payloads=read('payloads', read_payloads, default={}),
        base=base, sources=parts.get('sources'),
        scale=parts.get('scale'), nonholonomic=read('nonholonomic', read_nonholonomic, default={}),
        friction=read('friction', read_friction, default={}), quasi_velocities=quasi,
        remarks=robot.remarks if robot is not None else {}, drives=drives)


def _gravity(entry: Entry, references: References) -> Vector:
    """A magnitude along -y in a plane and -z in space, or a vector."""
    inner = entry.value.get('value') if isinstance(entry.value, dict) else entry.value
    size = references.dimension
    if isinstance(inner, list):
        return references.numbers.vector(entry, ValueKind('m/s^2', -_GRAVITY, _GRAVITY), size)
    down = references.numbers.scalar(entry, not_negative('m/s^2', _GRAVITY))
    return (ZERO,) * (size - 1) + (replace(down, value=0.0 - down.value, factor=-down.factor,
                                           key=f'{entry.key}[{size - 1}]'),)


def _coordinate_type(parts: dict[str, Entry], references: References) -> str:
    if 'coordinates' not in parts:
        if 'cylinders' in parts or 'drives' in parts:
            return 'relative'
        return 'natural' if references.planar else 'reference_point'
    chosen = parts['coordinates'].choice(_COORDINATES, 'a type of coordinates')
    if chosen == 'natural' and not references.planar:
        raise parts['coordinates'].error('reference_point or relative; natural coordinates are for a plane')
    return chosen


def _levels(parts: dict[str, Entry], modules: dict[str, tuple[str, ...]]) -> tuple[Level, ...]:
    if modules and 'levels' not in parts:
        raise parts['modules'].error('the key `levels` as well, modules serve levels only')
    broken = 'modules' in parts and not modules
    return read_levels(parts['levels'], modules) if 'levels' in parts and not broken else ()


def _placed(parts: dict[str, Entry], mechanism: MechanismDescription) -> set[str]:
    """Bodies whose place the file itself gives: `position`, or a URDF."""
    if 'urdf' in parts:
        return set(mechanism.bodies)
    return {name for name, body in parts['bodies'].value.items() if 'position' in body}


def describe(name: str) -> MechanismDescription:
    """What a name out of config/machines, config/arms or config/mechanisms, n_four_bar:N, or a path describes.

    A machine has cylinders or drives. Raises DescriptionError, for an unknown name with all that there are.
    """
    machines, mechanisms = every_machine(), known_mechanisms()
    if Path(name).suffix not in SUFFIXES and name.partition(':')[0] != CHAIN and name not in {**machines, **mechanisms}:
        raise DescriptionError(name, 'name', name, 'a path to a .yaml file, one of the machines '
                               f'{", ".join(machines)}, or one of the mechanisms {", ".join(mechanisms)}, {CHAIN}:N'
                               + did_you_mean(name, [*machines, *mechanisms]))
    return load_mechanism(name)
