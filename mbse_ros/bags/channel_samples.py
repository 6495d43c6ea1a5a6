# SPDX-License-Identifier: Apache-2.0
"""Samples of channels in the messages of their topics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..errors import SampleError
from .channels import IMU_FIELDS, Channel
from .messages import stamp_of
from .topics import FLUID_PRESSURE, IMU, JOINT_STATE

Refuse = Callable[[SampleError], None]
_PLURAL = {'position': 'positions', 'velocity': 'velocities'}


class Sample(NamedTuple):
    """Value of a channel at the stamp of its message's header; SI, NaN: missing."""

    channel: str
    stamp_ns: int
    value: float


class TopicReader(NamedTuple):
    """Type of a topic, and its samples from its name and a message."""

    msgtype: str
    samples: Callable[[str, Any], list[Sample]]


def joint_reader(joints: Mapping[str, Mapping[str, str]], refuse: Refuse) -> TopicReader:
    """Reader of a JointState: ``joints`` has, by name, the channel of the field 'position', of 'velocity' or both.

    ``refuse`` gets a SampleError for a name that is not among them, and for a field of another length than the names;
    the field that is right is read. A field without values is not there; velocities nobody asks for are not looked at.
    """
    expected = 'one of ' + ', '.join(joints)
    wanted = {field for fields in joints.values() for field in fields}

    def samples_of(topic: str, message: Any) -> list[Sample]:
        stamp, names = stamp_of(message), message.name
        fields = {'position': message.position.tolist()}
        if 'velocity' in wanted:
            fields['velocity'] = message.velocity.tolist()
        empty = not any(fields.values())
        for field, values in list(fields.items()):
            if len(values) != len(names):
                if values or empty and field == 'position':
                    refuse(SampleError(topic, stamp, f'{len(values)} {_PLURAL[field]}',
                                       f'as many {_PLURAL[field]} as names'))
                del fields[field]
        samples = []
        for place, name in enumerate(names if fields else ()):
            if name not in joints:
                refuse(SampleError(f'{topic} {name}', stamp, name, expected))
            samples += [Sample(channel, stamp, fields[field][place]) for field, channel in joints.get(name, {}).items()
                        if field in fields]
        return samples

    return TopicReader(JOINT_STATE, samples_of)


def pressure_reader(channel: str) -> TopicReader:
    """Reader of a FluidPressure."""
    return TopicReader(FLUID_PRESSURE,
                       lambda _, message: [Sample(channel, stamp_of(message), message.fluid_pressure)])


def imu_reader(channels: Mapping[str, Channel]) -> TopicReader:
    """Reader of an Imu for channels (by their full names) of one sensor.

    A field whose covariance begins with -1 is not there, as the definition of the message says.
    """

    def samples_of(_: str, message: Any) -> list[Sample]:
        stamp = stamp_of(message)
        return [Sample(name, stamp, getattr(getattr(message, IMU_FIELDS[channel.kind]), channel.axis))
                for name, channel in channels.items()
                if getattr(message, f'{IMU_FIELDS[channel.kind]}_covariance')[0] != -1.0]

    return TopicReader(IMU, samples_of)
