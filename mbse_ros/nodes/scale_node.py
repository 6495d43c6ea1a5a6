# SPDX-License-Identifier: Apache-2.0
"""States and payloads in, loads out: counted, recorded, against target and load chart."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntEnum
from math import isfinite
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from std_msgs.msg import Float64, String
from std_srvs.srv import Trigger

from mbse_ros.msg import HydraulicState
from mbse_ros.msg import PayloadEstimate as PayloadMessage
from mbse_ros.srv import ScaleOrder

from ..bags.messages import RECORDS
from ..errors import MbseError
from ..machine import Machine
from ..scale.live import Live, live_values, record_values, text_of, totals_values
from ..scale.orders import Order, carry_out
from ..scale.reading import KNOWN
from ..scale.record import LOAD, MISSED, Record, missed_line
from ..scale.scale_file import Overload, scale_of
from ..scale.stage import ScaleStage
from ..scale.store import RecordStore
from ..scale.table import total_text
from ..streams.records import PayloadEstimate, StateEstimate
from .base.diagnostics import ERROR, OK, WARN, Diagnostics, Report
from .base.lifecycle import ManagedNode
from .base.middleware import LASTING, OUTPUT
from .base.node_settings import ScaleNodeSettings, ScaleTuning
from .base.record_node import T, received
from .base.timing import Pace, Pairs
from .messages.wire import packed_number

STATES = 0          # streams whose records belong together by their stamps
MASSES = 1
MEMORY = 'none'     # as `records`: no file


class ScaleStatus(IntEnum):
    """A load against the chart, and whether records are written."""

    OK = 0
    NEAR_LIMIT = 1
    OVERLOAD = 2
    NOT_RECORDED = 3
    REPAIRED = 4


LEVELS: dict[IntEnum, bytes] = {ScaleStatus.OK: OK, ScaleStatus.NEAR_LIMIT: WARN, ScaleStatus.OVERLOAD: ERROR,
                                ScaleStatus.NOT_RECORDED: ERROR, ScaleStatus.REPAIRED: WARN}


class ScaleNode(ManagedNode[Machine]):
    """Runs the scale over each pair of state and payload; the operator's buttons are services, what he chooses are
    parameters."""

    executable = 'scale_node'
    forgets = 'what hangs on the machine is forgotten; records stay'
    settings: ScaleNodeSettings
    tuning: ScaleTuning
    stage: ScaleStage

    def __init__(self) -> None:
        super().__init__()
        self._store: RecordStore | None = None
        self._fitted = self.tuning.attachment       # of the equations of all nodes
        for name, action in (('zero', lambda: self.stage.zero()), ('load_done', lambda: self.stage.load_done()),
                             ('undo', lambda: self.stage.undo()),
                             ('new_truck', lambda: self.stage.new_truck(self.tuning.truck, self.tuning.target))):
            self.create_service(Trigger, f'~/{name}', self._button(action))
        self.create_service(ScaleOrder, '~/order', self._ordered)

    def load(self) -> Machine:
        """The machine with the attachment that it had at the start."""
        return self.settings.load(self._fitted)

    def build(self, machine: Machine) -> None:
        """The stage with its records, the outputs."""
        file = scale_of(machine, self.settings.scale_file)
        self._record = self.output(String, 'scale/record')
        self._totals = self.output(String, 'scale/totals', LASTING)
        self._live = self.output(String, 'scale/live')
        self._mass = self.output(Float64, 'scale/mass')
        self._diagnostics = Diagnostics(self.output(DiagnosticArray, '/diagnostics'), f'{self.executable} load',
                                        machine.name, 1)
        path = self.settings.records or f'loads_{machine.name}.db'
        self._store = None if path == MEMORY else RecordStore(path, machine.name)
        self.stage = ScaleStage(machine, self.tuning, file, self._store, self.settings.day_starts)
        if self._store is not None and (said := self._store.notice or self._store.trouble):
            self.get_logger().error(said)
        book, wanted = self.stage.book, self.tuning
        if wanted.attachment and (book.attachment is None or book.attachment.data['attachment'] != wanted.attachment):
            self.stage.attach(wanted.attachment)
        if wanted.target and book.filling.target != wanted.target:
            self.stage.set_target(wanted.target)
        where = 'in memory alone' if self._store is None else f'in {self._store.path}'
        self.get_logger().info(f'records {where}: {total_text(book.all)} so far')

    def connect(self) -> None:
        """Take states and payloads from here on."""
        self._pairs, self._pace = Pairs(), Pace()
        self.input(HydraulicState, 'state', self.on_state, OUTPUT, raw=True)
        self.input(PayloadMessage, 'payload', self.on_payload, OUTPUT, raw=True)
        self._publish_totals(self._now())

    def retune(self, tuning: ScaleTuning) -> None:
        """New tuning; another attachment or target is a record. Raises ScaleError for an attachment not known."""
        if tuning.attachment != self.tuning.attachment:
            self._publish(self.stage.attach(tuning.attachment))
        if tuning.target != self.tuning.target:
            self._publish(self.stage.set_target(tuning.target))
        self.stage.configure(tuning)

    def on_state(self, cdr: bytes) -> None:
        """How the machine stands, and what its motion says of the mass."""
        self._take(STATES, StateEstimate, cdr)

    def on_payload(self, cdr: bytes) -> None:
        """What the load weighs."""
        self._take(MASSES, PayloadEstimate, cdr)

    def _take(self, stream: int, kind: type[T], cdr: bytes) -> None:
        """One record; the scale gets both of an instant together."""
        try:
            record = received(kind, cdr, self.machine, self.fingerprint)
        except MbseError as error:
            topic = RECORDS[kind][0]
            self.warnings(topic, f'{topic} dropped: {error}')
            return
        pair = self._pairs.take(stream, record.stamp_ns, record)
        if pair is not None:
            self._publish(self.stage.process(*pair))
            self._show()

    def _text(self, values: dict[str, Any]) -> String:
        """What the scale says, with the machine that it is of."""
        return String(data=text_of({**values, 'machine': self.machine.name, 'machine_file': self.fingerprint}))

    def _show(self) -> None:
        """What the operator sees, at its rate, and the diagnostics."""
        live = self.stage.live
        if live is None or not self._pace.is_due('live', live.stamp_ns, self.tuning.rate):
            return
        self._pace.done('live', live.stamp_ns)
        self._live.publish(self._text(live_values(live, self._trouble)))
        if live.question:
            self.warnings('tool', live.question)
        if live.status in KNOWN and isfinite(live.mass):
            self._mass.publish(packed_number(live.mass))
        report = status_of(live, self._trouble, self._notice)
        self._diagnostics(report, LEVELS[report.status], lambda: self._values(live))

    def _publish(self, records: Iterable[Record]) -> None:
        """Records that are confirmed, and the totals with them."""
        records = list(records)
        for record in records:
            place = self.stage.book.places.get(record.number)
            self._record.publish(self._text(record_values(record) | ({} if place is None else {'load': place})))
            if record.kind == LOAD:
                (lower, upper), data = record.mass.interval, record.data
                self.get_logger().info(f'load {place}: {data["mass"]:.1f} kg ({lower:.1f} to {upper:.1f}), '
                                       f'{data["status"]}, {data["truck"]}')
            elif record.kind == MISSED:
                self.warnings('missed', missed_line(record))
        if records:
            self._publish_totals(records[-1].stamp_ns)

    def _publish_totals(self, stamp_ns: int) -> None:
        self._totals.publish(self._text(totals_values(self.stage.book, stamp_ns)))

    @property
    def _trouble(self) -> str:
        """Why records wait, or will have to."""
        return self.stage.trouble or ('' if self._store is None else self._store.trouble)

    @property
    def _notice(self) -> str:
        """What was wrong with the file of records."""
        return '' if self._store is None else self._store.notice

    def _now(self) -> int:
        return self.get_clock().now().nanoseconds

    def _button(self, action: Callable[[], list[Record]]) -> Callable[[Any, Any], Any]:
        """The callback of a service; it succeeds where the record is safe."""
        def call(request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
            if self._machine is None:
                response.success, response.message = False, 'not configured'
                return response
            try:
                records = action()
            except MbseError as error:
                response.success, response.message = False, str(error)
                return response
            self._publish(records)
            response.success = not self.stage.pending
            response.message = text_of(record_values(records[-1])) if records else self.stage.trouble
            return response
        return call

    def _ordered(self, request: ScaleOrder.Request, response: ScaleOrder.Response) -> ScaleOrder.Response:
        """An order in one call; it succeeds where its record is safe."""
        if self._machine is None:
            response.message = 'not configured'
            return response
        order = Order(request.order, request.key, request.expected, request.truck, request.target, request.attachment)
        try:
            records, response.repeated = carry_out(self.stage, order)
        except MbseError as error:
            response.message = str(error)
            return response
        if not response.repeated:
            self._publish(records)
        response.success = response.repeated or not self.stage.pending
        response.message = text_of(record_values(records[-1])) if records else (
            f'{self.stage.trouble}: it waits, and is done as soon as records can be written')
        return response

    def _values(self, live: Live) -> dict[str, object]:
        """Numbers of the diagnostics."""
        return {'mass, kg': f'{live.mass:.1f} ({live.lower:.1f} to {live.upper:.1f})', 'carrying': live.carrying,
                'truck': live.truck, 'loads': live.loads, 'total, kg': f'{live.total:.1f}',
                'not trusted': live.untrusted, 'not trusted, kg': f'{live.untrusted_total:.1f}',
                'remaining, kg': 'no target' if live.remaining is None else f'{live.remaining:.1f}',
                'radius, m': f'{live.radius:.2f}',
                'limit, kg': f'{live.limit:.0f}', 'waiting to be recorded': len(self.stage.pending)}

    def _tear_down(self) -> None:
        super()._tear_down()
        if self._store is not None:
            self._store.close()
            self._store = None


def status_of(live: Live, trouble: str, notice: str = '') -> Report:
    """The worst first; ``trouble``: why records are not written, ``notice``: what was wrong with their file."""
    if live.overload is Overload.OVER:
        return Report(live.stamp_ns, ScaleStatus.OVERLOAD, f'up to {live.gross_upper:.0f} kg at {live.radius:.2f} m, '
                                                            f'limit {live.limit:.0f} kg')
    if trouble:
        return Report(live.stamp_ns, ScaleStatus.NOT_RECORDED, trouble)
    if live.overload is Overload.NEAR:
        return Report(live.stamp_ns, ScaleStatus.NEAR_LIMIT, f'up to {live.gross_upper:.0f} kg of {live.limit:.0f} kg')
    return Report(live.stamp_ns, *((ScaleStatus.REPAIRED, notice) if notice else (ScaleStatus.OK, '')))


main = ScaleNode.main

if __name__ == '__main__':
    main()
