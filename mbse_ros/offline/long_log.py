# SPDX-License-Identifier: Apache-2.0
"""A log of any length through the pipeline, with bounded memory: what comes out is handed on and not kept.

One thread reads and interpolates, one observes, and the caller's weighs. The results are those of one thread, bit for
bit.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from queue import Full, Queue
from statistics import median_low
from threading import Event, Thread
from typing import Any, TypeVar

from ..bags.channel_samples import Sample
from ..bags.reader import BagReader
from ..bags.recorded_commands import RecordedCommands
from ..description.age import age_text, aged, calibrated_on, day_of, drifting
from ..errors import SampleError
from ..machine import Machine
from ..streams.pipeline import Output, Pipeline
from ..streams.records import Segment, StateEstimate
from .log_samples import Dropped, LogSamples, block_of

Observed = list[tuple[Segment, StateEstimate]]
T = TypeVar('T')
START = 100     # samples, the median stamp of which says when a log starts: 49 wrong stamps do not change it
SEGMENT = 0.1       # s: a log needs no segments as short as a sensor's period, which cost three times as much
AHEAD = 4           # blocks of samples that may wait between two threads
FEW = 256           # samples at a time where a reader gives them one by one
SWITCH = 0.0005     # s that a thread waits at most for the interpreter; by default Python takes ten times as much
PAUSE = 0.2         # s between two looks at whether anybody still takes


def _on_its_day(machine: Machine, samples: Iterable[Sample]) -> tuple[Machine, tuple[str, ...]]:
    """The machine with the zeros of its sensors as uncertain as on the day on which a log of ``samples`` starts, and
    what is odd about that day, in words.

    Where nothing drifts, or no stamp says the day, it is the machine itself: as on the day on which it was loaded.
    """
    names = drifting(machine.description)
    stamps = [sample.stamp_ns for sample in islice(samples, START)] if names else []
    if not stamps:
        return machine, ()
    key, day = f'sensors.{names[0]}.drift', day_of(median_low(stamps))
    if day is None:
        return machine, (f'{key}: the stamps of this log have no date: its zeros count as those of today, '
                         f'{age_text(machine.description)}',)
    found = aged(machine.description, day)
    early = (f'{key}: this log begins {age_text(found)}, the date of the calibration (calibration.date): its zeros '
             'count as uncertain as so many days after it',) * (day < calibrated_on(found))
    return machine if found == machine.description else Machine(found), early


class LongLog:
    """Iterates over the Outputs of a reader's samples, once; ``samples``: how many there were so far.

    ``reader``: a BagReader, or single samples; ``keep`` gets all of them, and which are refused; without threads it
    may be exchanged. ``machine``: zeros that drift get their age on the day of the log; ``aging``: what is odd about
    that day. ``segment``, s: see ``Pipeline``. Without ``threads`` the caller's does all. ``commands`` of each step, as
    a recorded graph has used them. ``dropped``: what was refused; ``pipeline``: its payload has ``loads`` and
    ``budget``, complete at the end. Raises what the reader raises.
    """

    def __init__(self, reader: Iterable[Sample], machine: Machine, tuning: dict[str, Any], backend: str = 'auto',
                 segment: float = SEGMENT, keep: LogSamples | None = None, threads: bool = True,
                 commands: RecordedCommands | None = None) -> None:
        machine, self.aging = _on_its_day(machine, reader)
        self.pipeline = Pipeline(machine, **tuning, backend=backend, segment=segment)
        self._reader, self.keep, self._threads, self._commands = reader, keep, threads, commands
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
            yield from self._states(self._segments())
            return
        with _quick_switches(), closing(ahead(self._states(ahead(self._segments(), AHEAD)), AHEAD)) as states:
            yield from states

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


@contextmanager
def _quick_switches() -> Iterator[None]:
    """Threads that come back from compiled functions get the interpreter soon."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, SWITCH))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def ahead(source: Iterator[T], depth: int) -> Generator[T, None, None]:
    """The same items in the same order, up to ``depth`` of which wait; an error of the source is raised where it came.

    Who stops taking early closes this iterator: then the source is closed, too, and its thread has ended.
    """
    waiting: Queue[tuple[bool, Any]] = Queue(depth)
    stop = Event()
    thread = Thread(target=_work, args=(source, waiting, stop), name='ahead', daemon=True)
    thread.start()
    try:
        while True:
            good, item = waiting.get()
            if not good:
                if item is not None:
                    raise item
                return
            yield item
    finally:
        stop.set()
        thread.join()


def _work(source: Iterator[T], waiting: Queue[tuple[bool, Any]], stop: Event) -> None:
    """In the thread: items as (True, item), at the end (False, error or None)."""
    end: BaseException | None = None
    try:
        for item in source:
            if not _put(waiting, (True, item), stop):
                break
    except BaseException as error:      # whatever it is, who takes raises it
        end = error
    finally:
        if hasattr(source, 'close'):
            source.close()
    _put(waiting, (False, end), stop)


def _put(waiting: Queue[tuple[bool, Any]], item: tuple[bool, Any], stop: Event) -> bool:
    """Wait until there is room; False where nothing takes any more."""
    while not stop.is_set():
        try:
            waiting.put(item, timeout=PAUSE)
            return True
        except Full:
            continue
    return False
