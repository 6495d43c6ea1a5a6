# SPDX-License-Identifier: Apache-2.0
"""Samples of channels out of a bag, whoever recorded it: the one loop for all, and the package's own topics of a
machine; those of a map and of a mechanism are in ``sources.reader``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import BagError, SampleError, StampError
from ..monitor.clocks import Ages
from .bag import Bag, RawMessage, decode, open_bag
from .bulk_samples import BagSamples, Bulk, Placed, blocks
from .channel_samples import Refuse, Sample, TopicReader, by_stamp, is_strange, topic_readers
from .topics import FLUID_PRESSURE, IMU, JOINT_STATE, JOINTS, LINKAGE_STATE, PAYLOAD, STATE, TopicMap

SILENT = 'no sample in the bag'
MakeReaders = Callable[[Refuse], Mapping[str, TopicReader]]     # by full names of topics, for what they refuse


class BagReader:
    """Samples of ``channels`` in the order of the bag, with what was refused; may be iterated again.

    ``make_readers``: those of messages that differ in stamp and numbers alone, many of which are read at once.
    ``refused``: one SampleError of each kind (the first); ``warnings``: lines about the bag, the refused samples and
    silent channels; ``ages`` on arrival; all complete at the end of an iteration; ``namespace`` read ('' or '/crane');
    ``weighted``: samples have shares, which ``blocks`` does not give.
    """

    weighted = False

    def __init__(self, bag: Bag, channels: Iterable[str], namespace: str, make_readers: MakeReaders,
                 ageless: Set[str] = frozenset()) -> None:
        self.bag, self.namespace, self._make_readers = bag, namespace, make_readers
        self._channels = tuple(dict.fromkeys(channels))
        self._places = {name: place for place, name in enumerate(self._channels)}
        self._readers = make_readers(self._refuse)
        self._refused: dict[tuple[str, str], list[Any]] = {}
        self._counts = dict.fromkeys(self._channels, 0)
        self._aged = np.array([name not in ageless for name in self._channels], dtype=bool)
        self.ages = Ages()
        self._finished = False

    @property
    def channels(self) -> tuple[str, ...]:
        """Channels and commands, in the order of their places in ``blocks``."""
        return self._channels

    @property
    def topics(self) -> list[str]:
        """Those that are read."""
        return list(self._readers)

    @property
    def refused(self) -> list[SampleError]:
        """The first refused sample of each kind."""
        return [first for first, _ in self._refused.values()]

    @property
    def strangers(self) -> tuple[str, ...]:
        """Names on the topics of this package that are no channels of the machine."""
        return tuple(str(first.value) for first, _ in self._refused.values() if is_strange(first))

    @property
    def untimed(self) -> dict[str, tuple[int, str]]:
        """How many messages of a topic, or for a channel, had no stamp or one that is not a time, and the first."""
        return {first.channel: (count, str(first.value)) for first, count in self._refused.values()
                if isinstance(first, StampError)}

    @property
    def warnings(self) -> list[str]:
        """What was damaged, refused or silent, one line each."""
        return [*self.bag.warnings, *self._notes(), *self._refused_lines(), *self.silence()]

    def silence(self) -> list[str]:
        """A line for each channel without a sample, at the end of an iteration."""
        return [f'{channel}: {SILENT}' for channel, count in self._counts.items() if self._finished and not count]

    def __iter__(self) -> Iterator[Sample]:
        if self.weighted:
            for samples in self.messages():
                yield from samples
            return
        names = self._channels
        for block in self.blocks():
            for place, stamp, value in zip(*(column.tolist() for column in block)):
                yield Sample(names[place], stamp, value)

    def blocks(self) -> Iterator[BagSamples]:
        """The same samples as arrays, many at a time, with bounded memory; may be called again."""
        self._begin()
        found: list[SampleError] = []
        bulk = Bulk(self.topics, self._many(found.append), found, self._channels)
        counts = np.zeros(len(self._channels), dtype=np.int64)
        for file in self.bag.batches(tuple(self.topics)):
            for block, times in blocks(file, bulk, self._alone):
                counts += np.bincount(block.channels, minlength=len(counts))
                aged = slice(None) if self._aged.all() else self._aged[block.channels]
                self.ages.take_block(self._channels, block.channels[aged], block.stamps[aged],
                                     times[aged].astype(np.int64))
                yield block
        self._end(dict(zip(self._channels, counts.tolist())))

    def messages(self) -> Iterator[list[Sample]]:
        """Samples of each message, one by one."""
        self._begin()
        counts = dict.fromkeys(self._channels, 0)
        for raw in self.bag.messages(set(self.topics)):
            samples = self._read(raw)
            for sample in samples:
                counts[sample.channel] += 1
                if self._aged[self._places[sample.channel]]:
                    self.ages.take(sample.channel, sample.stamp_ns, raw.stamp_ns)
            yield samples
        self._end(counts)

    def instants(self) -> Iterator[tuple[int, dict[str, float]]]:
        """Stamps, ns, and the samples of each message by channel, in the order of the bag."""
        for found in self.messages():
            yield from by_stamp(found)

    def _alone(self, raw: RawMessage) -> list[Placed]:
        """Samples of one message, the others of which are refused."""
        places = self._places
        return [(places[channel], stamp, value) for channel, stamp, value, _ in self._read(raw)]

    def _read(self, raw: RawMessage) -> list[Sample]:
        try:
            return self._samples(raw)
        except SampleError as error:
            self._refuse(error)
            return []

    def _samples(self, raw: RawMessage) -> list[Sample]:
        """Samples of a message; raises SampleError where it cannot be decoded."""
        return self._readers[raw.topic].samples(raw.topic, decode(raw))

    def _many(self, refuse: Refuse) -> Mapping[str, TopicReader]:
        """Of the topics whose messages are read many at once."""
        return self._make_readers(refuse)

    def _begin(self) -> None:
        """An iteration begins: what the one before has found counts no longer."""
        self._refused.clear()
        self.ages.reset()
        self._finished = False

    def _end(self, counts: dict[str, int]) -> None:
        """It has ended, with so many samples of each channel."""
        self._counts, self._finished = counts, True

    def _notes(self) -> Sequence[str]:
        """Warnings that do not depend on the samples."""
        return ()

    def _refuse(self, error: SampleError) -> None:
        kind = (error.channel, error.expected)
        self._refused.setdefault(kind, [error, 0])[1] += 1

    def _refused_lines(self) -> list[str]:
        return [f'{first}' + (f' (and {count - 1} more)' if count > 1 else '')
                for first, count in self._refused.values()]


class SampleReader(BagReader):
    """The reader of a machine's channels (of ``channels.SENSORS``) and commands (command/...) on the package's topics.

    ``of``: the machine, for errors. Raises BagError: a channel of unknown kind, nothing readable, none of the topics
    there, a topic of another type, several machines.
    """

    def __init__(self, bag: Bag | str | Path, channels: Iterable[str], commands: Iterable[str] = (),
                 topics: TopicMap = TopicMap(), of: str = '') -> None:
        bag, channels, commands = open_bag(bag), tuple(channels), tuple(commands)
        space = topics.find_namespace(bag.topics, str(bag.path))

        def make_readers(refuse: Refuse) -> dict[str, TopicReader]:
            try:
                readers = topic_readers(channels, commands, topics, refuse)
            except ValueError as error:
                raise BagError(str(bag.path), str(error)) from error
            return {topics.absolute(name, space): reader for name, reader in readers.items()}
        super().__init__(bag, (*channels, *commands), space, make_readers)
        self._check_topics(topics, of)

    @property
    def strangers(self) -> tuple[str, ...]:
        """Names on the topics of this package, and topics beside them, that are no channels of the machine."""
        return (*super().strangers, *self._ignored)

    def _notes(self) -> Sequence[str]:
        return [f'{topic}: no channel of the machine, not read' for topic in self._ignored]

    def _check_topics(self, topics: TopicMap, of: str) -> None:
        """Refuse a bag without any of the topics or with one of another type.

        Notes pressures nobody asked for, and IMUs where some were asked for.
        """
        kinds, path = self.bag.topics, str(self.bag.path)
        if not any(topic in kinds for topic in self._readers):
            raise BagError(path, held_instead(kinds) or (
                f'is it a bag of {of}? ' * bool(of) + 'none of the topics ' + ', '.join(self._readers)
                + ' is in it; there are ' + ', '.join(sorted(kinds))))
        for topic, reader in self._readers.items():
            if kinds.get(topic, reader.msgtype) != reader.msgtype:
                raise BagError(path, f'{topic} is a {kinds[topic]}, expected {reader.msgtype}')
        pressures, imus = (topics.absolute(name, self.namespace) + '/' for name in (topics.pressure, topics.imu))
        known = (pressures, imus) if any(topic.startswith(imus) for topic in self._readers) else (pressures,)
        self._ignored = sorted(topic for topic in kinds if topic.startswith(known) and topic not in self._readers)


def held_instead(kinds: Mapping[str, str]) -> str:
    """What a bag without sensors of a machine has, by its topics and their types: those of a mechanism, or estimates
    alone; '' of anything else."""
    linkage = sorted(topic for topic in kinds if topic.endswith(f'/{JOINTS}') or '/sensors/value/' in topic)
    estimates = sorted(topic for topic, kind in kinds.items() if kind in (STATE, PAYLOAD, LINKAGE_STATE))
    if estimates and not {JOINT_STATE, FLUID_PRESSURE, IMU} & {*kinds.values()}:
        return f'this bag holds estimates ({", ".join(estimates)}), no sensors: give the bag that they were made of'
    return (f'this bag is of a mechanism ({", ".join(linkage)}), not of a machine: mbse estimate BAG --mechanism NAME '
            'reads it' if linkage else '')
