# SPDX-License-Identifier: Apache-2.0
"""Samples of a machine's channels out of a bag, whoever recorded it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import BagError, SampleError, StampError
from ..monitor.ages import Ages
from .bag import Bag, RawMessage, decode, open_bag
from .bulk.bulk_samples import BagSamples, Bulk, blocks
from .channel_samples import Refuse, Sample, TopicReader, topic_readers
from .sensor_topics import JOINTS
from .topics import FLUID_PRESSURE, IMU, JOINT_STATE, LINKAGE_STATE, PAYLOAD, STATE, TopicMap

SILENT = 'no sample in the bag'


class SampleReader:
    """Samples of channels (of ``channels.SENSORS``) and commands (command/...) in the order of the bag, with what was
    refused; may be iterated again.

    ``refused``: one SampleError of each kind (the first); ``warnings``: lines about the bag, the refused samples and
    silent channels; ``ages`` on arrival; both complete at the end of an iteration; ``namespace`` read ('' or '/crane');
    ``of``: the machine, for errors.
    Raises BagError: a channel of unknown kind, nothing readable, none of the topics there, a topic of another type,
    several machines.
    """

    def __init__(self, bag: Bag | str | Path, channels: Iterable[str], commands: Iterable[str] = (),
                 topics: TopicMap = TopicMap(), of: str = '') -> None:
        self.bag, channels, commands = open_bag(bag), tuple(channels), tuple(commands)
        self.namespace = topics.find_namespace(self.bag.topics, str(self.bag.path))
        self._channels = tuple(dict.fromkeys((*channels, *commands)))
        self._places = {name: place for place, name in enumerate(self._channels)}
        self._make_readers = partial(self._assign, channels, commands, topics)
        self._readers = self._make_readers(self._refuse)
        self._check_topics(topics, of)
        self._refused: dict[tuple[str, str], list[Any]] = {}
        self.ages = Ages()
        self._finished = False

    @property
    def refused(self) -> list[SampleError]:
        """The first refused sample of each kind."""
        return [first for first, _ in self._refused.values()]

    @property
    def untimed(self) -> dict[str, tuple[int, str]]:
        """How many messages of a topic had a stamp that is not a time, and the first such stamp."""
        return {first.channel: (count, str(first.value)) for first, count in self._refused.values()
                if isinstance(first, StampError)}

    @property
    def warnings(self) -> list[str]:
        """What was damaged, refused or silent, one line each."""
        lines = self.bag.warnings + [f'{topic}: no channel of the machine, not read' for topic in self._ignored]
        for first, count in self._refused.values():
            lines.append(f'{first}' + (f' (and {count - 1} more)' if count > 1 else ''))
        return lines + self.silence()

    def silence(self) -> list[str]:
        """A line for each channel without a sample, at the end of an iteration."""
        counts = self._counts if self._finished else {}
        return [f'{channel}: {SILENT}' for channel, count in counts.items() if not count]

    @property
    def channels(self) -> tuple[str, ...]:
        """Channels and commands, in the order of their places in ``blocks``."""
        return self._channels

    def __iter__(self) -> Iterator[Sample]:
        names = self._channels
        for block in self.blocks():
            for place, stamp, value in zip(*(column.tolist() for column in block)):
                yield Sample(names[place], stamp, value)

    def blocks(self) -> Iterator[BagSamples]:
        """The same samples as arrays, many at a time, with bounded memory; may be called again."""
        self._refused.clear()
        self.ages.reset()
        self._finished, counts = False, np.zeros(len(self._channels), dtype=np.int64)
        found: list[SampleError] = []
        bulk = Bulk(self._make_readers(found.append), found, self._channels)
        for file in self.bag.batches(tuple(self._readers)):
            for block, times in blocks(file, bulk, self._alone):
                counts += np.bincount(block.channels, minlength=len(counts))
                self.ages.take_block(self._channels, block.channels, block.stamps, times.astype(np.int64))
                yield block
        self._counts = dict(zip(self._channels, counts.tolist()))
        self._finished = True

    def _alone(self, raw: RawMessage) -> BagSamples:
        """Samples of one message, the others of which are refused."""
        try:
            samples = self._readers[raw.topic].samples(raw.topic, decode(raw))
        except SampleError as error:
            self._refuse(error)
            samples = []
        return BagSamples(np.array([self._places[sample.channel] for sample in samples], dtype=np.int32),
                          np.array([sample.stamp_ns for sample in samples], dtype=np.int64),
                          np.array([sample.value for sample in samples], dtype=np.float64))

    def _refuse(self, error: SampleError) -> None:
        kind = (error.channel, error.expected)
        self._refused.setdefault(kind, [error, 0])[1] += 1

    # Topics

    def _assign(self, channels: tuple[str, ...], commands: tuple[str, ...], topics: TopicMap, refuse: Refuse
                ) -> dict[str, TopicReader]:
        """How to read each topic."""
        try:
            readers = topic_readers(channels, commands, topics, refuse)
        except ValueError as error:
            raise BagError(str(self.bag.path), str(error)) from error
        return {topics.absolute(name, self.namespace): reader for name, reader in readers.items()}

    def _check_topics(self, topics: TopicMap, of: str) -> None:
        """Refuse a bag without any of the topics or with one of another type.

        Notes pressures nobody asked for, and IMUs where some were asked for.
        """
        kinds, path = self.bag.topics, str(self.bag.path)
        if not any(topic in kinds for topic in self._readers):
            raise BagError(path, held_instead(kinds) or (
                'none of the topics ' + ', '.join(self._readers) + ' is in it; there are ' + ', '.join(sorted(kinds))
                + f'; it was read as a bag of {of}' * bool(of)))
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
