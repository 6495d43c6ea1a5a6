# SPDX-License-Identifier: Apache-2.0
"""A log of any length through the pipeline, with bounded memory: what comes out is handed on and not kept.

One thread reads, interpolates and observes; the caller's weighs. Both at once, since the compiled functions give the
interpreter away; the results are those of one thread, bit for bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from queue import Empty, Full, Queue
from threading import Event, Thread

from ..bags.channel_samples import Sample
from ..bags.reader import SampleReader
from ..errors import SampleError
from ..machine import Machine
from ..settings import Settings
from ..sources.reader import SourceReader
from ..streams.pipeline import Output, Pipeline
from ..streams.records import Segment, StateEstimate

SEGMENT = 0.1       # s: a log needs no segments as short as a sensor's period, which cost three times as much
AHEAD = 4           # blocks of samples whose states may wait
PAUSE = 0.2         # s between two looks at whether the other thread still works
FEW = 4096          # samples at a time where a reader gives them one by one

_States = list[tuple[Segment, StateEstimate]]


class LongLog:
    """Iterates over the Outputs of a reader's samples, once; ``samples``: how many there were so far.

    ``segment``, s: see ``Pipeline``. ``dropped``: how many samples were refused, by channel; ``pipeline``: its payload
    has ``loads`` and ``budget``, complete at the end.
    """

    def __init__(self, reader: SampleReader | SourceReader, machine: Machine, tuning: dict[str, Settings],
                 backend: str = 'auto', segment: float = SEGMENT) -> None:
        self.pipeline = Pipeline(machine, **tuning, backend=backend, segment=segment)
        self._reader, self._inputs = reader, frozenset(machine.channels + machine.commands)
        self.dropped: Counter[str] = Counter()
        self.samples = 0
        self._stop = Event()
        self._ready: Queue[_States | BaseException | None] = Queue(AHEAD)

    def __iter__(self) -> Iterator[Output]:
        thread = Thread(target=self._observe, name='observer', daemon=True)
        thread.start()
        try:
            while (found := self._ready.get()) is not None:
                if isinstance(found, BaseException):
                    raise found
                for segment, state in found:
                    yield Output(segment, state, self.pipeline.payload.process(state))
        finally:
            self._stop.set()
            thread.join()

    def _observe(self) -> None:
        """In a thread of its own: states, block after block; last None or the error that ended it."""
        try:
            for samples in blocks_of(self._reader):
                if not self._hand_over(self._states(samples)):
                    return
            self._hand_over(self._observed(self.pipeline.last_segments()))
            self._hand_over(None)
        except BaseException as error:  # whatever it is, the caller raises it
            self._hand_over(error)

    def _states(self, samples: Iterable[Sample]) -> _States:
        """What samples complete, observed."""
        found: _States = []
        add, inputs = self.pipeline.segments, self._inputs
        for sample in samples:
            self.samples += 1
            if sample[0] not in inputs:
                continue
            try:
                segments = add(*sample)
            except SampleError:
                self.dropped[sample[0]] += 1
                continue
            if segments:
                found += self._observed(segments)
        return found

    def _observed(self, segments: Iterable[Segment]) -> _States:
        return [(segment, self.pipeline.observer.process(segment)) for segment in segments]

    def _hand_over(self, found: _States | BaseException | None) -> bool:
        """Wait until there is room; False where nobody takes it any more."""
        while not self._stop.is_set():
            try:
                self._ready.put(found, timeout=PAUSE)
                return True
            except Full:
                continue
        while True:     # let go of what waits
            try:
                self._ready.get_nowait()
            except Empty:
                return False


def blocks_of(reader: SampleReader | SourceReader) -> Iterator[Iterable[tuple]]:
    """Samples of a reader, (channel, stamp, ns, value) and perhaps its share, many at a time."""
    if isinstance(reader, SampleReader):
        names = reader.channels
        for block in reader.blocks():
            yield zip([names[place] for place in block.channels.tolist()], block.stamps.tolist(), block.values.tolist())
        return
    waiting: list[Sample] = []
    for sample in reader:
        waiting.append(sample)
        if len(waiting) == FEW:
            yield waiting
            waiting = []
    yield waiting
