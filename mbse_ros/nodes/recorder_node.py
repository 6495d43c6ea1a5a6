# SPDX-License-Identifier: Apache-2.0
"""Writes topics into a bag, as they come over the wire."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from rclpy.node import Node
from rclpy.subscription import Subscription

from ..bags.channel_samples import topic_readers
from ..bags.storage.disk_room import MB, megabytes
from ..bags.storage.storage_writer import offered_qos
from ..bags.topics import FLUID_PRESSURE, IMU, JOINT_STATE, TopicMap
from ..bags.writer import BagWriter
from ..errors import DiskError, MbseError, SampleError, SettingError
from ..machine import load_machine
from ..settings import names_in
from ..sources.machine import left_over
from .base.diagnostics import ERROR, OK, WARN, ProcessStatus
from .base.foreign_inputs import node_sources
from .base.middleware import LASTING, OUTPUT, Waiting, deep_input, drained
from .base.node_settings import RecorderSettings
from .base.parameters import declare_entry
from .base.run import Runnable
from .graphs.machine_graph import KEPT, machine_topics, sensor_topics
from .messages.wire import TF_MESSAGE, message_class, stamp_of

LOOK = 0.2          # s between two looks at the graph while a topic of the map is missing
SETTLED = 10.0      # s, before which the rate says nothing
SENSORS = (JOINT_STATE, FLUID_PRESSURE, IMU)


class StampedMessage(NamedTuple):
    """A serialized message with a header."""

    stamp_ns: int
    topic: str
    kind: str
    cdr: bytes


class RecorderNode(Runnable, Node):     # type: ignore[misc]
    """Subscribes without unpacking; the bag is complete once the process has ended on SIGINT or SIGTERM.

    Where the disk is full it is complete earlier: the process stays and says so in its diagnostics.
    """

    hurried = False
    _settings: RecorderSettings
    _counts: dict[str, int]

    def __init__(self) -> None:
        Node.__init__(self, 'recorder_node')
        (self._settings,), _ = declare_entry(self, 'recorder_node')
        s, self._counts, self._begin = self._settings, {}, time.monotonic()
        topics, self._missing = wanted_topics(s)
        self._look = 0.0
        self._level, self._trouble, self._free = OK, '', 0
        self._waiting: Waiting[StampedMessage] = Waiting()
        self._others: list[tuple[Subscription, Callable[[bytes], None]]] = []       # not of sensors
        for topic, kind in reversed(topics.items()):      # positions last: they are what a plant waits for
            try:
                self._listen(topic, kind, s.sensor_reliability)
            except MbseError as error:
                if kind != TF_MESSAGE:      # which wheels of ROS 2 lack, and outputs_node then, too
                    raise
                self.get_logger().warning(f'{topic} is not recorded: {error} (package tf2_msgs)')
        self._bag = free_folder(s.bag) if s.beside else s.bag
        self._writer = BagWriter(self._bag, s.storage, least_free=s.least_free * MB)
        self.get_logger().info(f'recording {len(self._counts)} topics into {self._bag}')
        self.check_disk()
        self.process_status = ProcessStatus(self, tuple, lambda: s.machine, lambda: {
            'bag': self._bag, 'messages': self._writer.count, 'free on the disk': megabytes(self._free)},
            self.check_disk)

    def on_message(self, topic: str, kind: str, cdr: bytes) -> None:
        """One serialized message, stamped with the time it came in; none after the bag had to be closed."""
        if self._level == ERROR:
            return
        try:
            self._writer.write_cdr(topic, kind, self.get_clock().now().nanoseconds, cdr, partial(self._offered, topic))
        except DiskError as error:
            self._stop(error)
        else:
            self._counts[topic] += 1

    def _offered(self, topic: str) -> str:
        """What the publishers of a topic offer, each kind of them once; whatever they keep, a player keeps ten."""
        found = {offered_qos(info.qos_profile.reliability.value, info.qos_profile.durability.value)
                 for info in self.get_publishers_info_by_topic(topic)}
        return '\n'.join(sorted(found)) or offered_qos()

    def check_disk(self) -> tuple[bytes, str]:
        """Level and text of what is wrong with the disk, (OK, '') as long as nothing is."""
        if self._level == ERROR:
            return ERROR, self._trouble
        try:
            self._free = self._writer.check_room()
            text = shortage(self._free, self._writer.size, time.monotonic() - self._begin, self._settings)
        except DiskError as error:
            self._stop(error)
            return ERROR, self._trouble
        if text and not self._trouble:      # at its begin: the numbers in it change all the time
            self.get_logger().warning(text)
        self._level, self._trouble = (WARN, text) if text else (OK, '')
        return self._level, text

    def _stop(self, error: DiskError) -> None:
        """Take nothing more; the bag is closed already."""
        self._level, self._trouble = ERROR, f'recording has ended: {error}'
        self.get_logger().error(self._trouble)

    def tick(self) -> float | None:
        """Take topics of the map once somebody publishes them: only then is their type known; seconds until the next
        look."""
        if not self._missing:
            return None
        now = time.monotonic()
        if now >= self._look:
            self._look = now + LOOK
            for topic in sorted(self._missing):
                kinds = sorted({info.topic_type for info in
                                self.get_publishers_info_by_topic(self.resolve_topic_name(topic))})
                if kinds:
                    self._missing.discard(topic)
                    self._take_foreign(topic, kinds[0])
        return self._look - now

    def _take_foreign(self, topic: str, kind: str) -> None:
        try:
            self._listen(topic, kind, self._settings.sensor_reliability, foreign=True)
        except MbseError as error:
            self.get_logger().error(f'{topic} is not recorded: {error}')
        else:
            self.get_logger().info(f'recording {topic}, too')

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

    def _listen(self, topic: str, kind: str, reliability: str, foreign: bool = False) -> None:
        name, sensor = self.resolve_topic_name(topic), topic.startswith('sensors/') and kind in SENSORS
        callback = partial(self.on_sensor, name) if sensor else partial(self.on_message, name, kind)
        deep = foreign or topic.startswith('sensors/')
        qos = deep_input(reliability) if deep else LASTING if topic in KEPT else OUTPUT
        subscription = self.create_subscription(message_class(kind), topic, callback, qos, raw=True)
        self._counts[name] = 0
        if not sensor:
            self._others.append((subscription, callback))
        else:
            self._waiting.add(name, subscription, lambda cdr: [StampedMessage(self._stamp(cdr), name, kind, cdr)])

    def finish(self) -> None:
        """Complete the bag with what has arrived; the exit status is 1 where it had to be closed before."""
        for record in self._waiting.rest():
            self.on_message(record.topic, record.kind, record.cdr)
        for subscription, callback in self._others:
            for cdr in drained(subscription):
                callback(cdr)
        if self._level == ERROR:
            self.exit_status = 1
        self._writer.close()
        silent = [*(topic for topic, count in self._counts.items() if not count), *sorted(self._missing)]
        self.get_logger().info(f'{self._writer.count} messages recorded'
                               + (f'; none on {", ".join(silent)}' if silent else ''))


def shortage(free: int, size: int, seconds: float, settings: RecorderSettings) -> str:
    """A warning that the disk will be full soon, '' where it will not.

    ``free``: bytes; ``size``: bytes of the bag that were written in so many ``seconds``.
    """
    lasts = (free - settings.least_free * MB) * seconds / size / 60.0 if size and seconds > SETTLED else float('inf')
    text = f'{megabytes(free)} of the disk are free'
    if lasts < settings.low_minutes:
        return f'{text}: the recording ends in {max(lasts, 0.0):.0f} min at this rate'
    return text if free < settings.low_free * MB else ''


def free_folder(bag: str) -> str:
    """The folder itself, or the first of bag_2, bag_3, ... that does not exist."""
    folder, number = bag, 1
    while os.path.exists(folder):
        number += 1
        folder = f'{bag.rstrip("/")}_{number}'
    return folder


def wanted_topics(settings: RecorderSettings) -> tuple[dict[str, str], set[str]]:
    """Topics to record and their types, and topics of the map, whose types their publishers know.

    Raises SettingError for a topic of unknown type, DescriptionError for a wrong map.
    """
    machine = load_machine(settings.machine)
    known = machine_topics(machine)
    also = _typed(settings.also, 'also', {})
    without = {*names_in(settings.without)}
    if strange := without - {*known, *also}:
        raise SettingError('without', ' '.join(sorted(strange)), f'one of: {", ".join((*known, *also))}')
    known = {topic: kind for topic, kind in known.items() if topic not in without}
    also = {topic: kind for topic, kind in also.items() if topic not in without}
    if not settings.topics:
        sources = node_sources(settings.sources, machine)
        own = topic_readers(*left_over(sources, machine), TopicMap(), lambda error: None)
        foreign = {source.topic for source in sources.sources}
        replaced = {*sensor_topics(machine)} - {*own} if foreign else set()
        return {topic: kind for topic, kind in known.items() if topic not in replaced | foreign} | also, foreign
    return _typed(settings.topics, 'topics', known) | also, set()


def _typed(words: str, parameter: str, known: dict[str, str]) -> dict[str, str]:
    """Topics and their types; raises SettingError for one without a type that is not known."""
    found = {}
    for word in names_in(words):
        topic, _, kind = word.partition(':')
        if not kind and topic not in known:
            raise SettingError(parameter, word, 'topic:package/msg/Type' + (
                f', or one of: {", ".join(known)}' if known else ''))
        found[topic] = kind or known[topic]
    return found


main = RecorderNode.main


if __name__ == '__main__':
    main()
