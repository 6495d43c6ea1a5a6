# SPDX-License-Identifier: Apache-2.0
"""Sensor messages in, one segment a sensor period out."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from functools import partial
from typing import NoReturn

from sensor_msgs.msg import FluidPressure, JointState

from mbse_ros.msg import SensorSegment

from ..errors import SampleError
from ..machine import Machine
from ..settings import Settings
from ..streams.interpolation import Interpolator
from ._lifecycle import ManagedNode
from ._messages import segment_to_message, to_ns
from ._qos import sensor_input
from ._run import run

NUMBER = re.compile(r'\d+')
SILENCE = 5.0       # s without a segment before a warning


class InterpolationNode(ManagedNode):
    """Aligns the sensors' streams; a sample that cannot be used is told and dropped, the stream goes on."""

    def __init__(self) -> None:
        super().__init__('interpolation_node')

    def build(self, machine: Machine) -> None:
        """Make the interpolator of the machine's channels."""
        self.interpolator = Interpolator(machine.channels, machine.commands, self.tuning)
        self._segments = self.output(SensorSegment, 'segment')

    def retune(self, tuning: Settings) -> None:
        """Give a new tuning to the interpolator."""
        self.interpolator.configure(tuning)

    def connect(self) -> None:
        """Take the sensors from here on."""
        self.interpolator.reset()
        self._lost: set[str] = set()
        self._patience = time.monotonic() + SILENCE
        qos = sensor_input(self.settings.sensor_reliability)
        self.input(JointState, 'sensors/position', partial(self.on_joints, 'sensors/position', 'position'), qos)
        for volume in self.machine.volumes:
            if f'pressure/{volume}' in self.machine.channels:
                self.input(FluidPressure, f'sensors/pressure/{volume}', partial(self.on_pressure, volume), qos)
        if self.machine.commands:
            self.input(JointState, 'sensors/valve_command',
                       partial(self.on_joints, 'sensors/valve_command', 'command'), qos)

    def tick(self) -> float | None:
        """A warning where no segment came for long; seconds until the next look."""
        if not self.active:
            return None
        left = self._patience - time.monotonic()
        if left <= 0.0:
            self.get_logger().warning(f'no segment: waiting for {", ".join(self.interpolator.waiting_for)}')
            self._patience, left = time.monotonic() + 4 * SILENCE, 4 * SILENCE
        return left

    def on_joints(self, topic: str, kind: str, message: JointState) -> None:
        """Positions of cylinders or commands of valves, by name."""
        stamp, names, values = to_ns(message.header.stamp), message.name, message.position
        if len(names) != len(values):
            got = f'{len(names)} names and {len(values)} positions'
            self._refuse(SampleError(topic, stamp, got, 'as many of both'))
            return
        self._take(stamp, ((f'{kind}/{name}', value) for name, value in zip(names, values)))

    def on_pressure(self, volume: str, message: FluidPressure) -> None:
        """Pressure of a volume, Pa."""
        self._take(to_ns(message.header.stamp), ((f'pressure/{volume}', message.fluid_pressure),))

    def _take(self, stamp_ns: int, samples: Iterable[tuple[str, float]]) -> None:
        for channel, value in samples:
            try:
                segments = self.interpolator.add(channel, stamp_ns, value)
            except SampleError as error:
                self._refuse(error)
                continue
            for segment in segments:
                self._patience = time.monotonic() + SILENCE
                self._segments.publish(segment_to_message(segment, self.machine.name))

        if set(self.interpolator.lost) != self._lost:
            self._tell_lost()

    def _refuse(self, error: SampleError) -> None:
        self.warnings(f'{error.channel}: {NUMBER.sub("", error.expected)}', f'sample dropped: {error}')

    def _tell_lost(self) -> None:
        """A line in the log when an input dies or comes back."""
        lost = set(self.interpolator.lost)
        if lost - self._lost:
            self.get_logger().warning(f'silent, no longer waited for: {", ".join(sorted(lost - self._lost))}')
        if self._lost - lost:
            self.get_logger().info(f'back: {", ".join(sorted(self._lost - lost))}')
        self._lost = lost


def main(args: list[str] | None = None) -> NoReturn:
    """Entry point of the executable."""
    run(InterpolationNode, args)


if __name__ == '__main__':
    main()
