# SPDX-License-Identifier: Apache-2.0
"""The sensor topics of a mechanism: what comes is read and handed on as samples by channel."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rclpy.qos import QoSProfile
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64

from ..streams.linkage.sources import FLOAT64, IMU, INPUTS, JOINTS, Sources
from ._cdr import IMU_FIELDS, JointReader, imu_of
from ._lifecycle import ManagedNode

Take = Callable[[int, dict[str, float]], None]


class LinkageInputs:
    """Subscribes a node to the topics of ``sources``; ``take (stamp_ns, samples)`` gets what they bring."""

    def __init__(self, node: ManagedNode, sources: Sources, take: Take, qos: QoSProfile) -> None:
        self._node, self._sources, self._take = node, sources, take
        for topic, kind in sources.topics.items():
            if kind == IMU:
                node.input(Imu, topic, partial(self.on_imu, topic), qos, raw=True)
            elif kind == FLOAT64:
                node.input(Float64, topic, partial(self.on_value, topic), qos)
            else:
                callback = {JOINTS: self.on_joints, INPUTS: self.on_inputs}[topic]
                node.input(JointState, topic, partial(callback, JointReader()), qos, raw=True)

    def on_joints(self, read: JointReader, cdr: bytes) -> None:
        """Encoders, rates, forces by name."""
        try:
            message = read(cdr)
            samples = self._sources.of_joints(message.name, position=message.position, velocity=message.velocity,
                                              effort=message.effort)
        except ValueError as error:
            self._unreadable(error)
        else:
            self._take(message.stamp_ns, samples)

    def on_inputs(self, read: JointReader, cdr: bytes) -> None:
        """Inputs of the mechanism."""
        try:
            message = read(cdr)
            samples = self._sources.of_inputs(message.name, message.effort)
        except ValueError as error:
            self._unreadable(error)
        else:
            self._take(message.stamp_ns, samples)

    def on_imu(self, topic: str, cdr: bytes) -> None:
        """Gyro or accelerometer."""
        try:
            stamp_ns, numbers = imu_of(cdr)
        except ValueError as error:
            self._unreadable(error)
        else:
            field = self._sources.imus[topic][0]
            self._take(stamp_ns, self._sources.of_vector(topic, numbers[IMU_FIELDS[field]]))

    def on_value(self, topic: str, message: Float64) -> None:
        """A value without a stamp: now."""
        stamp_ns = self._node.get_clock().now().nanoseconds
        self._take(stamp_ns, {self._sources.values[topic]: float(message.data)})

    def _unreadable(self, error: ValueError) -> None:
        self._node.warnings('unreadable', f'message dropped: {error}')
