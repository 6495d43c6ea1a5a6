# SPDX-License-Identifier: Apache-2.0
"""Samples of a machine's channels out of a bag, whoever recorded it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from ..errors import BagError, SampleError
from .bag import Bag, decode, open_bag
from .channel_samples import Sample, TopicReader, topic_readers
from .topics import TopicMap


class SampleReader:
    """Samples of channels (of ``channels.SENSORS``) and commands (command/...) in the order of the bag, with what was
    refused; may be iterated again.

    ``refused``: one SampleError of each kind (the first); ``warnings``: lines about the bag, the refused samples and
    silent channels, complete at the end of the iteration; ``namespace``: the one read ('' or '/crane').
    Raises BagError: a channel of unknown kind, nothing readable, none of the topics there, a topic of another type,
    several machines.
    """

    def __init__(self, bag: Bag | str | Path, channels: Iterable[str], commands: Iterable[str] = (),
                 topics: TopicMap = TopicMap()) -> None:
        self.bag, channels, commands = open_bag(bag), tuple(channels), tuple(commands)
        self.namespace = topics.find_namespace(self.bag.topics, str(self.bag.path))
        self._channels = (*channels, *commands)
        self._readers = self._assign(channels, commands, topics)
        self._check_topics(topics)
        self._refused: dict[tuple, list] = {}
        self._finished = False

    @property
    def refused(self) -> list[SampleError]:
        """The first refused sample of each kind."""
        return [first for first, _ in self._refused.values()]

    @property
    def warnings(self) -> list[str]:
        """What was damaged, refused or silent, one line each."""
        lines = self.bag.warnings + [f'{topic}: no channel of the machine, not read' for topic in self._ignored]
        for first, count in self._refused.values():
            lines.append(f'{first}' + (f' (and {count - 1} more)' if count > 1 else ''))
        if self._finished:
            lines += [f'{channel}: no sample in the bag' for channel, count in self._counts.items() if not count]
        return lines

    def __iter__(self) -> Iterator[Sample]:
        self._refused.clear()
        self._finished, self._counts = False, dict.fromkeys(self._channels, 0)
        for raw in self.bag.messages(self._readers):
            try:
                message = decode(raw)
                samples = self._readers[raw.topic].samples(raw.topic, message)
            except SampleError as error:
                self._refuse(error)
                continue
            for sample in samples:
                self._counts[sample.channel] += 1
                yield sample
        self._finished = True

    def _refuse(self, error: SampleError) -> None:
        kind = (error.channel, error.expected)
        self._refused.setdefault(kind, [error, 0])[1] += 1

    # Topics

    def _assign(self, channels: tuple[str, ...], commands: tuple[str, ...], topics: TopicMap) -> dict[str, TopicReader]:
        """How to read each topic."""
        try:
            readers = topic_readers(channels, commands, topics, self._refuse)
        except ValueError as error:
            raise BagError(str(self.bag.path), str(error)) from error
        return {topics.absolute(name, self.namespace): reader for name, reader in readers.items()}

    def _check_topics(self, topics: TopicMap) -> None:
        """Refuse a bag without any of the topics or with one of another type.

        Notes pressures nobody asked for, and IMUs where some were asked for.
        """
        kinds, path = self.bag.topics, str(self.bag.path)
        if not any(topic in kinds for topic in self._readers):
            raise BagError(path, 'none of the topics ' + ', '.join(self._readers) + ' is in it; there are '
                           + ', '.join(sorted(kinds)))
        for topic, reader in self._readers.items():
            if kinds.get(topic, reader.msgtype) != reader.msgtype:
                raise BagError(path, f'{topic} is a {kinds[topic]}, expected {reader.msgtype}')
        pressures, imus = (topics.absolute(name, self.namespace) + '/' for name in (topics.pressure, topics.imu))
        known = (pressures, imus) if any(topic.startswith(imus) for topic in self._readers) else (pressures,)
        self._ignored = sorted(topic for topic in kinds if topic.startswith(known) and topic not in self._readers)
