# SPDX-License-Identifier: Apache-2.0
"""Records from one topic, through a stage, to another: what the nodes after the interpolation share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Generic, TypeVar

from diagnostic_msgs.msg import DiagnosticArray

from ...bags import messages
from ...bags.messages import RECORDS
from ...errors import MbseError, SampleError
from ...filters.hydraulic_state import state_names
from ...machine import Machine
from ...streams.records import PayloadEstimate, Segment, StateEstimate
from ...streams.stages import ObserverStage, PayloadStage
from ..messages.wire import message_class, unpacked
from .diagnostics import LEVELS, Diagnostics, Warnings, clock_ns, log_status
from .lifecycle import ManagedNode
from .middleware import OUTPUT
from .node_settings import StageNodeSettings

LEAP = 10.0     # s ahead that are a hole in the stream; a longer one is a jump of the clock, or a wrong stamp
BACK = 1.0      # s back that are messages out of order
LONGEST = 80    # characters of a name that a message gives
STEPS, STEP_NS, PRESSURE = 10, 1_000_000, 2e6      # of a made-up record that warms a stage up: steps, ns, Pa
T = TypeVar('T', Segment, StateEstimate, PayloadEstimate)
R = TypeVar('R', Segment, StateEstimate)                # records in
E = TypeVar('E', StateEstimate, PayloadEstimate)        # and out


def received(kind: type[T], cdr: bytes, machine: Machine | None, fingerprint: str = '') -> T:
    """The record of a serialized message; raises SampleError for one that is not of this machine; None: of any."""
    topic, msgtype = RECORDS[kind]
    message = unpacked(topic, msgtype, cdr)
    if machine is not None and (message.header.frame_id, message.machine) != (machine.name, fingerprint):
        got = f'{message.header.frame_id[:LONGEST]} ({message.machine[:LONGEST]})'
        raise SampleError(f'{topic}.machine', messages.stamp_of(message), got,
                          f'{machine.name} ({fingerprint}): the same file')
    record: T = messages.record_of(kind, message)
    if machine is not None and isinstance(record, StateEstimate):
        known = [state_names(machine, weighs)[0] for weighs in {False, machine.description.payload is not None}]
        if record.names not in known:
            raise SampleError('state.names', record.stamp_ns, record.names, ', '.join(known[0]))
    return record


class Inbox(Generic[R]):
    """Messages to records in order: a repeated or backward one is dropped, a hole restarts, both with a warning.

    Time decides; the number of a record says how many are missing. One that lies far back or far ahead is dropped,
    too: one wrong stamp must not silence the node. Where the next one follows it the clock has jumped, and the stage
    starts from there. ``dropped`` counts the messages that were not used, those included that the stage refused.
    Those of another machine, with its fingerprint, are refused; None: no one's.
    """

    def __init__(self, kind: type[R], warnings: Warnings, machine: Machine | None = None, fingerprint: str = ''
                 ) -> None:
        self._kind: type[R] = kind
        self._topic, self._warnings = RECORDS[kind][0], warnings
        self._machine, self._fingerprint = machine, fingerprint
        self._last: tuple[int, int] | None = None       # number and end, ns, of the newest record that was used
        self._strange: tuple[int, int] | None = None    # the same of the one before, where it was far away in time
        self.dropped = 0

    def take(self, cdr: bytes) -> R | None:
        """Record of a serialized message, None where it must not be used."""
        try:
            record = received(self._kind, cdr, self._machine, self._fingerprint)
        except SampleError as error:
            self.refuse('unreadable', f'message dropped: {error}')
            return None
        return self.accept(record)

    def hand_over(self, record: R, sender: tuple[str, str]) -> R | None:
        """A record from this process, None where it must not be used."""
        own = '' if self._machine is None else self._machine.name, self._fingerprint
        if sender != own:
            self.refuse('unreadable', f'{self._topic} dropped: of {" ".join(sender)}, expected {" ".join(own)}: the '
                                      'same file')
            return None
        return self.accept(record)

    def accept(self, record: R) -> R | None:
        """A record in its order, None where it must not be used."""
        bad, odd = self._classify(record)
        if bad:
            self.refuse('dropped', f'{self._topic}: {bad}; dropped')
            return None
        if odd:
            kind = 'time' if odd.startswith('time') else 'starting again'      # a jump is never held back by a hole
            self._warnings(kind, f'{self._topic}: {odd}; starting again')
        first, self._last = self._last is None, (record.sequence, record.stamp_ns)
        return replace(record, restart=True) if first or odd else record

    def refuse(self, kind: str, text: str) -> None:
        """A message that cannot be used."""
        self.dropped += 1
        self._warnings(kind, text)

    def _classify(self, record: R) -> tuple[str, str]:
        """Why a record must not be used, and why the stage has to start again with it; '' where neither is so."""
        if self._last is None:
            return '', ''
        (last, stop_ns), number = self._last, record.sequence
        start = start_ns(record)
        missing = (start - stop_ns) * 1e-9
        strange, self._strange = self._strange, None
        if (number, record.stamp_ns) == self._last:
            return f'number {number} came twice', ''
        if record.restart:
            return '', (f'{missing:.3f} s are missing before number {number}' if missing > 0.0 else
                        f'time went back {-missing:.3f} s' if missing < 0.0 else '')
        if missing > LEAP or missing < -BACK:
            if strange == (number - 1, start):
                return '', f'time went {"back" if missing < 0.0 else "on"} {abs(missing):.3f} s'
            self._strange = number, record.stamp_ns
        if missing > LEAP:
            return f'number {number} begins {missing:.3f} s after the end of number {last}, and none followed it', ''
        if start < stop_ns:
            return f'number {number} begins {-missing:.6f} s before the end of number {last}', ''
        if start == stop_ns and number == last + 1:
            return '', ''
        count = f'{number - last - 1} lost' if number - last > 1 else 'the source started again'
        return '', f'{missing:.3f} s are missing between number {last} and number {number}: {count}'


def start_ns(record: Segment | StateEstimate) -> int:
    """Instant before the first step of a record."""
    return record.start_ns if isinstance(record, Segment) else record.stamp_ns - len(record.mean) * record.step_ns


class RecordNode(ManagedNode[Machine], Generic[R, E]):
    """Runs a stage over each record of the kind ``takes`` and publishes what it makes of it, of the kind ``sends``.

    A child gives `make_stage` and `values`, the numbers of the diagnostics. ``patience``: see `StatusChange`.
    """

    takes: type[R]
    sends: type[E]
    patience = 1
    fed = False     # by a node of this process
    settings: StageNodeSettings

    def build(self, machine: Machine) -> None:
        """Compile the stage of the machine."""
        self.stage = self.make_stage(machine)
        topic, kind = RECORDS[self.sends]
        self._results = self.output(message_class(kind), topic)
        self._diagnosed = self.output(DiagnosticArray, '/diagnostics')
        self._warn_of_tuning()

    def retune(self, tuning: Any) -> None:
        """Give a new tuning to the stage."""
        self.stage.configure(tuning)
        self._warn_of_tuning()

    def _warn_of_tuning(self) -> None:
        if self.stage.note:
            self.get_logger().warning(self.stage.note)

    def own_topics(self) -> list[str]:
        """The input, too: of two sources each would spoil the other's records."""
        return [*super().own_topics(), self.resolve_topic_name(RECORDS[self.takes][0])]

    def connect(self) -> None:
        """Take records from here on."""
        self._diagnose = Diagnostics(self._diagnosed, self.get_name(), self.machine.name, self.patience)
        self._now = clock_ns(self)
        self._inbox: Inbox[R] = Inbox(self.takes, self.warnings, self.machine, self.fingerprint)
        if not self.fed:
            topic, kind = RECORDS[self.takes]
            self.input(message_class(kind), topic, self.on_record, OUTPUT, raw=True)

    def on_record(self, cdr: bytes) -> None:
        """One sensor period, from a topic."""
        self._on(self._inbox.take(cdr))

    def receive(self, record: R, sender: tuple[str, str]) -> None:
        """One sensor period, from a node of this process; ``sender``: its machine's name and fingerprint."""
        if self.active:
            self._on(self._inbox.hand_over(record, sender))

    def _on(self, record: R | None) -> None:
        if record is None:
            return
        try:
            result: E = self.stage.process(record)
        except MbseError as error:
            self._inbox.refuse('unusable', f'{RECORDS[self.takes][0]} dropped: {error}')
            return
        self.latency.take((self._now() - result.stamp_ns) * 1e-9)
        self.send(self._results, result)
        self.publish_more(result)
        dropped = {f'dropped, {RECORDS[self.takes][0]}s': self._inbox.dropped}
        if self._diagnose(result, self.level(result), lambda: {**self.values(result), **dropped}):
            self.log(result)

    def make_stage(self, machine: Machine) -> ObserverStage | PayloadStage:
        """The stage, warmed up."""
        raise NotImplementedError

    def publish_more(self, result: E) -> None:
        """Other outputs."""

    def level(self, result: E) -> bytes:
        """Level of the diagnostics."""
        return LEVELS[result.status]

    def values(self, result: E) -> dict[str, object]:
        """Numbers of the diagnostics."""
        raise NotImplementedError

    def log(self, result: E) -> None:
        """A line about a new status."""
        log_status(self.get_logger(), result)
