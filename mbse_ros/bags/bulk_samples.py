# SPDX-License-Identifier: Apache-2.0
"""Samples of a bag, many at a time, in the order of the bag: of each block of a file what no later block precedes.

Messages that differ in stamp and numbers alone are read like the first of them, see ``message_layout``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..errors import SampleError
from .bag import FileBatches, RawMessage
from .channel_samples import TopicReader
from .message_layout import LARGEST, LAYOUTS, MISSES, STAMP, MessageBatch, layout_of
from .messages import SECOND, SENSOR_LAST_NS

SMALL = 4           # messages of a layout that are not worth it
ALONE = -1          # in place of a channel
Placed = tuple[int, int, float]     # a sample: its channel's place, stamp, ns, value
_WORD = 8


class BagSamples(NamedTuple):
    """Samples in the order of the bag: ``channels`` (n,), places among the reader's channels; ``stamps`` (n,), ns;
    ``values`` (n,), SI, NaN where missing."""

    channels: np.ndarray
    stamps: np.ndarray
    values: np.ndarray

    def take(self, rows: slice | np.ndarray) -> BagSamples:
        """Some of them."""
        return BagSamples(self.channels[rows], self.stamps[rows], self.values[rows])


class _Words(NamedTuple):
    """A layout for many messages: their ``size``, bytes; ``same`` and ``mask``: words, and which bits of them are
    always so; ``channels`` (s,) of its samples, places among the reader's, at byte ``places`` (s,)."""

    size: int
    same: np.ndarray
    mask: np.ndarray
    channels: np.ndarray
    places: np.ndarray


class Bulk:
    """Reads the messages of ``topics`` by their readers; those of a topic without one are left, to be read alone.

    ``readers`` refuse into ``refused``, a list that is empty between two calls; ``channels``: names of all.
    """

    def __init__(self, topics: Sequence[str], readers: Mapping[str, TopicReader], refused: list[SampleError],
                 channels: Sequence[str]) -> None:
        self._topics, self._readers, self._refused = tuple(topics), readers, refused
        self._places = {name: place for place, name in enumerate(channels)}
        self._layouts: list[list[_Words]] = [[] for _ in topics]
        self._misses = [0] * len(topics)

    def find(self, batch: MessageBatch) -> tuple[BagSamples, np.ndarray]:
        """Samples of a batch of these topics, and the message (n,) that each is of, ascending.

        A message that must be read by itself stands there as one sample of the channel ``ALONE``.
        """
        sizes, content = batch.stops - batch.starts, np.frombuffer(batch.content, np.uint8)
        parts: list[tuple[np.ndarray, BagSamples]] = []
        left: list[np.ndarray] = []
        for topic in range(len(self._topics)):
            own = np.flatnonzero(batch.topics == topic)
            if self._topics[topic] not in self._readers:
                left.append(own)
                continue
            for size in np.unique(sizes[own]).tolist():
                rest = own[sizes[own] == size]
                if STAMP.stop <= size <= LARGEST:
                    rest = self._taken(topic, batch, content, rest, size, parts)
                left.append(rest)
        alone = np.concatenate(left) if left else np.zeros(0, np.int64)
        parts.append((alone, BagSamples(np.full(len(alone), ALONE, np.int32), alone, np.zeros(len(alone)))))
        messages = np.concatenate([part for part, _ in parts])
        order = np.argsort(messages, kind='stable')
        return BagSamples(*(np.concatenate(columns)[order] for columns in zip(*(part for _, part in parts)))), messages[
            order]

    def _taken(self, topic: int, batch: MessageBatch, content: np.ndarray, own: np.ndarray, size: int,
               parts: list[tuple[np.ndarray, BagSamples]]) -> np.ndarray:
        """Take what messages of one size hold by the layouts; those that are left."""
        late: list[np.ndarray] = []
        layouts = self._layouts[topic]
        tried = [layout for layout in layouts if layout.size == size]
        words = _rows(content, batch.starts[own], size)
        while len(own):
            layout = tried.pop() if tried else None
            if layout is None:
                if len(own) < SMALL or self._misses[topic] > MISSES:
                    break
                layout = self._learnt(topic, batch.content[int(batch.starts[own[0]]):int(batch.stops[own[0]])])
                if layout is None:      # the first is left; the others may be sound
                    self._misses[topic] += 1
                    late.append(own[:1])
                    own, words = own[1:], words[1:]
                    continue
                if len(layouts) == LAYOUTS:
                    del layouts[0]
                    self._misses[topic] += 1
                layouts.append(layout)
            fits = ~np.any((words ^ layout.same) & layout.mask, axis=1)
            if fits.any():
                late.append(_samples(layout, own[fits], words[fits], parts))
                own, words = own[~fits], words[~fits]
        return np.concatenate([*late, own])

    def _learnt(self, topic: int, cdr: bytes) -> _Words | None:
        """The layout of a message; None where it must be read by the reader of single ones."""
        name = self._topics[topic]
        layout = layout_of(name, self._readers[name], cdr, self._refused)
        if layout is None:
            return None
        behind = bytes(-len(cdr) % _WORD)
        same, mask = (np.frombuffer(content + behind, np.uint64) for content in (layout.same, layout.mask))
        return _Words(len(cdr), same, mask,
                      np.array([self._places[channel] for channel in layout.channels], dtype=np.int32),
                      np.array(layout.places, dtype=np.int64))


def _rows(content: np.ndarray, starts: np.ndarray, size: int) -> np.ndarray:
    """Messages of one size as words (n, w), zeros behind their ends."""
    whole = np.zeros((len(starts), -(-size // _WORD) * _WORD), np.uint8)
    views = np.ndarray((len(content) - size + 1,), f'V{size}', content, strides=(1,))
    whole[:, :size] = views[starts].view(np.uint8).reshape(-1, size)
    return whole.view(np.uint64)


def _samples(layout: _Words, own: np.ndarray, words: np.ndarray,
             parts: list[tuple[np.ndarray, BagSamples]]) -> np.ndarray:
    """Put the samples of messages that fit a layout to the ``parts``; those whose stamp is no time are left."""
    seconds, nanoseconds = (_column(words, place, kind).astype(np.int64) for place, kind in (
        (STAMP.start, '<i4'), (STAMP.start + 4, '<u4')))
    stamps = seconds * SECOND + nanoseconds
    good = (nanoseconds < SECOND) & (np.abs(stamps) <= SENSOR_LAST_NS)
    left = own[~good]
    if len(left):
        own, words, stamps = own[good], words[good], stamps[good]
    count = len(layout.channels)
    if count and len(own):
        values = np.column_stack([_column(words, int(place), '<f8') for place in layout.places])
        parts.append((np.repeat(own, count), BagSamples(np.tile(layout.channels, len(own)), np.repeat(stamps, count),
                                                        values.ravel())))
    return left


def _column(words: np.ndarray, place: int, kind: str) -> np.ndarray:
    """Numbers (n,) at one byte of all rows."""
    return np.ndarray((len(words),), kind, words, place, (words.shape[1] * _WORD,))


def blocks(file: FileBatches, bulk: Bulk, alone: Callable[[RawMessage], Sequence[Placed]]
           ) -> Iterator[tuple[BagSamples, np.ndarray]]:
    """Samples of one file, with the times (n,) of their messages in the bag, ns; ``alone`` reads a message by itself,
    where it stands.

    Memory is that of a block and of what overlaps with it.
    """
    waiting = _Waiting(file)
    for batch in file.batches:
        samples, times = waiting.ready(batch, *bulk.find(batch))
        rows = np.flatnonzero(samples.channels == ALONE)
        if not rows.size:
            if len(times):
                yield samples, times
            continue
        parts: list[tuple[BagSamples, np.ndarray]] = []
        single: list[Placed] = []
        counts: list[int] = []
        start = first = 0           # of the samples that are not in ``parts``, and of the messages in ``counts``
        numbers, at = samples.stamps[rows].tolist(), times[rows].tolist()
        for k, row in enumerate(rows.tolist()):
            if row > start:
                parts += [_placed(single, counts, times[rows[first:k]]), (samples.take(slice(start, row)),
                                                                          times[start:row])]
                single, counts, first = [], [], k
            found = alone(waiting.message(numbers[k], at[k]))
            single += found
            counts.append(len(found))
            start = row + 1
        parts += [_placed(single, counts, times[rows[first:]]), (samples.take(slice(start, None)), times[start:])]
        joined = BagSamples(*(np.concatenate(columns) for columns in zip(*(part for part, _ in parts))))
        if len(joined.channels):
            yield joined, np.concatenate([own for _, own in parts])


def _placed(single: Sequence[Placed], counts: Sequence[int], times: np.ndarray) -> tuple[BagSamples, np.ndarray]:
    """Samples of messages that were read by themselves, so many of each, and the times (n,) of these, ns."""
    channels, stamps, values = zip(*single) if single else ((), (), ())
    return (BagSamples(np.array(channels, np.int32), np.array(stamps, np.int64), np.array(values, np.float64)),
            np.repeat(times, counts))


class _Waiting:
    """What later blocks may precede, ordered by time; and the messages that are read by themselves."""

    def __init__(self, file: FileBatches) -> None:
        self._file, self._count = file, 0
        self._alone: dict[int, tuple[int, bytes]] = {}      # topic and bytes, by the number of the message
        self._left: tuple[BagSamples, np.ndarray] | None = None

    def ready(self, batch: MessageBatch, samples: BagSamples, messages: np.ndarray) -> tuple[BagSamples, np.ndarray]:
        """Samples that can go, and the times of their messages; ``samples`` are those of the messages of a batch."""
        times = batch.times[messages]
        rows = np.flatnonzero(samples.channels == ALONE)
        for number in messages[rows].tolist():
            content = batch.content[int(batch.starts[number]):int(batch.stops[number])]
            self._alone[self._count + number] = int(batch.topics[number]), content
        samples.stamps[rows] += self._count
        self._count += len(batch.times)
        if self._file.in_order:
            return samples, times
        if self._left is not None:
            before, times_before = self._left
            samples = BagSamples(*(np.concatenate(pair) for pair in zip(before, samples)))
            times = np.concatenate([times_before, times])
        if np.any(times[1:] < times[:-1]):
            order = np.argsort(times, kind='stable')
            samples, times = samples.take(order), times[order]
        count = len(times) if batch.last is None else int(np.searchsorted(times, times.dtype.type(batch.last), 'right'))
        self._left = (samples.take(slice(count, None)), times[count:]) if count < len(times) else None
        return samples.take(slice(count)), times[:count]

    def message(self, number: int, time: int) -> RawMessage:
        """A message that is read by itself."""
        topic, content = self._alone.pop(number)
        return self._file.message(time, topic, content)
