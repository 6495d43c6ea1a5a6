# SPDX-License-Identifier: Apache-2.0
"""Quality of service of the topics, and what is published although the middleware is busy.

Fast DDS gives a call 100 ms for its locks and its history. On a computer that is too busy this is too short now and
then, and rclpy raises an RCLError: the node would end, and begin again without what it knew. So a message that is not
taken at once is published again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from rclpy.duration import Duration
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

# Between the nodes nothing may get lost: ten seconds at 100 Hz are kept for a reader that is slow for a moment.
OUTPUT = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE)
LATEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
# The last one is kept for those who come later.
LASTING = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)

TF = QoSProfile(depth=100, reliability=ReliabilityPolicy.RELIABLE)        # as tf2_ros has it
PATIENCE = 5.0      # s
PAUSE = 0.01        # s between two attempts
FAREWELL = 2.0      # s


def sensor_input(reliability: str) -> QoSProfile:
    """Subscription to sensors: 'best_effort' matches every publisher, 'reliable' only reliable ones."""
    policy = {'best_effort': ReliabilityPolicy.BEST_EFFORT, 'reliable': ReliabilityPolicy.RELIABLE}[reliability]
    return QoSProfile(depth=100 if reliability == 'best_effort' else 200, reliability=policy)


def deep_input(reliability: str) -> QoSProfile:
    """The same for a node that may get no turn for seconds (a filter is compiled, other programs have the processor):
    what comes meanwhile waits."""
    profile = sensor_input(reliability)
    profile.depth = 4000
    return profile


def attempt(call: Callable[[], Any], patience: float = PATIENCE) -> tuple[Any, float]:
    """Result of a call, which is tried again for up to ``patience``, s, and how long it was refused, s; after that its
    last RCLError."""
    begin = None
    while True:
        try:
            return call(), 0.0 if begin is None else time.monotonic() - begin
        except rclpy_implementation.RCLError:
            begin = time.monotonic() if begin is None else begin
            if time.monotonic() - begin > patience:
                raise
        time.sleep(PAUSE)


def farewell(publishers: Iterable[Publisher], patience: float = FAREWELL) -> bool:
    """Whether all that was published has arrived at its reliable readers, within ``patience``, s, in all: what got lost
    on the way nobody can send again once the process has ended."""
    end, arrived = time.monotonic() + patience, True
    for publisher in publishers:
        try:
            arrived &= publisher.wait_for_all_acked(Duration(seconds=max(0.0, end - time.monotonic())))
        except rclpy_implementation.RCLError:       # not every middleware can say it
            return False
    return arrived


def persistent(publisher: Publisher, warning: Callable[[str], object], patience: float = PATIENCE) -> Publisher:
    """The publisher, whose ``publish`` tries again; ``warning`` gets a line each time that this has helped."""
    publish = publisher.publish

    def publish_again(message: Any) -> None:
        _, refused = attempt(lambda: publish(message), patience)
        if refused:
            warning(f'{publisher.topic_name}: the middleware was busy: published {refused:.2f} s later')

    publisher.publish = publish_again
    return publisher
