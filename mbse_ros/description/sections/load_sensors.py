# SPDX-License-Identifier: Apache-2.0
"""The section `sensors`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..basics import GROUND, PointRef, Scalar, Vector
from ..language.entry import Entry
from ..language.quantity import ValueKind, not_negative
from ..language.references import References, unit_of
from ..machine_parts import Base, Cylinder, Drive, Hydraulics
from ..model import Drift, Driver, Sensor, sensor_unit


@dataclass(frozen=True)
class MachineParts:
    """What sensors of a machine refer to."""

    cylinders: dict[str, Cylinder] = field(default_factory=dict)
    hydraulics: Hydraulics | None = None
    base: Base | None = None
    drives: dict[str, Drive] = field(default_factory=dict)

_COMMON = ('stddev', 'resolution', 'range', 'delay', 'drift')
PER_DAY = '/sqrt(day)'      # of the unit of a drift: it is a random walk
_SLOW = {'Pa': '2 kPa', 'm': '0.1 mm', 'rad': '0.01 deg'}
LONGEST = 0.5       # s of a delay: a sensor that is later is of no use to a filter
# By kind: the required keys, and the optional ones.
_KINDS = {'encoder': (('coordinate',), ('wraps',)), 'stroke': (('cylinder',), ()), 'rate': (('coordinate',), ()),
          'position': (('point',), ()), 'velocity': (('point',), ()), 'gyro': (('body',), ()),
          'accelerometer': (('point',), ('body', 'axes', 'gravity')), 'distance': (('points',), ()),
          'inclinometer': (('body',), ()), 'force': (('driver',), ()),
          'pressure': ((), ('volume', 'supply', 'offset', 'gain', 'reference')), 'inclination': (('axis',), ()),
          'effort': (('drive',), ('offset', 'gain')), 'current': (('drive',), ('offset', 'gain'))}
OF_DRIVES = 'effort', 'current'


def read_sensors(entry: Entry, references: References, drivers: dict[str, Driver],
                 machine: MachineParts) -> dict[str, Sensor]:
    """Sensors by name."""
    found: dict[str, Sensor] = {}
    for name, item in entry.named('sensors').items():
        with item.kept():
            found[name] = sensor = _sensor(name, item, references, drivers, machine)
            for other in list(found.values())[:-1]:
                if machine.hydraulics is not None and sensor.target is not None and sensor.target == other.target:
                    raise item.error(f'one sensor a place, {other.name} measures this already', name)
                if {sensor.kind, other.kind} == {'accelerometer', 'inclination'} and (sensor.on_base or other.on_base):
                    raise item.error('either an accelerometer of the ground, which measures the inclination too, or '
                                     f'sensors of kind inclination; the other is {other.name}', name)
    return found


def _sensor(name: str, entry: Entry, references: References, drivers: dict[str, Driver],
            machine: MachineParts) -> Sensor:
    if not isinstance(entry.value, dict) or 'kind' not in entry.value:
        entry.mapping(['kind'], ['coordinate', 'point', 'points', 'body', 'driver', 'cylinder', 'volume',
                                 'supply', 'drive', *_COMMON, 'bias'])
    kind = entry.part('kind', entry.value['kind']).choice(_KINDS, 'a kind of sensor')
    needed, allowed = _KINDS[kind]
    if on_base := kind == 'accelerometer' and entry.value.get('body') == GROUND:
        needed, allowed = ('body',), ('axes',)
    elif kind == 'accelerometer' and 'point' not in entry.value:
        raise entry.error('the key `point`, a point of a body; or `body: ground` for the accelerometer on what the '
                          'machine stands on', entry.value.get('body'), 'point')
    allowed = (*allowed, *_COMMON, *(() if kind in ('pressure', *OF_DRIVES) else ('bias',)))
    parts = entry.mapping(['kind', *needed], [*allowed])
    if kind == 'pressure':
        return _pressure(name, entry, parts, references, machine)
    if kind in OF_DRIVES:
        return _effort(name, kind, parts, references, machine)
    if kind == 'inclination':
        return _inclination(name, parts, references, machine)
    if on_base:
        return _base_accelerometer(name, parts, references, machine)
    if kind == 'stroke':
        kind, parts['coordinate'] = 'encoder', parts['cylinder']
        parts['cylinder'].choice(machine.cylinders, 'a cylinder')
    found = _target(kind, parts, references, drivers)
    unit = sensor_unit(kind, lambda: unit_of(references.coordinates[
        found.get('coordinate') or drivers[found['driver']].coordinate], references.joints))
    bias = _bias(parts['bias'], references, unit, _channels(kind, found, references)) if 'bias' in parts else ()
    return Sensor(name, kind, *_noise(parts, references, unit), **found, bias=bias, wraps=_wraps(parts, unit),
                  range=_range(parts, references, unit), delay=_delay(parts, references, machine),
                  drift=_drift(parts, references, unit, machine))


def _noise(parts: dict[str, Entry], references: References, unit: str) -> tuple[float, float]:
    """Standard deviation and resolution, 0 where the file gives none."""
    stddev, resolution = (references.numbers.number(parts[key], not_negative(unit)) if key in parts else 0.0
                          for key in ('stddev', 'resolution'))
    return stddev, resolution


def _range(parts: dict[str, Entry], references: References, unit: str) -> tuple[float, float] | None:
    """Lowest and highest value of a sample, SI, where the file says."""
    if 'range' not in parts:
        return None
    ends = parts['range'].items('the lowest and the highest value', 2)
    low, high = (references.numbers.number(end, ValueKind(unit)) for end in ends)
    if low >= high:
        parts['range'].wrong('a lower and a higher value')
    return low, high


def _delay(parts: dict[str, Entry], references: References, machine: MachineParts) -> Scalar | None:
    """By how much a sample's stamp is later than what it measures, s, where the file says; of machines alone."""
    if 'delay' in parts and machine.hydraulics is None:
        raise parts['delay'].error('a machine with the section `hydraulics` for it; of other mechanisms `delay` of a '
                                   'topic in the section `sources`')
    return references.numbers.optional(parts, 'delay', not_negative('s', LONGEST))


def _drift(parts: dict[str, Entry], references: References, unit: str, machine: MachineParts) -> Drift | None:
    """How fast its zero walks, where the file says; of machines alone, which have the date of a calibration."""
    if 'drift' not in parts:
        return None
    entry = parts['drift']
    if machine.hydraulics is None:
        raise entry.error('a machine, with the section `cylinders`, for it')
    text = entry.value.replace(' ', '') if isinstance(entry.value, str) else ''
    if not text.endswith(PER_DAY):
        raise entry.error(f"a number with a unit of {unit} per square root of a day, such as "
                          f"'{_SLOW.get(unit, f'1e-3 {unit}')}{PER_DAY}'")
    amount = Entry(entry.file, entry.key, entry.value[:entry.value.rindex('/')].strip())
    rate = references.numbers.number(amount, not_negative(unit))
    return Drift(rate) if rate > 0.0 else None


def _pressure(name: str, entry: Entry, parts: dict[str, Entry], references: References,
              machine: MachineParts) -> Sensor:
    """Of a volume or a supply; one that cannot be noisy would claim to be exact."""
    if ('volume' in parts) == ('supply' in parts):
        raise entry.error('exactly one of the keys volume, supply', 'both' if 'volume' in parts else None, 'volume')
    hydraulics, numbers = machine.hydraulics, references.numbers
    if hydraulics is None:
        raise parts['kind'].error('the section `hydraulics` for a sensor of pressure')
    key = 'volume' if 'volume' in parts else 'supply'
    owner = parts[key].choice(hydraulics.volumes if key == 'volume' else hydraulics.supplies, f'a {key}')
    noise = _noise(parts, references, 'Pa')
    if not any(noise):
        entry.wrong('a standard deviation or a resolution above 0', None, 'stddev')
    offset = (numbers.scalar(parts['offset'], ValueKind('Pa', -1e8, 1e8)),) if 'offset' in parts else ()
    gain = numbers.optional(parts, 'gain', ValueKind('1', 0.1, 10.0))
    gauge = 'reference' in parts and parts['reference'].choice(('absolute', 'gauge'), 'absolute or gauge') == 'gauge'
    return Sensor(name, 'pressure', *noise, volume=owner, bias=offset, gain=gain, gauge=gauge,
                  range=_range(parts, references, 'Pa'), delay=_delay(parts, references, machine),
                  drift=_drift(parts, references, 'Pa', machine))


def _effort(name: str, kind: str, parts: dict[str, Entry], references: References, machine: MachineParts) -> Sensor:
    """Of a drive, at its joint, or by the current of its motor."""
    numbers, drive = references.numbers, machine.drives[parts['drive'].choice(machine.drives, 'a drive')]
    if kind == 'current' and not drive.torque_constant:
        raise parts['drive'].error(f'a drive with the key `torque_constant`: {drive.name} has none', drive.name)
    unit = sensor_unit(kind, lambda: drive.unit)
    noise = _noise(parts, references, unit)
    if not any(noise):
        raise Entry(parts['kind'].file, f'sensors.{name}.stddev', None).error('a deviation or a resolution above 0')
    offset = (numbers.scalar(parts['offset'], ValueKind(unit)),) if 'offset' in parts else ()
    gain = numbers.optional(parts, 'gain', ValueKind('1', 0.1, 10.0))
    return Sensor(name, kind, *noise, bias=offset, gain=gain, range=_range(parts, references, unit),
                  delay=_delay(parts, references, machine), drift=_drift(parts, references, unit, machine),
                  drive=drive.name)


def _inclination(name: str, parts: dict[str, Entry], references: References, machine: MachineParts) -> Sensor:
    """Roll or pitch of the base."""
    if machine.base is None:
        raise parts['kind'].error('the section `base`, such as `base: {}`, for a sensor of its inclination')
    bias = (references.numbers.scalar(parts['bias'], ValueKind('rad')),) if 'bias' in parts else ()
    return Sensor(name, 'inclination', *_noise(parts, references, 'rad'),
                  axis=parts['axis'].choice(('roll', 'pitch'), 'roll or pitch'), bias=bias,
                  range=_range(parts, references, 'rad'), delay=_delay(parts, references, machine),
                  drift=_drift(parts, references, 'rad', machine))


def _base_accelerometer(name: str, parts: dict[str, Entry], references: References, machine: MachineParts) -> Sensor:
    """Of what the machine stands on, along axes of the machine's frame: with gravity, as all real ones measure it."""
    if machine.hydraulics is None:
        raise parts['body'].error('a body that moves; the accelerometer of the ground is that of a machine, with the '
                                  'section `cylinders`')
    axes = _axes(parts, references)
    if not np.allclose(np.array(axes) @ np.array(axes).T, np.eye(len(axes))):
        raise parts['axes'].error('directions that are perpendicular to each other')
    noise = _noise(parts, references, 'm/s^2')
    if not any(noise):
        raise Entry(parts['kind'].file, f'sensors.{name}.stddev', None).error('a deviation or a resolution above 0')
    bias = _bias(parts['bias'], references, 'm/s^2', len(axes)) if 'bias' in parts else ()
    return Sensor(name, 'accelerometer', *noise, body=GROUND, axes=axes, bias=bias,
                  range=_range(parts, references, 'm/s^2'), delay=_delay(parts, references, machine),
                  drift=_drift(parts, references, 'm/s^2', machine))


def _channels(kind: str, found: dict[str, Any], references: References) -> int:
    """Number of values that a sensor gives."""
    if kind == 'accelerometer':
        return len(found['axes'])
    in_space = kind == 'gyro' and not references.planar
    return references.dimension if kind in ('position', 'velocity') or in_space else 1


def _bias(entry: Entry, references: References, unit: str, size: int) -> Vector:
    """One number for a sensor of one channel, else one for each."""
    numbers = references.numbers
    return (numbers.scalar(entry, ValueKind(unit)),) if size == 1 else numbers.vector(entry, ValueKind(unit), size)


def _wraps(parts: dict[str, Entry], unit: str) -> bool:
    if 'wraps' not in parts:
        return False
    wraps = parts['wraps'].flag()
    if wraps and unit != 'rad':
        raise parts['wraps'].error('the encoder of an angle; a length does not wrap')
    return wraps


def _target(kind: str, parts: dict[str, Entry], references: References,
            drivers: dict[str, Driver]) -> dict[str, Any]:
    """What the sensor is at."""
    if kind == 'accelerometer':
        return _accelerometer(parts, references)
    if 'coordinate' in parts:
        return {'coordinate': references.coordinate(parts['coordinate']).name}
    if 'driver' in parts:
        return {'driver': parts['driver'].choice(drivers, 'a driver')}
    if 'body' in parts:
        return {'body': references.body(parts['body'])}
    if 'point' in parts:
        return {'points': (references.point(parts['point'], on_body=True),)}
    return {'points': references.two_points(parts['points'])}


def _accelerometer(parts: dict[str, Entry], references: References) -> dict[str, Any]:
    """At a point of a body, along axes of that body."""
    point = parts['point']
    if 'body' in parts:
        body = references.body(parts['body'])
        ref = PointRef(body, point.choice(references.bodies[body].points, f'a point of {body}'))
    else:
        if '.' not in point.text("a point as 'body.point'"):
            raise point.error("the key `body` as well, or a point as 'body.point'")
        ref = references.point(point, on_body=True)
    gravity = 'gravity' not in parts or parts['gravity'].flag()
    return {'body': ref.body, 'points': (ref,), 'axes': _axes(parts, references), 'gravity': gravity}


def _axes(parts: dict[str, Entry], references: References) -> tuple[tuple[float, ...], ...]:
    """Directions in the frame of the body, by default all of its axes."""
    size = references.dimension
    if 'axes' not in parts:
        return tuple(tuple(float(row == column) for column in range(size)) for row in range(size))
    axes = tuple(references.numbers.direction(item, size) for item in parts['axes'].items('directions'))
    if not axes:
        raise parts['axes'].error('at least one direction')
    return axes
