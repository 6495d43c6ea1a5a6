# SPDX-License-Identifier: Apache-2.0
"""Samples of a machine's channels to serialized messages of their topics: the way back of bags.channel_samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from geometry_msgs.msg import Vector3
from rclpy.serialization import serialize_message
from sensor_msgs.msg import FluidPressure, Imu, JointState

from ..bags.channels import IMU_FIELDS, Channel, parse_channel
from ..bags.topics import TopicMap
from ._cdr import JointWriter
from ._messages import fluid_pressure, header

NOT_THERE = -1.0        # first entry of a covariance: the message's way to say that the field is not measured
Write = Callable[[int, Mapping[str, float]], bytes]


class SensorMessages:
    """Messages of ``channels`` and of the commands of ``valves``; ``kinds`` has the type of each topic.

    ``frame``: the machine's name, for the headers.
    """

    def __init__(self, channels: Iterable[str], valves: Iterable[str], frame: str) -> None:
        topics, parsed, self._frame = TopicMap(), {name: parse_channel(name) for name in channels}, frame
        self.kinds: dict[str, type] = {}
        self._writers: dict[str, Write] = {}
        self._add(topics.command, JointState, self._joints({f'command/{name}': name for name in valves}, {}))
        self._add_joints(topics.position, parsed)
        for name, channel in parsed.items():
            if channel.kind == 'pressure':
                self._add(f'{topics.pressure}/{channel.name}', FluidPressure, self._pressure(name))
        for sensor in dict.fromkeys(channel.name for channel in parsed.values() if channel.kind in IMU_FIELDS):
            own = {name: c for name, c in parsed.items() if c.kind in IMU_FIELDS and c.name == sensor}
            self._add(f'{topics.imu}/{sensor}', Imu, self._imu(own))

    def __call__(self, stamp_ns: int, samples: Mapping[str, float]) -> dict[str, bytes]:
        """Serialized messages by topic; ``samples`` has all channels and commands (command/...), SI."""
        return {topic: write(stamp_ns, samples) for topic, write in self._writers.items()}

    def _add(self, topic: str, kind: type, write: Write) -> None:
        self.kinds[topic], self._writers[topic] = kind, write

    def _add_joints(self, topic: str, parsed: Mapping[str, Channel]) -> None:
        """Positions and velocities by name, in one message."""
        fields = {kind: {name: c.name for name, c in parsed.items() if c.kind == kind}
                  for kind in ('position', 'velocity')}
        if any(fields.values()):
            self._add(topic, JointState, self._joints(fields['position'], fields['velocity']))

    def _joints(self, position: Mapping[str, str], velocity: Mapping[str, str]) -> Write:
        """A field that a name does not have is NaN; one that none has is empty."""
        names = list(dict.fromkeys([*position.values(), *velocity.values()]))
        fields = {field: {name: channel for channel, name in channels.items()}
                  for field, channels in (('position', position), ('velocity', velocity)) if channels}
        writer = JointWriter(self._frame, names, list(fields))
        columns = [[channels.get(name) for name in names] for channels in fields.values()]
        return lambda stamp_ns, samples: writer(
            stamp_ns, *([math.nan if channel is None else samples[channel] for channel in column]
                        for column in columns))

    def _pressure(self, name: str) -> Write:
        return lambda stamp_ns, samples: serialize_message(fluid_pressure(stamp_ns, self._frame, samples[name]))

    def _imu(self, own: Mapping[str, Channel]) -> Write:
        def write(stamp_ns: int, samples: Mapping[str, float]) -> bytes:
            message = Imu(header=header(stamp_ns, self._frame))
            message.orientation_covariance[0] = NOT_THERE
            for kind, field in IMU_FIELDS.items():
                axes = {c.axis: float(samples[name]) for name, c in own.items() if c.kind == kind}
                if axes:
                    setattr(message, field, Vector3(**{axis: axes.get(axis, math.nan) for axis in 'xyz'}))
                else:
                    getattr(message, f'{field}_covariance')[0] = NOT_THERE
            return serialize_message(message)
        return write
