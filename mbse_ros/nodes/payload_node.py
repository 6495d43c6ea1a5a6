# SPDX-License-Identifier: Apache-2.0
"""States in, payload mass out."""

from __future__ import annotations

import math

import numpy as np

from ..bags.messages import packed_record
from ..bags.topics import PAYLOAD, TOOL_FORCE
from ..filters.hydraulic_state import state_names
from ..filters.mass_information import OWN_COLUMNS, columns
from ..machine import Machine
from ..payload.mass import PayloadSettings
from ..payload.tool_force import has_contact
from ..streams.records import ObserverStatus, PayloadEstimate, PayloadStatus, StateEstimate
from ..streams.stages import PayloadStage, payload_stage
from .base.diagnostics import OK, WARN
from .base.record_node import PRESSURE, STEP_NS, STEPS, RecordNode
from .messages.wire import message_class, packed_tool_force

LARGEST = 3     # causes of the uncertainty in the diagnostics
WRONG = PayloadStatus.NO_DATA, PayloadStatus.IMPLAUSIBLE, PayloadStatus.CONTACT


def warm_up_payload(stage: PayloadStage, machine: Machine) -> None:
    """Run the payload estimators over a made-up state, at rest where the machine's file starts, and forget it: which of
    them is used, the observer's states will show."""
    names, _ = state_names(machine)
    position = {f'position/{name}': machine.model.start.q[k] for name, k in zip(machine.coordinates, machine.model.z)}
    row = [position.get(name, PRESSURE if name.startswith('pressure/') else 0.0) for name in names]
    empty = np.zeros(len(machine.channels))
    joint = () if machine.description.payloads else (np.zeros((STEPS, columns(len(machine.parameters.consider)))),)
    for weighing in np.zeros((0, OWN_COLUMNS)), *joint:
        stage.process(StateEstimate(1, STEPS * STEP_NS, STEP_NS, True, names, np.tile(row, (STEPS, 1)),
                                    np.eye(len(names)) * 1e-6, machine.channels, empty, empty, empty + 1.0, 0.0,
                                    len(empty), ObserverStatus.OK, weighing=weighing))
        stage.reset()


class PayloadNode(RecordNode[StateEstimate, PayloadEstimate]):
    """Runs the payload stage over each state; it notices another load by itself, and ~/reset forgets at once."""

    executable = 'payload_node'
    forgets = 'the mass is forgotten'
    takes, sends = StateEstimate, PayloadEstimate
    tuning: PayloadSettings
    stage: PayloadStage
    patience = 10        # the status flickers at the ends of a movement

    def make_stage(self, machine: Machine) -> PayloadStage:
        """The payload stage, warmed up."""
        stage = payload_stage(machine, self.tuning, self.settings.backend)
        warm_up_payload(stage, machine)
        return stage

    def build(self, machine: Machine) -> None:
        """A topic of each of several payloads, too."""
        super().build(machine)
        self._each = {name: self.output(message_class(PAYLOAD), f'payloads/{name}')
                      for name in machine.description.payloads}
        self._force = self.output(message_class(TOOL_FORCE), 'tool_force/estimate') if has_contact(machine) else None

    def publish_more(self, result: PayloadEstimate) -> None:
        """The estimates of several payloads, and the force at the tool."""
        if self._force is not None and result.tool_force is not None and self._force.get_subscription_count():
            self._force.publish(packed_tool_force(result, self.machine.description.name, self.fingerprint))
        for name, estimate in result.payloads.items():
            self._each[name].publish(packed_record(estimate, self.machine.description.name, self.fingerprint))

    def level(self, result: PayloadEstimate) -> bytes:
        """Level of the diagnostics: where no mass can be measured, or it changes, mostly nothing is wrong."""
        return WARN if result.status in WRONG else OK

    def values(self, result: PayloadEstimate) -> dict[str, object]:
        """Numbers of the diagnostics."""
        values: dict[str, object] = {'mass': mass_text(result), 'samples': result.samples}
        values |= {f'mass of {name}': f'{found.status.name}: {mass_text(found)}'
                   for name, found in result.payloads.items()}
        if math.isfinite(result.mass):
            causes = [cause for cause in self.stage.budget[:LARGEST] if cause.kg > 0.0]
            values |= {f'uncertainty, cause {k}': f'{cause}: {cause.kg:.3g} kg'
                       for k, cause in enumerate(causes, 1)}
        return {**values, **({'tuning': self.stage.note} if self.stage.note else {}),
                **({'trust': words} if (words := self.stage.distrust) else {})}

    def log(self, result: PayloadEstimate) -> None:
        """A line about a new status."""
        reason = f'; {result.reason}' if result.reason else ''
        others = ''.join(f'; {name}: {mass_text(found)}' for name, found in result.payloads.items())
        self.get_logger().info(f'{result.status.name}: {mass_text(result)}{reason}{others}')


def mass_text(payload: PayloadEstimate) -> str:
    """Mass with its interval."""
    if not math.isfinite(payload.mass):
        return 'no mass yet'
    return f'{payload.mass:.1f} kg +- {(payload.upper - payload.lower) / 2:.1f} kg (95 %)'


main = PayloadNode.main

if __name__ == '__main__':
    main()
