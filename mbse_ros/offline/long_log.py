# SPDX-License-Identifier: Apache-2.0
"""A log of any length through the pipeline, with bounded memory: what comes out is handed on and not kept.

One thread reads and interpolates, one observes, and the caller's weighs. At once, since NumPy, decompression and the
compiled functions give the interpreter away; the results are those of one thread, bit for bit.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from ..bags.reader import SampleReader
from ..errors import SampleError
from ..machine import Machine
from ..sources.reader import SourceReader
from ..streams.pipeline import Output, Pipeline
from ..streams.records import Segment, StateEstimate
from .ahead import ahead

SEGMENT = 0.1       # s: a log needs no segments as short as a sensor's period, which cost three times as much
AHEAD = 4           # blocks of samples that may wait between two threads
SWITCH = 0.0005     # s that a thread waits at most for the interpreter; of itself Python takes ten times as much
FEW = 32            # segments at a time where a reader gives samples one by one


class LongLog:
    """Iterates over the Outputs of a reader's samples, once; ``samples``: how many there were so far.

    ``segment``, s: see ``Pipeline``. ``dropped``: how many samples were refused, by channel; ``pipeline``: its payload
    has ``loads`` and ``budget``, complete at the end. Raises what the reader raises.
    """

    def __init__(self, reader: SampleReader | SourceReader, machine: Machine, tuning: dict[str, Any],
                 backend: str = 'auto', segment: float = SEGMENT) -> None:
        self.pipeline = Pipeline(machine, **tuning, backend=backend, segment=segment)
        self._reader = reader
        self.dropped: Counter[str] = Counter()
        self.samples = 0

    def __iter__(self) -> Iterator[Output]:
        payload = self.pipeline.payload
        with _quick_switches(), closing(ahead(self._states(ahead(self._segments(), AHEAD)), AHEAD)) as states:
            for found in states:
                for segment, state in found:
                    yield Output(segment, state, payload.process(state))

    def _segments(self) -> Iterator[Sequence[Segment]]:
        """What the samples complete, some at a time."""
        if isinstance(self._reader, SampleReader):
            yield from self._segments_of_blocks(self._reader)
        else:
            yield from self._segments_one_by_one(self._reader)
        yield self.pipeline.last_segments()

    def _segments_of_blocks(self, reader: SampleReader) -> Iterator[Sequence[Segment]]:
        names = reader.channels
        for block in reader.blocks():
            self.samples += len(block.stamps)
            yield self.pipeline.all_segments(names, *block, self._refuse)

    def _segments_one_by_one(self, reader: SourceReader) -> Iterator[Sequence[Segment]]:
        """Samples that may be worth less than others."""
        found: list[Segment] = []
        for sample in reader:
            self.samples += 1
            try:
                found += self.pipeline.segments(*sample)
            except SampleError as error:
                self._refuse(error)
            if len(found) >= FEW:
                yield found
                found = []
        yield found

    def _refuse(self, error: SampleError) -> None:
        self.dropped[error.channel] += 1

    def _states(self, blocks: Generator[Sequence[Segment], None, None]
                ) -> Iterator[list[tuple[Segment, StateEstimate]]]:
        """The segments of each block, observed."""
        process = self.pipeline.observer.process
        with closing(blocks):
            for segments in blocks:
                yield [(segment, process(segment)) for segment in segments]


@contextmanager
def _quick_switches() -> Iterator[None]:
    """Threads that come back from compiled functions get the interpreter soon."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, SWITCH))
    try:
        yield
    finally:
        sys.setswitchinterval(before)
