# SPDX-License-Identifier: Apache-2.0
"""Samples of channels out of a bag, by a map: of a machine whose messages are other people's, and of a mechanism.

Which topics a map means: its namespace, and of several ways to a channel the first that is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from ..bags.bag import Bag, RawMessage, decode, open_bag
from ..bags.channel_samples import Refuse, Sample, TopicReader, topic_readers
from ..bags.messages import typestore
from ..bags.reader import SILENT, BagReader, SampleReader
from ..bags.topics import TopicMap, one_namespace
from ..description.language.problems import Problems
from ..dynamics.model import Model
from ..errors import BagError, SampleError, did_you_mean
from ..machine import Machine
from ..machine.find_machine import DEFAULT
from .fields import ARRIVAL, Fields, bag_store, path_text, store_fields
from .machine import for_machine, for_mechanism, left_over, own_sources, section_of, unused_variances
from .map import ChannelSource, SourceMap
from .topic_samples import FILLED, UNSTAMPED, OwnTopicSamples, RateCounter, TopicSamples, UnusableSample

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
    """Raise DescriptionError for the channels whose topics are not there, DescriptionErrors of several, with those that
    are."""
    if not topics:
        raise BagError(path, 'has no topics')
    problems = Problems()
    for ways in sources.channels.values():
        if any(_there(way, topics, space) for way in ways):
            continue
        way = ways[0]
        full = TopicMap().absolute(way.topic, space)
        if full in topics:
            problems.add(way.place.error('type', way.type, f'{topics[full]}, the type of {full} in {path}'))
            continue
        others = ''.join(f', or {other.topic}' for other in ways[1:])
        hint = ' (valve: unknown needs no command)' if way.channel.startswith('command/') else ''
        first = not problems.found or problems.found[0].value == way.topic + others
        there = f': {listed(topics)}' if first else ''
        problems.add(way.place.error('topic', way.topic + others, f'a topic of {path}{there}'
                                     f'{did_you_mean(full, topics)}{hint}'))
    problems.check()


def bound(sources: Mapping[str, Sequence[ChannelSource]], kinds: Mapping[str, str], fields: Fields
          ) -> dict[str, TopicSamples]:
    """What reads the ``sources`` of each topic, by its name, of a bag with topics of these ``kinds``; raises all that
    does not fit the types of their messages at once."""
    problems = Problems()
    found = {topic: problems.tried(partial(TopicSamples, topic, group, kinds[topic], fields), None)
             for topic, group in sources.items()}
    problems.check()
    return {topic: samples for topic, samples in found.items() if samples is not None}


def listed(topics: Mapping[str, str]) -> str:
    """Topics and their types, in words."""
    found = [f'{topic} ({kind})' for topic, kind in sorted(topics.items())]
    return ', '.join(found[:MOST]) + (f', ... ({len(found)} in all)' if len(found) > MOST else '')


def sample_reader(bag: Bag | str | Path, machine: Machine, namespace: str | None = None,
                  sources: SourceMap | None = None) -> BagReader:
    """Reader of a machine's channels and commands: by a map; without one by the section `sources` of the machine's
    file, where the bag has one of its topics; else by the package's own topics.

    Raises DescriptionError (map) and BagError.
    """
    bag = open_bag(bag)
    found = _map_of(bag, machine, partial(for_machine, machine=machine), namespace, sources)
    if not found.channels:
        assumed = ', which is assumed where neither the bag nor its user names one' * (machine.name == DEFAULT)
        return SampleReader(bag, machine.channels, machine.commands, TopicMap(namespace=namespace),
                            machine.name + assumed)
    return SourceReader(bag, (*machine.channels, *machine.commands), found,
                        find_namespace(found, bag.topics, namespace, str(bag.path)),
                        partial(topic_readers, *left_over(found, machine), TopicMap()))


def mechanism_reader(bag: Bag | str | Path, model: Model, channels: Sequence[str], namespace: str | None = None,
                     sources: SourceMap | None = None) -> SourceReader:
    """Reader of ``channels`` of a mechanism's sensors, by the names of its stage, and of its inputs; ``sources`` as of
    ``sample_reader``. What a map does not name is read from all of the package's own topics that are there.

    Raises DescriptionError (map), and BagError: several mechanisms, none of the topics.
    """
    bag = open_bag(bag)
    path, wanted = str(bag.path), (*channels, *(f'input/{name}' for name in model.inputs))
    found = _map_of(bag, model, partial(for_mechanism, model=model, channels=channels), namespace, sources)
    unstamped = {channel.partition('.')[0] for channel in channels
                 if any(topic.endswith(f'/sensors/value/{channel.replace(".", "/")}') for topic in bag.topics)}
    own = own_sources(found, model, channels, sorted(unstamped))
    spaces = {space for source in own for space in _spaces(source, bag.topics)}
    space = (find_namespace(found, bag.topics, namespace, path) if found.channels else
             one_namespace(namespace, spaces, path))
    reader = SourceReader(bag, wanted, found, space, own=own, notes=unused_variances(found))
    if not reader.topics:
        raise BagError(path, f'no samples of {model.description.name}: none of the topics '
                       + ', '.join(dict.fromkeys(TopicMap().absolute(source.topic, space) for source in own))
                       + f'; there are {listed(bag.topics)}')
    return reader


def _map_of(bag: Bag, item: Machine | Model, fitted: Callable[[SourceMap], SourceMap], namespace: str | None,
            sources: SourceMap | None) -> SourceMap:
    """The map given, else the section `sources` of the file where the bag has one of its topics, else an empty one."""
    if sources is not None:
        return fitted(sources)
    section = section_of(item)
    if section is None:
        return SourceMap('')
    section = fitted(section)
    space = find_namespace(section, bag.topics, namespace, str(bag.path))
    return section if chosen(section, bag.topics, space) else SourceMap('')


def _no_readers(_: Refuse) -> dict[str, TopicReader]:
    return {}


class SourceReader(BagReader):
    """The reader of a map (of ``for_machine``, ``for_mechanism``): messages of any type, each by itself.

    What the map does not name is read from the package's own topics: by ``readers``, made for what they refuse, or of
    ``own``. ``notes``: warnings of the map. Raises DescriptionError for a topic, type, path or stamp that is wrong,
    with what the bag has; at the end of an iteration also for a name that no message had.
    """

    def __init__(self, bag: Bag, channels: Sequence[str], sources: SourceMap, namespace: str,
                 readers: Callable[[Refuse], dict[str, TopicReader]] = _no_readers,
                 own: Sequence[ChannelSource] = (), notes: Sequence[str] = ()) -> None:
        if sources.channels:
            refuse_absent(sources, bag.topics, namespace, str(bag.path))
        by_topic = chosen(sources, bag.topics, namespace)
        self._store = bag_store(bag, {bag.topics[topic] for topic in by_topic}, sources.definitions, sources.file
                                ) if by_topic else typestore()
        fields, read = store_fields(self._store), [source for group in by_topic.values() for source in group]
        self._mapped = bound(by_topic, bag.topics, fields)
        self._absent, self._own = _own_samples(bag.topics, namespace, own)
        known = {channel.partition('/')[2] for channel in sources.channels}

        def make_readers(refuse: Refuse) -> dict[str, TopicReader]:
            def refuse_strangers(error: SampleError) -> None:
                """Names that the map reads are none, on a topic that is read both ways."""
                if error.channel.partition(' ')[2] not in known:
                    refuse(error)
            full = {TopicMap().absolute(name, namespace): reader for name, reader in readers(refuse_strangers).items()}
            return {**{topic: samples.reader(refuse) for topic, samples in self._own.items()},
                    **{topic: reader for topic, reader in full.items() if bag.topics.get(topic) == reader.msgtype
                       and reader.msgtype in typestore().fielddefs}}
        # A channel by its arrival has no age, and of one with a delay the map says how old it is.
        super().__init__(bag, channels, namespace, make_readers,
                         {source.channel for source in read if source.stamp == ARRIVAL or source.delay_ns})
        self.weighted = any(source.variance for source in read)
        self._said, self._rates, self._heard = notes, RateCounter(read), set[str]()

    @property
    def topics(self) -> list[str]:
        """Those that are read."""
        return list(dict.fromkeys((*self._mapped, *super().topics)))

    @property
    def places(self) -> dict[str, tuple[str, str]]:
        """Topic and path of each channel that the map names."""
        return {source.channel: (topic, path_text(source.path)) for topic, samples in self._mapped.items()
                for source in samples.sources}

    @property
    def untimed(self) -> dict[str, tuple[int, str]]:
        """How many messages of a topic, or for a channel, had no stamp or one that is not a time, and the first."""
        return {**super().untimed, **{
            first.channel: (count, 'a stamp of 0') for first, count in self._refused.values()
            if isinstance(first, UnusableSample) and first.why == UNSTAMPED}}

    @property
    def warnings(self) -> list[str]:
        """What was damaged, left out, silent or at another rate than expected, one line each."""
        return [*super().warnings, *(self._rates.lines() if self._finished else [])]

    def silence(self) -> list[str]:
        """Of channels without a sample a line each, or for several with the same reason; before the end of an iteration
        of those that are on no topic of the bag."""
        there = {source.channel for samples in self._own.values() for source in samples.sources}
        groups: dict[str, list[str]] = {}
        for name in self._channels:
            unread = name in self._absent and name not in there
            if unread or self._finished and not self._counts[name]:
                topics = f'; there are {listed(self.bag.topics)}' * (unread and not name.startswith('input/'))
                groups.setdefault(self._instead(name) + topics, []).append(name)
        return [f'{", ".join(names)}: {SILENT}{why}' for why, names in groups.items()]

    def _many(self, refuse: Refuse) -> Mapping[str, TopicReader]:
        return {topic: reader for topic, reader in super()._many(refuse).items() if topic not in self._mapped}

    def _samples(self, raw: RawMessage) -> list[Sample]:
        found: list[Sample] = []
        if raw.topic in self._mapped:
            self._heard.add(raw.topic)
            found += self._mapped[raw.topic].samples(decode(raw, self._store), raw.stamp_ns, self._refuse)
            for sample in found:
                self._rates.add(sample.channel, sample.stamp_ns)
        if raw.topic in self._own:
            found += self._own[raw.topic].serialized(raw.data, raw.stamp_ns, self._refuse)
        elif raw.topic in self._readers:
            found += super()._samples(raw)
        return found

    def _begin(self) -> None:
        super()._begin()
        self._heard.clear()
        self._rates.clear()

    def _end(self, counts: dict[str, int]) -> None:
        super()._end(counts)
        self._check_names()

    def _instead(self, channel: str) -> str:
        """What messages on the package's topics had in place of a channel of a mechanism, in words."""
        lines = [self._absent[channel]] if channel in self._absent else []
        for topic, samples in self._own.items():
            lines += [f'the last message of {topic} has: {samples.candidates(source)}' for source in samples.sources
                      if source.channel == channel and channel in samples.absent]
        return ''.join(f'; {line}' for line in lines)

    def _notes(self) -> Sequence[str]:
        return self._said

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
        for topic, samples in self._mapped.items():
            for source in samples.sources:
                if self._counts[source.channel] or topic not in self._heard:
                    continue
                if (source.channel, FILLED) in self._refused:
                    raise source.place.error('stamp', source.stamp, FILLED)
                if source.channel in samples.absent:
                    key = samples.absent[source.channel].key
                    asked = {'path': path_text(source.path), 'variance': path_text(source.variance),
                             'require': ', '.join(path for path, _ in source.require)}
                    raise source.place.error(key, asked[key], f'an element that is in a message of {topic}; '
                                             f'the last one has: {samples.candidates(source)}')


def _own_samples(kinds: Mapping[str, str], space: str, sources: Sequence[ChannelSource]
                 ) -> tuple[dict[str, str], dict[str, OwnTopicSamples]]:
    """Which of the ``sources`` are in a bag of topics of these ``kinds``, by topic; of channels the topics that it
    lacks, in words."""
    found: dict[str, list[ChannelSource]] = {}
    absent: dict[str, list[str]] = {}
    for source in sources:
        topic = TopicMap().absolute(source.topic, space)
        if kinds.get(topic) == source.type:
            found.setdefault(topic, []).append(source)
        else:
            absent.setdefault(source.channel, []).append(
                topic if topic not in kinds else f'{topic} as {source.type} (it is a {kinds[topic]})')
    return ({channel: f'the bag has no {" and no ".join(topics)}' for channel, topics in absent.items()},
            {topic: OwnTopicSamples(topic, group) for topic, group in found.items()})
