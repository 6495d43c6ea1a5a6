# SPDX-License-Identifier: Apache-2.0
"""A simulated mechanism in real time: its sensors, inputs and truth."""

from __future__ import annotations

from typing import Any

from ..bags.topics import INPUTS, JOINT_STATE, JOINTS, Sources
from ..dynamics.model import Model
from ..settings import names_in
from ..simulation.linkage import LinkageFrame, SimulatedLinkage
from .base.node_settings import LinkagePlantNodeSettings
from .messages.wire import packed
from .plant_node import RealTimePlant


class LinkagePlantNode(RealTimePlant[Model]):
    """Simulates a mechanism, driven by its inputs."""

    executable = 'linkage_plant_node'
    settings: LinkagePlantNodeSettings
    sources: Sources

    def build(self, model: Model) -> None:
        """Compile the plant; the topics are those of its sensors."""
        self._plant = self._simulated(model)
        self.offer(Sources(model.description, self._plant.channels, model.inputs),
                   ('truth/joint_states', JOINT_STATE), JOINTS, model.description.name)

    def connect(self) -> None:
        """Set the mechanism to the beginning of its motion."""
        super().connect()
        s = self.settings
        self._plant, self.end_ns = self._simulated(self.machine), round(s.duration * 1e9) or None
        channels = ', '.join(self._plant.channels)
        self.get_logger().info(f'{self.machine.description.name}: {channels}, seed {s.seed}')

    def begin(self, stamp_ns: int) -> None:
        """Publish the inputs that are in force from now on."""
        if self.machine.inputs:
            self._sensors[INPUTS].publish(packed(JOINT_STATE, stamp_ns, self.machine.description.name, {
                'name': self.machine.inputs, 'effort': self._plant.inputs()}))

    def next_frame(self) -> LinkageFrame:
        """The next sensor period."""
        return self._plant.frame()

    def samples(self, frame: LinkageFrame) -> dict[str, float]:
        """Sensors and inputs."""
        return dict(zip((*self._plant.channels, *self.sources.inputs.values()),
                        (*frame.samples.tolist(), *frame.inputs.tolist())))

    def truth(self, frame: LinkageFrame) -> dict[str, Any]:
        """Fields of the JointState of all coordinates."""
        return {'name': self.machine.names, 'position': frame.q, 'velocity': frame.qd}

    def _simulated(self, model: Model) -> SimulatedLinkage:
        s = self.settings
        return SimulatedLinkage(model, names_in(s.sensors), s.seed, self.more_settings[0])


main = LinkagePlantNode.main

if __name__ == '__main__':
    main()
