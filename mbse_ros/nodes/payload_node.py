# SPDX-License-Identifier: Apache-2.0
"""States in, payload mass out."""

from __future__ import annotations

import math
from typing import NoReturn

from std_srvs.srv import Trigger

from mbse_ros.msg import HydraulicState, PayloadEstimate

from ..errors import MbseError
from ..machine import Machine
from ..settings import Settings
from ..streams.records import PayloadEstimate as Estimate
from ..streams.stages import PayloadStage
from ._inbox import Inbox
from ._lifecycle import ManagedNode
from ._messages import payload_to_message, state_from_message
from ._qos import OUTPUT
from ._run import run
from ._status import StatusChange
from ._warm_up import warm_up_payload

LASTING = 10        # messages before a new status is told: it flickers at the ends of a movement


class PayloadNode(ManagedNode):
    """Runs the payload stage over each state; the service ~/reset forgets the mass for another load."""

    def __init__(self) -> None:
        super().__init__('payload_node')
        self.create_service(Trigger, '~/reset', self.on_reset)

    def build(self, machine: Machine) -> None:
        """Compile the inverse dynamics of the machine."""
        self.stage = PayloadStage(machine, self.tuning, self.settings.backend)
        warm_up_payload(self.stage, machine)
        self._payloads = self.output(PayloadEstimate, 'payload')

    def retune(self, tuning: Settings) -> None:
        """Give a new tuning to the estimator."""
        self.stage.configure(tuning)

    def connect(self) -> None:
        """Take states from here on; a mass known before stays."""
        self._changed = StatusChange(LASTING)
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
            self.warnings('unusable', f'state dropped: {error}')
            return
        self._payloads.publish(payload_to_message(payload, self.machine.name))
        self._tell(payload)

    def on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Forget the mass: another load hangs on the machine."""
        if self.machine is None:
            response.success, response.message = False, 'not configured'
        else:
            self.stage.reset()
            response.success, response.message = True, 'the mass starts anew'
        return response

    def _tell(self, payload: Estimate) -> None:
        """A line in the log where the status changes."""
        if self._changed(payload.status):
            half = (payload.upper - payload.lower) / 2
            mass = f'{payload.mass:.1f} kg +- {half:.1f} kg (95 %)' if math.isfinite(payload.mass) else 'no mass yet'
            self.get_logger().info(f'{payload.status.name}: {mass}{"; " + payload.reason if payload.reason else ""}')


def main(args: list[str] | None = None) -> NoReturn:
    """Entry point of the executable."""
    run(PayloadNode, args)


if __name__ == '__main__':
    main()
