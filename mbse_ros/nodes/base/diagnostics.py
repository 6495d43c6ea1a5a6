# SPDX-License-Identifier: Apache-2.0
"""The status of a node: as diagnostics at each change, else once in a while by the stamps; its changes in the log.

Once a second how its process is: other publishers on its topics, and how old its results are when they leave it.

Of what comes a hundred times a second the log has the first line, then one in a while with their number, or none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from enum import IntEnum
from math import ceil
from time import time_ns
from typing import Any, NamedTuple

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock, ClockType
from rclpy.impl.rcutils_logger import RcutilsLogger
from rclpy.node import Node
from rclpy.publisher import Publisher

from ...errors import shown
from ...streams.records import LinkageEstimate, ObserverStatus, PayloadEstimate, StateEstimate
from ..messages.wire import header
from .middleware import OUTPUT

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
LEVELS: dict[IntEnum, bytes] = {ObserverStatus.OK: OK, ObserverStatus.STARTING: OK, ObserverStatus.COASTING: WARN,
                                ObserverStatus.LOST: ERROR}
Values = Mapping[str, object]
PERIOD = 1.0        # s
SHARED = ('/diagnostics', '/markers', '/tf')      # ends of the names of topics on which several nodes may speak
PATIENCE = 2        # looks in a row: a node that is started again may meet itself for a moment
CAUSE = 'another graph runs here, or a node that was killed has not timed out'
MOST = 4000         # results that are looked at, of one period of the diagnostics
SHARE = 0.99
KINDS = 1000     # remembered at most: names in messages may be anything
NEAR = 0.75      # likeness of names from which one is taken for a slip of the pen
LONG = 60        # characters of a name that are looked at
SLIPS = 32       # reported at most


class Report(NamedTuple):
    """A status that is not an estimate's."""

    stamp_ns: int
    status: IntEnum
    reason: str


Estimate = LinkageEstimate | PayloadEstimate | StateEstimate | Report


def diagnostic_array(stamp_ns: int, level: bytes, node: str, hardware: str, message: str,
                     values: Values) -> DiagnosticArray:
    """The status of one node about one machine."""
    status = DiagnosticStatus(level=level, name=f'{node}: {hardware}', hardware_id=hardware, message=message,
                              values=[KeyValue(key=key, value=str(value)) for key, value in values.items()])
    return DiagnosticArray(header=header(stamp_ns, ''), status=[status])


def status_text(status: IntEnum, reason: str) -> str:
    """A status and why."""
    return f'{status.name}: {reason}' if reason else status.name


def log_status(logger: RcutilsLogger, estimate: Estimate) -> None:
    """A line about the status of an estimate, and why."""
    text = status_text(estimate.status, estimate.reason)
    if estimate.status <= ObserverStatus.STARTING:
        logger.info(text)
    else:       # a line of its own: rclpy refuses two severities from one
        logger.warning(text)


class StatusChange:
    """Finds the changes of a status; one seen less than ``patience`` times in a row is passed over."""

    def __init__(self, patience: int) -> None:
        self._patience, self._count = patience, 0
        self._reported: IntEnum | None = None
        self._new: IntEnum | None = None

    def __call__(self, status: IntEnum) -> bool:
        """Whether this status is a change to report now."""
        self._count = self._count + 1 if status == self._new else 1
        self._new = status
        if status == self._reported or self._count < self._patience:
            return False
        self._reported = status
        return True


class Diagnostics:
    """Publishes the status of ``node`` about ``hardware``, a machine's name, each ``period``, s of the stamps."""

    def __init__(self, publisher: Publisher, node: str, hardware: str, patience: int, period: float = 1.0) -> None:
        self._publisher, self._node, self._hardware = publisher, node, hardware
        self._changed, self._period_ns = StatusChange(patience), period * 1e9
        self._last: int | None = None

    def __call__(self, estimate: Estimate, level: bytes, values: Callable[[], Values]) -> bool:
        """Publish where the status has changed or it is due; returns whether it has changed. ``values`` is called only
        where it is published. See `StatusChange` for ``patience``."""
        changed, stamp_ns = self._changed(estimate.status), estimate.stamp_ns
        if changed or self._last is None or abs(stamp_ns - self._last) >= self._period_ns:
            self._last = stamp_ns
            self._publisher.publish(diagnostic_array(stamp_ns, level, self._node, self._hardware,
                                                     status_text(estimate.status, estimate.reason), values()))
        return changed


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


def clock_ns(node: Any) -> Callable[[], int]:
    """The time, ns, that stamps are compared with: of the wall, that of /clock with the parameter use_sim_time."""
    clock = node.get_clock()
    return (lambda: clock.now().nanoseconds) if node.get_parameter('use_sim_time').value else time_ns


class Latency:
    """Collects ages of results between two looks of the diagnostics."""

    def __init__(self) -> None:
        self._ages: list[float] = []
        self._last: tuple[float, float] | None = None      # median and 99 %, s

    def take(self, age: float) -> None:
        """A result that leaves ``age``, s, after the stamp of its newest sample."""
        if len(self._ages) < MOST:
            self._ages.append(age)

    def warning(self, budget: float) -> str:
        """What is wrong with the ages since the last look, '' where nothing; ``budget``, s, 0: none."""
        ages, self._ages = sorted(self._ages), []
        self._last = (ages[len(ages) // 2], ages[ceil(SHARE * len(ages)) - 1]) if ages else None
        if self._last is None or not budget or self._last[1] <= budget:
            return ''
        return (f'late: results are up to {1e3 * self._last[1]:.1f} ms old (99 %), beyond latency_budget, '
                f'{1e3 * budget:g} ms')

    def values(self) -> dict[str, object]:
        """Numbers of the diagnostics, of the ages up to the last look."""
        if self._last is None:
            return {}
        return {'latency, median': f'{1e3 * self._last[0]:.1f} ms', 'latency, 99 %': f'{1e3 * self._last[1]:.1f} ms'}


class Warnings:
    """Counts warnings by kind; ``total`` is the number of all of them."""

    def __init__(self, write: Callable[[str], object], period: float = 5.0,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.total = 0
        self._write, self._period, self._clock = write, period, clock
        self._held: dict[str, tuple[float, int]] = {}

    def __call__(self, kind: str, text: str) -> None:
        """Write the first of a kind at once, later ones at most once a period (s), with how many were held back."""
        self.total += 1
        now = self._clock()
        last, held = self._held.get(kind, (-float('inf'), 0))
        if now - last < self._period:
            self._held[kind] = (last, held + 1)
            return
        if len(self._held) >= KINDS:
            self._held.clear()
        self._write(f'{text} ({held} more like this since the last line)' if held else text)
        self._held[kind] = (now, 0)


class Strangers:
    """Names in messages that no sensor has, each looked at once: other people's robots have more joints than ours.

    ``warn`` gets a line about each that nearly is one of the ``known``, ``tell`` one about the first other of a topic.
    """

    def __init__(self, known: Iterable[str], warn: Callable[[str], object], tell: Callable[[str], object]) -> None:
        self._known = {name.casefold(): name for name in known}
        self._warn, self._tell = warn, tell
        self._seen: set[tuple[str, str]] = set()
        self._reported: set[str] = set()
        self._slips = 0

    def __call__(self, topic: str, name: str) -> None:
        """A name in a message of a topic."""
        name = name[:LONG]
        if (topic, name) in self._seen or len(self._seen) >= KINDS:
            return
        self._seen.add((topic, name))
        near = get_close_matches(name.casefold(), list(self._known), 1, NEAR)
        if near and self._slips < SLIPS:
            self._slips += 1
            self._warn(f'{topic}: {shown(name)} is not a sensor or valve of the machine; did you mean '
                       f'{self._known[near[0]]}?')
        elif not near and topic not in self._reported:
            self._reported.add(topic)
            self._tell(f'{topic}: {shown(name)} is passed over, as all names that no sensor or valve of the machine '
                       'has')
