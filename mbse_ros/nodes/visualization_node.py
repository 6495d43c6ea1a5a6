# SPDX-License-Identifier: Apache-2.0
"""The measured machine as a ghost, the estimated one solid, and the payload as a ball with its mass, for RViz."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from sensor_msgs.msg import JointState
from visualization_msgs.msg import MarkerArray

from mbse_ros.msg import HydraulicState
from mbse_ros.msg import PayloadEstimate as PayloadMessage

from ..bags.channel_samples import Sample
from ..bags.messages import payload_record
from ..bags.topics import JOINT_STATE, PAYLOAD, TopicMap
from ..errors import MbseError
from ..machine import Machine
from ..sources.map import SourceMap
from ..streams.records import PayloadEstimate
from .base.lifecycle import ManagedNode
from .base.node_settings import SensorNodeSettings, VisualizationSettings
from .base.qos import LATEST, OUTPUT, sensor_input
from .base.record_node import state_of
from .inputs.foreign_inputs import ForeignInputs, node_sources
from .inputs.ghost import MeasuredPosition
from .inputs.waiting import Waiting
from .messages.markers import BLUE, GREY, ORANGE, Canvas, Colour, payload_markers
from .messages.wire import check_sender, stamp_of, unpacked


class VisualizationNode(ManagedNode[Machine]):
    """Draws what is due; states are unpacked only then: at 100 Hz four of five are not."""

    executable = 'visualization_node'
    settings: SensorNodeSettings
    tuning: VisualizationSettings
    _waiting: Waiting[Sample]

    def build(self, machine: Machine) -> None:
        """The one output."""
        self._markers = self.output(MarkerArray, 'markers')
        self._measured = MeasuredPosition(machine)
        self._sources = only(node_sources(self.settings.sources, machine), self._measured.channels)
        if not self._measured.possible:
            self.get_logger().info('no measured machine is drawn: not every independent coordinate has a sensor')

    def connect(self) -> None:
        """Take positions, states and payloads from here on."""
        self._canvas = Canvas(self._markers)
        self._payload: PayloadEstimate | None = None
        self._solved: dict[str, np.ndarray] = {}
        self._measured.forget()
        if self._measured.possible:
            qos, self._waiting = sensor_input(self.settings.sensor_reliability), Waiting()
            self._foreign = ForeignInputs(self, self._sources, self._waiting, qos, self.on_foreign)
            if set(self._measured.channels) - set(self._sources.channels):
                self.input(JointState, TopicMap().position, self.on_position, qos, raw=True)
        self.input(HydraulicState, 'state', self.on_state, OUTPUT, raw=True)
        self.input(PayloadMessage, 'payload', self.on_payload, LATEST, raw=True)

    def on_position(self, cdr: bytes) -> None:
        """The ghost is where the sensors say."""
        try:
            stamp = stamp_of(cdr)
            message = unpacked(TopicMap().position, JOINT_STATE, cdr)
        except MbseError as error:
            self.warnings('position', f'message dropped: {error}')
            return
        self._measured.take(stamp, message.name, message.position.tolist())
        self._draw_measured(stamp)

    def on_foreign(self, topic: str, message: Any) -> None:
        """The same of a topic of the map."""
        for channel, stamp, value, *_ in self._waiting.items(topic, message):
            self._measured.take(stamp, [channel.partition('/')[2]], [value])
            self._draw_measured(stamp)

    def tick(self) -> float | None:
        """Look for topics of the map that were not there yet."""
        return self._foreign.look() if self.active and self._measured.possible else None

    def _draw_measured(self, stamp: int) -> None:
        look, position = self.tuning, self._measured.at(stamp)
        if position is not None and self._is_due('measured', stamp):
            self._draw('measured', stamp, position, GREY, GREY, 1.6 * look.line_width, look.ghost_opacity)

    def on_state(self, cdr: bytes) -> None:
        """The solid machine is where the observer says."""
        try:
            stamp = stamp_of(cdr)
            if not self._is_due('estimated', stamp):
                return
            state = state_of(cdr, self.machine, self.fingerprint)
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

    def _draw(self, namespace: str, stamp: int, position: np.ndarray, body: Colour, cylinder: Colour,
              width: float, opacity: float) -> None:
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


def only(sources: SourceMap, channels: Iterable[str]) -> SourceMap:
    """What a map says of some channels."""
    return replace(sources, channels={name: ways for name, ways in sources.channels.items() if name in set(channels)})


main = VisualizationNode.main

if __name__ == '__main__':
    main()
