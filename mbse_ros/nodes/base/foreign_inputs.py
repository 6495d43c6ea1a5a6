# SPDX-License-Identifier: Apache-2.0
"""Topics of other people's types as inputs of a node: subscribed to once the graph shows them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile

from ...bags.channel_samples import Sample
from ...dynamics.model import Model
from ...errors import DescriptionError, MbseError, SampleError, did_you_mean
from ...machine import Machine
from ...sources.machine import for_machine, for_mechanism, section_of
from ...sources.map import ChannelSource, SourceMap, load_sources
from ...sources.topic_samples import ABSENT, RateCounter, TopicSamples, UnusableSample
from ..messages.wire import class_fields, message_type
from .middleware import Waiting

LOOK = 0.2      # s between two looks at the graph while a topic is missing
PERIOD = 5.0    # s over which rates are compared
MOST = 30       # topics in one message
WINDOW, JUMP = 125_000_000, 1_000_000_000      # ns


def node_sources(name: str, item: Machine | Model, channels: Collection[str] = ()) -> SourceMap:
    """The map of a parameter, '' for the section of the file of a machine or a mechanism, of which ``channels`` are
    read; without both one that is empty.

    Raises DescriptionError, also for a path that messages of a type that the map names do not have.
    """
    given = load_sources(name) if name else section_of(item)
    found = (SourceMap('') if given is None else for_machine(given, item) if isinstance(item, Machine) else
             for_mechanism(given, item, channels))
    for source in found.sources:
        if source.type:
            TopicSamples(source.topic, [source], source.type, class_fields)
    return found


class ClockTime:
    """Times of the wall as those of /clock, which goes in steps, is noticed late and stands still in between: what it
    is ahead of the wall is the most that was seen of that within the last quarter of a second or so."""

    def __init__(self, wall: Callable[[], int] = time.time_ns) -> None:
        self._wall, self._begin = wall, -WINDOW
        self._now = self._before = 0

    def __call__(self, now_ns: int, received_ns: int) -> int:
        """/clock's time, ns, at which something was received at a time of the wall; ``now_ns``: /clock's now."""
        wall = self._wall()
        ahead = now_ns - wall
        if abs(ahead - self._now) > JUMP:       # it was set, or this is the first time
            self._begin, self._now, self._before = wall, ahead, ahead
        elif wall - self._begin > WINDOW:
            self._begin, self._now, self._before = wall, ahead, self._now
        self._now = max(self._now, ahead)
        return received_ns + max(self._now, self._before)


class ForeignInputs:
    """Subscriptions of a node to the topics of a map; ``take(topic, message)`` is their callback.

    ``waiting`` gets them, of each message what ``pack`` makes of its samples. What is left out is warned of once, and
    counted in ``left_out`` by channel and reason. ``node`` has ``input`` and ``warnings`` as ``ManagedNode`` has.
    ``log``: faults of the map are errors there, too.
    """

    def __init__(self, node: Node, sources: SourceMap, waiting: Waiting[Any], qos: QoSProfile,
                 take: Callable[[str, Any], None], log: bool = True,
                 pack: Callable[[list[Sample]], Sequence[Any]] = list) -> None:
        self._node, self._waiting, self._qos, self._take, self._log = node, waiting, qos, take, log
        self._pack = pack
        self._open = dict(sources.channels)
        self._topics: dict[str, TopicSamples] = {}
        self._rates = RateCounter(sources.sources)
        self._clock = ClockTime()
        self._due, self._compared = 0.0, time.monotonic()
        self._faults: dict[str, str] = {}
        self.left_out: Counter[str] = Counter()
        self.look()

    @property
    def fault(self) -> str:
        """What of the map cannot be used in this graph, '' where nothing."""
        return '; '.join(self._faults.values())

    def look(self) -> float | None:
        """Subscribe to what is new, compare rates; seconds until the next look, None: only messages count."""
        now = time.monotonic()
        if now - self._compared >= PERIOD:
            self._compared = now
            for line in self._rates.lines():
                self._node.warnings('rate', line)
            self._rates.clear()
        if not self._open:
            return None
        if now >= self._due:
            self._due = now + LOOK
            self._subscribe(self._published())
        return self._due - now

    def served(self) -> dict[str, list[str]]:
        """Channels by the topics that they are read from."""
        return {topic: [source.channel for source in samples.sources] for topic, samples in self._topics.items()}

    def missing(self) -> str:
        """Which topics are not there, with those that are, in words; '' where none is missing."""
        topics = self._published()
        wanted = {way.topic for ways in self._open.values() for way in ways[:1]}
        if not wanted:
            return ''
        full = [self._node.resolve_topic_name(topic) for topic in sorted(wanted)]
        return (f'no publisher of {", ".join(full)}; there are ' + ', '.join(sorted(topics)[:MOST])
                + ''.join(did_you_mean(topic, topics) for topic in full))

    def _published(self) -> dict[str, list[str]]:
        """Topics that somebody publishes, and the types of their publishers."""
        found = {topic: sorted({info.topic_type for info in self._node.get_publishers_info_by_topic(topic)})
                 for topic, _ in self._node.get_topic_names_and_types()}
        return {topic: kinds for topic, kinds in found.items() if kinds}

    def _subscribe(self, published: Mapping[str, list[str]]) -> None:
        """Of each channel that has no topic yet the first way that is there."""
        new: dict[tuple[str, str], list[ChannelSource]] = {}
        for ways in self._open.values():
            for way in ways:
                topic = self._node.resolve_topic_name(way.topic)
                kinds = published.get(topic, [way.type] if way.type and len(ways) == 1 else [])
                kind = way.type if way.type in kinds else '' if way.type else next(iter(kinds), '')
                if kind:
                    new.setdefault((topic, kind), []).append(way)
                    break
                if kinds:
                    self._report(topic, str(way.place.error('type', way.type, f'{", ".join(kinds)}, the type of '
                                                            f'{topic}')))
        for (topic, kind), found in new.items():
            self._add(topic, kind, found)

    def _add(self, topic: str, kind: str, sources: list[ChannelSource]) -> None:
        known = self._topics.get(topic)
        try:
            message_class = message_type(kind)
            samples = TopicSamples(topic, [*(known.sources if known else ()), *sources], kind, class_fields)
        except (DescriptionError, MbseError) as error:
            self._report(topic, f'{topic}: {error}')
            return
        self._topics[topic] = samples
        if known is None:
            subscription = self._node.input(message_class, topic, partial(self._take, topic), self._qos)
            self._waiting.add(topic, subscription, partial(self._samples, topic), timed=True)
        self._faults.pop(topic, None)
        for source in sources:
            del self._open[source.channel]

    def _report(self, topic: str, text: str) -> None:
        """An error of the map, once."""
        if self._faults.get(topic) != text:
            self._faults[topic] = text
            if self._log:
                self._node.get_logger().error(text)

    def _samples(self, topic: str, message: Any, received_ns: int | None) -> Sequence[Any]:
        """Samples of a message; it arrived when the middleware received it, so that a pause of this process does no
        harm."""
        clock, received = self._node.get_clock(), received_ns or time.time_ns()
        arrival = self._clock(clock.now().nanoseconds, received) if clock.ros_time_is_active else received
        found = self._topics[topic].samples(message, arrival, partial(self._leave_out, topic))
        for sample in found:
            self._rates.add(sample.channel, sample.stamp_ns)
        return self._pack(found)

    def _leave_out(self, topic: str, error: SampleError) -> None:
        """A sample that a message lacks: a line for the first, later ones are counted."""
        text, why = str(error), getattr(error, 'why', '')
        if why == ABSENT and isinstance(error, UnusableSample):
            text += f'; there are: {self._topics[topic].candidates(error.source)}'
        key = f'{error.channel}: {why}'
        if not self.left_out[key]:
            self._node.warnings(key, f'sample left out: {text}')
        self.left_out[key] += 1
