# SPDX-License-Identifier: Apache-2.0
"""Segments in, states of the hydraulic machine out."""

from __future__ import annotations

from typing import NoReturn

from diagnostic_msgs.msg import DiagnosticArray
from sensor_msgs.msg import JointState

from mbse_ros.msg import HydraulicState, SensorSegment

from ..errors import MbseError
from ..machine import Machine
from ..settings import Settings
from ..streams.records import StateEstimate
from ..streams.stages import ObserverStage
from ._diagnostics import LEVELS, Diagnostics, status_text
from ._inbox import Inbox
from ._joint_states import JointStates
from ._lifecycle import ManagedNode
from ._messages import joint_state, segment_from_message, state_to_message
from ._qos import OUTPUT
from ._reset import offer_reset
from ._run import run
from ._status import StatusChange, log_status
from ._warm_up import warm_up_observer


class ObserverNode(ManagedNode):
    """Runs the observer stage over each segment; starts by itself wherever the stream begins, and after ~/reset."""

    def __init__(self) -> None:
        super().__init__('observer_node')
        offer_reset(self, 'the state is forgotten; the next segment starts it')

    def build(self, machine: Machine) -> None:
        """Compile the observer of the machine."""
        self.stage = ObserverStage(machine, self.tuning, self.settings.backend)
        warm_up_observer(self.stage, machine)
        self._all = JointStates(machine)
        self._states = self.output(HydraulicState, 'state')
        self._joints = self.output(JointState, 'estimated/joint_states')
        self._diagnosed = self.output(DiagnosticArray, '/diagnostics')
        self._warn_of_tuning()

    def retune(self, tuning: Settings) -> None:
        """Give a new tuning to the observer; another transition compiles a new step."""
        self.stage.configure(tuning)
        self._warn_of_tuning()

    def connect(self) -> None:
        """Take segments from here on."""
        self.stage.reset()
        self._changed = StatusChange(1)
        self._diagnose = Diagnostics(self._diagnosed, self.get_name(), self.machine.name)
        self._inbox = Inbox('segment', segment_from_message, self.warnings)
        self.input(SensorSegment, 'segment', self.on_segment, OUTPUT)

    def on_segment(self, message: SensorSegment) -> None:
        """One sensor period."""
        segment = self._inbox.take(message)
        if segment is None:
            return
        try:
            state = self.stage.process(segment)
        except MbseError as error:
            self._inbox.refuse('unusable', f'segment dropped: {error}')
            return
        self._states.publish(state_to_message(state, self.machine.name))
        if self._joints.get_subscription_count():
            self._joints.publish(joint_state(state.stamp_ns, self.machine.name, self._all.names, *self._all(state)))
        changed = self._changed(state.status)
        self._diagnose(state.stamp_ns, LEVELS[state.status], status_text(state.status, state.reason),
                       lambda: self._values(state), changed)
        if changed:
            log_status(self.get_logger(), state)

    def _warn_of_tuning(self) -> None:
        if self.stage.note:
            self.get_logger().warning(self.stage.note)

    def _values(self, state: StateEstimate) -> dict[str, object]:
        """Numbers of the diagnostics."""
        mean_nis, whiteness = self.stage.health
        return {'NIS': f'{state.nis:.3g} of {state.nis_dof} measurements',
                'mean NIS per measurement': f'{mean_nis:.3g}', 'whiteness (p-value)': f'{whiteness:.3g}',
                'dropped, segments': self._inbox.dropped}


def main(args: list[str] | None = None) -> NoReturn:
    """Entry point of the executable."""
    run(ObserverNode, args)


if __name__ == '__main__':
    main()
