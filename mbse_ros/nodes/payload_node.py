# SPDX-License-Identifier: Apache-2.0
"""States in, payload mass out."""

from __future__ import annotations

import math
from typing import NoReturn

from diagnostic_msgs.msg import DiagnosticArray

from mbse_ros.msg import HydraulicState, PayloadEstimate

from ..errors import MbseError
from ..machine import Machine
from ..settings import Settings
from ..streams.records import PayloadEstimate as Estimate
from ..streams.records import PayloadStatus
from ..streams.stages import PayloadStage
from ._diagnostics import OK, WARN, Diagnostics, status_text
from ._inbox import Inbox
from ._lifecycle import ManagedNode
from ._messages import payload_to_message, state_from_message
from ._qos import OUTPUT
from ._reset import offer_reset
from ._run import run
from ._status import StatusChange
from ._warm_up import warm_up_payload

LASTING = 10        # messages before a new status is told: it flickers at the ends of a movement


class PayloadNode(ManagedNode):
    """Runs the payload stage over each state; the service ~/reset forgets the mass for another load."""

    def __init__(self) -> None:
        super().__init__('payload_node')
        offer_reset(self, 'the mass is forgotten')

    def build(self, machine: Machine) -> None:
        """Compile the inverse dynamics of the machine."""
        self.stage = PayloadStage(machine, self.tuning, self.settings.backend)
        warm_up_payload(self.stage, machine)
        self._payloads = self.output(PayloadEstimate, 'payload')
        self._diagnosed = self.output(DiagnosticArray, '/diagnostics')

    def retune(self, tuning: Settings) -> None:
        """Give a new tuning to the estimator."""
        self.stage.configure(tuning)

    def connect(self) -> None:
        """Take states from here on; a mass known before stays."""
        self._changed = StatusChange(LASTING)
        self._diagnose = Diagnostics(self._diagnosed, self.get_name(), self.machine.name)
        self._inbox = Inbox('state', state_from_message, self.warnings)
        self.input(HydraulicState, 'state', self.on_state, OUTPUT)

    def on_state(self, message: HydraulicState) -> None:
        """State over one sensor period."""
        state = self._inbox.take(message)
        if state is None:
            return
        try:
            payload = self.stage.process(state)
        except MbseError as error:
            self._inbox.refuse('unusable', f'state dropped: {error}')
            return
        self._payloads.publish(payload_to_message(payload, self.machine.name))
        changed = self._changed(payload.status)
        level = WARN if payload.status is PayloadStatus.NO_DATA else OK
        self._diagnose(payload.stamp_ns, level, status_text(payload.status, payload.reason),
                       lambda: self._values(payload), changed)
        if changed:
            self._tell(payload)

    def _tell(self, payload: Estimate) -> None:
        """A line in the log about a new status."""
        reason = f'; {payload.reason}' if payload.reason else ''
        self.get_logger().info(f'{payload.status.name}: {mass_text(payload)}{reason}')

    def _values(self, payload: Estimate) -> dict[str, object]:
        """Numbers of the diagnostics."""
        return {'mass': mass_text(payload), 'samples': payload.samples, 'dropped, states': self._inbox.dropped}


def mass_text(payload: Estimate) -> str:
    """Mass with its interval."""
    if not math.isfinite(payload.mass):
        return 'no mass yet'
    return f'{payload.mass:.1f} kg +- {(payload.upper - payload.lower) / 2:.1f} kg (95 %)'


def main(args: list[str] | None = None) -> NoReturn:
    """Entry point of the executable."""
    run(PayloadNode, args)


if __name__ == '__main__':
    main()
