# SPDX-License-Identifier: Apache-2.0
"""Names of the channels of a machine or a mechanism, the fields of messages that carry them, and how a foreign number
becomes one of a channel, as a map says it: (number * unit + offset) * scale.

``position/<name>``, ``velocity/<name>``: of a cylinder (m, m/s), or of the coordinate or inclinometer of this name (m
or rad); ``pressure/<volume or supply>``, Pa; ``gyro/<sensor>``, rad/s, and ``accelerometer/<sensor>``, m/s^2, with
``.x``, ``.y`` or ``.z`` along the axes of the sensor; ``command/<valve>``, V; ``effort/<drive>``, N m, N or A.
Without an axis a gyro is its z and an accelerometer its x, as of the sensors of a mechanism in a plane.
Of mechanisms alone: ``effort/<sensor>``, the force of a driver (read as the effort of a drive, which machines have),
``value/<sensor>.x``, position or velocity of a point, ``input/<name>``, N or N m.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from ..description.language.entry import Entry
from ..description.language.units import parse_unit, split_number

UNITS = {'position': ('m', 'rad'), 'velocity': ('m/s', 'rad/s'), 'pressure': ('Pa',), 'gyro': ('rad/s',),
         'accelerometer': ('m/s^2',), 'command': ('V',), 'effort': ('N', 'N*m', 'A'), 'value': ('m', 'm/s'),
         'input': ('N', 'N*m')}
EXAMPLES = {'position': 'position/lift', 'velocity': 'velocity/lift', 'pressure': 'pressure/lift_rod',
            'gyro': 'gyro/boom.z', 'accelerometer': 'accelerometer/boom.x', 'command': 'command/lift_valve',
            'effort': 'effort/elbow', 'value': 'value/tip.x', 'input': 'input/torque'}
IMU_FIELDS = {'gyro': 'angular_velocity', 'accelerometer': 'linear_acceleration'}
NOT_THERE = (-1.0, *[0.0] * 8)      # a covariance: the message's way to say that the field is not measured
COMMANDS = ('command',)
OF_MECHANISMS = ('value', 'input')
SENSORS = tuple(kind for kind in UNITS if kind not in (*COMMANDS, *OF_MECHANISMS))
_USUAL_AXIS = {'gyro': 'z', 'accelerometer': 'x'}


class ChannelName(NamedTuple):
    """Kind and name of a channel, and its axis 'x', 'y' or 'z' where it is one of an IMU, else ''."""

    kind: str
    name: str
    axis: str = ''


@lru_cache(maxsize=1024)
def parse_channel(text: str, kinds: tuple[str, ...] = SENSORS) -> ChannelName:
    """The channel of a name; raises ValueError, a phrase with what was expected, for another kind or a wrong axis."""
    kind, _, name = text.partition('/')
    axis = ''
    if kind in IMU_FIELDS:
        name, dot, axis = name.partition('.')
        axis = axis if dot else _USUAL_AXIS[kind]
    if kind not in kinds or not name or kind in IMU_FIELDS and axis not in ('x', 'y', 'z'):
        raise ValueError(f'{text} is not a channel such as {examples(kinds)}')
    return ChannelName(kind, name, axis)


def examples(kinds: Iterable[str]) -> str:
    """Names of channels of these kinds, as a list in words."""
    return ', '.join(EXAMPLES[kind] for kind in kinds)


class Conversion(NamedTuple):
    """``gain * number + bias`` is in ``unit``, SI."""

    gain: float
    bias: float
    unit: str


def read_conversion(parts: Mapping[str, Entry], wanted: tuple[str, ...],
                    usual: Mapping[str, str] = {}) -> Conversion:
    """Of the keys ``unit``, ``offset`` (added first, of the unit's kind) and ``scale`` (a factor, with a unit where it
    has one); the result must be one of the ``wanted`` units. ``usual``: units to name in the error, by those.

    Raises DescriptionError.
    """
    known = [usual[unit] for unit in wanted if unit in usual]
    hint = f' ({", ".join(known)})' if known else ''
    factor, dimension = _unit(parts['unit'], hint)
    scale, scale_dimension = read_number(parts['scale']) if 'scale' in parts else (1.0, {})
    if scale == 0.0:
        raise parts['scale'].error('a number that is not 0')
    result = {unit: dimension.get(unit, 0) + scale_dimension.get(unit, 0) for unit in {**dimension, **scale_dimension}}
    result = {unit: power for unit, power in result.items() if power}
    fitting = [unit for unit in wanted if parse_unit(unit)[1] == result]
    if not fitting:
        also = f'times the scale {parts["scale"].value!r}' if 'scale' in parts else 'or a scale that leads there'
        raise parts['unit'].error(f'a unit of {" or ".join(wanted)}{hint}, {also}')
    offset = 0.0
    if 'offset' in parts:
        offset, offset_dimension = read_number(parts['offset'])
        if offset_dimension != dimension:
            raise parts['offset'].error(f'a number with a unit of the same kind as {parts["unit"].value!r}')
    return Conversion(factor * scale, offset * scale, fitting[0])


def read_number(entry: Entry) -> tuple[float, dict[str, float]]:
    """Number in SI and its dimension; raises DescriptionError."""
    try:
        number, unit = split_number(entry.text('a number with its unit'))
        factor, dimension = parse_unit(unit) if unit else (1.0, {})
    except ValueError as error:
        raise entry.error(f'a number with its unit, such as -820 mm ({error})') from error
    return number * factor, dimension


def _unit(entry: Entry, hint: str) -> tuple[float, dict[str, float]]:
    try:
        return parse_unit(entry.text('a unit such as mm, or 1'))
    except ValueError as error:
        raise entry.error(f'a unit such as mm{hint} ({error})') from error
