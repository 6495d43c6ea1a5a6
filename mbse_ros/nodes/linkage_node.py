# SPDX-License-Identifier: Apache-2.0
"""Samples of a mechanism's sensors in; its state, forces, health and picture out, by any filter."""

from __future__ import annotations

import gc
import sys
from collections import deque
from dataclasses import fields

import numpy as np
from rclpy.parameter import Parameter
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState
from visualization_msgs.msg import MarkerArray

from ..bags.messages import checked_stamp
from ..dynamics.model import Model
from ..errors import SampleError, check_choice
from ..filters.filters import NEEDS, OF_MECHANISMS
from ..filters.linkage_settings import LinkageSettings
from ..settings import names_in
from ..streams.linkage import LinkageStage
from ..streams.records import LinkageEstimate, ObserverStatus, Sampled
from ..streams.start import encoded, moved_to
from .base.mechanism_node import MechanismNode, sooner
from .base.middleware import deep_input
from .base.node_settings import LinkageNodeSettings
from .messages.markers import ESTIMATED, GHOST, MEASURED, TRANSLUCENT, TRUE, Canvas, Colour
from .messages.outline import LETTER, Outline, mechanism_box
from .messages.wire import packed_joints

TURN = 5e-4         # s that the compiling thread may keep the interpreter from a sample; Python's own 5 ms is a period
TRUTHS = 20         # that wait for the estimate of their instant


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
        self._solids, self._box = self._outline.solids(model), mechanism_box(self._outline.at(model.start.q))
        self._joints = self.output(JointState, 'estimated/joint_states')
        self._markers = self.output(MarkerArray, 'markers')

    def make_stage(self, model: Model) -> LinkageStage:
        """The filter's stage, warmed up, and the filters to be ready."""
        sys.setswitchinterval(TURN)
        s = self.settings
        for name in names_in(s.prepared):
            check_choice('prepared', name, OF_MECHANISMS, NEEDS)
        stage = LinkageStage(model, self.tuning, names_in(s.sensors), s.step, s.backend)
        stage.prepare(*names_in(s.prepared))
        return stage

    def retune(self, tuning: LinkageSettings) -> str:
        """Give a new tuning, or another filter, to the stage; the state stays."""
        before = self.stage.estimator
        self.stage.configure(tuning, wait=not self.active)
        if self.stage.requested is not None:
            return (f'{tuning.estimator} is being compiled and follows when it is ready; until then {before} continues '
                    'as it was')
        self._log_change(before)
        return ''

    def connect(self) -> None:
        """Take samples from here on."""
        self._canvas = Canvas(self._markers, self._solids, LETTER * self._box.size, self._box.above)
        self._ghost = None
        self._truths: deque[tuple[int, np.ndarray]] = deque(maxlen=TRUTHS)
        self._kept: tuple[LinkageEstimate, Sampled | None] | None = None      # to be drawn
        super().connect()

    def tick(self) -> float | None:
        """Draw the age of the estimate where none comes any longer."""
        return sooner(super().tick(), self._canvas.look() if self.active else None)

    def on_truth(self, message: JointState) -> None:
        """True coordinates of a simulated mechanism: drawn as a ghost only, with the estimate of their instant."""
        values = dict(zip(message.name, message.position))
        q = np.array([values.get(name, np.nan) for name in self.machine.names])
        try:
            self._truths.append((checked_stamp('truth/joint_states', message), q))
        except SampleError as error:
            self.warnings('truth', f'message dropped: {error}')

    def take(self, stamp_ns: int, samples: dict[str, float]) -> None:
        """Samples to estimates, messages and pictures; the state goes first."""
        if (requested := self.stage.requested) is not None:
            self._activate(requested)
        for estimate in self.stage.add(stamp_ns, samples):
            self.publish_estimate(estimate)
            if estimate.status is not ObserverStatus.LOST and self._joints.get_subscription_count():
                self._joints.publish(self._all_coordinates(estimate))
            self._follow_viewers()
            if self._ghost is not None:
                self._show(estimate)

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

    def _activate(self, wanted: LinkageSettings) -> None:
        """Go over to a filter that was compiled in the background; where it cannot be used, the parameters go back."""
        before = self.stage.estimator
        try:
            if self.stage.activate():
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

    def _show(self, estimate: LinkageEstimate) -> None:
        """Draw an estimate once all samples of its instant have come: when the next instant begins."""
        if self._kept is not None and self._kept[0].sequence != estimate.sequence:
            kept, self._kept = self._kept, None
            self._draw(*kept)
        if self._kept is not None or self._canvas.is_due(ESTIMATED, estimate.stamp_ns, self.settings.marker_rate):
            self._kept = estimate, self.stage.sampled(estimate.sequence)

    def _draw(self, estimate: LinkageEstimate, sampled: Sampled | None) -> None:
        """The estimate, and the ghosts of its instant: of the encoders, where they measure all independent coordinates,
        and of the truth."""
        s, stamp, model = self.settings, estimate.stamp_ns, self.machine
        places = {} if sampled is None else encoded(model, self.stage.channels, sampled.values)
        if len(places) == len(model.z):
            self._draw_measured(MEASURED, moved_to(model, places), GHOST)
        true = (q for at, q in self._truths if 2 * abs(at - stamp) <= self.stage.step_ns)
        self._draw_measured('true', next(true, None), TRUE)
        if np.isfinite(estimate.q).all():
            self._canvas.estimate(stamp, self._solids.placed(self._outline.at(estimate.q)), s.frame_id,
                                  estimate.status, estimate.reason)
        else:
            self._canvas.unknown(stamp, s.frame_id, estimate.status, estimate.reason)

    def _draw_measured(self, namespace: str, q: np.ndarray | None, colour: Colour) -> None:
        if q is not None and np.isfinite(q).all():
            self._canvas.draw_measured(namespace, self._solids.placed(self._outline.at(q)), colour, TRANSLUCENT)

    def _disconnect(self) -> None:
        if self.active:
            self._canvas.clear()        # a reset shows nothing of before
        super()._disconnect()


main = LinkageNode.main

if __name__ == '__main__':
    main()
