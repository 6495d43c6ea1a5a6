# SPDX-License-Identifier: Apache-2.0
"""A log of any length through the pipeline, with bounded memory: what comes out is handed on and not kept.

The caller's thread reads, interpolates and weighs, and processes observe, each a stretch between two restarts. A log
that is too short for processes, or where none can be started, takes threads: one reads and interpolates, one observes,
and the caller's weighs. The results are those of one thread, bit for bit.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from typing import Any

from ..bags.channel_samples import Sample
from ..bags.reader import BagReader
from ..bags.recorded_commands import RecordedCommands
from ..errors import SampleError
from ..machine import Machine
from ..streams.pipeline import Output, Pipeline
from ..streams.records import Segment
from ..workers import processors
from .ahead import ahead
from .log_samples import Dropped, LogSamples, block_of
from .observers import SWITCH, Observed, Observers, observed

SEGMENT = 0.1       # s: a log needs no segments as short as a sensor's period, which cost three times as much
AHEAD = 4           # blocks of samples that may wait between two threads
PROCESSES = 2       # at most, and one less than there are processors: more would wait for who weighs
SHORT = 600_000     # steps of the observer, up to which a log is done before processes that take seconds to start
WAITING = 200_000   # steps that may wait: memory, but a process needs the stretch after the one that another is at
FEW = 256           # samples at a time where a reader gives them one by one


class LongLog:
    """Iterates over the Outputs of a reader's samples, once; ``samples``: how many there were so far.

    ``reader``: a BagReader, or single samples; ``keep`` gets all of them, and which are refused; without threads it
    may be exchanged. ``segment``, s: see ``Pipeline``. ``processes``: of the observer, for a log of more than ``SHORT``
    steps, 0: threads; as many as there were, in the end. Without ``threads`` the caller's does all. ``commands`` of
    each step, as a recorded graph has used them. ``dropped``: what was refused; ``pipeline``: its payload has ``loads``
    and ``budget``, complete at the end.
    Raises what the reader raises; MbseError where a process of the observer ends before the log.
    """

    def __init__(self, reader: Iterable[Sample], machine: Machine, tuning: dict[str, Any], backend: str = 'auto',
                 segment: float = SEGMENT, processes: int | None = None, keep: LogSamples | None = None,
                 threads: bool = True, commands: RecordedCommands | None = None) -> None:
        self.pipeline = Pipeline(machine, **tuning, backend=backend, segment=segment)
        self._reader, self._backend, self.keep = reader, backend, keep
        self._threads, self._commands = threads, commands
        self.processes = max(1, min(PROCESSES, processors() - 1)) if processes is None else processes
        self.dropped = Dropped()
        self.samples = 0

    def __iter__(self) -> Generator[Output, None, None]:
        payload = self.pipeline.payload
        with closing(self._observed()) as observed_blocks:
            for found in observed_blocks:
                for segment, state in found:
                    yield Output(segment, state, payload.process(state))

    def _observed(self) -> Generator[Observed, None, None]:
        if not self._threads:
            self.processes = 0
            yield from self._states(self._segments())
            return
        blocks, is_long = _begun(self._segments(), SHORT)
        observers = self._observers() if is_long and self.processes else None
        self.processes = 0 if observers is None else self.processes
        if observers is not None:
            with closing(observers):
                yield from observed(blocks, observers, WAITING)
        else:
            with _quick_switches(), closing(ahead(self._states(ahead(blocks, AHEAD)), AHEAD)) as states:
                yield from states

    def _observers(self) -> Observers | None:
        """Processes, where they can be started."""
        observer = self.pipeline.observer
        try:
            return Observers(observer.machine, observer.settings, self._backend, self.processes)
        except OSError:
            return None

    def _segments(self) -> Generator[Sequence[Segment], None, None]:
        """What the samples complete, some at a time, with the commands that were used where they were recorded."""
        if (used := self._commands) is None:
            yield from self._completed()
            return
        waiting: Sequence[Segment] = ()     # for the samples of the next block: a late command may be one of them
        for segments in self._completed():
            yield [used.of(segment) for segment in waiting]
            waiting = segments
        yield [used.of(segment) for segment in waiting]

    def _completed(self) -> Generator[Sequence[Segment], None, None]:
        if isinstance(self._reader, BagReader) and not self._reader.weighted:
            yield from self._segments_of_blocks(self._reader)
        else:
            yield from self._segments_one_by_one(self._reader)
        yield self.pipeline.last_segments()

    def _segments_of_blocks(self, reader: BagReader) -> Iterator[Sequence[Segment]]:
        names = reader.channels
        for block in reader.blocks():
            self._note(names, *block)
            yield self.pipeline.all_segments(names, *block, self._refuse)

    def _segments_one_by_one(self, reader: Iterable[Sample]) -> Iterator[Sequence[Segment]]:
        """Samples that may be worth less than others."""
        rest = iter(reader)
        while part := list(islice(rest, FEW)):
            self._note(*block_of(part))
            found: list[Segment] = []
            for row, sample in enumerate(part):
                try:
                    found += self.pipeline.segments(*sample)
                except SampleError as error:
                    self._refuse(error, row)
            yield found

    def _note(self, *block: Any) -> None:
        """Samples come: names of channels, and of each sample its place among them, stamp and value."""
        self.samples += len(block[-1])
        if self.keep is not None:
            self.keep.add(*block)
        if self._commands is not None:
            self._commands.take(*block)

    def _refuse(self, error: SampleError, row: int) -> None:
        self.dropped.add(error)
        if self.keep is not None:
            self.keep.refuse(row)

    def _states(self, blocks: Generator[Sequence[Segment], None, None]
                ) -> Generator[Observed, None, None]:
        """The segments of each block, observed."""
        process = self.pipeline.observer.process
        with closing(blocks):
            for segments in blocks:
                yield [(segment, process(segment)) for segment in segments]


def _begun(blocks: Iterator[Sequence[Segment]], most: int
           ) -> tuple[Generator[Sequence[Segment], None, None], bool]:
    """The same blocks, and whether they have more than so many steps; an error is raised where it came."""
    first: deque[Sequence[Segment]] = deque()
    steps, problem = 0, None
    try:
        while steps <= most and (segments := next(blocks, None)) is not None:
            first.append(segments)
            steps += sum(len(segment.values) for segment in segments)
    except Exception as error:
        problem = error

    def again() -> Generator[Sequence[Segment], None, None]:
        while first:
            yield first.popleft()
        if problem is not None:
            raise problem
        yield from blocks
    return again(), steps > most


@contextmanager
def _quick_switches() -> Iterator[None]:
    """Threads that come back from compiled functions get the interpreter soon."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, SWITCH))
    try:
        yield
    finally:
        sys.setswitchinterval(before)
