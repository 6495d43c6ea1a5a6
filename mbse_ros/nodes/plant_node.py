# SPDX-License-Identifier: Apache-2.0
"""The simulated machine in real time: sensors and truth out, valve commands from a work cycle or a topic in;
and what it shares with the simulated mechanism (``RealTimePlant``).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from rclpy.publisher import Publisher
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

from ..bags.channel_samples import SensorFields
from ..bags.topics import TRUTH, TopicMap
from ..errors import DivergenceError, shown
from ..machine import Machine
from ..simulation.crane import SensorFrame, SimulatedCrane, controls_of, cycle_by_name, plant_of
from .base.lifecycle import M, ManagedNode
from .base.middleware import OUTPUT
from .base.node_settings import PlantSettings
from .messages.wire import message_class, packed, to_time

BEHIND = 0.5        # s
DAY = 86_400.0      # s


class PlantInstant(Protocol):
    """One instant of a simulation."""

    @property
    def stamp_ns(self) -> int:
        """From its beginning."""


class Spread(Protocol):
    """What sensors send."""

    @property
    def topics(self) -> Mapping[str, str]:
        """Topics of the sensors and their types."""

    def spread(self, samples: Mapping[str, float]) -> dict[str, dict[str, Any]]:
        """Messages by topic as nested mappings, without headers."""


class RealTimePlant(ManagedNode[M]):
    """Publishes each frame when it is due; the next one is computed while there is time.

    A child gives `next_frame`, `samples` and `truth`, and in `connect` the length ``end_ns`` of the motion, None: it
    goes on. The motion begins at the first tick: until the executor runs, nothing could leave in time.
    """

    hurried = True
    speed = 1.0
    end_ns: int | None
    _origin_ns: int

    def offer(self, sources: Spread, truth: tuple[str, str], first: str, frame: str) -> None:
        """Publishers of sensors, the main output ``first``, and of the truth (topic, type); ``frame``: of headers."""
        self.sources, self._frame_id, self._truth_kind = sources, frame, truth[1]
        self._sensors = {topic: self.output(message_class(sources.topics[topic]), topic)
                         for topic in sorted(sources.topics, key=lambda topic: topic != first)}
        self._truth = self.output(message_class(truth[1]), truth[0])
        self._time = self.output(Clock, '/clock') if self.settings.publish_clock else None

    def connect(self) -> None:
        """Start again from the beginning."""
        self._outbox: list[tuple[Publisher, Any]] = []
        self._begin: float | None = None

    def tick(self) -> float | None:
        """Publish the frame that is due; seconds until the next one, 0 while it is late."""
        if not self.active:
            return None
        if self._begin is None:
            self._origin_ns, self._begin = time.time_ns(), time.monotonic()
            self.begin(self._origin_ns)
            self._prepare()
        if not self._outbox:
            return None
        left = self._left(self._begin)
        if left > 0.0:
            return left
        if left < -BEHIND:
            self.warnings('behind', f'{-left:.1f} s behind real time: this computer is too slow for the simulation')
        for publisher, message in self._outbox:
            publisher.publish(message)
        if self.end_ns is not None and self._due_ns >= self.end_ns:
            self._end(0)
        else:
            self._prepare()
        return max(0.0, self._left(self._begin)) if self._outbox else None

    def begin(self, stamp_ns: int) -> None:
        """Publish what is needed at the beginning of the motion."""

    def next_frame(self) -> PlantInstant:
        """Compute the next frame; raises DivergenceError."""
        raise NotImplementedError

    def samples(self, frame: Any) -> dict[str, float]:
        """Samples by channel."""
        raise NotImplementedError

    def truth(self, frame: Any) -> dict[str, Any]:
        """Fields of the message of the truth."""
        raise NotImplementedError

    def _left(self, begin: float) -> float:
        """Seconds until the prepared frame is due."""
        return begin + self._due_ns * 1e-9 / self.speed - time.monotonic()

    def _prepare(self) -> None:
        """Compute and serialize the next frame ahead of its time, so that it leaves at its stamp: the clock first, the
        truth last."""
        try:
            frame = self.next_frame()
        except DivergenceError as error:
            self.get_logger().fatal(f'the simulation has failed: {error}')
            return self._end(1)
        self._due_ns, stamp = frame.stamp_ns, self._origin_ns + frame.stamp_ns
        self._outbox = [(self._sensors[topic], packed(self.sources.topics[topic], stamp, self._frame_id, values))
                        for topic, values in self.sources.spread(self.samples(frame)).items()]
        if self._time is not None:
            self._outbox.insert(0, (self._time, Clock(clock=to_time(stamp))))
        if self._truth.get_subscription_count():
            self._outbox.append((self._truth, packed(self._truth_kind, stamp, self._frame_id, self.truth(frame))))

    def _end(self, status: int) -> None:
        self._outbox = []
        self.get_logger().info('the motion is over')
        if self.settings.exit_at_end or status:
            self.exit_status = status


class PlantNode(RealTimePlant[Machine]):
    """Simulates a machine with its operator, or with commands from elsewhere."""

    executable = 'plant_node'
    settings: PlantSettings

    def build(self, machine: Machine) -> None:
        """Compile the plant; the sensors' topics come with the machine."""
        self._plant, self.speed = plant_of(machine, self.settings.backend), self.settings.speed
        self.offer(SensorFields(machine.channels, machine.valves), ('truth', TRUTH), TopicMap().position, machine.name)

    def connect(self) -> None:
        """Set the machine to the beginning of its cycle."""
        super().connect()
        s = self.settings
        commanded = s.cycle == 'topic'
        cycle = cycle_by_name('lift_hold_lower' if commanded else s.cycle, self.machine, s.seed, s.ramp)
        cycle = cycle.repeated(s.cycles or math.ceil(DAY / cycle.duration))
        self.end_ns = round(s.duration * 1e9) or (None if commanded else round(cycle.duration * 1e9))
        self._commands = None
        if commanded:
            self._commands = ValveCommands(controls_of(self._plant), lambda text: self.warnings('command', text))
            self.input(JointState, 'valve_command', self.on_command, OUTPUT)
        self._crane = SimulatedCrane(
            self.machine, dict.fromkeys(self.machine.description.payloads, s.payload) or s.payload, s.seed, cycle,
            self.more_settings[0], plant=self._plant)
        self.get_logger().info(f'{self.machine.name}: {s.payload} kg, seed {s.seed}, cycle {s.cycle}')

    def on_command(self, message: JointState) -> None:
        """Commands by the names of valves, V, and drives, m/s or rad/s; in force from the next frame on."""
        if self._commands is not None:
            self._commands.take(message.name, message.position)

    def next_frame(self) -> SensorFrame:
        """The next sensor period."""
        return self._crane.frame(self._commands.values if self._commands else None)

    def samples(self, frame: SensorFrame) -> dict[str, float]:
        """Sensors and commands."""
        return frame.samples | frame.commands

    def truth(self, frame: SensorFrame) -> dict[str, Any]:
        """Fields of MachineTruth."""
        return {'cylinders': self.machine.coordinates, 'position': frame.position, 'velocity': frame.velocity,
                'acceleration': frame.acceleration, 'volumes': self.machine.volumes, 'pressure': frame.pressure,
                'payload': frame.payload}


class ValveCommands:
    """The commands in force of ``controls``: V of a valve, m/s or rad/s of a drive; 0 until one comes.

    Each stays in force until another one for the same name comes. ``refuse`` gets a line about what cannot be used.
    """

    def __init__(self, controls: Sequence[str], refuse: Callable[[str], None]) -> None:
        self.values = dict.fromkeys(controls, 0.0)
        self._refuse = refuse

    def take(self, names: Sequence[str], values: Sequence[float]) -> None:
        """Commands of a message; of a bad one those that are right count, unless its lengths differ."""
        if len(names) != len(values):
            self._refuse(f'valve_command dropped: {len(names)} names and {len(values)} positions')
            return
        for name, value in zip(names, values):
            if name in self.values and math.isfinite(value):
                self.values[name] = float(value)
            else:
                self._refuse(f'valve_command {shown(name)} dropped: got {value}, expected a finite value for one of '
                             + ', '.join(self.values))


main = PlantNode.main

if __name__ == '__main__':
    main()
