# SPDX-License-Identifier: Apache-2.0
"""Samples of a mechanism's sensors in; its state, forces, health and picture out, by any filter."""

from __future__ import annotations

from functools import partial
from typing import NoReturn

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64
from visualization_msgs.msg import Marker, MarkerArray

from mbse_ros.msg import LinkageState

from ..dynamics.model import Model
from ..errors import SettingError
from ..estimators.linkage.filters import FILTERS
from ..settings import Settings
from ..streams.linkage import LinkageEstimate, LinkageStage
from ..streams.linkage.outline import Outline
from ..streams.linkage.sources import FLOAT64, IMU, INPUTS, JOINTS, Sources
from ..streams.linkage.start import encoded, moved_to
from ..streams.records import ObserverStatus
from ._lifecycle import ManagedNode
from ._linkage_messages import all_coordinates, diagnostics, linkage_markers, state_message
from ._markers import GREEN, GREY, ORANGE
from ._mechanism import load_mechanism_model
from ._messages import to_ns
from ._qos import deep_input
from ._run import run
from ._status import StatusChange

PATIENCE = 5        # instants that a status must last to be told


class LinkageNode(ManagedNode):
    """Runs the linkage stage over each message, by its stamp."""

    def __init__(self) -> None:
        super().__init__('linkage_node')

    def load(self) -> Model:
        """The mechanism's model."""
        return load_mechanism_model(self.settings)

    def build(self, model: Model) -> None:
        """Compile the filter, those to be ready, and the picture."""
        s = self.settings
        for name in s.prepared.split():
            if name not in FILTERS:
                raise SettingError('prepared', name, 'one of ' + ', '.join(FILTERS))
        self.stage = LinkageStage(model, self.tuning, s.sensors.split(), s.step, s.backend)
        self.stage.prepare(*s.prepared.split())
        self.sources = Sources(model.description, self.stage.channels, model.inputs, s.unstamped.split())
        self._outline, self._frame = Outline(model), model.description.name
        self._states = self.output(LinkageState, 'linkage_state')
        self._joints = self.output(JointState, 'estimated/joint_states')
        self._markers = self.output(MarkerArray, 'markers')
        self._diagnostics = self.output(DiagnosticArray, 'diagnostics')

    def retune(self, tuning: Settings) -> None:
        """Give a new tuning, or another filter, to the stage; the state stays."""
        before = self.stage.estimator
        self.stage.configure(tuning)
        if self.stage.estimator != before:
            self.get_logger().info(f'estimator {self.stage.estimator} instead of {before}')

    def connect(self) -> None:
        """Take samples from here on."""
        self.stage.reset()
        self._changed, self._drawn, self._told = StatusChange(PATIENCE), {}, None
        qos = deep_input(self.settings.sensor_reliability)
        for topic, kind in self.sources.topics.items():
            callback = {IMU: partial(self.on_imu, topic), FLOAT64: partial(self.on_value, topic)}.get(kind)
            callback = callback or {JOINTS: self.on_joints, INPUTS: self.on_inputs}[topic]
            self.input({IMU: Imu, FLOAT64: Float64}.get(kind, JointState), topic, callback, qos)
        self.input(JointState, 'truth/joint_states', self.on_truth, deep_input('best_effort'))

    def on_joints(self, message: JointState) -> None:
        """Encoders, rates, forces by name."""
        self._read(message, lambda: self.sources.of_joints(
            message.name, position=message.position, velocity=message.velocity, effort=message.effort))

    def on_inputs(self, message: JointState) -> None:
        """Inputs of the mechanism."""
        self._read(message, lambda: self.sources.of_inputs(message.name, message.effort))

    def on_imu(self, topic: str, message: Imu) -> None:
        """Gyro or accelerometer."""
        self._take(to_ns(message.header.stamp), self.sources.of_imu(topic, message))

    def on_value(self, topic: str, message: Float64) -> None:
        """A value without a stamp: now."""
        self._take(self.get_clock().now().nanoseconds, {self.sources.values[topic]: float(message.data)})

    def on_truth(self, message: JointState) -> None:
        """True coordinates of a simulated mechanism: drawn as a ghost only."""
        values = dict(zip(message.name, message.position))
        q = np.array([values.get(name, np.nan) for name in self.machine.names])
        if np.isfinite(q).all():
            self._draw('true', to_ns(message.header.stamp), q, GREEN, 0.35)

    def _read(self, message: JointState, read) -> None:
        try:
            samples = read()
        except ValueError as error:
            self.warnings('unreadable', f'message dropped: {error}')
            return
        self._take(to_ns(message.header.stamp), samples)

    def _take(self, stamp_ns: int, samples: dict[str, float]) -> None:
        """Samples to estimates."""
        for estimate in self.stage.add(stamp_ns, samples):
            self._tell(estimate)
        for refusal in self.stage.refusals():
            self.warnings(refusal.channel, f'sample dropped: {refusal}')
        if self._markers.get_subscription_count():
            self._draw_measured(stamp_ns, samples)

    def _tell(self, estimate: LinkageEstimate) -> None:
        """The messages of one instant."""
        model = self.machine
        self._states.publish(state_message(estimate, self._frame, model.independent, self.stage.channels))
        if self._joints.get_subscription_count():
            self._joints.publish(all_coordinates(estimate, self._frame, model.names, model.independent))
        if np.isfinite(estimate.q).all():
            self._draw('estimated', estimate.stamp_ns, estimate.q, ORANGE, 1.0)
        if self._told is None or abs(estimate.stamp_ns - self._told) >= self.settings.health_period * 1e9:
            self._told = estimate.stamp_ns
            self._diagnostics.publish(diagnostics(estimate, self.stage.health(), self.get_name(), self.stage.dropped,
                                                  self._frame))
        if self._changed(estimate.status):
            text = f'{estimate.status.name}{": " if estimate.reason else ""}{estimate.reason}'
            if estimate.status <= ObserverStatus.STARTING:
                self.get_logger().info(text)
            else:       # a line of its own: rclpy refuses two severities from one
                self.get_logger().warning(text)

    def _draw_measured(self, stamp_ns: int, samples: dict[str, float]) -> None:
        """The ghost of the encoders, where they tell all independent coordinates."""
        model = self.machine
        if not self._is_due('measured', stamp_ns):
            return
        values = np.array([samples.get(name, np.nan) for name in self.stage.channels])
        places = encoded(model, self.stage.channels, values)
        q = moved_to(model, places) if len(places) == len(model.z) else None
        if q is not None:
            self._draw('measured', stamp_ns, q, GREY, 0.35)

    def _draw(self, namespace: str, stamp_ns: int, q: np.ndarray, colour: tuple, opacity: float) -> None:
        if not self._markers.get_subscription_count() or not self._is_due(namespace, stamp_ns):
            return
        self._drawn[namespace] = stamp_ns
        s = self.settings
        width = s.line_width * (1.0 if namespace == 'estimated' else 1.6)
        markers: list[Marker] = linkage_markers(self._outline.at(q), namespace, stamp_ns, s.frame_id, width, colour,
                                                opacity)
        self._markers.publish(MarkerArray(markers=markers))

    def _is_due(self, namespace: str, stamp_ns: int) -> bool:
        last = self._drawn.get(namespace)
        return last is None or not 0 <= stamp_ns - last < 0.999e9 / self.settings.marker_rate


def main(args: list[str] | None = None) -> NoReturn:
    """Entry point of the executable."""
    run(LinkageNode, args)


if __name__ == '__main__':
    main()
