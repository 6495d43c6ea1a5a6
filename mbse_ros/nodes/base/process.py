# SPDX-License-Identifier: Apache-2.0
"""How the process of a node is, once a second, in its diagnostics: other publishers on its topics, its numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.clock import Clock, ClockType
from rclpy.node import Node

from .diagnostics import OK, WARN, diagnostic_array
from .qos import OUTPUT

PERIOD = 1.0        # s
SHARED = ('/diagnostics', '/markers', '/tf')      # ends of the names of topics on which several nodes may speak
PATIENCE = 2        # looks in a row: a node that is started again may meet itself for a moment
CAUSE = 'another graph runs here, or a node that was killed has not timed out'


class ProcessStatus:
    """Watches the graph round a node; ``topics()`` are those on which one publisher alone may speak, by full name.

    ``trouble()``: level and text of what else is wrong, (OK, '') where nothing is; the node logs it.
    """

    def __init__(self, node: Node, topics: Callable[[], Iterable[str]], hardware: Callable[[], str],
                 values: Callable[[], Mapping[str, object]],
                 trouble: Callable[[], tuple[bytes, str]] = lambda: (OK, '')) -> None:
        self._node, self._topics, self._hardware, self._values = node, topics, hardware, values
        self._trouble = trouble
        self._publisher = node.create_publisher(DiagnosticArray, '/diagnostics', OUTPUT)
        # By the steady clock: with use_sim_time the other one may stand still.
        self._timer = node.create_timer(PERIOD, self.report, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self._seen: dict[str, int] = {}
        self._reported = ''

    def report(self) -> None:
        """Look, publish the status, and log where it has changed."""
        counts = {topic: self._node.count_publishers(topic) for topic in sorted(set(self._topics()))}
        self._seen = {topic: self._seen.get(topic, 0) + 1 for topic, count in counts.items() if count > 1}
        doubled = [f'{counts[topic]} publishers of {topic}' for topic, seen in self._seen.items() if seen >= PATIENCE]
        text = f'{", ".join(doubled)}: {CAUSE}' if doubled else ''
        if text and text != self._reported:
            self._node.get_logger().warning(text)
        elif self._reported and not text:
            self._node.get_logger().info('one publisher of each topic again')
        self._reported = text
        level, trouble = self._trouble()
        self._publisher.publish(diagnostic_array(
            self._node.get_clock().now().nanoseconds, max(level, WARN if text else OK),
            f'{self._node.get_name()} process', self._hardware(), '; '.join(filter(None, (trouble, text))) or 'OK',
            self._values()))
