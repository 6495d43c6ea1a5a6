# SPDX-License-Identifier: Apache-2.0
"""The simulated crane in real time: sensors and truth out, valve commands from a work cycle or a topic in."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
from rclpy.publisher import Publisher
from rclpy.serialization import serialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import FluidPressure, JointState

from mbse_ros.msg import MachineTruth

from ..machine import Machine
from ..simulation.crane import SensorFrame, SimulatedCrane, plant_of
from ..simulation.cycle import WorkCycle, lift_hold_lower, random_cycle
from ._lifecycle import ManagedNode
from ._messages import fluid_pressure, joint_state, to_time, truth_message
from ._qos import OUTPUT
from ._run import run

DAY = 3600      # cycles of 24 s


class PlantNode(ManagedNode):
    """Publishes each frame of the crane when it is due; the next one is computed while there is time."""

    def __init__(self) -> None:
        super().__init__('plant_node')
        self._frame: SensorFrame | None = None

    def build(self, machine: Machine) -> None:
        """Compile the plant; the sensors' topics come with the machine."""
        self._plant = plant_of(machine, self.settings.backend)
        self._positions = self.output(JointState, 'sensors/position')
        self._pressures = {c.split('/')[1]: self.output(FluidPressure, f'sensors/{c}')
                           for c in machine.channels if c.startswith('pressure/')}
        self._commands = self.output(JointState, 'sensors/valve_command')
        self._truth = self.output(MachineTruth, 'truth')
        self._clocks = self.output(Clock, '/clock') if self.settings.publish_clock else None

    def connect(self) -> None:
        """The cycle begins at the first tick: until the executor runs, nothing could leave in time."""
        s = self.settings
        self._command: float | None = None
        if s.cycle == 'topic':
            self._command = 0.0
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
        if self._command is None and self._frame.stamp_ns >= self._end_ns:
            self._end()
            return None
        self._prepare()
        return max(0.0, self._due(self._frame.stamp_ns) - time.monotonic())

    def on_command(self, message: JointState) -> None:
        """Command of the valves, V, by the name of any of them; in force from the next frame on."""
        valves = dict(zip(message.name, message.position))
        known = [name for name in self.machine.valves if name in valves]
        if len(message.name) != len(message.position) or not known or not math.isfinite(valves[known[0]]):
            self.warnings('command', f'valve_command dropped: got {list(message.name)} {list(message.position)}, '
                                     f'expected a finite value for one of {self.machine.valves}')
            return
        self._command = float(valves[known[0]])

    def messages(self, frame: SensorFrame) -> Iterator[tuple[Publisher, Any]]:
        """All messages of one instant, the sensors first, each with its publisher."""
        stamp, name, machine = self._origin_ns + frame.stamp_ns, self.machine.name, self.machine
        if self._clocks is not None:
            yield self._clocks, Clock(clock=to_time(stamp))
        yield self._commands, joint_state(stamp, name, machine.valves,
                                          [frame.commands[f'command/{v}'] for v in machine.valves])
        cylinders = [c for c in machine.cylinders if f'position/{c}' in frame.samples]
        yield self._positions, joint_state(stamp, name, cylinders, [frame.samples[f'position/{c}'] for c in cylinders])
        for volume, publisher in self._pressures.items():
            yield publisher, fluid_pressure(stamp, name, frame.samples[f'pressure/{volume}'])
        if self._truth.get_subscription_count():
            yield self._truth, truth_message(frame, stamp, machine)

    def _prepare(self) -> None:
        """Compute and serialize the next frame ahead of its time, so that it leaves at its stamp."""
        self._frame = self._crane.frame(self._command)
        self._outbox = [(publisher, serialize_message(message)) for publisher, message in self.messages(self._frame)]

    def _cycle(self) -> WorkCycle:
        s = self.settings
        if s.cycle == 'random':
            cycle = random_cycle(np.random.default_rng(s.seed))
        else:
            cycle = lift_hold_lower(s.ramp)
        return WorkCycle(cycle.start, cycle.moves * (s.cycles or DAY))

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
