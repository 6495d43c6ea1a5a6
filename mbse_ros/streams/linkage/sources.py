# SPDX-License-Identifier: Apache-2.0
"""Where the samples of a mechanism's sensors come from: topics, fields and the channels they feed. ROS-free.

``sensors/joint_states`` (JointState): by the name of a sensor, or of the coordinate that it measures; ``position``
feeds encoders, inclinometers, distances, ``velocity`` rates and gyros, ``effort`` forces.
``sensors/imu/<sensor>`` (Imu):
``angular_velocity`` of a gyro (z in a plane; x, y, z in space), ``linear_acceleration`` of an accelerometer, the
specific force along the sensor's axes in their order.
``sensors/value/<channel>`` (Float64): any channel, without a stamp.
``sensors/inputs`` (JointState): ``effort`` of the mechanism's inputs, held.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...errors import SettingError
from ...description.model import MechanismDescription, Sensor

JOINTS, INPUTS = 'sensors/joint_states', 'sensors/inputs'
JOINT_STATE, IMU, FLOAT64 = 'sensor_msgs/msg/JointState', 'sensor_msgs/msg/Imu', 'std_msgs/msg/Float64'
FIELD = {'encoder': 'position', 'inclinometer': 'position', 'distance': 'position', 'rate': 'velocity',
         'gyro': 'velocity', 'force': 'effort'}
INERTIAL = {'gyro': 'angular_velocity', 'accelerometer': 'linear_acceleration'}


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
            if name not in owned:
                raise SettingError('unstamped', name, 'one of ' + ', '.join(owned))
        for name, own in owned.items():
            self._add(description.sensors[name], own, description.dimension, name in unstamped)

    def _add(self, sensor: Sensor, channels: Sequence[str], dimension: int, unstamped: bool) -> None:
        if unstamped or sensor.kind not in FIELD and sensor.kind not in INERTIAL:
            self.values |= {f'sensors/value/{channel.replace(".", "/")}': channel for channel in channels}
            return
        if sensor.kind in FIELD and len(channels) == 1:
            for name in filter(None, (sensor.name, sensor.coordinate)):
                self.joints.setdefault((FIELD[sensor.kind], name), channels[0])
        if sensor.kind in INERTIAL:
            plane = sensor.kind == 'gyro' and dimension == 2
            components = 'z' if plane else 'xyz'
            self.imus[f'sensors/imu/{sensor.name}'] = INERTIAL[sensor.kind], tuple(zip(components, channels))

    @property
    def topics(self) -> dict[str, str]:
        """Topics and their types."""
        return {**({JOINTS: JOINT_STATE} if self.joints else {}), **dict.fromkeys(self.imus, IMU),
                **dict.fromkeys(self.values, FLOAT64), **({INPUTS: JOINT_STATE} if self.inputs else {})}

    def of_joints(self, name: Sequence[str], **given: Sequence[float]) -> dict[str, float]:
        """Samples of a JointState by channel; ValueError where a field has another length than ``name``."""
        samples = {}
        for field, values in given.items():
            if len(values) not in (0, len(name)):
                raise ValueError(f'{field} has {len(values)} values for {len(name)} names')
            samples |= {self.joints[field, item]: float(value) for item, value in zip(name, values)
                        if (field, item) in self.joints}
        return samples

    def of_inputs(self, name: Sequence[str], effort: Sequence[float]) -> dict[str, float]:
        """Inputs of a JointState by channel; ValueError as above."""
        if len(effort) != len(name):
            raise ValueError(f'effort has {len(effort)} values for {len(name)} names')
        return {self.inputs[item]: float(value) for item, value in zip(name, effort) if item in self.inputs}

    def of_imu(self, topic: str, message: object) -> dict[str, float]:
        """Samples of an Imu by channel."""
        vector = getattr(message, self.imus[topic][0])
        return self.of_vector(topic, [vector.x, vector.y, vector.z])

    def of_vector(self, topic: str, vector: Sequence[float]) -> dict[str, float]:
        """Samples of the vector (3,) of an Imu that its sensor feeds, by channel."""
        return {channel: float(vector['xyz'.index(component)]) for component, channel in self.imus[topic][1]}

    def spread(self, samples: Mapping[str, float]) -> dict[str, dict]:
        """Messages by topic as nested mappings, without headers, that carry these samples: the way back."""
        messages: dict[str, dict] = {}
        stated: dict[str, dict[str, float]] = {}
        taken = set()
        for topic, (field, places) in self.imus.items():
            messages[topic] = {field: {component: samples[channel] for component, channel in places}}
            taken |= {channel for _, channel in places}
        for (field, name), channel in self.joints.items():
            if channel not in taken:
                stated.setdefault(name, {})[field] = samples[channel]
                taken.add(channel)
        if stated:
            messages[JOINTS] = {'name': list(stated), **{
                field: [values.get(field, float('nan')) for values in stated.values()]
                for field in ('position', 'velocity', 'effort') if any(field in v for v in stated.values())}}
        messages |= {topic: {'data': samples[channel]} for topic, channel in self.values.items()}
        return messages
