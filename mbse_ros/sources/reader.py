# SPDX-License-Identifier: Apache-2.0
"""Samples of a machine's channels out of a bag of other people's messages, by a map."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..bags.bag import Bag, RawMessage, decode, open_bag
from ..bags.channel_samples import Sample, TopicReader, topic_readers
from ..bags.messages import typestore
from ..bags.reader import SampleReader
from ..bags.topics import TopicMap
from ..errors import SampleError, StampError
from ..machine import Machine
from ..streams.ages import Ages
from .definitions import bag_store
from .fields import store_fields
from .machine import for_machine, left_over, section_of
from .map import ARRIVAL, SourceMap
from .path import path_text
from .rates import RateCounter
from .topic_samples import FILLED, UNSTAMPED, TopicSamples, UnusableSample
from .topics import chosen, find_namespace, refuse_absent


def sample_reader(bag: Bag | str | Path, machine: Machine, namespace: str | None = None,
                  sources: SourceMap | None = None) -> SampleReader | SourceReader:
    """Reader of a machine's channels and commands: by a map; without one by the section `sources` of the machine's
    file, where the bag has one of its topics; else by the package's own topics.

    Raises DescriptionError (map) and BagError.
    """
    bag = open_bag(bag)
    if sources is None:
        section = section_of(machine)
        if section is not None:
            section = for_machine(section, machine)
            space = find_namespace(section, bag.topics, namespace, str(bag.path))
            sources = section if chosen(section, bag.topics, space) else None
    else:
        sources = for_machine(sources, machine)
    if sources is None or not sources.channels:
        return SampleReader(bag, machine.channels, machine.commands, TopicMap(namespace=namespace))
    return SourceReader(bag, machine, sources, namespace)


class SourceReader:
    """Samples in the order of the bag, with what was left out; may be iterated again. As bags.reader.SampleReader.

    What the map (of ``for_machine``) does not name is read from the package's own topics. Raises DescriptionError
    for a topic, type, path or stamp that is wrong, with what the bag has; at the end of an iteration also for a name
    that no message had.
    """

    def __init__(self, bag: Bag, machine: Machine, sources: SourceMap, namespace: str | None = None) -> None:
        self.bag, path = bag, str(bag.path)
        self.namespace = find_namespace(sources, bag.topics, namespace, path)
        refuse_absent(sources, bag.topics, self.namespace, path)
        by_topic = chosen(sources, bag.topics, self.namespace)
        self._store = bag_store(bag, {bag.topics[topic] for topic in by_topic}, sources.definitions, sources.file)
        fields = store_fields(self._store)
        self._topics = {topic: TopicSamples(topic, own, bag.topics[topic], fields) for topic, own in by_topic.items()}
        self._own = self._own_topics(machine, sources)
        self._channels = (*machine.channels, *machine.commands)
        self._refused: dict[tuple[str, str], list[Any]] = {}
        self._counts: Counter[str] = Counter()
        self._messages: Counter[str] = Counter()
        self._rates = RateCounter([source for own in by_topic.values() for source in own])
        # A channel by its arrival has no age, and of one with a delay the map says how old it is.
        self._timed = {topic: {source.channel for source in own if source.stamp != ARRIVAL and not source.delay_ns}
                       for topic, own in by_topic.items()}
        self.ages = Ages()
        self._finished = False

    @property
    def refused(self) -> list[SampleError]:
        """The first refused sample of each kind."""
        return [first for first, _ in self._refused.values()]

    @property
    def untimed(self) -> dict[str, tuple[int, str]]:
        """How many messages of a topic, or for a channel, had no stamp or one that is not a time, and the first."""
        return {first.channel: (count, 'a stamp of 0' if isinstance(first, UnusableSample) else str(first.value))
                for first, count in self._refused.values()
                if isinstance(first, StampError) or isinstance(first, UnusableSample) and first.why == UNSTAMPED}

    @property
    def warnings(self) -> list[str]:
        """What was damaged, left out, silent or at another rate than expected, one line each."""
        lines = self.bag.warnings + self._refused_lines()
        if self._finished:
            lines += [f'{name}: no sample in the bag' for name in self._channels if not self._counts[name]]
            lines += self._rates.lines()
        return lines

    def __iter__(self) -> Iterator[Sample]:
        self._refused.clear()
        self._counts.clear()
        self._messages.clear()
        self._rates.clear()
        self.ages.reset()
        self._finished = False
        for raw in self.bag.messages({*self._topics, *self._own}):
            self._messages[raw.topic] += 1
            try:
                samples = self._samples(raw)
            except SampleError as error:
                self._refuse(error)
                continue
            timed = self._timed.get(raw.topic)
            for sample in samples:
                if timed is None or sample.channel in timed:
                    self.ages.take(sample.channel, sample.stamp_ns, raw.stamp_ns)
                self._counts[sample.channel] += 1
                self._rates.add(sample.channel, sample.stamp_ns)
                yield sample
        self._finished = True
        self._check_names()

    def _samples(self, raw: RawMessage) -> list[Sample]:
        """Samples of a message; raises SampleError where it cannot be decoded."""
        found: list[Sample] = []
        if raw.topic in self._topics:
            topic = self._topics[raw.topic]
            found += topic.samples(decode(raw, self._store), raw.stamp_ns, self._refuse)
        if raw.topic in self._own:
            found += self._own[raw.topic].samples(raw.topic, decode(raw))
        return found

    def _own_topics(self, machine: Machine, sources: SourceMap) -> dict[str, TopicReader]:
        """How to read what the map leaves to the package's own topics."""
        topics = TopicMap()
        readers = topic_readers(*left_over(sources, machine), topics, self._refuse_own(sources))
        full = {topics.absolute(name, self.namespace): reader for name, reader in readers.items()}
        return {topic: reader for topic, reader in full.items()
                if self.bag.topics.get(topic) == reader.msgtype and reader.msgtype in typestore().fielddefs}

    def _refuse_own(self, sources: SourceMap) -> Callable[[SampleError], None]:
        """Names that a map reads are no strangers on a topic that is read both ways."""
        known = {channel.partition('/')[2] for channel in sources.channels}

        def refuse(error: SampleError) -> None:
            if error.channel.partition(' ')[2] not in known:
                self._refuse(error)
        return refuse

    def _refuse(self, error: SampleError) -> None:
        self._refused.setdefault((error.channel, error.expected), [error, 0])[1] += 1

    def _refused_lines(self) -> list[str]:
        """Samples left out, channels of one topic with the same fate on one line; others one by one."""
        lines: dict[tuple[str, ...], list[str]] = {}
        for first, count in self._refused.values():
            if isinstance(first, UnusableSample):
                key = (f'{count} sample{"s" * (count != 1)} left out', first.source.topic, first.why)
                lines.setdefault(key, [f'{first}']).append(first.channel)
            else:
                lines[first.channel, first.expected] = [f'{first}' + (f' (and {count - 1} more)' if count > 1 else '')]
        return [texts[0] if len(texts) == 1 else f'{", ".join(texts[1:])}: {key[0]}, {key[2]}; the first: {texts[0]}'
                for key, texts in lines.items()]

    def _check_names(self) -> None:
        """Raise DescriptionError for a channel whose element was in no message, or whose stamp was never filled."""
        for topic, samples in self._topics.items():
            for source in samples.sources:
                if self._counts[source.channel] or not self._messages[topic]:
                    continue
                if (source.channel, FILLED) in self._refused:
                    raise source.place.error('stamp', source.stamp, FILLED)
                if source.channel in samples.absent:
                    raise source.place.error('path', path_text(source.path), f'an element that is in a message of '
                                             f'{topic}; the last one has: {samples.candidates(source)}')
