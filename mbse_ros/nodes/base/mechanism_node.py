# SPDX-License-Identifier: Apache-2.0
"""Samples of a mechanism's sensors through a stage to estimates: what filter and smoother share."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray

from mbse_ros.msg import LinkageState

from ...bags.channel_samples import InstantSamples, by_stamp
from ...bags.messages import linkage_message, serialized
from ...dynamics.model import Model
from ...errors import SampleError
from ...settings import names_in
from ...sources.machine import own_sources, unused_variances
from ...sources.map import ChannelSource
from ...sources.topic_samples import OwnTopicSamples
from ...streams.lagged import LaggedStage
from ...streams.linkage import LinkageStage
from ...streams.records import LinkageEstimate
from ..messages.wire import message_class
from .diagnostics import LEVELS, Diagnostics, clock_ns, log_status
from .foreign_inputs import ForeignInputs, node_sources
from .lifecycle import ManagedNode
from .middleware import Waiting, deep_input
from .node_settings import MechanismSensorSettings

PATIENCE = 5        # instants that a status must last to be reported
SILENCE = 3.0       # s after which a topic of a map that is not there is reported


class MechanismNode(ManagedNode[Model]):
    """Reads the sensors and publishes estimates on the topic ``sends``; a child gives `make_stage` and `take`."""

    forgets = 'the state is forgotten; the next sample starts it'
    sends: str
    settings: MechanismSensorSettings
    stage: LinkageStage | LaggedStage

    def build(self, model: Model) -> None:
        """Compile the stage of the mechanism."""
        self.stage = self.make_stage(model)
        s, channels = self.settings, self.stage.channels
        self.sources = node_sources(s.sources, model, channels)
        own: dict[str, list[ChannelSource]] = {}
        for source in own_sources(self.sources, model, channels, names_in(s.unstamped)):
            own.setdefault(source.topic, []).append(source)
        self._own = {topic: OwnTopicSamples(topic, group) for topic, group in own.items()}
        self.frame = model.description.name
        self._states = self.output(LinkageState, self.sends)
        self._diagnosed = self.output(DiagnosticArray, '/diagnostics')

    def connect(self) -> None:
        """Take samples from here on."""
        self.stage.reset()
        self._told_ns: int | None = None
        self._now = clock_ns(self)
        self._diagnose = Diagnostics(self._diagnosed, self.get_name(), self.frame, PATIENCE,
                                     self.settings.health_period)
        qos = deep_input(self.settings.sensor_reliability)
        self._waiting: Waiting[InstantSamples] = Waiting()
        self._foreign = ForeignInputs(self, self.sources, self._waiting, qos, self.on_message, pack=by_stamp)
        self._patience = time.monotonic() + SILENCE
        for line in unused_variances(self.sources):
            self.warnings('variance', line)
        for topic, samples in self._own.items():
            kind, callback = message_class(samples.msgtype), partial(self.on_message, topic)
            self._waiting.add(topic, self.input(kind, topic, callback, qos, raw=True), partial(self._read, samples))
        self.get_logger().info(f'{self.frame}: {", ".join(self.stage.channels)}')

    def tick(self) -> float | None:
        """Look for topics of the map that are not there yet; seconds until the next time, None: only messages count."""
        wait = self._foreign.look() if self.active else None
        if wait is not None and time.monotonic() > self._patience and (missing := self._foreign.missing()):
            self.warnings('sources', missing)
        return wait

    def on_message(self, topic: str, message: Any) -> None:
        """Samples of one topic, and of all others that wait: one after the other, each would correct the states since
        its instant."""
        for stamp, samples in self._waiting.items(topic, message):
            self.take(stamp, samples)
            for refusal in self.stage.refusals():
                self.warnings(refusal.channel, f'sample dropped: {refusal}')

    def _read(self, samples: OwnTopicSamples, cdr: bytes) -> list[InstantSamples]:
        """Samples of serialized bytes on one of the package's own topics, none of what cannot be used; of a value
        without a stamp the time is now."""
        try:
            return by_stamp(samples.serialized(cdr, self.get_clock().now().nanoseconds, self._refuse))
        except SampleError as error:
            self._refuse(error)
            return []

    def _refuse(self, error: SampleError) -> None:
        self.warnings('unreadable', f'message dropped: {error}')

    def publish_estimate(self, estimate: LinkageEstimate) -> None:
        """Publish an estimate, its status and the node's health."""
        if estimate.restart and self._told_ns is not None:
            ahead = (estimate.stamp_ns - self._told_ns) * 1e-9
            side = 'after' if ahead > 0.0 else 'before'
            self.warnings('restart', f'started again, {abs(ahead):.3f} s {side} the last estimate')
        self._told_ns = estimate.stamp_ns
        self.latency.take((self._now() - estimate.stamp_ns) * 1e-9)
        self._states.publish(serialized(*linkage_message(estimate, self.frame, self.stage.channels, self.fingerprint)))
        if self._diagnose(estimate, LEVELS[estimate.status], lambda: self.values(estimate)):
            log_status(self.get_logger(), estimate)

    def make_stage(self, model: Model) -> LinkageStage | LaggedStage:
        """The stage, warmed up."""
        raise NotImplementedError

    def take(self, stamp_ns: int, samples: dict[str, float]) -> None:
        """Samples of one instant by channel, SI."""
        raise NotImplementedError

    def values(self, estimate: LinkageEstimate) -> dict[str, object]:
        """Numbers of the diagnostics."""
        return {**{f'dropped, {reason}': count for reason, count in self.stage.dropped.items()},
                **{f'left out, {reason}': count for reason, count in self._foreign.left_out.items()}}


def sooner(*waits: float | None) -> float | None:
    """The shortest of some times, s; None where all are."""
    return min((wait for wait in waits if wait is not None), default=None)
