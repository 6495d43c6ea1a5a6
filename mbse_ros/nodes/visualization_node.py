# SPDX-License-Identifier: Apache-2.0
"""The estimated machine as solids, the measured one as a ghost around it, and the payload as a ball of its mass, for
RViz."""

from __future__ import annotations

import numpy as np
from visualization_msgs.msg import MarkerArray

from mbse_ros.msg import HydraulicState
from mbse_ros.msg import PayloadEstimate as PayloadMessage

from ..errors import MbseError
from ..machine import Machine
from ..streams.records import PayloadEstimate, StateEstimate
from .base.lifecycle import ManagedNode
from .base.middleware import LATEST, OUTPUT
from .base.node_settings import ManagedSettings, VisualizationSettings
from .base.record_node import received
from .messages.markers import ESTIMATED, GHOST, MEASURED, OLD_NS, Canvas
from .messages.outline import LETTER, MeasuredPosition, machine_box, or_by_size
from .messages.wire import stamp_of


class VisualizationNode(ManagedNode[Machine]):
    """Draws what is due; states are unpacked only then: at 100 Hz four of five are not.

    Measured and estimated machine are of one message: how far they are apart is what the state does not explain.
    """

    executable = 'visualization_node'
    settings: ManagedSettings
    tuning: VisualizationSettings

    def build(self, machine: Machine) -> None:
        """The one output."""
        self._markers = self.output(MarkerArray, 'markers')
        self._measured, self._box = MeasuredPosition(machine), machine_box(machine)
        if not self._measured.possible:
            self.get_logger().info('no measured machine is drawn: not every independent coordinate has a sensor')

    def connect(self) -> None:
        """Take states and payloads from here on."""
        self._canvas = Canvas(self._markers, self.machine.solids, self._letters, self._box.above)
        self._payload: PayloadEstimate | None = None
        self._solved: dict[str, np.ndarray] = {}
        self.input(HydraulicState, 'state', self.on_state, OUTPUT, raw=True)
        self.input(PayloadMessage, 'payload', self.on_payload, LATEST, raw=True)

    def retune(self, tuning: VisualizationSettings) -> None:
        """Another size of the letters; the rest is read at each drawing."""
        if self.active:
            self._canvas.text_height = self._letters

    @property
    def _letters(self) -> float:
        return or_by_size(self.tuning.text_height, LETTER, self._box.size)

    def tick(self) -> float | None:
        """Draw the age of the state where none comes any longer."""
        return self._canvas.look() if self.active else None

    def on_state(self, cdr: bytes) -> None:
        """The solid machine is where the observer says, the ghost where the sensors of the same instant say."""
        look = self.tuning
        try:
            stamp = stamp_of(cdr)
            if not self._canvas.is_due(ESTIMATED, stamp, look.rate):
                return
            state = received(StateEstimate, cdr, self.machine, self.fingerprint)
        except MbseError as error:
            self.warnings('state', f'message dropped: {error}')
            return
        place, measured = state.mean[-1, :len(self.machine.coordinates)], self._measured.of(state)
        if measured is not None:
            ghost = self._places(MEASURED, place + look.magnification * (measured - place))
            if ghost is not None:
                self._canvas.draw_measured(MEASURED, ghost, GHOST, look.ghost_opacity)
        estimated = self._places(ESTIMATED, place)
        if estimated is None:
            self._canvas.unknown(stamp, look.frame_id, state.status, state.reason)
            return
        if self._payload is not None and self._payload.stamp_ns - stamp > OLD_NS:
            self._payload = None        # of another time: a bag that begins again
        self._canvas.estimate(stamp, estimated, look.frame_id, state.status, state.reason, self._payload)

    def on_payload(self, cdr: bytes) -> None:
        """Kept for the next drawing of the estimated machine."""
        try:
            self._payload = received(PayloadEstimate, cdr, self.machine, self.fingerprint)
        except MbseError as error:
            self.warnings('payload', f'message dropped: {error}')

    def _places(self, namespace: str, position: np.ndarray) -> np.ndarray | None:
        """Where the solids are, (parts, 4, 3), at independent coordinates; None where the machine cannot be there."""
        if not np.isfinite(position).all():
            return None
        try:
            q = self._solved[namespace] = self.machine.position(position, self._solved.get(namespace))
            return self.machine.solids.placed(self.machine.outline_at(q))
        except MbseError as error:
            self._solved.pop(namespace, None)       # the next one from the file's start: the branch may be a wrong one
            self.warnings(namespace, f'{namespace} machine not drawn: {error}')
            return None

    def _disconnect(self) -> None:
        if self.active:
            self._canvas.clear()        # a reset shows nothing of before
        super()._disconnect()


main = VisualizationNode.main

if __name__ == '__main__':
    main()
