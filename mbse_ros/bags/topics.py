# SPDX-License-Identifier: Apache-2.0
"""The package's topics and their types: of a machine's graph (``TopicMap``), of a mechanism's sensors (``Sources``).

Of a mechanism:
``sensors/joint_states`` (JointState): by the name of a sensor, or of the coordinate that it measures; ``position``
feeds encoders, inclinometers, distances, ``velocity`` rates and gyros, ``effort`` forces.
``sensors/imu/<sensor>`` (Imu):
``angular_velocity`` of a gyro (z in a plane; x, y, z in space), ``linear_acceleration`` of an accelerometer, the
specific force along the sensor's axes in their order.
``sensors/value/<channel>`` (Float64): any channel, without a stamp.
``sensors/inputs`` (JointState): ``effort`` of the mechanism's inputs, held.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from ..description.model import MechanismDescription, Sensor
from ..errors import BagError, check_choice
from .channels import IMU_FIELDS, NOT_THERE

JOINT_STATE, FLUID_PRESSURE = 'sensor_msgs/msg/JointState', 'sensor_msgs/msg/FluidPressure'
IMU = 'sensor_msgs/msg/Imu'
SEGMENT, STATE = 'mbse_ros/msg/SensorSegment', 'mbse_ros/msg/HydraulicState'
PAYLOAD, TRUTH = 'mbse_ros/msg/PayloadEstimate', 'mbse_ros/msg/MachineTruth'
TOOL_FORCE = 'mbse_ros/msg/ToolForce'
LINKAGE_STATE = 'mbse_ros/msg/LinkageState'
JOINTS, INPUTS = 'sensors/joint_states', 'sensors/inputs'
FLOAT64 = 'std_msgs/msg/Float64'
FIELD = {'encoder': 'position', 'inclinometer': 'position', 'distance': 'position', 'rate': 'velocity',
         'gyro': 'velocity', 'force': 'effort'}


@dataclass(frozen=True)
class TopicMap:
    """Names of the topics, relative to the namespace or absolute ('/joint_states').

    ``pressure`` is followed by '/' and the name of the volume or supply, ``imu`` by '/' and the sensor's. ``namespace``
    None: the one the bag shows.
    """

    position: str = 'sensors/position'
    pressure: str = 'sensors/pressure'
    command: str = 'sensors/valve_command'
    imu: str = 'sensors/imu'
    segment: str = 'segment'
    state: str = 'state'
    joint_states: str = 'estimated/joint_states'
    payload: str = 'payload'
    truth: str = 'truth'
    namespace: str | None = None

    def absolute(self, name: str, namespace: str) -> str:
        """Full name of a topic."""
        return name if name.startswith('/') else f'{normalized(namespace)}/{name}'

    def payloads(self, topics: Mapping[str, str], namespace: str) -> tuple[str, ...]:
        """Names of several payloads of which the topics (to their types) have masses; () of one payload."""
        begin = self.absolute(f'{self.payload}s/', namespace)
        return tuple(topic.removeprefix(begin) for topic, msgtype in topics.items()
                     if msgtype == PAYLOAD and topic.startswith(begin))

    def find_namespace(self, topics: Mapping[str, str], path: str) -> str:
        """The namespace given, else the one under which the bag's topics (to their types) have these names.

        '' where none has; raises BagError where several do. IMUs, which other robots have too, only count in a bag
        without any of the other topics.
        """
        own = {topic: msgtype for topic, msgtype in topics.items() if msgtype != IMU}
        found = [{space for item in some.items() for space in self._spaces(*item)} for some in (own, topics)]
        return one_namespace(self.namespace, found[0] or found[1], path)

    def _spaces(self, topic: str, msgtype: str) -> Iterator[str]:
        """Namespaces in which the topic, by its name and type, is one of a machine's."""
        topic = topic.rpartition('/')[0] if msgtype in (FLUID_PRESSURE, IMU) else topic
        names = {JOINT_STATE: (self.position, self.command, self.joint_states), FLUID_PRESSURE: (self.pressure,),
                 IMU: (self.imu,), SEGMENT: (self.segment,), STATE: (self.state,), PAYLOAD: (self.payload,),
                 TRUTH: (self.truth,)}
        for name in names.get(msgtype, ()):
            if not name.startswith('/') and topic.endswith('/' + name):
                yield topic[:-len(name) - 1]


def one_namespace(given: str | None, found: Set[str], path: str) -> str:
    """The namespace given, else the one found, or ''; raises BagError for several."""
    if given is None and len(found) > 1:
        raise BagError(path, 'several machines, choose a namespace: ' + ', '.join(sorted(s or '/' for s in found)))
    return normalized(given) if given is not None else ''.join(found)


def normalized(namespace: str) -> str:
    """'/crane' of 'crane', '/crane/'; '' of '/'."""
    inner = namespace.strip('/')
    return '/' + inner if inner else ''


class Sources:
    """Topics of some channels (s,) of a description; ``unstamped``: sensors that come as Float64.

    ``joints``: (field, name) -> channel; ``imus``: topic -> (field, ((component, channel), ...)); ``values``: topic ->
    channel; ``inputs``: name -> channel. Raises SettingError.
    """

    def __init__(self, description: MechanismDescription, channels: Sequence[str], inputs: Sequence[str] = (),
                 unstamped: Sequence[str] = ()) -> None:
        self.joints: dict[tuple[str, str], str] = {}
        self.imus: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {}
        self.values: dict[str, str] = {}
        self.inputs = {name: f'input/{name}' for name in inputs}
        owned: dict[str, list[str]] = {}
        for channel in channels:
            owned.setdefault(channel.partition('.')[0], []).append(channel)
        for name in unstamped:
            check_choice('unstamped', name, owned)
        for name, own in owned.items():
            self._add(description.sensors[name], own, description.dimension, name in unstamped)

    def _add(self, sensor: Sensor, channels: Sequence[str], dimension: int, unstamped: bool) -> None:
        if unstamped or sensor.kind not in FIELD and sensor.kind not in IMU_FIELDS:
            self.values |= {f'sensors/value/{channel.replace(".", "/")}': channel for channel in channels}
            return
        if sensor.kind in FIELD and len(channels) == 1:
            for name in filter(None, (sensor.name, sensor.coordinate)):
                self.joints.setdefault((FIELD[sensor.kind], name), channels[0])
        if sensor.kind in IMU_FIELDS:
            plane = sensor.kind == 'gyro' and dimension == 2
            components = 'z' if plane else 'xyz'
            self.imus[f'sensors/imu/{sensor.name}'] = IMU_FIELDS[sensor.kind], tuple(zip(components, channels))

    @property
    def topics(self) -> dict[str, str]:
        """Topics and their types."""
        return {**({JOINTS: JOINT_STATE} if self.joints else {}), **dict.fromkeys(self.imus, IMU),
                **dict.fromkeys(self.values, FLOAT64), **({INPUTS: JOINT_STATE} if self.inputs else {})}

    def spread(self, samples: Mapping[str, float]) -> dict[str, dict[str, Any]]:
        """Messages by topic as nested mappings, without headers, that carry these samples: the way back."""
        messages: dict[str, dict[str, Any]] = {
            topic: {'orientation_covariance': NOT_THERE, field: {
                component: samples[channel] for component, channel in places}}
            for topic, (field, places) in self.imus.items()}
        taken = {channel for _, places in self.imus.values() for _, channel in places}
        stated: dict[str, dict[str, float]] = {}
        for (field, name), channel in self.joints.items():
            if channel not in taken:
                stated.setdefault(name, {})[field] = samples[channel]
                taken.add(channel)
        if stated:
            messages[JOINTS] = {'name': list(stated), **{
                field: [values.get(field, float('nan')) for values in stated.values()]
                for field in ('position', 'velocity', 'effort') if any(field in v for v in stated.values())}}
        inputs = {name: samples[channel] for name, channel in self.inputs.items() if channel in samples}
        if inputs:
            messages[INPUTS] = {'name': list(inputs), 'effort': list(inputs.values())}
        return messages | {topic: {'data': samples[channel]} for topic, channel in self.values.items()}
