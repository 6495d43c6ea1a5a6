# SPDX-License-Identifier: Apache-2.0
"""Samples of a mechanism's sensors in; its state, forces, health and picture out, by any filter."""

from __future__ import annotations

import gc
import sys
from dataclasses import fields

import numpy as np
from rclpy.parameter import Parameter
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState
from visualization_msgs.msg import MarkerArray

from ..bags.messages import checked_stamp
from ..dynamics.model import Model
from ..errors import SampleError, SettingError
from ..estimators.filters.filters import FILTERS
from ..streams.linkage.linkage_settings import LinkageSettings
from ..streams.linkage.outline import Outline
from ..streams.linkage.stage import LinkageStage
from ..streams.linkage.start import encoded, moved_to
from ..streams.records import LinkageEstimate
from .base.mechanism_node import MechanismNode
from .base.node_settings import LinkageNodeSettings
from .base.qos import deep_input
from .messages.markers import GREEN, GREY, ORANGE, Canvas, Colour
from .messages.wire import packed_joints

TURN = 5e-4         # s that the compiling thread may keep the interpreter from a sample; Python's own 5 ms is a period
GHOST = 0.35        # opacity of what is not the estimate


class LinkageNode(MechanismNode):
    """Runs the linkage stage over each message, by its stamp."""

    executable, sends = 'linkage_node', 'linkage_state'
    settings: LinkageNodeSettings
    tuning: LinkageSettings
    stage: LinkageStage
    _ghost: Subscription | None

    def build(self, model: Model) -> None:
        """Compile the filter, those to be ready, and the picture."""
        super().build(model)
        self._outline = Outline(model)
        self._joints = self.output(JointState, 'estimated/joint_states')
        self._markers = self.output(MarkerArray, 'markers')

    def make_stage(self, model: Model) -> LinkageStage:
        """The filter's stage, warmed up, and the filters to be ready."""
        sys.setswitchinterval(TURN)
        s = self.settings
        for name in s.prepared.split():
            if name not in FILTERS:
                raise SettingError('prepared', name, 'one of ' + ', '.join(FILTERS))
        stage = LinkageStage(model, self.tuning, s.sensors.split(), s.step, s.backend)
        stage.prepare(*s.prepared.split())
        return stage

    def retune(self, tuning: LinkageSettings) -> str:
        """Give a new tuning, or another filter, to the stage; the state stays."""
        before = self.stage.estimator
        self.stage.configure(tuning, wait=not self.active)
        if self.stage.ordered is not None:
            return (f'{tuning.estimator} is being compiled and follows when it is ready; until then {before} continues '
                    'as it was')
        self._log_change(before)
        return ''

    def connect(self) -> None:
        """Take samples from here on."""
        self._canvas, self._ghost = Canvas(self._markers), None
        super().connect()

    def on_truth(self, message: JointState) -> None:
        """True coordinates of a simulated mechanism: drawn as a ghost only."""
        values = dict(zip(message.name, message.position))
        q = np.array([values.get(name, np.nan) for name in self.machine.names])
        try:
            self._draw('true', checked_stamp('truth/joint_states', message), q, GREEN, GHOST)
        except SampleError as error:
            self.warnings('truth', f'message dropped: {error}')

    def take(self, stamp_ns: int, samples: dict[str, float]) -> None:
        """Samples to estimates, messages and pictures; the state goes first."""
        if (ordered := self.stage.ordered) is not None:
            self._take_up(ordered)
        for estimate in self.stage.add(stamp_ns, samples):
            self.publish_estimate(estimate)
            if self._joints.get_subscription_count():
                self._joints.publish(self._all_coordinates(estimate))
            self._follow_viewers()
            if self._ghost is not None:
                self._draw('estimated', estimate.stamp_ns, estimate.q, ORANGE, 1.0)
        if self._ghost is not None:
            self._draw_measured(stamp_ns, samples)

    def values(self, estimate: LinkageEstimate) -> dict[str, object]:
        """Numbers of the diagnostics."""
        health = self.stage.health()
        seen = f'{health.rank} of {health.size} directions seen' if health.rank >= 0 else 'not known yet'
        return {'estimator': estimate.estimator, 'mean NIS per measurement': f'{health.mean_nis:.3g}',
                'whiteness (p-value)': f'{health.whiteness:.3g}', 'observability': seen, **super().values(estimate)}

    def _all_coordinates(self, e: LinkageEstimate) -> bytes:
        """JointState; effort: the added force along a coordinate, 0 of the others (and of all where the force is along
        actuators)."""
        force = dict(zip(e.force_names, e.force))
        return packed_joints(e.stamp_ns, self.frame, self.machine.names, e.q, e.qd,
                             [force.get(name, 0.0) for name in self.machine.names])

    def _take_up(self, wanted: LinkageSettings) -> None:
        """Go over to a filter that was compiled in the background; where it cannot be used, the parameters go back."""
        before = self.stage.estimator
        try:
            if self.stage.take_up():
                gc.freeze()     # as after the start: what stays is not walked through again
                self._log_change(before)
        except Exception as error:      # of CasADi, too: the running filter must not end by it
            used = self.stage.settings
            self.get_logger().error(f'{wanted.estimator} cannot be used: {error}; {before} continues')
            self.set_parameters_atomically([
                Parameter(item.name, value=getattr(used, item.name)) for item in fields(used)
                if getattr(used, item.name) != getattr(wanted, item.name)])

    def _log_change(self, before: str) -> None:
        if self.stage.estimator != before:
            self.get_logger().info(f'estimator {self.stage.estimator} instead of {before}')

    def _follow_viewers(self) -> None:
        """Subscribe to the truth of a simulated mechanism, as frequent as samples, only while somebody looks."""
        watched = self._markers.get_subscription_count() > 0
        if watched and self._ghost is None:
            self._ghost = self.input(JointState, 'truth/joint_states', self.on_truth, deep_input('best_effort'))
        elif self._ghost is not None and not watched:
            self.leave(self._ghost)
            self._ghost = None

    def _draw_measured(self, stamp_ns: int, samples: dict[str, float]) -> None:
        """The ghost of the encoders, where they measure all independent coordinates."""
        model = self.machine
        if self._is_due('measured', stamp_ns):
            values = np.array([samples.get(name, np.nan) for name in self.stage.channels])
            places = encoded(model, self.stage.channels, values)
            q = moved_to(model, places) if len(places) == len(model.z) else None
            if q is not None:
                self._draw('measured', stamp_ns, q, GREY, GHOST)

    def _draw(self, namespace: str, stamp_ns: int, q: np.ndarray, colour: Colour, opacity: float) -> None:
        s = self.settings
        if self._is_due(namespace, stamp_ns) and np.isfinite(q).all():
            width = s.line_width * (1.0 if namespace == 'estimated' else 1.6)
            self._canvas.draw(namespace, stamp_ns, self._outline.at(q), s.frame_id, width, colour, colour, opacity)

    def _is_due(self, namespace: str, stamp_ns: int) -> bool:
        return self._canvas.is_due(namespace, stamp_ns, self.settings.marker_rate)


main = LinkageNode.main

if __name__ == '__main__':
    main()
