# SPDX-License-Identifier: Apache-2.0
"""Samples of a mechanism's sensors in; its state a lag ago out, by the smoother.

Messages go first: while some wait the node solves for a quarter of the time at most, a piece of work at a time, so that
none is lost where the solver is slow; it then takes more instants at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from ..dynamics.model import Model
from ..settings import names_in
from ..streams.lagged import LaggedStage
from ..streams.records import LinkageEstimate
from .base.mechanism_node import MechanismNode, sooner
from .base.node_settings import SmootherNodeSettings
from .base.run import STOP


class SmootherNode(MechanismNode):
    """Runs the lagged stage: samples when they come, solutions when they are due."""

    executable, sends = 'smoother_node', 'smoothed_state'
    hurried = True
    settings: SmootherNodeSettings
    stage: LaggedStage
    _heard: float | None

    def make_stage(self, model: Model) -> LaggedStage:
        """The smoother with the filter that judges its samples, warmed up."""
        s = self.settings
        return LaggedStage(model, self.more_settings[0], names_in(s.sensors), s.step, s.lag, s.delay, s.backend)

    def connect(self) -> None:
        """Take samples from here on."""
        self._due, self._turn, self._heard, self._busy = 0.0, 0.0, None, False
        super().connect()

    def tick(self) -> float | None:
        """Solve what is due; seconds until the next time."""
        return sooner(super().tick(), self._solved())

    def _solved(self) -> float | None:
        if not self.active or self._heard is None:
            return None
        now, busy, self._busy = time.monotonic(), self._busy, False
        if now < self._due:
            return self._due - now
        if busy and now < self._turn:       # another message may wait
            return 0.0
        if self.stage.ready:
            self._publish_all(self.stage.solve())
            end = time.monotonic()
            self._due, self._turn = now + (0.0 if self.stage.ready else self.settings.period), end + 3 * (end - now)
            return max(0.0, self._due - end)
        if now - self._heard >= self.settings.silence:
            self._heard = None
            self._publish_all(self.stage.flush())
            return None
        return self.settings.period

    def take(self, stamp_ns: int, samples: dict[str, float]) -> None:
        """Samples to the stage; nothing is solved here."""
        self._heard, self._busy = time.monotonic(), True
        self.stage.add(stamp_ns, samples)

    def do_rest(self) -> None:
        """What waits, and the rest of the window."""
        super().do_rest()
        if self.active and not STOP.at_once:
            self._publish_all(self.stage.flush())

    def _publish_all(self, estimates: Iterable[LinkageEstimate]) -> None:
        for estimate in estimates:
            self.publish_estimate(estimate)


main = SmootherNode.main

if __name__ == '__main__':
    main()
