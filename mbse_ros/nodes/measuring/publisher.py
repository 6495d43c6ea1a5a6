# SPDX-License-Identifier: Apache-2.0
"""Publishes serialized messages at a rate, a set of them each time, stamped with the instant at which they are due.

    python -m mbse_ros.nodes.measuring.publisher FILE RATE WARM_UP READY...

FILE (.npz) has for each topic and type, as `topic type`, an array of bytes (sets, size of a message that begins with a
header). READY are topics that must have a publisher and a subscriber before the first set goes out. What it says are
lines of JSON: ``begin_ns``, the stamp of the first set; at the end, of the sets after WARM_UP of them, how many were
``due``, how many were ``sent`` by the instant at which the next one would have been due, and how ``late_ms`` they were.

``Arrivals`` hears, elsewhere, when the messages of a topic come, by their stamps.
"""

from __future__ import annotations

import gc
import json
import os
import struct
import sys
import time
from collections.abc import Sequence

import numpy as np
import rclpy
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import remove_ros_args

from ..base.middleware import OUTPUT, Participant, farewell
from ..messages.wire import SECOND, message_class, stamp_of

LOOK = 0.02         # s between two looks at the readers
SETTLE = 0.5        # s after they are there: the other side learns of the match a moment later
SOON = 0.05         # s until the first set
GIVE_UP = 5.0       # s behind: it will not get better
STAMP = slice(4, 12)
_Set = list[tuple[Publisher, bytes, bytes]]     # bytes before the stamp, bytes behind it


def main() -> None:
    """Wait for the readers, publish, say what came of it."""
    file, rate, warm_up, *ready = remove_ros_args(sys.argv)[1:]
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = Node('publisher')
    with np.load(file) as arrays:
        inputs = {name: arrays[name] for name in arrays.files}
    publishers = [node.create_publisher(message_class(name.split()[1]), name.split()[0], OUTPUT) for name in inputs]
    sets = [[(publisher, cdr[:STAMP.start], cdr[STAMP.stop:]) for publisher, cdr in zip(publishers, row)]
            for row in zip(*([line.tobytes() for line in array] for array in inputs.values()))]
    while not (all(publisher.get_subscription_count() for publisher in publishers)
               and all(node.count_publishers(topic) and node.count_subscribers(topic) for topic in ready)):
        time.sleep(LOOK)
    time.sleep(SETTLE)
    gc.collect()
    gc.disable()
    print(json.dumps(published(sets, float(rate), int(warm_up))), flush=True)
    farewell(publishers)
    sys.stdout.flush()
    os._exit(0)     # as in _run: the end of the interpreter may hang in the middleware


def published(sets: Sequence[_Set], rate: float, warm_up: int) -> dict[str, float]:
    """Publish them; what came of it."""
    period = round(SECOND / rate)
    origin_ns, begin = time.time_ns() + round(SOON * SECOND), time.monotonic_ns() + round(SOON * SECOND)
    print(json.dumps({'begin_ns': origin_ns}), flush=True)
    pack, clock, sleep, late = struct.Struct('<iI').pack, time.monotonic_ns, time.sleep, []
    due, end = begin, begin + period * len(sets)
    for number, messages in enumerate(sets):
        left = due - clock()
        if left > 0:
            sleep(left * 1e-9)
        stamp = pack(*divmod(origin_ns + number * period, SECOND))
        for publisher, head, tail in messages:
            publisher.publish(head + stamp + tail)
        now = clock()
        late.append((now - due, now < end))
        if now - due > GIVE_UP * SECOND:
            break
        due += period
    measured = late[warm_up:]
    behind = np.array([wait for wait, _ in measured] or [0]) * 1e-6
    return {'due': len(sets) - warm_up, 'sent': sum(in_time for _, in_time in measured),
            'late_ms': float(np.percentile(behind, 99))}


class Arrivals(Participant):
    """Hears a topic of a namespace, reliably: ``found`` has the instant of each arrival, ns, by the stamp, ns."""

    def __init__(self, topic: str, kind: str, namespace: str) -> None:
        super().__init__('arrivals', namespace)
        self.found: dict[int, int] = {}
        self.create_subscription(message_class(kind), topic, self._on_message, QoSProfile(depth=5000), raw=True)

    def _on_message(self, cdr: bytes) -> None:
        self.found.setdefault(stamp_of(cdr), time.time_ns())


if __name__ == '__main__':
    main()
