# SPDX-License-Identifier: Apache-2.0
"""The measured machine as a ghost, the estimated one solid, and the payload as a ball with its mass, for RViz."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from visualization_msgs.msg import Marker, MarkerArray

from mbse_ros.msg import HydraulicState
from mbse_ros.msg import PayloadEstimate as PayloadMessage

from ..bags.topics import TopicMap
from ..errors import MbseError
from ..machine import Machine
from ..streams.records import PayloadEstimate
from ._ghost import MeasuredPosition
from ._lifecycle import ManagedNode
from ._markers import BLUE, GREY, ORANGE, outline_markers, payload_markers
from ._messages import payload_from_message, stamp_of, state_from_message
from ._qos import LATEST, OUTPUT, sensor_input
from ._run import run


class VisualizationNode(ManagedNode):
    """Draws at a rate counted in stamps, so that it follows a bag at any speed."""

    def __init__(self) -> None:
        super().__init__('visualization_node')

    def build(self, machine: Machine) -> None:
        """The one output."""
        self._markers = self.output(MarkerArray, 'markers')
        self._measured = MeasuredPosition(machine)
        if not self._measured.possible:
            self.get_logger().info('no measured machine is drawn: not every independent coordinate has a sensor')

    def connect(self) -> None:
        """Take positions, states and payloads from here on."""
        self._payload: PayloadEstimate | None = None
        self._last: dict[str, int] = {}
        self._solved: dict[str, np.ndarray] = {}
        self._whole = False
        self._measured.forget()
        # Unpacked only where one is drawn: at 100 Hz four of five are not.
        if self._measured.possible:
            reliability = self.settings.sensor_reliability
            self.input(JointState, TopicMap().position, self.on_position, sensor_input(reliability), raw=True)
        self.input(HydraulicState, 'state', self.on_state, OUTPUT, raw=True)
        self.input(PayloadMessage, 'payload', self.on_payload, LATEST)

    def on_position(self, cdr: bytes) -> None:
        """The ghost is where the sensors say."""
        stamp = stamp_of(cdr)
        if self._whole and not self._is_due('measured', stamp):
            return
        message = deserialize_message(cdr, JointState)
        self._whole = self._measured.take(stamp, message.name, message.position)
        position = self._measured.at(stamp)
        if position is not None and self._is_due('measured', stamp):
            s = self.tuning
            self._draw(stamp, position, 'measured', GREY, GREY, 1.6 * s.line_width, s.ghost_opacity)

    def on_state(self, cdr: bytes) -> None:
        """The solid machine is where the observer says."""
        stamp = stamp_of(cdr)
        if not self._is_due('estimated', stamp):
            return
        try:
            state = state_from_message(deserialize_message(cdr, HydraulicState))
        except MbseError as error:
            self.warnings('state', f'message dropped: {error}')
            return
        position = state.mean[-1, :len(self.machine.coordinates)]
        if np.isfinite(position).all():
            self._draw(stamp, position, 'estimated', ORANGE, BLUE, self.tuning.line_width, 1.0)

    def on_payload(self, message: PayloadMessage) -> None:
        """Kept for the next drawing of the estimated machine."""
        try:
            self._payload = payload_from_message(message)
        except MbseError as error:
            self.warnings('payload', f'message dropped: {error}')

    def _draw(self, stamp: int, position: np.ndarray, namespace: str, body: tuple, cylinder: tuple, width: float,
              opacity: float) -> None:
        s = self.tuning
        self._last[namespace] = stamp
        try:
            q = self._solved[namespace] = self.machine.position(position, self._solved.get(namespace))
            outline = self.machine.outline_at(q)
        except MbseError as error:
            self._solved.pop(namespace, None)       # the next one from the file's start: the branch may be a wrong one
            self.warnings(namespace, f'{namespace} machine not drawn: {error}')
            return
        markers: list[Marker] = outline_markers(outline, namespace, stamp, s.frame_id, width, body, cylinder, opacity)
        if namespace == 'estimated' and self._payload is not None and 'payload' in outline:
            markers += payload_markers(self._payload, outline['payload'][0], stamp, s.frame_id, s.line_width,
                                       s.text_height)
        self._markers.publish(MarkerArray(markers=markers))

    def _is_due(self, kind: str, stamp: int) -> bool:
        """Whether a period has gone by in stamps, or time went back."""
        last = self._last.get(kind)
        return last is None or not 0 <= stamp - last < 0.999e9 / self.tuning.rate


def main(args: list[str] | None = None) -> NoReturn:
    """Entry point of the executable."""
    run(VisualizationNode, args)


if __name__ == '__main__':
    main()
