# SPDX-License-Identifier: Apache-2.0
"""Samples of channels in the messages of their topics: out of messages, and the way back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from math import nan
from typing import Any, NamedTuple

from ..errors import SampleError, StrangerError
from .channels import COMMANDS, IMU_FIELDS, NOT_THERE, SENSORS, ChannelName, parse_channel
from .messages import checked_stamp, stamp_of
from .topics import FLUID_PRESSURE, IMU, JOINT_STATE, TopicMap

Refuse = Callable[[SampleError], None]
MANY = 32       # unknown names of one message that are reported: a message may hold a million
_PLURAL = {'position': 'positions', 'velocity': 'velocities', 'effort': 'efforts'}
Fields = dict[str, dict[str, str]]  # of a message: field -> name or axis -> channel


class Sample(NamedTuple):
    """Value of a channel at the stamp of its message's header; SI, NaN: missing. ``share``: how many samples of the
    machine's noise have the information of this one, 1 or more."""

    channel: str
    stamp_ns: int
    value: float
    share: float = 1.0


class InstantSamples(NamedTuple):
    """Samples of one instant by channel, SI."""

    stamp_ns: int
    samples: dict[str, float]


def by_stamp(samples: Iterable[Sample]) -> list[InstantSamples]:
    """Samples of a message by their stamps and channels: delays of a map may tell them apart."""
    found: dict[int, dict[str, float]] = {}
    for sample in samples:
        found.setdefault(sample.stamp_ns, {})[sample.channel] = sample.value
    return [InstantSamples(*item) for item in found.items()]


def own_place(channel: str, topics: TopicMap) -> tuple[str, str]:
    """Topic and field of a machine's channel among ``topics``, those of this package."""
    kind, name, axis = parse_channel(channel, (*SENSORS, *COMMANDS))
    return {
        'pressure': (f'{topics.pressure}/{name}', 'fluid_pressure'),
        'command': (topics.command, f'position[name={name}]'),
        'position': (topics.position, f'position[name={name}]'),
        'velocity': (topics.position, f'velocity[name={name}]'),
        'effort': (topics.position, f'effort[name={name}]'),
    }.get(kind) or (f'{topics.imu}/{name}', f'{IMU_FIELDS[kind]}.{axis}')


class TopicReader(NamedTuple):
    """Type of a topic, and its samples from its name and a message."""

    msgtype: str
    samples: Callable[[str, Any], list[Sample]]


def topic_readers(channels: Iterable[str], commands: Iterable[str], topics: TopicMap,
                  refuse: Refuse) -> dict[str, TopicReader]:
    """How to read each topic, relative to the namespace, that carries channels or commands (command/...).

    ``refuse``: see joint_reader. Raises ValueError, a phrase, for a channel of unknown kind.
    """
    sensors = {name: parse_channel(name, SENSORS) for name in channels}
    valves = {name: parse_channel(name, COMMANDS) for name in commands}
    joints: dict[str, dict[str, str]] = {}
    imus: dict[str, dict[str, ChannelName]] = {}
    pressures: dict[str, str] = {}
    for text, channel in sensors.items():
        if channel.kind in IMU_FIELDS:
            imus.setdefault(channel.name, {})[text] = channel
        elif channel.kind == 'pressure':
            pressures[channel.name] = text
        else:
            joints.setdefault(channel.name, {})[channel.kind] = text
    readers: dict[str, TopicReader] = {}
    if joints:
        readers[topics.position] = joint_reader(joints, refuse)
    readers |= {f'{topics.pressure}/{volume}': pressure_reader(text) for volume, text in pressures.items()}
    readers |= {f'{topics.imu}/{sensor}': imu_reader(own) for sensor, own in imus.items()}
    if valves:
        named = {channel.name: {'position': text} for text, channel in valves.items()}
        readers[topics.command] = joint_reader(named, refuse)
    return {topic: TopicReader(kind, partial(_stamped, samples, refuse)) for topic, (kind, samples) in readers.items()}


def _stamped(samples: Callable[[str, Any], list[Sample]], refuse: Refuse, topic: str, message: Any) -> list[Sample]:
    """Samples of a message whose stamp is a time; of another none, and ``refuse`` gets the error."""
    try:
        checked_stamp(topic, message)
    except SampleError as error:
        refuse(error)
        return []
    return samples(topic, message)


def is_strange(error: SampleError) -> bool:
    """Whether a reader refused a name that no sensor has, not a sample."""
    return isinstance(error, StrangerError)


def joint_reader(joints: Mapping[str, Mapping[str, str]], refuse: Refuse) -> TopicReader:
    """Reader of a JointState: ``joints`` has, by name, the channels of the fields 'position', 'velocity' and 'effort'.

    ``refuse`` gets a StrangerError for a name that is not among them, and a SampleError for a field of another length
    than the names; the field that is right is read. A field without values is not there; velocities and efforts that
    nobody asks for are not looked at.
    """
    expected = 'one of ' + ', '.join(joints)
    wanted = {field for fields in joints.values() for field in fields}

    def samples_of(topic: str, message: Any) -> list[Sample]:
        stamp, names = stamp_of(message), message.name
        fields = {'position': message.position.tolist()}
        for field in ('velocity', 'effort'):
            if field in wanted:
                fields[field] = getattr(message, field).tolist()
        empty = not any(fields.values())
        for field, values in list(fields.items()):
            if len(values) != len(names):
                if values or empty and field == 'position':
                    refuse(SampleError(topic, stamp, f'{len(values)} {_PLURAL[field]}',
                                       f'as many {_PLURAL[field]} as names'))
                del fields[field]
        samples: list[Sample] = []
        unknown: dict[str, None] = {}
        for place, name in enumerate(names if fields else ()):
            if name in joints:
                samples += [Sample(channel, stamp, fields[field][place]) for field, channel in joints[name].items()
                            if field in fields]
            elif len(unknown) < MANY:
                unknown[name] = None
        for name in unknown:
            refuse(StrangerError(f'{topic} {name}', stamp, name, expected))
        return samples

    return TopicReader(JOINT_STATE, samples_of)


def pressure_reader(channel: str) -> TopicReader:
    """Reader of a FluidPressure."""
    return TopicReader(FLUID_PRESSURE,
                       lambda _, message: [Sample(channel, stamp_of(message), message.fluid_pressure)])


def imu_reader(channels: Mapping[str, ChannelName]) -> TopicReader:
    """Reader of an Imu for channels (by their full names) of one sensor.

    A field whose covariance begins with -1 is not there, as the definition of the message says.
    """

    def samples_of(_: str, message: Any) -> list[Sample]:
        stamp = stamp_of(message)
        return [Sample(name, stamp, getattr(getattr(message, IMU_FIELDS[channel.kind]), channel.axis))
                for name, channel in channels.items()
                if getattr(message, f'{IMU_FIELDS[channel.kind]}_covariance')[0] != -1.0]

    return TopicReader(IMU, samples_of)


class SensorFields:
    """Fields of the messages that carry ``channels`` and the commands of ``valves``; ``topics``: topics and types."""

    def __init__(self, channels: Iterable[str], valves: Iterable[str]) -> None:
        names = TopicMap()
        self._joints: dict[str, Fields] = {names.command: {'position': {name: f'command/{name}' for name in valves}}}
        self._pressures: dict[str, str] = {}
        self._imus: dict[str, Fields] = {}
        for text in channels:
            kind, name, axis = parse_channel(text)
            if kind == 'pressure':
                self._pressures[f'{names.pressure}/{name}'] = text
            elif kind in IMU_FIELDS:
                fields = self._imus.setdefault(f'{names.imu}/{name}', {})
                fields.setdefault(IMU_FIELDS[kind], {})[axis] = text
            else:
                self._joints.setdefault(names.position, {}).setdefault(kind, {})[name] = text
        self.topics = {**dict.fromkeys(self._joints, JOINT_STATE), **dict.fromkeys(self._imus, IMU),
                       **dict.fromkeys(self._pressures, FLUID_PRESSURE)}

    def spread(self, samples: Mapping[str, float]) -> dict[str, dict[str, Any]]:
        """Messages by topic as nested mappings, without headers; ``samples`` has all channels and commands, SI."""
        return {**{topic: _joints(fields, samples) for topic, fields in self._joints.items()},
                **{topic: _imu(fields, samples) for topic, fields in self._imus.items()},
                **{topic: {'fluid_pressure': samples[channel]} for topic, channel in self._pressures.items()}}


def _joints(fields: Fields, samples: Mapping[str, float]) -> dict[str, Any]:
    """JointState: a field that a name does not have is NaN; one that none has is empty."""
    names = list(dict.fromkeys(name for channels in fields.values() for name in channels))
    return {'name': names, **{field: [samples[channels[name]] if name in channels else nan for name in names]
                              for field, channels in fields.items()}}


def _imu(fields: Fields, samples: Mapping[str, float]) -> dict[str, Any]:
    """Imu: an axis that is not measured is NaN."""
    message: dict[str, Any] = {f'{field}_covariance': NOT_THERE for field in ('orientation', *IMU_FIELDS.values())
                               if field not in fields}
    for field, channels in fields.items():
        message[field] = {axis: samples[channels[axis]] if axis in channels else nan for axis in 'xyz'}
    return message
