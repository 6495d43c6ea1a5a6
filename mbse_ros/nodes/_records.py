# SPDX-License-Identifier: Apache-2.0
"""Records from one topic, through a stage, to another: what the nodes after the interpolation share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from diagnostic_msgs.msg import DiagnosticArray

from ..errors import MbseError, SampleError
from ..machine import Machine
from ..settings import Settings
from ..streams.records import PayloadEstimate, Segment, StateEstimate
from ..streams.stages import ObserverStage, PayloadStage
from ._diagnostics import LEVELS, Diagnostics, log_status
from ._lifecycle import ManagedNode
from ._messages import message_class, packed_record, unpacked
from ._qos import OUTPUT
from ._warnings import Warnings


class Source(NamedTuple):
    """A topic, its type, and what makes a record of its messages; raises SampleError."""

    topic: str
    kind: str
    read: Callable[[Any], Segment | StateEstimate]


class Inbox:
    """Messages to records in order: a repeated or backward one is dropped, a hole restarts, both with a warning.

    Time decides; the number of a record shows how many are missing. ``dropped`` counts the messages that were not used,
    those included that the stage refused (see `refuse`).
    """

    def __init__(self, source: Source, warnings: Warnings) -> None:
        self._source, self._warnings = source, warnings
        self._last: tuple[int, int] | None = None       # number and end, ns, of the newest record that was used
        self.dropped = 0

    def take(self, cdr: bytes) -> Segment | StateEstimate | None:
        """Record of a serialized message, None where it must not be used."""
        try:
            record = self._source.read(unpacked(self._source.topic, self._source.kind, cdr))
        except SampleError as error:
            return self.refuse('unreadable', f'message dropped: {error}')
        bad, odd = self._judge(record)
        if bad:
            return self.refuse('dropped', f'{self._source.topic}: {bad}; dropped')
        if odd:
            self._warnings('starting again', f'{self._source.topic}: {odd}; starting again')
        first, self._last = self._last is None, (record.sequence, record.stamp_ns)
        return replace(record, restart=True) if first or odd else record

    def refuse(self, kind: str, text: str) -> None:
        """A message that cannot be used."""
        self.dropped += 1
        self._warnings(kind, text)

    def _judge(self, record: Segment | StateEstimate) -> tuple[str, str]:
        """Why a record must not be used, and why the stage has to start again with it; '' where neither is so."""
        if self._last is None:
            return '', ''
        (last, stop_ns), number = self._last, record.sequence
        start = start_ns(record)
        missing = (start - stop_ns) * 1e-9
        if (number, record.stamp_ns) == self._last:
            return f'number {number} came twice', ''
        if record.restart:
            return '', (f'{missing:.3f} s are missing before number {number}' if missing > 0.0 else
                        f'time went back {-missing:.3f} s' if missing < 0.0 else '')
        if start < stop_ns:
            return f'number {number} begins {-missing:.6f} s before the end of number {last}', ''
        if start == stop_ns and number == last + 1:
            return '', ''
        count = f'{number - last - 1} lost' if number - last > 1 else 'the source started again'
        return '', f'{missing:.3f} s are missing between number {last} and number {number}: {count}'


def start_ns(record: Segment | StateEstimate) -> int:
    """Instant before the first step of a record."""
    return record.start_ns if isinstance(record, Segment) else record.stamp_ns - len(record.mean) * record.step_ns


class RecordNode(ManagedNode):
    """Runs a stage over each record of ``source`` and publishes what it makes of it on a topic ``sends`` (and type).

    A child gives `make_stage` and `values`, the numbers of the diagnostics. ``patience``: see `StatusChange`.
    """

    source: Source
    sends: tuple[str, str]
    patience = 1
    stage: ObserverStage | PayloadStage

    def build(self, machine: Machine) -> None:
        """Compile the stage of the machine."""
        self.stage = self.make_stage(machine)
        topic, kind = self.sends
        self._results = self.output(message_class(kind), topic)
        self._diagnosed = self.output(DiagnosticArray, '/diagnostics')

    def retune(self, tuning: Settings) -> None:
        """Give a new tuning to the stage."""
        self.stage.configure(tuning)

    def connect(self) -> None:
        """Take records from here on."""
        self._diagnose = Diagnostics(self._diagnosed, self.get_name(), self.machine.name, self.patience)
        self._inbox = Inbox(self.source, self.warnings)
        self.input(message_class(self.source.kind), self.source.topic, self.on_record, OUTPUT, raw=True)

    def on_record(self, cdr: bytes) -> None:
        """One sensor period."""
        record = self._inbox.take(cdr)
        if record is None:
            return
        try:
            result = self.stage.process(record)
        except MbseError as error:
            self._inbox.refuse('unusable', f'{self.source.topic} dropped: {error}')
            return
        self._results.publish(packed_record(result, self.machine.name))
        self.publish_more(result)
        dropped = {f'dropped, {self.source.topic}s': self._inbox.dropped}
        if self._diagnose(result, self.level(result), lambda: {**self.values(result), **dropped}):
            self.log(result)

    def make_stage(self, machine: Machine) -> ObserverStage | PayloadStage:
        """The stage, warmed up."""
        raise NotImplementedError

    def publish_more(self, result: StateEstimate | PayloadEstimate) -> None:
        """Other outputs."""

    def level(self, result: StateEstimate | PayloadEstimate) -> bytes:
        """Level of the diagnostics."""
        return LEVELS[result.status]

    def values(self, result: StateEstimate | PayloadEstimate) -> dict[str, object]:
        """Numbers of the diagnostics."""
        raise NotImplementedError

    def log(self, result: StateEstimate | PayloadEstimate) -> None:
        """A line about a new status."""
        log_status(self.get_logger(), result)
