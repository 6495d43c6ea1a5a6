# SPDX-License-Identifier: Apache-2.0
"""The simulated machine in real time: sensors and truth out, valve commands from a work cycle or a topic in."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from sensor_msgs.msg import JointState

from ..bags.channel_samples import SensorFields
from ..bags.topics import TRUTH, TopicMap
from ..errors import shown
from ..machine import Machine
from ..simulation.crane import SensorFrame, SimulatedCrane, controls_of, cycle_by_name, plant_of
from .base.middleware import OUTPUT
from .base.node_settings import PlantSettings
from .base.real_time_plant import RealTimePlant

DAY = 86_400.0      # s


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
        self._crane = SimulatedCrane(self.machine, s.payload, s.seed, cycle, self.more_settings[0], plant=self._plant)
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
