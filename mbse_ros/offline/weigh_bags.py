# SPDX-License-Identifier: Apache-2.0
"""Bags through the pipeline and the scale: the loads in them, as the node would have counted them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..bags.bag import open_bag
from ..bags.recorded_commands import RecordedCommands
from ..bags.topics import TopicMap
from ..errors import BagError
from ..machine import Machine
from ..monitor.clocks import set_back
from ..scale.book import Book
from ..scale.reading import HELD
from ..scale.record import LOAD, MISSED, Record, confirmed_record, missed_line
from ..scale.record_file import read_records
from ..scale.scale_file import Overload, ScaleFile, ScaleSettings
from ..scale.stage import ScaleStage
from ..sources.map import SourceMap
from ..sources.reader import sample_reader
from .bag import frame_of
from .checks.another_machine import machine_findings
from .checks.log_verdict import log_verdict, nothing, stage_lines
from .loads import Loads
from .log_loads import LogLoads, WeighedLoad
from .log_samples import LogSamples
from .long_log import LongLog
from .track import Tracker

FOLLOWS_NS = 2_000_000_000      # from bag to bag: a recording that was split continues
TOGETHER_NS = 1_000_000_000     # two bags of one machine are of the same time from that on: parts of a log meet
LONG = 0.25         # share of a bag in which a mass is held so, from which it is said
PART = 4_000_000    # samples of a bag that are judged at once: what they take of the memory is bounded


def weigh_bags(bags: Sequence[str | Path], machine: Machine, tuning: Mapping[str, Any], file: ScaleFile = ScaleFile(),
               trucks: Sequence[str] = (), namespace: str | None = None, backend: str = 'auto',
               sources: SourceMap | None = None, every: float = 0.0) -> Loads:
    """Loads of bags in sequence; one that begins where the one before ends continues its recording. A load that
    hangs when a recording ends counts. ``tuning`` as ``parse_tuning`` gives it with KINDS; ``trucks``: of each bag;
    ``every``: as of ``estimate_bag``.

    Raises BagError where no estimate comes out, DescriptionError.
    """
    rest = {room: value for room, value in tuning.items() if room != 'scale'}
    run = _Run(machine, ScaleStage(machine, tuning.get('scale', ScaleSettings()), file), every)
    if machine.description.attachment is not None:
        run.log.note(run.log.stage.attach(machine.description.attachment.name))
    for place, bag in enumerate(bags):
        run.read(bag, rest, backend, trucks[place] if place < len(trucks) else '', namespace, sources)
    run.log.close()
    return run.weighed()


def recorded_loads(path: str | Path) -> Loads:
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
    return Loads(file.machine, found, book, records, (), warnings, seconds, bool(file.damages) or file.empty)


class _Run:
    """Bags one after the other."""

    def __init__(self, machine: Machine, stage: ScaleStage, every: float) -> None:
        self.machine, self.log, self.every = machine, LogLoads(stage), every
        self.overloads: list[str] = []
        self.warnings: list[str] = []
        self.seconds = 0.0
        self.held: defaultdict[str, float] = defaultdict(float)
        self._last_ns: int | None = None
        self._spans: list[tuple[str, int, int]] = []        # of each bag its name, first and last stamp
        self._over = False
        self._doubts: list[tuple[int, int, int, tuple[str, ...]]] = []      # recording, first and last stamp, and why

    def read(self, bag: str | Path, tuning: Mapping[str, Any], backend: str, truck: str, namespace: str | None,
             sources: SourceMap | None) -> None:
        """One bag, by the caller's thread alone."""
        source, first, begun, asked = open_bag(bag), None, self.seconds, len(self.log.questions)
        held: defaultdict[str, float] = defaultdict(float)      # s by reason
        reader = sample_reader(source, self.machine, namespace, sources)
        used = RecordedCommands(source, self.machine.commands, reader.namespace)
        log = LongLog(reader, self.machine, dict(tuning), backend, segment=self.every, threads=False,
                      keep=(samples := LogSamples()), commands=used)
        wrong, odd, tracker, since = list[str](), list[str](), Tracker(False), self.seconds

        def judge() -> None:
            verdict = log_verdict(samples, track := tracker.track(), log.pipeline, reader.ages)
            later = f'from {since - begun:.0f} s on: ' if since > begun else ''
            wrong.extend(later + line for line in verdict.wrong)
            odd.extend(later + line for line in verdict.odd)
            first_ns, last_ns = int(track.start_ns.min()), int(track.stamp_ns.max())
            self._doubts.append((self.log.recording, first_ns, last_ns, verdict.doubts))
        for output in log:
            if first is None:
                first = output.state.stamp_ns
                self._next(str(bag), first, truck)
            lasts = 1e-9 * (output.segment.stamp_ns - output.segment.start_ns)
            self.seconds += lasts
            if output.payload.status in HELD:
                held[output.payload.reason] += lasts
                for word in output.payload.faults.words:
                    self.held[word] += lasts
            self.log.take(output)
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
        topics = TopicMap(namespace=namespace)
        other = [item.line for item in machine_findings(frame_of(source, reader.namespace, topics), self.machine,
                                                        topics.payloads(source.topics, reader.namespace))]
        self.warnings += [f'{name}: {line}' for line in dict.fromkeys((
            *other, *log.aging, *wrong, *reader.warnings, *log.dropped.lines(), *odd, *stage_lines(log.pipeline, used),
            *self.log.questions[asked:]))]
        if first is not None and self._last_ns is not None:
            self._spans.append((name, first, self._last_ns))
            self.warnings += [f'{name}: of the same time as {other_name}: what was weighed in both is counted twice'
                              for other_name, begin, end in self._spans[:-1]
                              if min(end, self._last_ns) - max(begin, first) > TOGETHER_NS]
        if first is None:
            why = nothing(log, samples, reader.warnings + log.dropped.lines(), other, reader.strangers)
            raise BagError(str(bag), f'nothing to weigh: {why}')

    def _next(self, bag: str, first_ns: int, truck: str) -> None:
        """A bag begins."""
        continues = self._last_ns is not None and 0 <= first_ns - self._last_ns <= FOLLOWS_NS
        self.log.begin(bag, continues)
        self._over = self._over and continues
        if truck:
            self.log.note(self.log.stage.new_truck(truck))

    def weighed(self) -> Loads:
        """All that was found; a load of a time whose samples are wrong is not trusted, whatever its masses said."""
        loads, records = self.log.doubted(self._why)
        book = Book()
        for record in records:
            book.apply(record)
        return Loads(self.machine.name, loads, book, records, tuple(self.overloads), tuple(self.warnings),
                           self.seconds, held=dict(self.held))

    def _why(self, load: Record) -> list[str]:
        """What was wrong with the samples while a load was carried."""
        start, end, own = load.data['start_ns'], load.data['end_ns'], self.log.recordings[load.number]
        return list(dict.fromkeys(why for recording, first, last, doubts in self._doubts
                                  if recording == own and first <= end and start <= last for why in doubts))

    def _look_at_chart(self) -> None:
        """Say where a load begins to be too much for the chart."""
        stage = self.log.stage
        if stage.file.chart is None or (now := stage.live) is None:
            return
        over = now.overload is Overload.OVER
        if over and not self._over:
            self.overloads.append(
                f'{Path(self.log.bag).resolve().name}, {self.log.seconds(now.stamp_ns):.1f} s: up to '
                f'{now.gross_upper:.0f} kg at a radius of {now.radius:.2f} m, where the load chart has '
                f'{now.limit:.0f} kg')
        self._over = over
