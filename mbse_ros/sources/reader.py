# SPDX-License-Identifier: Apache-2.0
"""Samples of a machine's channels out of a bag of other people's messages, by a map; the bag as one of this package's
topics.

Which topics a map means: its namespace, and of several ways to a channel the first that is there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from ..bags.bag import Bag, RawMessage, decode, open_bag
from ..bags.channel_samples import Sample, TopicReader, topic_readers
from ..bags.messages import typestore
from ..bags.reader import SampleReader
from ..bags.topics import TopicMap, one_namespace
from ..bags.writer import BagWriter
from ..errors import BagError, SampleError, StampError
from ..machine import Machine
from ..monitor.ages import Ages
from .definitions import bag_store
from .fields import store_fields
from .machine import for_machine, left_over, section_of
from .map import ARRIVAL, ChannelSource, SourceMap
from .path import path_text
from .proposals.words import near
from .topic_samples import FILLED, UNSTAMPED, RateCounter, TopicSamples, UnusableSample

MOST = 60       # topics in one message


def find_namespace(sources: SourceMap, topics: Mapping[str, str], given: str | None, path: str) -> str:
    """The namespace given, else the one under which ``topics`` (to their types) serve most channels of the map.

    '' where none serves any; raises BagError where several serve as many.
    """
    if given is not None:
        return one_namespace(given, set(), path)
    spaces = {space for source in sources.sources for space in _spaces(source, topics)}
    served = {space: sum(any(_there(way, topics, space) for way in ways) for ways in sources.channels.values())
              for space in spaces}
    best = max(served.values(), default=0)
    found = {space for space, count in served.items() if count == best}
    return one_namespace(None, found if best or len(found) == 1 else set(), path)


def _spaces(source: ChannelSource, topics: Mapping[str, str]) -> list[str]:
    """Namespaces in which a topic of a source's name is."""
    return [] if source.topic.startswith('/') else [topic[:-len(source.topic) - 1] for topic in topics
                                                    if topic.endswith(f'/{source.topic}')]


def _there(source: ChannelSource, topics: Mapping[str, str], space: str) -> bool:
    kind = topics.get(TopicMap().absolute(source.topic, space))
    return kind is not None and source.type in ('', kind)


def chosen(sources: SourceMap, topics: Mapping[str, str], space: str) -> dict[str, list[ChannelSource]]:
    """Sources by the full names of their topics: of each channel the first whose topic is there; of a channel without
    any, none."""
    found: dict[str, list[ChannelSource]] = {}
    for ways in sources.channels.values():
        way = next((way for way in ways if _there(way, topics, space)), None)
        if way is not None:
            found.setdefault(TopicMap().absolute(way.topic, space), []).append(way)
    return found


def refuse_absent(sources: SourceMap, topics: Mapping[str, str], space: str, path: str) -> None:
    """Raise DescriptionError for a channel whose topic is not there, with those that are."""
    if not topics:
        raise BagError(path, 'has no topics')
    for ways in sources.channels.values():
        if any(_there(way, topics, space) for way in ways):
            continue
        way = ways[0]
        full = TopicMap().absolute(way.topic, space)
        if full in topics:
            raise way.place.error('type', way.type, f'{topics[full]}, the type of {full} in {path}')
        listed = [f'{topic} ({kind})' for topic, kind in sorted(topics.items())]
        more = f', ... ({len(listed)} in all)' if len(listed) > MOST else ''
        others = ''.join(f', or {other.topic}' for other in ways[1:])
        hint = ' (--valve unknown needs no command)' if way.channel.startswith('command/') else ''
        raise way.place.error('topic', way.topic + others, f'a topic of {path}: ' + ', '.join(listed[:MOST]) + more
                              + near(full, topics) + hint)


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
                    key = samples.absent[source.channel].key
                    asked = {'path': path_text(source.path), 'variance': path_text(source.variance),
                             'require': ', '.join(path for path, _ in source.require)}
                    raise source.place.error(key, asked[key], f'an element that is in a message of {topic}; '
                                             f'the last one has: {samples.candidates(source)}')


class ImportedBag(NamedTuple):
    """How many samples of which channels over which time, and what was odd about the bag."""

    samples: int
    channels: tuple[str, ...]
    seconds: float
    warnings: tuple[str, ...]


def import_bag(bag: str | Path, machine: Machine, folder: str | Path, sources: SourceMap | None = None,
               namespace: str | None = None, storage: str = 'mcap') -> ImportedBag:
    """Write the samples of a machine's channels into a new bag, on the package's own topics, in the order of the bag.

    Raises DescriptionError and BagError as ``sample_reader``, and BagError where nothing is found or written.
    """
    reader = sample_reader(bag, machine, namespace, sources)
    samples = list(reader)
    if not samples:
        raise BagError(str(bag), '; '.join(['has no sample of ' + machine.name, *reader.warnings]))
    with BagWriter(folder, storage, frame=machine.name) as writer:
        for stamp, together in _instants(samples):
            values = {sample.channel: sample.value for sample in together}
            commands = {name: value for name, value in values.items() if name.startswith('command/')}
            writer.write_samples(stamp, {name: value for name, value in values.items() if name not in commands},
                                 commands)
    stamps = [sample.stamp_ns for sample in samples]
    return ImportedBag(len(samples), tuple(dict.fromkeys(sample.channel for sample in samples)),
                       (max(stamps) - min(stamps)) * 1e-9, tuple(reader.warnings))


def _instants(samples: Iterable[Sample]) -> Iterator[tuple[int, list[Sample]]]:
    """Samples with one stamp that follow each other, none of a channel twice."""
    for stamp, together in groupby(samples, key=lambda sample: sample.stamp_ns):
        left = list(together)
        while left:
            first = list({sample.channel: sample for sample in reversed(left)}.values())[::-1]
            yield stamp, first
            left = [sample for sample in left if not any(sample is other for other in first)]
