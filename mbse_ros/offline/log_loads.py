# SPDX-License-Identifier: Apache-2.0
"""The loads of a log: the scale on the estimates of ``mbse estimate``, ``loads`` and ``fleet``, as its node runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..monitor.clocks import Elapsed
from ..report.text import wall_time
from ..scale.record import LOAD, Record
from ..scale.stage import ScaleStage
from ..scale.table import UNDONE, iso_time, mass_text, place_text, remark_of
from ..streams.pipeline import Output

CELLS = ('from, s', 'to, s', 'by the clock', 'mass, kg', 'truck', 'taken', 'dropped', '')


@dataclass(frozen=True)
class WeighedLoad:
    """A load, by its record, in a ``bag``; times, s from that bag's first estimate on the axis of ``Elapsed``;
    of records of a live scale s from the first load, without what a clock was set back."""

    record: Record
    bag: str
    start: float
    end: float

    @property
    def mass(self) -> float:
        """What of it was delivered, kg, without tare."""
        return float(self.record.data['mass'])

    @property
    def lower(self) -> float:
        """Lower end of its 95 % interval, kg."""
        return float(self.record.data['interval'][0])

    @property
    def upper(self) -> float:
        """Upper end, kg."""
        return float(self.record.data['interval'][1])

    @property
    def status(self) -> str:
        """'weighed', 'carried', where it hung there when the log ended, or 'put_back', which does not count."""
        return str(self.record.data['status'])

    @property
    def trusted(self) -> bool:
        """Whether the payload stage stands for its mass, and the log for its samples."""
        return bool(self.record.data['trusted'])

    @property
    def faults(self) -> tuple[str, ...]:
        """Kinds of ``monitor.faults``, in small letters, for which its mass was held meanwhile."""
        return tuple(self.record.data.get('faults', ()))

    @property
    def text(self) -> str:
        """The load in words."""
        return ', '.join(filter(None, [
            f'{self.start:.1f} to {self.end:.1f} s', f'{mass_text(self.record.mass)} kg',
            remark_of(self.record, set()), wall_time(self.record.data['start_ns'], self.record.data['end_ns'])]))

    def cells(self, undone: set[int], trucks: bool) -> list[str]:
        """The load as a row of a table with the columns CELLS; ``undone``: numbers of the records that are;
        ``trucks``: whether they have names."""
        data = self.record.data
        return [f'{self.start:.1f}', f'{self.end:.1f}', wall_time(data['start_ns'], data['end_ns']),
                mass_text(self.record.mass), data['truck'] if trucks else '',
                place_text(data['taken']), place_text(data['dropped']),
                remark_of(self.record, undone)]

    def values(self, undone: bool = False) -> dict[str, Any]:
        """All of it as JSON has it, kg, s; ``undone`` by the operator."""
        data = self.record.data
        return {'start_s': self.start, 'end_s': self.end, 'mass': self.mass, 'interval': data['interval'],
                'truck': data['truck'], 'status': UNDONE if undone else self.status,
                'counts': data['counts'] and not undone, 'bag': self.bag, 'start_ns': data['start_ns'],
                'end_ns': data['end_ns'], 'start': iso_time(data['start_ns']), 'end': iso_time(data['end_ns']),
                'most': data['most'], 'trusted': self.trusted, 'why': data.get('why', ''),
                'faults': list(self.faults), 'taken': data['taken'], 'dropped': data['dropped']}


class LogLoads:
    """Outputs in, loads out, with the times of their ``bag``; ``recording``: number of the recording, of bags that
    continue each other, and ``recordings`` those of loads, by the number of their record."""

    def __init__(self, stage: ScaleStage) -> None:
        self.stage, self.bag, self.recording = stage, '', 0
        self.loads: list[WeighedLoad] = []
        self.records: list[Record] = []
        self.recordings: dict[int, int] = {}
        self.questions: list[str] = []          # of the tool
        self._elapsed, self._begin_ns, self._begins = Elapsed(), 0, True

    def begin(self, bag: str, continues: bool = False) -> None:
        """A bag begins; where it does not continue the one before, nothing hangs there any more."""
        if not continues:
            self.close()
            self._elapsed = Elapsed()
            self.recording += 1
        self.bag, self._begins = bag, True

    def take(self, output: Output) -> None:
        """The next estimates."""
        segment = output.segment
        self._elapsed.add(segment.start_ns, segment.stamp_ns, segment.restart)
        if self._begins:
            self._begin_ns, self._begins = self._elapsed.total, False
        asked = self.stage.question
        self.note(self.stage.process(output.state, output.payload))
        if (question := self.stage.question) is not None and question is not asked:
            self.questions.append(f't = {self.seconds(question.stamp_ns):.1f} s: {question.text}')

    def close(self) -> None:
        """A recording is over: a load that still hangs there counts as it is."""
        self.note(self.stage.end())
        self.stage.reset()

    def note(self, records: Sequence[Record]) -> None:
        """Keep records; loads with the bag that they are in."""
        self.records += records
        for record in records:
            if record.kind == LOAD:
                start, end = (self.seconds(record.data[name]) for name in ('start_ns', 'end_ns'))
                self.loads.append(WeighedLoad(record, self.bag, start, end))
                self.recordings[record.number] = self.recording

    def doubted(self, why: Callable[[Record], Sequence[str]]
                ) -> tuple[tuple[WeighedLoad, ...], tuple[Record, ...]]:
        """Loads and records, where ``why`` says what was wrong with the samples of a load: such a one is not trusted,
        whatever its masses said."""
        whys = {load.record.number: '; '.join(found) for load in self.loads if (found := why(load.record))}

        def judged(record: Record) -> Record:
            found = whys.get(record.number) if record.kind == LOAD else None
            return record if found is None else replace(record, data={**record.data, 'trusted': False, 'why': found})
        return tuple(replace(load, record=judged(load.record)) for load in self.loads), tuple(map(judged, self.records))

    def seconds(self, stamp_ns: int) -> float:
        """Time of the bag at a stamp since its clock was set back last: no load goes on over that."""
        return 1e-9 * (self._elapsed.at(stamp_ns) - self._begin_ns)
