# SPDX-License-Identifier: Apache-2.0
"""Plays a bag: the same bytes on the same topics, with /clock, at any speed, in a loop, with a pause."""

from __future__ import annotations

import time

from rclpy.exceptions import NameValidationException
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from std_srvs.srv import SetBool

from ..bags.bag import Bag
from ..bags.messages import LAST_NS
from ..bags.play import Playback
from ..errors import MbseError, SettingError, shown
from ..settings import names_in
from .base.diagnostics import SHARED, ProcessStatus
from .base.middleware import OUTPUT
from .base.node_settings import ReplaySettings, ReplayTuning
from .base.parameters import declare_entry, on_change
from .base.run import Runnable, one_line
from .messages.wire import message_class, to_time

CLOCK_STEP = 1_000_000      # ns between two messages on /clock
AT_ONCE = 100               # messages before services and signals have their turn


class ReplayNode(Runnable, Node):       # type: ignore[misc]
    """Publishes what is due by a clock of its own, which runs ``rate`` times as fast and stops for ~/pause."""

    settings: ReplaySettings
    _tuning: ReplayTuning
    _then: float | None

    def __init__(self) -> None:
        Node.__init__(self, 'replay_node')
        (self.settings,), self._tuning = declare_entry(self, 'replay_node')
        on_change(self, lambda: self._tuning, self._retune)
        if not self.settings.bag:
            raise SettingError('bag', '', 'the folder of a bag')
        playback = Playback(self.settings.bag, loop=self.settings.loop, names=names_in(self.settings.topics) or None)
        for warning in playback.warnings:
            self.get_logger().warning(warning)
        self._outputs = {topic: publisher for topic, kind in playback.topics.items()
                         if (publisher := self._publisher(playback.bag, topic, kind)) is not None}
        self._clock_publisher = self.create_publisher(Clock, '/clock', OUTPUT) if self.settings.publish_clock else None
        self._messages, self._count = iter(playback), 0
        self._next = next(self._messages, None)
        self._position, self._then, self._paused, self._over = 0.0, None, self.settings.paused, False
        self._clock_ns = -CLOCK_STEP
        self._wait_until: float | None = time.monotonic() + self.settings.wait_time
        self.create_service(SetBool, '~/pause', self.on_pause)
        self.process_status = ProcessStatus(self, self._own_topics, str, lambda: {
            'bag': self.settings.bag, 'messages': self._count, 'paused': self._paused})

    def tick(self) -> float | None:
        """Publish the messages that are due; seconds until the next one."""
        if self._over or self._paused or not self._ready():
            return None
        now = time.monotonic()
        self._position += 0.0 if self._then is None else (now - self._then) * self._tuning.rate
        self._then = now
        for _ in range(AT_ONCE):
            if self._next is None or self._next[0] > self._position:
                break
            self._publish(*self._next[1:])
            self._next = next(self._messages, None)
        if self._next is None:
            self._end()
            return None
        return max(0.0, (self._next[0] - self._position) / self._tuning.rate)

    def on_pause(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        """True: stop the clock; false: go on."""
        self.tick()
        self._paused, self._then = request.data, None
        response.success, response.message = True, 'paused' if request.data else 'playing'
        return response

    def _publish(self, stamp_ns: int, topic: str, cdr: bytes) -> None:
        known = abs(stamp_ns) <= LAST_NS        # no message holds another
        if self._clock_publisher is not None and known and abs(stamp_ns - self._clock_ns) >= CLOCK_STEP:
            self._clock_ns = stamp_ns
            self._clock_publisher.publish(Clock(clock=to_time(stamp_ns)))
        if topic in self._outputs:
            self._outputs[topic].publish(bytes(cdr))
            self._count += 1

    def _publisher(self, bag: Bag, topic: str, kind: str) -> Publisher | None:
        try:
            bag.check_type(kind)
            return self.create_publisher(message_class(kind), topic, OUTPUT)
        except (MbseError, NameValidationException) as error:
            self.get_logger().warning(f'{shown(topic)} is not played: {one_line(error)}')
            return None

    def _ready(self) -> bool:
        """Whether the subscribers that were asked for are there, or the time to wait for them is over."""
        if self._wait_until is None:
            return True
        late = [topic for topic, publisher in self._outputs.items() if '/sensors/' in f'/{topic}'
                and publisher.get_subscription_count() < self.settings.wait_subscribers]
        if late and time.monotonic() < self._wait_until:
            return False
        if late:
            self.get_logger().warning(f'too few subscribers on {", ".join(late)}')
        self._wait_until = None
        self._warn_of_losses()
        return True

    def _warn_of_losses(self) -> None:
        """A line where the bag is played faster than it was recorded to those who do not ask for what gets lost: the
        middleware does not tell them either."""
        if self._tuning.rate <= 1.0:
            return
        hasty = sorted({info.node_name for topic in self._outputs for info in self.get_subscriptions_info_by_topic(
            self._outputs[topic].topic_name) if info.qos_profile.reliability == ReliabilityPolicy.BEST_EFFORT})
        if hasty:
            self.get_logger().warning(
                f'played {self._tuning.rate:g} times as fast: {", ".join(hasty)} may miss messages '
                '(interpolation_node counts them); sensor_reliability:=reliable asks for what gets lost')

    def _own_topics(self) -> list[str]:
        return [publisher.topic_name for publisher in self._outputs.values()
                if not publisher.topic_name.endswith(SHARED)]

    def _retune(self, tuning: ReplayTuning) -> None:
        self.tick()
        self._tuning = tuning
        self._warn_of_losses()

    def _end(self) -> None:
        self._over = True
        self.get_logger().info(f'end of the bag: {self._count} messages played')
        if self.settings.exit_at_end:
            self.exit_status = 0


main = ReplayNode.main


if __name__ == '__main__':
    main()
