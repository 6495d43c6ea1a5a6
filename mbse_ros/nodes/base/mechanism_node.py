# SPDX-License-Identifier: Apache-2.0
"""Samples of a mechanism's sensors through a stage to estimates: what filter and smoother share."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from diagnostic_msgs.msg import DiagnosticArray

from mbse_ros.msg import LinkageState

from ...bags.messages import checked_stamp
from ...bags.sensor_topics import FLOAT64, Sources
from ...dynamics.model import Model
from ...errors import SampleError
from ...streams.linkage.lagged import LaggedStage
from ...streams.linkage.stage import LinkageStage
from ...streams.records import LinkageEstimate
from ..inputs.waiting import Waiting
from ..messages.wire import message_class, packed_estimate, unpacked
from .diagnostics import LEVELS, Diagnostics, clock_ns, log_status
from .lifecycle import ManagedNode
from .node_settings import MechanismSensorSettings
from .qos import deep_input

PATIENCE = 5        # instants that a status must last to be reported


class Taken(NamedTuple):
    """Samples of one instant by channel, SI."""

    stamp_ns: int
    samples: dict[str, float]


class MechanismNode(ManagedNode[Model]):
    """Reads the sensors and publishes estimates on the topic ``sends``; a child gives `make_stage` and `take`."""

    forgets = 'the state is forgotten; the next sample starts it'
    sends: str
    settings: MechanismSensorSettings
    stage: LinkageStage | LaggedStage

    def build(self, model: Model) -> None:
        """Compile the stage of the mechanism."""
        self.stage = self.make_stage(model)
        self.sources = Sources(model.description, self.stage.channels, model.inputs, self.settings.unstamped.split())
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
        self._waiting: Waiting[Taken] = Waiting()
        for topic, kind in self.sources.topics.items():
            subscription = self.input(message_class(kind), topic, partial(self.on_message, topic), qos, raw=True)
            self._waiting.add(topic, subscription, partial(self._read, topic))
        self.get_logger().info(f'{self.frame}: {", ".join(self.stage.channels)}')

    def on_message(self, topic: str, cdr: bytes) -> None:
        """Samples of one topic, and of all others that wait: one after the other, each would correct the states since
        its instant."""
        for stamp, samples in self._waiting.items(topic, cdr):
            self.take(stamp, samples)
            for refusal in self.stage.refusals():
                self.warnings(refusal.channel, f'sample dropped: {refusal}')

    def _read(self, topic: str, cdr: bytes) -> list[Taken]:
        """Samples of a message, none of one that cannot be used."""
        kind = self.sources.topics[topic]
        try:
            message = unpacked(topic, kind, cdr)
            # A value without a stamp: now.
            stamp = self.get_clock().now().nanoseconds if kind == FLOAT64 else checked_stamp(topic, message)
            return [Taken(stamp, self.sources.samples(topic, message))]
        except (SampleError, ValueError) as error:
            self.warnings('unreadable', f'message dropped: {error}')
            return []

    def publish_estimate(self, estimate: LinkageEstimate) -> None:
        """Publish an estimate, its status and the node's health."""
        if estimate.restart and self._told_ns is not None:
            ahead = (estimate.stamp_ns - self._told_ns) * 1e-9
            side = 'after' if ahead > 0.0 else 'before'
            self.warnings('restart', f'started again, {abs(ahead):.3f} s {side} the last estimate')
        self._told_ns = estimate.stamp_ns
        self.latency.take((self._now() - estimate.stamp_ns) * 1e-9)
        self._states.publish(packed_estimate(estimate, self.frame, self.stage.channels, self.fingerprint))
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
        return {f'dropped, {reason}': count for reason, count in self.stage.dropped.items()}
