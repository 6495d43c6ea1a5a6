# SPDX-License-Identifier: Apache-2.0
"""Samples of a mechanism's sensors in; its state, forces, health and picture out, by any filter."""

from __future__ import annotations

import gc
import sys
from dataclasses import fields
from typing import NoReturn

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.parameter import Parameter
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState
from visualization_msgs.msg import Marker, MarkerArray

from mbse_ros.msg import LinkageState

from ..dynamics.model import Model
from ..errors import SettingError
from ..estimators.filters.filters import FILTERS
from ..settings import Settings
from ..streams.linkage import LinkageEstimate, LinkageStage
from ..streams.linkage.outline import Outline
from ..streams.linkage.sources import Sources
from ..streams.linkage.start import encoded, moved_to
from ._lifecycle import ManagedNode
from ._linkage_inputs import LinkageInputs
from ._linkage_messages import all_coordinates, diagnostics, linkage_markers
from ._linkage_state import StateWriter
from ._markers import GREEN, GREY, ORANGE
from ._mechanism import load_mechanism_model
from ._messages import to_ns
from ._qos import deep_input
from ._run import run
from ._status import StatusChange, log_status

PATIENCE = 5        # instants that a status must last to be told
TURN = 5e-4         # s that the compiling thread may keep the interpreter from a sample; Python's own 5 ms is a period


class LinkageNode(ManagedNode):
    """Runs the linkage stage over each message, by its stamp."""

    def __init__(self) -> None:
        super().__init__('linkage_node')

    def load(self) -> Model:
        """The mechanism's model."""
        return load_mechanism_model(self.settings, self.settings.free.split())

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
        self._written = StateWriter(self._frame, self.stage.channels)
        self._states = self.output(LinkageState, 'linkage_state')
        self._joints = self.output(JointState, 'estimated/joint_states')
        self._markers = self.output(MarkerArray, 'markers')
        self._diagnostics = self.output(DiagnosticArray, '/diagnostics')

    def retune(self, tuning: Settings) -> str:
        """Give a new tuning, or another filter, to the stage; the state stays."""
        before = self.stage.estimator
        self.stage.configure(tuning, wait=not self.active)
        if self.stage.ordered is not None:
            return (f'{tuning.estimator} is being compiled and follows when it is ready; until then {before} goes on '
                    'as it was')
        self._tell_change(before)
        return ''

    def connect(self) -> None:
        """Take samples from here on."""
        self.stage.reset()
        self._changed, self._drawn, self._told = StatusChange(PATIENCE), {}, None
        self._ghost: Subscription | None = None
        LinkageInputs(self, self.sources, self._take, deep_input(self.settings.sensor_reliability))
        self.get_logger().info(f'{self._frame}: {", ".join(self.stage.channels)}, estimator {self.stage.estimator}')

    def on_truth(self, message: JointState) -> None:
        """True coordinates of a simulated mechanism: drawn as a ghost only."""
        if not self._is_due('true', to_ns(message.header.stamp)):
            return
        values = dict(zip(message.name, message.position))
        q = np.array([values.get(name, np.nan) for name in self.machine.names])
        if np.isfinite(q).all():
            self._draw('true', to_ns(message.header.stamp), q, GREEN, 0.35)

    def _take(self, stamp_ns: int, samples: dict[str, float]) -> None:
        """Samples to estimates."""
        if self.stage.ordered is not None:
            self._take_up()
        for estimate in self.stage.add(stamp_ns, samples):
            self._tell(estimate)
        for refusal in self.stage.refusals():
            self.warnings(refusal.channel, f'sample dropped: {refusal}')
        if self._ghost is not None:
            self._draw_measured(stamp_ns, samples)

    def _take_up(self) -> None:
        """Go over to a filter that was compiled in the background; where it cannot be used, the parameters go back."""
        wanted, before = self.stage.ordered, self.stage.estimator
        try:
            if self.stage.take_up():
                gc.freeze()     # as after the start: what stays is not walked through again
                self._tell_change(before)
        except Exception as error:      # of CasADi, too: the running filter must not end by it
            used = self.stage.settings
            self.get_logger().error(f'{wanted.estimator} cannot be used: {error}; {before} goes on')
            self.set_parameters_atomically([
                Parameter(item.name, value=getattr(used, item.name)) for item in fields(used)
                if getattr(used, item.name) != getattr(wanted, item.name)])

    def _tell_change(self, before: str) -> None:
        if self.stage.estimator != before:
            self.get_logger().info(f'estimator {self.stage.estimator} instead of {before}')

    def _tell(self, estimate: LinkageEstimate) -> None:
        """The messages of one instant; the state goes first."""
        self._states.publish(self._written(estimate))
        if self._joints.get_subscription_count():
            self._joints.publish(all_coordinates(estimate, self._frame, self.machine.names))
        self._follow_viewers()
        if self._ghost is not None and np.isfinite(estimate.q).all():
            self._draw('estimated', estimate.stamp_ns, estimate.q, ORANGE, 1.0)
        if self._told is None or abs(estimate.stamp_ns - self._told) >= self.settings.health_period * 1e9:
            self._told = estimate.stamp_ns
            self._diagnostics.publish(diagnostics(estimate, self.stage.health(), self.get_name(), self.stage.dropped,
                                                  self._frame))
        if self._changed(estimate.status):
            log_status(self.get_logger(), estimate)

    def _follow_viewers(self) -> None:
        """Hear the truth of a simulated mechanism, which comes as often as samples, only while somebody looks."""
        watched = self._markers.get_subscription_count() > 0
        if watched and self._ghost is None:
            self._ghost = self.input(JointState, 'truth/joint_states', self.on_truth, deep_input('best_effort'))
        elif self._ghost is not None and not watched:
            self.leave(self._ghost)
            self._ghost = None

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
        if not self._is_due(namespace, stamp_ns):
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
    sys.setswitchinterval(TURN)
    run(LinkageNode, args)


if __name__ == '__main__':
    main()
