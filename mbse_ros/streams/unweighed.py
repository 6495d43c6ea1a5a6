# SPDX-License-Identifier: Apache-2.0
"""The stage after the observer of a machine of which no sensors weigh a load: it gives no mass, and says why."""

from __future__ import annotations

from math import nan

from ..machine import Machine
from ..machine.equations import why_unweighed
from ..monitor.faults import Fault
from ..payload.mass import Cause
from ..payload.payload_settings import PayloadSettings
from .records import PayloadEstimate, PayloadStatus, StateEstimate
from .stages import PayloadStage


class Unweighed(PayloadStage):
    """State estimates in, payload estimates without a mass out."""

    def __init__(self, machine: Machine, settings: PayloadSettings = PayloadSettings()) -> None:
        self._reason, self._settings = why_unweighed(machine), settings

    @property
    def settings(self) -> PayloadSettings:
        """The tuning in force."""
        return self._settings

    @property
    def note(self) -> str:
        """Nothing is wrong with a tuning that changes nothing."""
        return ''

    def configure(self, settings: PayloadSettings) -> None:
        """Take new tuning; it changes nothing."""
        self._settings = settings

    def reset(self) -> None:
        """Nothing is known that could be forgotten."""

    @property
    def budget(self) -> tuple[Cause, ...]:
        """None."""
        return ()

    @property
    def distrust(self) -> str:
        """Nothing that could be trusted."""
        return ''

    def process(self, state: StateEstimate) -> PayloadEstimate:
        """No mass, and why."""
        return PayloadEstimate(state.sequence, state.stamp_ns, nan, nan, nan, nan, nan, nan, 0,
                               PayloadStatus.NOT_OBSERVABLE, self._reason, Fault.UNWEIGHED)


def payload_stage(machine: Machine, settings: PayloadSettings = PayloadSettings(), backend: str = 'auto'
                  ) -> PayloadStage:
    """The stage that weighs, or, where no sensors do, the one that says so."""
    return Unweighed(machine, settings) if why_unweighed(machine) else PayloadStage(machine, settings, backend)
