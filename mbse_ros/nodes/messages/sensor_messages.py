# SPDX-License-Identifier: Apache-2.0
"""Where the samples of a machine's channels go in messages: the way back of bags.channel_samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import nan
from typing import Any

from ...bags.channels import IMU_FIELDS, parse_channel
from ...bags.topics import FLUID_PRESSURE, IMU, JOINT_STATE, TopicMap

NOT_THERE = (-1.0, *[0.0] * 8)      # a covariance: the message's way to say that the field is not measured
Fields = dict[str, dict[str, str]]  # of a message: field -> name or axis -> channel


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
