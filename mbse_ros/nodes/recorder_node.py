# SPDX-License-Identifier: Apache-2.0
"""Writes topics into a bag, as they come over the wire."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from rclpy.node import Node

from ..bags.topics import FLUID_PRESSURE, IMU, JOINT_STATE
from ..bags.writer import BagWriter
from ..errors import SampleError, SettingError
from ..machine import load_machine
from ._messages import message_class, stamp_of
from ._parameters import declare_entry
from ._process import ProcessStatus
from ._qos import OUTPUT, deep_input
from ._run import Runnable
from ._waiting import Waiting
from .graph import machine_topics
from .settings import RecorderSettings

SENSORS = (JOINT_STATE, FLUID_PRESSURE, IMU)


class Record(NamedTuple):
    """A serialized message with a header."""

    stamp_ns: int
    topic: str
    kind: str
    cdr: bytes


class RecorderNode(Runnable, Node):
    """Subscribes without unpacking; the bag is complete once the process has ended on SIGINT or SIGTERM."""

    def __init__(self) -> None:
        Node.__init__(self, 'recorder_node')
        (s,), _ = declare_entry(self, 'recorder_node')
        self._writer, self._counts = BagWriter(s.bag, s.storage), {}
        self._waiting = Waiting()
        for topic, kind in reversed(wanted_topics(s).items()):      # positions last: they are what a plant waits for
            self._listen(topic, kind, s.sensor_reliability)
        self.get_logger().info(f'recording {len(self._counts)} topics into {s.bag}')
        self.process_status = ProcessStatus(self, tuple, lambda: s.machine, lambda: {
            'bag': s.bag, 'messages': sum(self._counts.values())})

    def on_message(self, topic: str, kind: str, cdr: bytes) -> None:
        """One serialized message, stamped with the time it came in."""
        self._writer.write_cdr(topic, kind, self.get_clock().now().nanoseconds, cdr)
        self._counts[topic] += 1

    def on_sensor(self, topic: str, cdr: bytes) -> None:
        """The same of a sensor, and of all sensors that wait, by their stamps: a bag is estimated in its order."""
        for record in self._waiting.items(topic, cdr):
            self.on_message(record.topic, record.kind, record.cdr)

    def _stamp(self, cdr: bytes) -> int:
        """Stamp of a message, now where it has none: whatever comes is recorded."""
        try:
            return stamp_of(cdr)
        except SampleError:
            return self.get_clock().now().nanoseconds

    def _listen(self, topic: str, kind: str, reliability: str) -> None:
        name, sensor = self.resolve_topic_name(topic), topic.startswith('sensors/') and kind in SENSORS
        callback = partial(self.on_sensor, name) if sensor else partial(self.on_message, name, kind)
        qos = deep_input(reliability) if topic.startswith('sensors/') else OUTPUT
        subscription = self.create_subscription(message_class(kind), topic, callback, qos, raw=True)
        self._counts[name] = 0
        if sensor:
            self._waiting.add(name, subscription, lambda cdr: [Record(self._stamp(cdr), name, kind, cdr)])

    def finish(self) -> None:
        """Complete the bag."""
        self._writer.close()
        silent = [topic for topic, count in self._counts.items() if not count]
        self.get_logger().info(f'{sum(self._counts.values())} messages recorded'
                               + (f'; none on {", ".join(silent)}' if silent else ''))


def wanted_topics(settings: RecorderSettings) -> dict[str, str]:
    """Topics to record and their types; raises SettingError for a topic of unknown type."""
    known = machine_topics(load_machine(settings.machine))
    if not settings.topics:
        return known
    wanted = {}
    for word in settings.topics.split():
        topic, _, kind = word.partition(':')
        if not kind and topic not in known:
            raise SettingError('topics', word, f'topic:package/msg/Type, or one of: {", ".join(known)}')
        wanted[topic] = kind or known[topic]
    return wanted


main = RecorderNode.main


if __name__ == '__main__':
    main()
