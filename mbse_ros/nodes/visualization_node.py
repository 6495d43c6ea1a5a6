# SPDX-License-Identifier: Apache-2.0
"""The measured machine as a ghost, the estimated one solid, and the payload as a ball with its mass, for RViz."""

from __future__ import annotations

import numpy as np
from sensor_msgs.msg import JointState
from visualization_msgs.msg import MarkerArray

from mbse_ros.msg import HydraulicState
from mbse_ros.msg import PayloadEstimate as PayloadMessage

from ..bags.messages import payload_record, state_record
from ..bags.topics import JOINT_STATE, PAYLOAD, STATE, TopicMap
from ..errors import MbseError
from ..machine import Machine
from ..streams.records import PayloadEstimate
from ._ghost import MeasuredPosition
from ._lifecycle import ManagedNode
from ._markers import BLUE, GREY, ORANGE, Canvas, payload_markers
from ._messages import check_sender, stamp_of, unpacked
from ._qos import LATEST, OUTPUT, sensor_input
from ._records import check_names


class VisualizationNode(ManagedNode):
    """Draws what is due; states are unpacked only then: at 100 Hz four of five are not."""

    executable = 'visualization_node'

    def build(self, machine: Machine) -> None:
        """The one output."""
        self._markers = self.output(MarkerArray, 'markers')
        self._measured = MeasuredPosition(machine)
        if not self._measured.possible:
            self.get_logger().info('no measured machine is drawn: not every independent coordinate has a sensor')

    def connect(self) -> None:
        """Take positions, states and payloads from here on."""
        self._canvas = Canvas(self._markers)
        self._payload: PayloadEstimate | None = None
        self._solved: dict[str, np.ndarray] = {}
        self._measured.forget()
        if self._measured.possible:
            reliability = self.settings.sensor_reliability
            self.input(JointState, TopicMap().position, self.on_position, sensor_input(reliability), raw=True)
        self.input(HydraulicState, 'state', self.on_state, OUTPUT, raw=True)
        self.input(PayloadMessage, 'payload', self.on_payload, LATEST, raw=True)

    def on_position(self, cdr: bytes) -> None:
        """The ghost is where the sensors say."""
        look = self.tuning
        try:
            stamp = stamp_of(cdr)
            message = unpacked(TopicMap().position, JOINT_STATE, cdr)
        except MbseError as error:
            self.warnings('position', f'message dropped: {error}')
            return
        self._measured.take(stamp, message.name, message.position.tolist())
        position = self._measured.at(stamp)
        if position is not None and self._is_due('measured', stamp):
            self._draw('measured', stamp, position, GREY, GREY, 1.6 * look.line_width, look.ghost_opacity)

    def on_state(self, cdr: bytes) -> None:
        """The solid machine is where the observer says."""
        try:
            stamp = stamp_of(cdr)
            if not self._is_due('estimated', stamp):
                return
            message = unpacked('state', STATE, cdr)
            check_sender(message, 'state', self.machine.name, self.fingerprint)
            state = state_record(message)
            check_names(state, self.machine)
        except MbseError as error:
            self.warnings('state', f'message dropped: {error}')
            return
        position = state.mean[-1, :len(self.machine.coordinates)]
        if np.isfinite(position).all():
            self._draw('estimated', stamp, position, ORANGE, BLUE, self.tuning.line_width, 1.0)

    def on_payload(self, cdr: bytes) -> None:
        """Kept for the next drawing of the estimated machine."""
        try:
            message = unpacked('payload', PAYLOAD, cdr)
            check_sender(message, 'payload', self.machine.name, self.fingerprint)
            self._payload = payload_record(message)
        except MbseError as error:
            self.warnings('payload', f'message dropped: {error}')

    def _draw(self, namespace: str, stamp: int, position: np.ndarray, body: tuple, cylinder: tuple, width: float,
              opacity: float) -> None:
        look = self.tuning
        try:
            q = self._solved[namespace] = self.machine.position(position, self._solved.get(namespace))
            outline = self.machine.outline_at(q)
        except MbseError as error:
            self._solved.pop(namespace, None)       # the next one from the file's start: the branch may be a wrong one
            self.warnings(namespace, f'{namespace} machine not drawn: {error}')
            return
        place, load = outline.pop('payload', None), []
        if namespace == 'estimated' and self._payload is not None and place is not None:
            load = payload_markers(self._payload, place[0], stamp, look.frame_id, look.line_width, look.text_height)
        self._canvas.draw(namespace, stamp, outline, look.frame_id, width, body, cylinder, opacity, load)

    def _is_due(self, namespace: str, stamp: int) -> bool:
        return self._canvas.is_due(namespace, stamp, self.tuning.rate)


main = VisualizationNode.main

if __name__ == '__main__':
    main()
