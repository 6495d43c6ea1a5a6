# SPDX-License-Identifier: Apache-2.0
"""The operator's page: what the scale says and how the machine stands, to browsers; their buttons, to the scale.

What the page shows goes out as JSON: the machine from the side, the load chart, the channels (`display.side_view`).
"""

from __future__ import annotations

import json
import math
import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.client import Client
from rclpy.subscription import Subscription
from std_msgs.msg import String
from std_srvs.srv import Trigger

from ..bags.topics import TOOL_FORCE
from ..errors import MbseError, shown
from ..machine import Machine
from ..msg import HydraulicState, ToolForce
from ..payload.tool_force import has_contact
from ..scale.live import text_of
from ..scale.orders import ATTACH, BUTTONS, TARE, DisplayOrder
from ..scale.record import LOAD
from ..scale.scale_file import scale_of
from ..srv import ScaleOrder
from ..streams.records import StateEstimate
from .base.lifecycle import ManagedNode
from .base.middleware import LASTING, LATEST, OUTPUT
from .base.node_settings import DisplayNodeSettings, DisplayTuning
from .base.record_node import received
from .display.display_server import BEAT, Door, Server, Viewer, answer_text, read_token
from .display.side_view import SideView, channel_values, force_values, machine_values
from .messages.wire import unpacked

SCALE = 'scale_node'
LOOK = 0.1          # s between two looks at orders and viewers
ANSWER = 5.0        # s that the scale has for an answer
ENGINEER = 0.5      # s between two tables of channels


class DisplayNode(ManagedNode[Machine]):
    """Hears the graph only while somebody looks, but for the scale's own few messages."""

    executable = 'display_node'
    settings: DisplayNodeSettings
    tuning: DisplayTuning

    def __init__(self) -> None:
        super().__init__()
        self.server: Server | None = None
        self._orders = self.create_client(ScaleOrder, f'{SCALE}/order')
        self._buttons = {name: self.create_client(Trigger, f'{SCALE}/{name}') for name in BUTTONS}
        self._asked: dict[tuple[Viewer, int], float] = {}

    def build(self, machine: Machine) -> None:
        """The server, which listens from here on; raises MbseError where it cannot."""
        settings = self.settings
        file = scale_of(machine, settings.scale_file)
        self._view = SideView(machine, file.chart.origin if file.chart else None)
        token = read_token(settings.token_file, settings.host)
        self.server = Server(Door(settings.host, settings.port, token, settings.viewers))
        self.server.say('machine', text_of(machine_values(machine, file, self._view)), keep=True)
        self.get_logger().info(f"the operator's page: {self.server.address}"
                               + ('#token=... (as in token_file)' if token else ''))

    def connect(self) -> None:
        """Take records from here on; the rest once somebody looks."""
        self._looking: list[Subscription] = []
        self._state: bytes | None = None
        self._force: bytes | None = None
        self._faults: dict[str, dict[str, Any]] = {}
        self._due = self._told = 0.0
        self._newest: tuple[float, String] | None = None
        self.input(String, 'scale/record', self.on_record, OUTPUT)
        self.input(String, 'scale/live', self.on_live, LATEST)      # heard always: to find it takes longer than to wait

    def tick(self) -> float | None:
        """Follow who looks, and do what they ask for."""
        if not self.active or (server := self.server) is None:
            return None
        now = time.monotonic()
        self._follow_viewers()
        while server.orders:
            self._do(*server.orders.popleft())
        for key in [key for key, due in self._asked.items() if now > due]:
            self._reply(*key, False, f'{SCALE} did not answer within {ANSWER:.0f} s: look whether it was done')
        return LOOK

    def on_live(self, message: String) -> None:
        """What the scale says now, and how the machine stands."""
        now, period = time.monotonic(), 1.0 / self.tuning.rate
        self._newest = now, message
        if not self._looking:
            return
        # One may come a period early: those that come unevenly are as many as they are.
        if now < self._due - period or (live := self._read('scale/live', message)) is None:
            return
        self._due = max(now, self._due) + period
        low, high = self.machine.payload_data.limits
        frame = {'kind': 'frame', 'live': live, 'parts': {}, 'widest': self.tuning.widest * (high - low)}
        state = self._newest_state()
        if state is not None:
            frame['parts'] = self._view.of(state)
            if now - self._told > ENGINEER:
                self._told = now
                self._say({
                    'kind': 'engineer', 'channels': channel_values(state, self.machine), 'nis': state.nis,
                    'nis_dof': state.nis_dof, 'status': state.status, 'reason': state.reason,
                    'faults': list(self._faults.values()), 'force': self._newest_force()})
        self._say(frame)

    def on_totals(self, message: String) -> None:
        """Truck, day, the last loads."""
        totals = self._read('scale/totals', message)
        if totals is not None:
            self._say({'kind': 'totals', 'totals': totals}, keep=True)

    def on_record(self, message: String) -> None:
        """Of a load: what its interval is made of."""
        record = self._read('scale/record', message)
        if record is not None and record.get('kind') == LOAD:
            self._say({'kind': 'budget', 'load': record}, keep=True)

    def on_state(self, cdr: bytes) -> None:
        """Kept as it is until it is needed: ten times a second, not a hundred times."""
        self._state = cdr

    def on_force(self, cdr: bytes) -> None:
        """Kept likewise: the force at the tool."""
        self._force = cdr

    def on_diagnostics(self, message: DiagnosticArray) -> None:
        """What is not well, by name."""
        for status in message.status[:64]:
            if status.level == b'\0' or len(self._faults) > 64:
                self._faults.pop(status.name, None)
            else:
                self._faults[status.name] = {'name': status.name[:120], 'level': status.level[0],
                                             'text': status.message[:300]}

    def _newest_state(self) -> Any:
        """The state that came last; None where none is new, or it is not ours."""
        cdr, self._state = self._state, None
        if cdr is None:
            return None
        try:
            return received(StateEstimate, cdr, self.machine, self.fingerprint)
        except MbseError as error:
            self.warnings('state', f'state dropped: {error}')
            return None

    def _newest_force(self) -> dict[str, Any] | None:
        """The force at the tool that came last; None where none is new, or it is not ours."""
        cdr, self._force = self._force, None
        if cdr is None:
            return None
        try:
            message = unpacked('tool_force/estimate', TOOL_FORCE, cdr)
        except MbseError as error:
            self.warnings('force', f'tool_force dropped: {error}')
            return None
        return force_values(message, self.machine) if message.machine == self.fingerprint else None

    def _read(self, topic: str, message: String) -> dict[str, Any] | None:
        """A text of the scale; one that is not JSON, no object, or of another machine is dropped with a warning."""
        try:
            found = json.loads(message.data, parse_constant=lambda word: math.nan)
        except (ValueError, RecursionError) as error:
            self.warnings(topic, f'{topic} dropped: {error}')
            return None
        if not isinstance(found, dict):
            self.warnings(topic, f'{topic} dropped: no object')
            return None
        if (sender := (found.get('machine'), found.get('machine_file'))) != (self.machine.name, self.fingerprint):
            self.warnings(f'{topic} of another', f'{topic} dropped: of {shown(f"{sender[0]} ({sender[1]})")}, expected '
                                                 f'{self.machine.name} ({self.fingerprint}): the same file')
            return None
        return found

    def _follow_viewers(self) -> None:
        """Hear the graph while there are viewers."""
        viewers = 0 if self.server is None else self.server.count
        if viewers and not self._looking:
            self._view.forget()
            self._looking = [
                self.input(String, 'scale/totals', self.on_totals, LASTING),
                self.input(HydraulicState, 'state', self.on_state, LATEST, raw=True),
                self.input(DiagnosticArray, '/diagnostics', self.on_diagnostics, OUTPUT),
                *([self.input(ToolForce, 'tool_force/estimate', self.on_force, LATEST, raw=True)]
                  if has_contact(self.machine) else [])]
            if self._newest is not None and time.monotonic() - self._newest[0] < BEAT:
                self.on_live(self._newest[1])
        elif not viewers and self._looking:
            for subscription in self._looking:
                self.leave(subscription)
            self._looking, self._state, self._force = [], None, None
            self._faults.clear()

    def _do(self, viewer: Viewer, order: DisplayOrder) -> None:
        """One call for an order; a scale that is older than these has services for the buttons alone."""
        self._asked[viewer, order.number] = time.monotonic() + ANSWER
        self.get_logger().info(f'a page asks for {order.action} {order.values or ""}'.rstrip())
        button = self._buttons.get(order.action)
        if self._orders.service_is_ready():
            self._call(self._orders, ScaleOrder.Request(
                order=ATTACH if order.action == TARE else order.action, key=order.key, expected=order.expected,
                **order.values), viewer, order)
        elif button is not None and not order.values and button.service_is_ready():
            self._call(button, Trigger.Request(), viewer, order)
        else:
            self._reply(viewer, order.number, False, f'{SCALE} is not there')

    def _call(self, client: Client, request: Any, viewer: Viewer, order: DisplayOrder) -> None:
        def answered(future: Any) -> None:
            if (viewer, order.number) in self._asked:       # not given up
                answer = future.result()
                done = answer.success and order.action == TARE
                self._reply(viewer, order.number, answer.success,
                            str(order.values['attachment'] or 'none') if done else answer.message)

        client.call_async(request).add_done_callback(answered)

    def _say(self, values: dict[str, Any], keep: bool = False) -> None:
        if self.server is not None:
            self.server.say(values['kind'], text_of(values), keep)

    def _reply(self, viewer: Viewer, number: int, success: bool, text: str) -> None:
        self._asked.pop((viewer, number), None)
        if self.server is not None:
            self.server.answer(viewer, number, answer_text(number, success, text))

    def process_values(self) -> dict[str, object]:
        """With those who look."""
        server = self.server
        pages = {} if server is None else {
            'pages': server.count, 'pages dropped': server.dropped, 'connections closed': server.closed,
            'connections failed': f'{server.failed} {server.failure}'.rstrip(), 'address': server.address}
        return {**super().process_values(), **pages}

    def _disconnect(self) -> None:
        super()._disconnect()
        self._looking = []

    def _tear_down(self) -> None:
        super()._tear_down()
        self._asked.clear()
        if self.server is not None:
            self.server.close()
            self.server = None


main = DisplayNode.main

if __name__ == '__main__':
    main()
