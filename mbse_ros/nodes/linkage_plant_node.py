# SPDX-License-Identifier: Apache-2.0
"""A simulated mechanism in real time: its sensors, inputs and truth."""

from __future__ import annotations

import time
from typing import Any, NoReturn

import numpy as np
from rclpy.publisher import Publisher
from rclpy.serialization import serialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState

from ..dynamics.model import Model
from ..errors import DivergenceError
from ..simulation.linkage import SimulatedLinkage
from ..streams.linkage.sources import IMU, INPUTS, JOINTS, Sources
from ._cdr import JointWriter
from ._lifecycle import ManagedNode
from ._linkage_messages import sensor_message
from ._mechanism import load_mechanism_model
from ._messages import to_time
from ._run import run


class LinkagePlantNode(ManagedNode):
    """Publishes each instant of the mechanism when it is due; the next one is computed while there is time."""

    def __init__(self) -> None:
        super().__init__('linkage_plant_node')
        self._outbox: list[tuple[Publisher, bytes]] = []

    def load(self) -> Model:
        """The mechanism's model."""
        return load_mechanism_model(self.settings)

    def build(self, model: Model) -> None:
        """Compile the plant; the topics are those of its sensors."""
        s = self.settings
        self._plant = self._simulated(model)
        self.sources = Sources(model.description, self._plant.channels, model.inputs)
        kinds = {topic: Imu if kind == IMU else JointState for topic, kind in self.sources.topics.items()}
        self._sensors = {topic: self.output(kind, topic) for topic, kind in sorted(
            kinds.items(), key=lambda item: item[0] == INPUTS)}
        frame = model.description.name
        self._input_writer = JointWriter(frame, model.inputs, ['effort'])
        self._truth_writer = JointWriter(frame, model.names, ['position', 'velocity'])
        self._joint_writer: JointWriter | None = None
        self._truth = self.output(JointState, 'truth/joint_states')
        self._clocks = self.output(Clock, '/clock') if s.publish_clock else None

    def connect(self) -> None:
        """The motion begins at the first tick: until the executor runs, nothing could leave in time."""
        self._plant, self._outbox, self._begin = self._simulated(self.machine), [], None
        channels = ', '.join(self._plant.channels)
        self.get_logger().info(f'{self.machine.description.name}: {channels}, seed {self.settings.seed}')

    def tick(self) -> float | None:
        """Publish the instant that is due; seconds until the next one, 0 while it is late."""
        if self.active and self._begin is None:
            self._begin_motion()
        if not self.active or not self._outbox:
            return None
        left = self._begin + self._due_ns * 1e-9 - time.monotonic()
        if left > 0.0:
            return left
        for publisher, cdr in self._outbox:
            publisher.publish(cdr)
        if self._last_ns and self._due_ns >= self._last_ns:
            self._end(0)
            return None
        self._prepare()
        return max(0.0, self._begin + self._due_ns * 1e-9 - time.monotonic())

    def _begin_motion(self) -> None:
        """Inputs in force from now on, and the first instant."""
        self._origin_ns, self._begin = time.time_ns(), time.monotonic()
        self._last_ns = round(self.settings.duration * 1e9)
        if self.machine.inputs:
            self._sensors[INPUTS].publish(self._input_writer(self._origin_ns, self._plant.inputs()))
        self._prepare()

    def _simulated(self, model: Model) -> SimulatedLinkage:
        s = self.settings
        return SimulatedLinkage(model, s.sensors.split(), s.seed, self.more_settings[0])

    def _prepare(self) -> None:
        """Compute and serialize the next instant ahead of its time, so that it leaves at its stamp."""
        try:
            frame = self._plant.frame()
        except DivergenceError as error:
            self.get_logger().fatal(f'the simulation has failed: {error}')
            self._end(1)
            return
        self._due_ns = frame.stamp_ns
        stamp, model = self._origin_ns + frame.stamp_ns, self.machine
        samples = dict(zip(self._plant.channels, frame.samples.tolist()))
        outbox = [(self._sensors[topic], self._sensor_message(topic, values, stamp))
                  for topic, values in self.sources.spread(samples).items()]
        if model.inputs:
            outbox.append((self._sensors[INPUTS], self._input_writer(stamp, frame.inputs)))
        if self._truth.get_subscription_count():
            outbox.append((self._truth, self._truth_writer(stamp, frame.q, frame.qd)))
        if self._clocks is not None:
            outbox.insert(0, (self._clocks, serialize_message(Clock(clock=to_time(stamp)))))
        self._outbox = outbox

    def _sensor_message(self, topic: str, values: dict[str, Any], stamp_ns: int) -> bytes:
        """Serialized message of ``Sources.spread``."""
        if topic != JOINTS:
            return serialize_message(sensor_message(self.sources.topics[topic], values, stamp_ns,
                                                    self.machine.description.name))
        name, *fields = values
        if self._joint_writer is None:      # names and fields are those of the sensors, always the same
            self._joint_writer = JointWriter(self.machine.description.name, values[name], fields)
        return self._joint_writer(stamp_ns, *(values[field] for field in fields))

    def _end(self, status: int) -> None:
        self._outbox = []
        self.get_logger().info('the motion is over')
        if self.settings.exit_at_end or status:
            self.exit_status = status


def main(args: list[str] | None = None) -> NoReturn:
    """Entry point of the executable."""
    run(LinkagePlantNode, args)


if __name__ == '__main__':
    main()
