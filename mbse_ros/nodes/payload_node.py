# SPDX-License-Identifier: Apache-2.0
"""States in, payload mass out."""

from __future__ import annotations

import math

from ..bags.messages import state_record
from ..bags.topics import PAYLOAD, STATE
from ..machine import Machine
from ..streams.records import PayloadEstimate, PayloadStatus, StateEstimate
from ..streams.stages import PayloadStage
from ._diagnostics import OK, WARN
from ._records import RecordNode, Source, check_names
from ._warm_up import warm_up_payload


class PayloadNode(RecordNode):
    """Runs the payload stage over each state; a mass known before stays until ~/reset: another load."""

    executable = 'payload_node'
    forgets = 'the mass is forgotten'
    source, sends = Source('state', STATE, state_record), ('payload', PAYLOAD)
    patience = 10        # the status flickers at the ends of a movement

    def check(self, record: StateEstimate) -> None:
        """Raise SampleError for a state whose entries are not those of this machine."""
        check_names(record, self.machine)

    def make_stage(self, machine: Machine) -> PayloadStage:
        """The payload stage, warmed up."""
        stage = PayloadStage(machine, self.tuning, self.settings.backend)
        warm_up_payload(stage, machine)
        return stage

    def level(self, result: PayloadEstimate) -> bytes:
        """Level of the diagnostics: most of the time no mass can be measured, and nothing is wrong."""
        return WARN if result.status is PayloadStatus.NO_DATA else OK

    def values(self, result: PayloadEstimate) -> dict[str, object]:
        """Numbers of the diagnostics."""
        return {'mass': mass_text(result), 'samples': result.samples}

    def log(self, result: PayloadEstimate) -> None:
        """A line about a new status."""
        reason = f'; {result.reason}' if result.reason else ''
        self.get_logger().info(f'{result.status.name}: {mass_text(result)}{reason}')


def mass_text(payload: PayloadEstimate) -> str:
    """Mass with its interval."""
    if not math.isfinite(payload.mass):
        return 'no mass yet'
    return f'{payload.mass:.1f} kg +- {(payload.upper - payload.lower) / 2:.1f} kg (95 %)'


main = PayloadNode.main

if __name__ == '__main__':
    main()
