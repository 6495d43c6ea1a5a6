# SPDX-License-Identifier: Apache-2.0
"""States in, payload mass out."""

from __future__ import annotations

import math

from ..bags.messages import state_record
from ..bags.topics import PAYLOAD, STATE
from ..machine import Machine
from ..payload.payload_settings import PayloadSettings
from ..streams.records import PayloadEstimate, PayloadStatus, StateEstimate
from ..streams.stages import PayloadStage, payload_stage
from .base.diagnostics import OK, WARN
from .base.record_node import RecordNode, RecordSource, check_names
from .base.warm_up import warm_up_payload

LARGEST = 3     # causes of the uncertainty in the diagnostics
WRONG = PayloadStatus.NO_DATA, PayloadStatus.IMPLAUSIBLE, PayloadStatus.CONTACT


class PayloadNode(RecordNode[StateEstimate, PayloadEstimate]):
    """Runs the payload stage over each state; it notices another load by itself, and ~/reset forgets at once."""

    executable = 'payload_node'
    forgets = 'the mass is forgotten'
    source, sends = RecordSource('state', STATE, state_record), ('payload', PAYLOAD)
    tuning: PayloadSettings
    stage: PayloadStage
    patience = 10        # the status flickers at the ends of a movement

    def check(self, record: StateEstimate) -> None:
        """Raise SampleError for a state whose entries are not those of this machine."""
        check_names(record, self.machine)

    def make_stage(self, machine: Machine) -> PayloadStage:
        """The payload stage, warmed up."""
        stage = payload_stage(machine, self.tuning, self.settings.backend)
        warm_up_payload(stage, machine)
        return stage

    def level(self, result: PayloadEstimate) -> bytes:
        """Level of the diagnostics: where no mass can be measured, or it changes, mostly nothing is wrong."""
        return WARN if result.status in WRONG else OK

    def values(self, result: PayloadEstimate) -> dict[str, object]:
        """Numbers of the diagnostics."""
        values: dict[str, object] = {'mass': mass_text(result), 'samples': result.samples}
        if math.isfinite(result.mass):
            causes = [cause for cause in self.stage.budget[:LARGEST] if cause.kg > 0.0]
            values |= {f'uncertainty, cause {k}': f'{cause}: {cause.kg:.3g} kg'
                       for k, cause in enumerate(causes, 1)}
        return {**values, **({'tuning': self.stage.note} if self.stage.note else {}),
                **({'trust': words} if (words := self.stage.distrust) else {})}

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
