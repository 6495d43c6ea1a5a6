# SPDX-License-Identifier: Apache-2.0
"""Samples of a mechanism's sensors in; its state a lag ago out, by the smoother.

Messages go first: while some wait the node solves for a quarter of the time at most, a piece of work at a time, so that
none is lost where the solver is slow; it then takes more instants at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import NoReturn

from mbse_ros.msg import LinkageState

from ..dynamics.model import Model
from ..streams.linkage.lagged import LaggedStage
from ..streams.linkage.records import LinkageEstimate
from ..streams.linkage.sources import Sources
from ._lifecycle import ManagedNode
from ._linkage_inputs import LinkageInputs
from ._linkage_state import StateWriter
from ._mechanism import load_mechanism_model
from ._qos import deep_input
from ._run import run
from ._status import StatusChange, log_status

PATIENCE = 5        # instants that a status must last to be told


class SmootherNode(ManagedNode):
    """Runs the lagged stage: samples when they come, solutions when they are due."""

    def __init__(self) -> None:
        super().__init__('smoother_node')
        self._due, self._turn, self._heard, self._busy = 0.0, 0.0, None, False

    def load(self) -> Model:
        """The mechanism's model."""
        return load_mechanism_model(self.settings)

    def build(self, model: Model) -> None:
        """Compile the smoother and the filter that judges its samples."""
        s = self.settings
        self.stage = LaggedStage(model, self.more_settings[0], s.sensors.split(), s.step, s.lag, s.delay, s.backend)
        self.sources = Sources(model.description, self.stage.channels, model.inputs, s.unstamped.split())
        self._written = StateWriter(model.description.name, self.stage.channels)
        self._states = self.output(LinkageState, 'smoothed_state')

    def connect(self) -> None:
        """Take samples from here on."""
        self.stage.reset()
        self._changed, self._due, self._heard = StatusChange(PATIENCE), 0.0, None
        self._busy = False
        LinkageInputs(self, self.sources, self._take, deep_input(self.settings.sensor_reliability))
        self.get_logger().info(f'{self.machine.description.name}: {", ".join(self.stage.channels)}, '
                               f'{self.stage.lag:g} s of lag')

    def tick(self) -> float | None:
        """Solve what is due; seconds until the next time."""
        if not self.active or self._heard is None:
            return None
        now, busy, self._busy = time.monotonic(), self._busy, False
        if now < self._due:
            return self._due - now
        if busy and now < self._turn:       # another message may wait
            return 0.0
        if self.stage.ready:
            self._tell(self.stage.solve())
            end = time.monotonic()
            self._due, self._turn = now + (0.0 if self.stage.ready else self.settings.period), end + 3 * (end - now)
            return max(0.0, self._due - end)
        if now - self._heard >= self.settings.silence:
            self._heard = None
            self._tell(self.stage.flush())
            return None
        return self.settings.period

    def _take(self, stamp_ns: int, samples: dict[str, float]) -> None:
        """Samples to the stage; nothing is solved here."""
        self._heard, self._busy = time.monotonic(), True
        self.stage.add(stamp_ns, samples)
        for refusal in self.stage.refusals():
            self.warnings(refusal.channel, f'sample dropped: {refusal}')

    def _tell(self, estimates: Iterable[LinkageEstimate]) -> None:
        for estimate in estimates:
            self._states.publish(self._written(estimate))
            if self._changed(estimate.status):
                log_status(self.get_logger(), estimate)


def main(args: list[str] | None = None) -> NoReturn:
    """Entry point of the executable."""
    run(SmootherNode, args)


if __name__ == '__main__':
    main()
