# SPDX-License-Identifier: Apache-2.0
"""A simulation in real time: what the plants of machines and of mechanisms share."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Protocol

from rclpy.publisher import Publisher
from rosgraph_msgs.msg import Clock

from ...errors import DivergenceError
from ..messages.wire import message_class, packed, to_time
from .lifecycle import M, ManagedNode

BEHIND = 0.5        # s


class PlantInstant(Protocol):
    """One instant of a simulation."""

    @property
    def stamp_ns(self) -> int:
        """From its beginning."""


class Spread(Protocol):
    """What sensors send."""

    @property
    def topics(self) -> Mapping[str, str]:
        """Topics of the sensors and their types."""

    def spread(self, samples: Mapping[str, float]) -> dict[str, dict[str, Any]]:
        """Messages by topic as nested mappings, without headers."""


class RealTimePlant(ManagedNode[M]):
    """Publishes each frame when it is due; the next one is computed while there is time.

    A child gives `next_frame`, `samples` and `truth`, and in `connect` the length ``end_ns`` of the motion, None: it
    goes on. The motion begins at the first tick: until the executor runs, nothing could leave in time.
    """

    hurried = True
    speed = 1.0
    end_ns: int | None
    _origin_ns: int

    def offer(self, sources: Spread, truth: tuple[str, str], first: str, frame: str) -> None:
        """Publishers of sensors, the main output ``first``, and of the truth (topic, type); ``frame``: of headers."""
        self.sources, self._frame_id, self._truth_kind = sources, frame, truth[1]
        self._sensors = {topic: self.output(message_class(sources.topics[topic]), topic)
                         for topic in sorted(sources.topics, key=lambda topic: topic != first)}
        self._truth = self.output(message_class(truth[1]), truth[0])
        self._time = self.output(Clock, '/clock') if self.settings.publish_clock else None

    def connect(self) -> None:
        """Start again from the beginning."""
        self._outbox: list[tuple[Publisher, Any]] = []
        self._begin: float | None = None

    def tick(self) -> float | None:
        """Publish the frame that is due; seconds until the next one, 0 while it is late."""
        if not self.active:
            return None
        if self._begin is None:
            self._origin_ns, self._begin = time.time_ns(), time.monotonic()
            self.begin(self._origin_ns)
            self._prepare()
        if not self._outbox:
            return None
        left = self._left(self._begin)
        if left > 0.0:
            return left
        if left < -BEHIND:
            self.warnings('behind', f'{-left:.1f} s behind real time: this computer is too slow for the simulation')
        for publisher, message in self._outbox:
            publisher.publish(message)
        if self.end_ns is not None and self._due_ns >= self.end_ns:
            self._end(0)
        else:
            self._prepare()
        return max(0.0, self._left(self._begin)) if self._outbox else None

    def begin(self, stamp_ns: int) -> None:
        """Publish what is needed at the beginning of the motion."""

    def next_frame(self) -> PlantInstant:
        """Compute the next frame; raises DivergenceError."""
        raise NotImplementedError

    def samples(self, frame: Any) -> dict[str, float]:
        """Samples by channel."""
        raise NotImplementedError

    def truth(self, frame: Any) -> dict[str, Any]:
        """Fields of the message of the truth."""
        raise NotImplementedError

    def _left(self, begin: float) -> float:
        """Seconds until the prepared frame is due."""
        return begin + self._due_ns * 1e-9 / self.speed - time.monotonic()

    def _prepare(self) -> None:
        """Compute and serialize the next frame ahead of its time, so that it leaves at its stamp: the clock first, the
        truth last."""
        try:
            frame = self.next_frame()
        except DivergenceError as error:
            self.get_logger().fatal(f'the simulation has failed: {error}')
            return self._end(1)
        self._due_ns, stamp = frame.stamp_ns, self._origin_ns + frame.stamp_ns
        self._outbox = [(self._sensors[topic], packed(self.sources.topics[topic], stamp, self._frame_id, values))
                        for topic, values in self.sources.spread(self.samples(frame)).items()]
        if self._time is not None:
            self._outbox.insert(0, (self._time, Clock(clock=to_time(stamp))))
        if self._truth.get_subscription_count():
            self._outbox.append((self._truth, packed(self._truth_kind, stamp, self._frame_id, self.truth(frame))))

    def _end(self, status: int) -> None:
        self._outbox = []
        self.get_logger().info('the motion is over')
        if self.settings.exit_at_end or status:
            self.exit_status = status
