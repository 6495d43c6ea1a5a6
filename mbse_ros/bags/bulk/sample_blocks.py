# SPDX-License-Identifier: Apache-2.0
"""Samples of a bag, many at a time, in the order of the bag: of each block of a file what no later block precedes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..bag import FileBatches, RawMessage
from .bulk_samples import ALONE, Bulk, Samples
from .message_batch import Batch


def blocks(file: FileBatches, bulk: Bulk, alone: Callable[[RawMessage], Samples]
           ) -> Iterator[tuple[Samples, np.ndarray]]:
    """Samples of one file, with the times (n,) of their messages in the bag, ns; ``alone`` reads a message by itself,
    where it stands.

    Memory is that of a block and of what overlaps with it.
    """
    waiting = _Waiting(file)
    for batch in file.batches:
        samples, times = waiting.ready(batch, *bulk.find(batch))
        start = 0
        for row in np.flatnonzero(samples.channels == ALONE).tolist():
            if row > start:
                yield samples.take(slice(start, row)), times[start:row]
            found = alone(waiting.message(int(samples.stamps[row]), int(times[row])))
            if len(found.channels):
                yield found, np.full(len(found.channels), times[row], dtype=np.int64)
            start = row + 1
        if start < len(times):
            yield samples.take(slice(start, None)), times[start:]


class _Waiting:
    """What later blocks may precede, ordered by time; and the messages that are read by themselves."""

    def __init__(self, file: FileBatches) -> None:
        self._file, self._count = file, 0
        self._alone: dict[int, tuple[int, bytes]] = {}      # topic and bytes, by the number of the message
        self._left: tuple[Samples, np.ndarray] | None = None

    def ready(self, batch: Batch, samples: Samples, messages: np.ndarray) -> tuple[Samples, np.ndarray]:
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
            samples = Samples(*(np.concatenate(pair) for pair in zip(before, samples)))
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
