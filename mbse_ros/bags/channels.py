# SPDX-License-Identifier: Apache-2.0
"""Names of the channels of a machine or a mechanism, and the fields of messages that carry them.

``position/<name>``, ``velocity/<name>``: of a cylinder (m, m/s), or of the coordinate or inclinometer of this name (m
or rad); ``pressure/<volume or supply>``, Pa; ``gyro/<sensor>``, rad/s, and ``accelerometer/<sensor>``, m/s^2, with
``.x``, ``.y`` or ``.z`` along the axes of the sensor; ``command/<valve>``, V.
Without an axis a gyro is its z and an accelerometer its x, as of the sensors of a mechanism in a plane.
Of mechanisms alone: ``effort/<sensor>``, the force of a driver, ``value/<sensor>.x``, position or velocity of a point,
``input/<name>``, N or N m.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

UNITS = {'position': ('m', 'rad'), 'velocity': ('m/s', 'rad/s'), 'pressure': ('Pa',), 'gyro': ('rad/s',),
         'accelerometer': ('m/s^2',), 'command': ('V',), 'effort': ('N', 'N*m'), 'value': ('m', 'm/s'),
         'input': ('N', 'N*m')}
EXAMPLES = {'position': 'position/lift', 'velocity': 'velocity/lift', 'pressure': 'pressure/lift_rod',
            'gyro': 'gyro/boom.z', 'accelerometer': 'accelerometer/boom.x', 'command': 'command/lift_valve',
            'effort': 'effort/driver_force', 'value': 'value/tip.x', 'input': 'input/torque'}
IMU_FIELDS = {'gyro': 'angular_velocity', 'accelerometer': 'linear_acceleration'}
NOT_THERE = (-1.0, *[0.0] * 8)      # a covariance: the message's way to say that the field is not measured
COMMANDS = ('command',)
OF_MECHANISMS = ('effort', 'value', 'input')
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
