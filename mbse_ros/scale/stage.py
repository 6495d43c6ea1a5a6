# SPDX-License-Identifier: Apache-2.0
"""The scale: states and masses in, records of loads out; the same for a log and for the node.

Where records go: into memory, for a log; ``store`` has the one that survives a crash.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

from ..errors import RecordsError, ScaleError
from ..filters.observability.machine import check_counts
from ..machine import Machine
from ..streams.records import PayloadEstimate, StateEstimate
from .book import Book
from .detection import Detector
from .live import Live, live
from .load import COUNTED, EMPTY, NOTHING, Carried, Load, UncertainMass, combined
from .reading import Reading, Whereabouts, reading
from .record import (
    ATTACHMENT,
    ENDED,
    OPERATOR,
    SCALE,
    TARGET,
    TRUCK,
    UNDO,
    ZERO,
    Record,
    confirmed_record,
    load_record,
    mass_data,
    missed_record,
    taken_record,
)
from .scale_file import BARE, ScaleFile, ScaleSettings, mass_of
from .tool_question import ToolQuestion, tool_question

LONGEST_NAME = 80
RETRY_NS = 1_000_000_000    # between two attempts to write what the journal refuses


class Journal(Protocol):
    """Records in the order in which they were added; none is ever changed."""

    def append(self, record: Record, after: int) -> list[Record]:
        """Add a record; a journal that is kept for good adds none whose key is there already.

        Returns all records behind number ``after``, those that others have added too; what it returns is kept. Raises
        RecordsError, with nothing added.
        """

    def read(self, after: int = 0) -> list[Record]:
        """All records behind a number; raises RecordsError."""


class MemoryJournal:
    """Records of one process, lost with it: a bag that is played again has its loads once more."""

    def __init__(self) -> None:
        self._records: list[Record] = []

    def append(self, record: Record, after: int) -> list[Record]:
        """See Journal."""
        self._records.append(replace(record, number=len(self._records) + 1))
        return self.read(after)

    def read(self, after: int = 0) -> list[Record]:
        """See Journal."""
        return self._records[after:]


class ScaleStage:
    """Of one machine with a section `payload`; raises DescriptionError without, RecordsError for a journal that cannot
    be read. ``day_starts``, h, see Book.

    What a crash may not lose is in the journal before it is returned. Where the journal refuses, records wait,
    ``pending``, and are tried again with each call.
    """

    def __init__(self, machine: Machine, settings: ScaleSettings = ScaleSettings(), file: ScaleFile = ScaleFile(),
                 journal: Journal | None = None, day_starts: float = 0.0) -> None:
        check_counts(machine)
        self.machine, self.file = machine, file
        self._journal, self.book = journal or MemoryJournal(), Book(day_starts)
        low, high = machine.payload_data.limits
        self._span = high - low
        self._where = Whereabouts(machine, file.chart.origin if file.chart else None)
        self._detector = Detector(machine.parameters.consider_names, self._span, settings)
        self.pending: deque[Record] = deque()
        self.question: ToolQuestion | None = None       # until it is answered
        self.trouble, self._refused_ns = '', 0      # why records wait, and since when
        self._payload: PayloadEstimate | None = None
        self._stamp_ns, self._order = 0, ''
        for record in self._journal.read():
            self.book.apply(record)
        self._detector.counted_before = self.book.hanging
        self._detector.truck = self.book.filling.place
        self._before = self.book.open               # of a load that hung there when the scale stopped
        self._known: Carried | None = None          # the load that hangs there and is in the journal
        self._weigh_empty()

    @property
    def settings(self) -> ScaleSettings:
        """The tuning in force."""
        return self._detector.settings

    def configure(self, settings: ScaleSettings) -> None:
        """Take new tuning from the next estimate on."""
        self._detector.settings = settings

    def reset(self) -> None:
        """Forget what hangs there; records stay."""
        self._detector.reset()
        self._where.reset()
        self._payload, self._before, self._known = None, self.book.open, None
        self.question = None

    def process(self, state: StateEstimate | None, payload: PayloadEstimate) -> list[Record]:
        """Take the estimates of one instant; returns the records that are confirmed with it."""
        place = self._where.place(state) if state is not None else None
        return self.take(reading(state, payload, place), payload)

    def take(self, found: Reading, payload: PayloadEstimate) -> list[Record]:
        """The same of a reading that is made already."""
        if payload.stamp_ns <= self._stamp_ns:      # the clock was set back: the detector forgets what hangs there
            self._before, self._known = self.book.open, None
        self._stamp_ns, self._payload = payload.stamp_ns, payload
        for load in self._detector.process(found):
            self._take(load)
        jump = self._detector.stops.jump
        if jump is not None and (asked := tool_question(payload.stamp_ns, jump, self._others())) is not None:
            self.question = asked
            self._detector.stops.asked()
        self._note_carried()
        wait = self.trouble and 0 <= payload.stamp_ns - self._refused_ns < RETRY_NS
        return self.flush() if self.pending and not wait else []

    @property
    def live(self) -> Live | None:
        """What the operator is shown; None before the first estimate."""
        if self._payload is None:
            return None
        question = self.question.text if self.question is not None else ''
        return live(self._payload, self._detector, self.book, self._where.radius, self.file.chart,
                    mass_of(self.machine.description.attachment), question)

    def end(self) -> list[Record]:
        """The log is over: a load that still hangs there counts as it is."""
        load = self._detector.end()
        if load is not None:
            self._take(load)
        return self.flush()

    def zero(self) -> list[Record]:
        """The machine is empty, except for its attachment: subtract what it weighs now from here on.

        Raises ScaleError where the mass is not known, or more than may be taken off.
        """
        level = self._detector.level
        if not level.known:
            raise ScaleError('zero: the mass is not known yet: move the empty machine until it is')
        found = level - self._attached()
        largest = self.settings.zero_range * self._span
        if abs(found.value) > largest:
            asked = tool_question(self._stamp_ns, found, self._others(), zeroed=True, too_much=True)
            raise ScaleError(f'zero: {found.value:.0f} kg hang there, more than zero_range allows ({largest:.0f} kg): '
                             'empty the machine, or calibrate it' + (f'; {asked.text}' if asked else ''))
        self._detector.discard()
        self.question = tool_question(self._stamp_ns, found, self._others(), zeroed=True)
        return self._add(Record(ZERO, self._stamp_ns, mass_data(found)))

    def attach(self, name: str) -> list[Record]:
        """Another attachment, by its name in the scale's file, '' for none; raises ScaleError for one not known."""
        self.file.attachment(name)
        asked, on, before, zero = self.question, self.attachment, self._attached(), self.book.zero
        self.question = None
        self._detector.stops.asked()        # not again for this stop
        records = self._add(Record(ATTACHMENT, self._stamp_ns, {'attachment': name}))
        if asked is None or name == on:     # with the same tool it was a load
            return records
        self._detector.discard()            # what hangs there was the tool
        if asked.zeroed and zero is not None:       # and is in the zero, too
            records += self._add(Record(ZERO, self._stamp_ns, mass_data(zero.mass - (self._attached() - before))))
        return records

    def load_done(self) -> list[Record]:
        """The load that hangs there is delivered as it is, or the one that was gone when the scale came back; raises
        ScaleError where there is none."""
        hanging, self.question = self._detector.level.value, None
        load = self._detector.count_now()
        if load is None and self.book.missed is not None and not self._detector.carrying:
            return self._add(confirmed_record(self.book.missed, self._stamp_ns))
        if load is None:
            raise ScaleError('load done: ' + ('this load has been counted already' if self._detector.counted
                                              else 'no load hangs there that has been weighed'))
        return self._add(load_record(load, self.book.filling.name, OPERATOR, hanging))

    def undo(self) -> list[Record]:
        """The last load that counts does not; raises ScaleError where there is none."""
        last = self.book.last
        if last is None:
            raise ScaleError('undo: there is no load to undo')
        return self._add(Record(UNDO, self._stamp_ns, {'load': last.number}, key=f'undo {last.number}'))

    def new_truck(self, name: str = '', target: float = 0.0) -> list[Record]:
        """What comes from here on is for another truck; what this one has got of a load still carried is its own."""
        part = self._detector.part()
        if part is not None:
            self.pending.append(load_record(part, self.book.filling.name))
            self._known = None      # the rest is another load
        name = name.strip()[:LONGEST_NAME] or f'truck {self.book.fillings + 1}'
        return self._add(Record(TRUCK, self._stamp_ns, {'truck': name, 'target': max(target, 0.0)}))

    def set_target(self, target: float) -> list[Record]:
        """How much this truck shall get, kg; 0: no target."""
        return self._add(Record(TARGET, self._stamp_ns, {'target': max(target, 0.0)}))

    @contextmanager
    def ordered(self, key: str) -> Iterator[None]:
        """What is added meanwhile is by the order of this key, '' for none."""
        self._order = key
        try:
            yield
        finally:
            self._order = ''

    def flush(self) -> list[Record]:
        """Write what waits; returns what is confirmed by it. Where that fails ``trouble`` says why."""
        confirmed: list[Record] = []
        try:
            while self.pending:
                for record in self._journal.append(self.pending[0], self.book.number):
                    self.book.apply(record)
                    confirmed.append(record)
                self.pending.popleft()
            self.trouble = ''
        except RecordsError as error:
            self.trouble, self._refused_ns = str(error), self._stamp_ns
        if confirmed:
            self._detector.truck = self.book.filling.place
            self._weigh_empty()
        return confirmed

    def _add(self, record: Record) -> list[Record]:
        self.pending.append(replace(record, data={**record.data, 'order': self._order}) if self._order else record)
        return self.flush()

    def _note_carried(self) -> None:
        """A load that is taken is in the journal; one that hung there before a stop, and is gone, is, too."""
        carried = self._detector.carried
        if self._before is not None and self._detector.settled:
            before, self._before = self._before, None
            hangs = carried is not None and self._detector.same(
                (self._detector.level - carried.tare).value, before.mass.value)
            if hangs:
                self._known = carried
            else:
                self.pending.append(missed_record(before, self._stamp_ns))
        if carried is not None and carried is not self._known and not carried.counted:
            self._known = carried
            self.pending.append(taken_record(carried, self._detector.level - carried.tare, self._stamp_ns,
                                             self.book.filling.name))

    def _take(self, load: Load) -> None:
        """A load has ended: so it was one."""
        self.question = None
        if load.status in (COUNTED, EMPTY):
            self.pending.append(Record(ENDED, load.end_ns))
        else:
            self.pending.append(load_record(load, self.book.filling.name, SCALE))

    @property
    def attachment(self) -> str:
        """Name of the attachment that hangs there; until one is chosen that of the machine's equations."""
        known = self.machine.description.attachment
        return str(self.book.attachment.data['attachment']) if self.book.attachment else known.name if known else BARE

    def _others(self) -> dict[str, UncertainMass]:
        """By how much each attachment is heavier than the one that hangs there, '' of none."""
        if not self.file.attachments:
            return {}
        masses = {BARE: NOTHING, **{name: mass_of(item) for name, item in self.file.attachments.items()}}
        own = masses.get(self.attachment, NOTHING)
        return {name: mass - own for name, mass in masses.items() if name != self.attachment}

    def _attached(self) -> UncertainMass:
        """What the attachment weighs more than the one that the machine's equations have."""
        known, chosen = self.machine.description.attachment, mass_of(self.file.attachments.get(self.attachment))
        if known is None:
            return chosen
        return NOTHING if known.name == self.attachment else chosen - UncertainMass(known.mass)

    def _weigh_empty(self) -> None:
        """What an empty machine weighs; the noise of a zero is common to all loads that it is taken off."""
        tare, zero = self._attached(), self.book.zero
        if zero is not None:
            mass = zero.mass
            common = {**mass.common, **({f'zero/{zero.number}': mass.own} if mass.own else {})}
            tare = combined(((1.0, tare), (1.0, replace(mass, own=0.0, common=common))))
        self._detector.tare = tare
