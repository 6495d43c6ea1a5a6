# SPDX-License-Identifier: Apache-2.0
"""The simulated machine in real time: sensors and truth out, valve commands from a work cycle or a topic in."""

from __future__ import annotations

import time
from math import ceil
from typing import NoReturn

from rclpy.publisher import Publisher
from rclpy.serialization import serialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

from mbse_ros.msg import MachineTruth

from ..bags.topics import TopicMap
from ..errors import DivergenceError
from ..machine import Machine
from ..simulation.crane import SensorFrame, SimulatedCrane, controls_of, cycle_by_name, plant_of
from ..simulation.cycle import WorkCycle
from ._lifecycle import ManagedNode
from ._messages import to_time, truth_message
from ._qos import OUTPUT
from ._run import run
from ._sensor_messages import SensorMessages
from ._valve_commands import ValveCommands

DAY = 86_400.0      # s


class PlantNode(ManagedNode):
    """Publishes each frame of the machine when it is due; the next one is computed while there is time."""

    def __init__(self) -> None:
        super().__init__('plant_node')
        self._frame: SensorFrame | None = None

    def build(self, machine: Machine) -> None:
        """Compile the plant; the sensors' topics come with the machine."""
        self._plant = plant_of(machine, self.settings.backend)
        self._messages = SensorMessages(machine.channels, machine.valves, machine.name)
        first = TopicMap().position     # the main output
        self._sensors = {topic: self.output(self._messages.kinds[topic], topic)
                         for topic in sorted(self._messages.kinds, key=lambda topic: topic != first)}
        self._truth = self.output(MachineTruth, 'truth')
        self._clocks = self.output(Clock, '/clock') if self.settings.publish_clock else None

    def connect(self) -> None:
        """The cycle begins at the first tick: until the executor runs, nothing could leave in time."""
        s = self.settings
        self._commands = None
        if s.cycle == 'topic':
            self._commands = ValveCommands(controls_of(self._plant), lambda text: self.warnings('command', text))
            self.input(JointState, 'valve_command', self.on_command, OUTPUT)
        cycle = self._cycle()
        self._crane = SimulatedCrane(self.machine, s.payload, s.seed, cycle, self.more_settings[0], plant=self._plant)
        self._end_ns = round(cycle.duration * 1e9)
        self._frame, self._begin = None, None
        self.get_logger().info(f'{self.machine.name}: {s.payload} kg, seed {s.seed}, cycle {s.cycle}')

    def tick(self) -> float | None:
        """Publish the frame that is due; seconds until the next one, 0 while it is late."""
        if self.active and self._begin is None:
            self._origin_ns, self._begin = time.time_ns(), time.monotonic()
            self._prepare()
        if not self.active or self._frame is None:
            return None
        left = self._due(self._frame.stamp_ns) - time.monotonic()
        if left > 0.0:
            return left
        for publisher, cdr in self._outbox:
            publisher.publish(cdr)
        if self._commands is None and self._frame.stamp_ns >= self._end_ns:
            self._end()
            return None
        self._prepare()
        return None if self._frame is None else max(0.0, self._due(self._frame.stamp_ns) - time.monotonic())

    def on_command(self, message: JointState) -> None:
        """Commands by the names of valves, V, and drives, m/s or rad/s; in force from the next frame on."""
        self._commands.take(message.name, message.position)

    def _outgoing(self, frame: SensorFrame) -> list[tuple[Publisher, bytes]]:
        """All messages of one instant, serialized, the clock and the commands first, the truth last."""
        stamp = self._origin_ns + frame.stamp_ns
        messages = self._messages(stamp, frame.samples | frame.commands)
        outgoing = [(self._sensors[topic], cdr) for topic, cdr in messages.items()]
        if self._clocks is not None:
            outgoing.insert(0, (self._clocks, serialize_message(Clock(clock=to_time(stamp)))))
        if self._truth.get_subscription_count():
            outgoing.append((self._truth, serialize_message(truth_message(frame, stamp, self.machine))))
        return outgoing

    def _prepare(self) -> None:
        """Compute and serialize the next frame ahead of its time, so that it leaves at its stamp."""
        try:
            self._frame = self._crane.frame(self._commands.values if self._commands else None)
        except DivergenceError as error:
            self.get_logger().fatal(f'the simulation has failed: {error}')
            self._frame, self.exit_status = None, 1
            return
        self._outbox = self._outgoing(self._frame)

    def _cycle(self) -> WorkCycle:
        s = self.settings
        cycle = cycle_by_name('lift_hold_lower' if s.cycle == 'topic' else s.cycle, self.machine, s.seed, s.ramp)
        return cycle.repeated(s.cycles or ceil(DAY / cycle.duration))

    def _due(self, stamp_ns: int) -> float:
        return self._begin + stamp_ns * 1e-9 / self.settings.speed

    def _end(self) -> None:
        self._frame = None
        self.get_logger().info('the cycle is over')
        if self.settings.exit_at_end:
            self.exit_status = 0


def main(args: list[str] | None = None) -> NoReturn:
    """Entry point of the executable."""
    run(PlantNode, args)


if __name__ == '__main__':
    main()
