# SPDX-License-Identifier: Apache-2.0
"""Bags through the pipeline and the scale: the loads in them, as the node would have counted them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..bags.bag import open_bag
from ..bags.recorded_commands import RecordedCommands
from ..bags.topics import TopicMap
from ..errors import BagError
from ..machine import Machine
from ..scale.book import Book
from ..scale.record import LOAD, MISSED, Record, confirmed_record, missed_line
from ..scale.record_file import read_records
from ..scale.scale_file import BARE, Overload, ScaleFile
from ..scale.scale_settings import ScaleSettings
from ..scale.stage import ScaleStage
from ..sources.map import SourceMap
from ..sources.reader import sample_reader
from ..streams.elapsed import Elapsed, set_back
from ..streams.records import PayloadStatus
from .bag import TUNING, frame_of
from .checks.findings import machine_lines
from .checks.log_verdict import log_verdict, stage_lines
from .checks.no_segment import nothing
from .log_samples import LogSamples
from .long_log import LongLog
from .track import Tracker

KINDS = {**TUNING, 'scale': ScaleSettings}
FOLLOWS_NS = 2_000_000_000      # from bag to bag: a recording that was split continues
UNWEIGHED = PayloadStatus.NO_DATA, PayloadStatus.IMPLAUSIBLE
LONG = 0.25         # share of a bag in which a mass is held so, from which it is said
PART = 4_000_000    # samples of a bag that are judged at once: what they take of the memory is bounded


@dataclass(frozen=True)
class WeighedLoad:
    """A load, by its record, in a ``bag``; times, s from that bag's first estimate on the axis of ``Elapsed``;
    of records of a live scale s from the first load, without what a clock was set back."""

    record: Record
    bag: str
    start: float
    end: float


@dataclass(frozen=True)
class WeighedBags:
    """What the scale found on a ``machine``, or what was recorded: ``loads``, those that do not count too, the ``book``
    of all, its ``records``, ``overloads`` in words, what was odd, how long the bags are, s, and whether records are
    ``damaged``, which are in none of these."""

    machine: str
    loads: tuple[WeighedLoad, ...]
    book: Book
    records: tuple[Record, ...]
    overloads: tuple[str, ...]
    warnings: tuple[str, ...]
    seconds: float
    damaged: bool = False


def weigh_bags(bags: Sequence[str | Path], machine: Machine, tuning: Mapping[str, Any], file: ScaleFile = ScaleFile(),
               attachment: str = BARE, trucks: Sequence[str] = (), namespace: str | None = None, backend: str = 'auto',
               sources: SourceMap | None = None, every: float = 0.0) -> WeighedBags:
    """Loads of bags in sequence; one that begins where the one before ends continues its recording. A load that
    hangs when a recording ends counts. ``tuning`` as ``parse_tuning`` gives it with KINDS; ``trucks``: of each bag;
    ``every``: as of ``estimate_bag``.

    Raises BagError where no estimate comes out, DescriptionError, ScaleError for an attachment that is not known.
    """
    rest = {room: value for room, value in tuning.items() if room != 'scale'}
    run = _Run(machine, ScaleStage(machine, tuning.get('scale', ScaleSettings()), file), every)
    if attachment != BARE:
        run.note(run.stage.attach(attachment))
    for place, bag in enumerate(bags):
        run.read(bag, rest, backend, trucks[place] if place < len(trucks) else '', namespace, sources)
    run.close()
    return run.weighed()


def recorded_loads(path: str | Path) -> WeighedBags:
    """The same of the records of a live scale that are whole, times from the start of the first load; raises
    RecordsError."""
    file, book = read_records(path), Book()
    records = file.records
    for record in records:
        book.apply(record)
    stamps = [record.stamp_ns for record in records]
    begins = [int(record.data['start_ns']) if record.kind == LOAD else record.stamp_ns for record in records]
    shifts = dict(zip((record.number for record in records), set_back(stamps, begins).tolist()))
    loads = [record for record in records if record.kind == LOAD]
    begin = min((record.data['start_ns'] + shifts[record.number] for record in loads), default=0)
    found = tuple(WeighedLoad(record, str(path), 1e-9 * (record.data['start_ns'] + shifts[record.number] - begin),
                              1e-9 * (record.data['end_ns'] + shifts[record.number] - begin)) for record in loads)
    seconds = max((load.end for load in found), default=0.0)
    counted = {record.key for record in loads}
    missed = tuple(missed_line(record) for record in records
                   if record.kind == MISSED and confirmed_record(record, 0).key not in counted)
    warnings = (*(f'{path}: {line}' for line in file.lines), *missed)
    return WeighedBags(file.machine, found, book, records, (), warnings, seconds, bool(file.damages))


class _Run:
    """Bags one after the other."""

    def __init__(self, machine: Machine, stage: ScaleStage, every: float) -> None:
        self.machine, self.stage, self.every = machine, stage, every
        self.loads: list[WeighedLoad] = []
        self.records: list[Record] = []
        self.overloads: list[str] = []
        self.warnings: list[str] = []
        self.seconds = 0.0
        self._bag, self._elapsed, self._begin_ns = '', Elapsed(), 0
        self._last_ns: int | None = None
        self._over = False
        self._recording = 0         # number of the recording, of bags that continue each other
        self._recordings: dict[int, int] = {}       # of loads, by the number of their record
        self._doubts: list[tuple[int, int, int, tuple[str, ...]]] = []      # recording, first and last stamp, and why

    def read(self, bag: str | Path, tuning: Mapping[str, Any], backend: str, truck: str, namespace: str | None,
             sources: SourceMap | None) -> None:
        """One bag, by the caller's thread alone."""
        source, first, begun = open_bag(bag), None, self.seconds
        held: defaultdict[str, float] = defaultdict(float)      # s by reason
        reader = sample_reader(source, self.machine, namespace, sources)
        used = RecordedCommands(source, self.machine.commands, reader.namespace)
        log = LongLog(reader, self.machine, dict(tuning), backend, segment=self.every, threads=False,
                      keep=(samples := LogSamples()), commands=used)
        odd, tracker, since = list[str](), Tracker(False), self.seconds

        def judge() -> None:
            verdict = log_verdict(samples, track := tracker.track(), log.pipeline, reader.ages)
            odd.extend(f'from {since - begun:.0f} s on: {line}' if since > begun else line for line in verdict.lines)
            self._doubts.append((self._recording, int(track.start_ns.min()), int(track.stamp_ns.max()), verdict.doubts))
        for output in log:
            begins, segment = first is None, output.segment
            if begins:
                first = output.state.stamp_ns
                self._next(str(bag), first, truck)
            self._elapsed.add(segment.start_ns, segment.stamp_ns, segment.restart)
            lasts = 1e-9 * (segment.stamp_ns - segment.start_ns)
            self.seconds += lasts
            if output.payload.status in UNWEIGHED:
                held[output.payload.reason] += lasts
            if begins:
                self._begin_ns = self._elapsed.total
            self.note(self.stage.process(output.state, output.payload))
            self._last_ns = output.state.stamp_ns
            self._look_at_chart()
            tracker.add(output)
            if samples.count >= PART:
                judge()
                log.keep = samples = LogSamples()
                tracker, since = Tracker(False), self.seconds
        name = Path(bag).resolve().name
        if sum(held.values()) > LONG * (self.seconds - begun):
            self.warnings.append(f'{name}: the mass was held for {sum(held.values()):.1f} s, for the longest time: '
                                 f'{max(held, key=lambda reason: held[reason])}')
        if tracker:
            judge()
        self.warnings += [f'{name}: {line}' for line in dict.fromkeys((
            *reader.warnings, *log.dropped.lines(), *machine_lines(
                frame_of(source, reader.namespace, TopicMap(namespace=namespace)), self.machine), *odd,
            *stage_lines(log.pipeline, used)))]
        if first is None:
            why = nothing(log, samples, reader.warnings + log.dropped.lines())
            raise BagError(str(bag), f'nothing to weigh: {why}')

    def note(self, records: Sequence[Record]) -> None:
        """Keep records; loads with the bag that they are in."""
        self.records += records
        for record in records:
            if record.kind == LOAD:
                start, end = (self._seconds(record.data[name]) for name in ('start_ns', 'end_ns'))
                self.loads.append(WeighedLoad(record, self._bag, start, end))
                self._recordings[record.number] = self._recording

    def _seconds(self, stamp_ns: int) -> float:
        """Time of the bag at a stamp since its clock was set back last: no load goes on over that."""
        return 1e-9 * (self._elapsed.at(stamp_ns) - self._begin_ns)

    def close(self) -> None:
        """No bag follows, or not at once."""
        self.note(self.stage.end())
        self.stage.reset()
        self._last_ns, self._over = None, False

    def _next(self, bag: str, first_ns: int, truck: str) -> None:
        """A bag begins."""
        if self._last_ns is not None and not 0 <= first_ns - self._last_ns <= FOLLOWS_NS:
            self.close()
            self._elapsed = Elapsed()
            self._recording += 1
        self._bag = bag
        if truck:
            self.note(self.stage.new_truck(truck))

    def weighed(self) -> WeighedBags:
        """All that was found; a load of a time whose samples are wrong is not trusted, whatever its masses said."""
        whys = {load.record.number: '; '.join(why) for load in self.loads if (why := self._why(load.record))}

        def doubted(record: Record) -> Record:
            why = whys.get(record.number) if record.kind == LOAD else None
            return record if why is None else replace(record, data={**record.data, 'trusted': False, 'why': why})
        records, book = tuple(map(doubted, self.records)), Book()
        for record in records:
            book.apply(record)
        loads = tuple(replace(load, record=doubted(load.record)) for load in self.loads)
        return WeighedBags(self.machine.name, loads, book, records, tuple(self.overloads), tuple(self.warnings),
                           self.seconds)

    def _why(self, load: Record) -> list[str]:
        """What was wrong with the samples while a load was carried."""
        start, end, own = load.data['start_ns'], load.data['end_ns'], self._recordings[load.number]
        return list(dict.fromkeys(why for recording, first, last, doubts in self._doubts
                                  if recording == own and first <= end and start <= last for why in doubts))

    def _look_at_chart(self) -> None:
        """Say where a load begins to be too much for the chart."""
        if self.stage.file.chart is None or (now := self.stage.live) is None:
            return
        over = now.overload is Overload.OVER
        if over and not self._over:
            self.overloads.append(
                f'{Path(self._bag).resolve().name}, {self._seconds(now.stamp_ns):.1f} s: up to '
                f'{now.gross_upper:.0f} kg at a radius of {now.radius:.2f} m, where the load chart has '
                f'{now.limit:.0f} kg')
        self._over = over
