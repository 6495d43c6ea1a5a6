# SPDX-License-Identifier: Apache-2.0
"""Segments in, states of the hydraulic machine out."""

from __future__ import annotations

from typing import NoReturn

import casadi as ca
import numpy as np
from sensor_msgs.msg import JointState

from mbse_ros.msg import HydraulicState, SensorSegment

from ..errors import MbseError
from ..machine import Machine
from ..settings import Settings
from ..streams.records import ObserverStatus, StateEstimate
from ..streams.stages import ObserverStage
from ._inbox import Inbox
from ._lifecycle import ManagedNode
from ._messages import joint_state, segment_from_message, state_to_message
from ._qos import OUTPUT
from ._run import run
from ._status import StatusChange
from ._warm_up import warm_up_observer


class ObserverNode(ManagedNode):
    """Runs the observer stage over each segment; starts by itself wherever the stream begins."""

    def __init__(self) -> None:
        super().__init__('observer_node')

    def build(self, machine: Machine) -> None:
        """Compile the observer of the machine."""
        self.stage = ObserverStage(machine, self.tuning, self.settings.backend)
        warm_up_observer(self.stage, machine)
        self._force = force_matrix(machine)
        self._states = self.output(HydraulicState, 'state')
        self._joints = self.output(JointState, 'estimated/joint_states')
        self._warn_of_tuning()

    def retune(self, tuning: Settings) -> None:
        """Give a new tuning to the observer; another transition compiles a new step."""
        self.stage.configure(tuning)
        self._warn_of_tuning()

    def connect(self) -> None:
        """Take segments from here on."""
        self.stage.reset()
        self._changed = StatusChange(1)
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
            self.warnings('unusable', f'segment dropped: {error}')
            return
        self._states.publish(state_to_message(state, self.machine.name))
        if self._joints.get_subscription_count():
            self._joints.publish(self._joint_state(state))
        self._tell(state)

    def _warn_of_tuning(self) -> None:
        if self.stage.note:
            self.get_logger().warning(self.stage.note)

    def _joint_state(self, state: StateEstimate) -> JointState:
        """Pistons at the last step: position, velocity, hydraulic force."""
        last, count = state.mean[-1], len(self.machine.cylinders)
        pressure = last[3 * count:3 * count + len(self.machine.volumes)]
        return joint_state(state.stamp_ns, self.machine.name, self.machine.cylinders, last[:count],
                           last[count:2 * count], self._force @ pressure)

    def _tell(self, state: StateEstimate) -> None:
        """A line in the log where the status changes."""
        if not self._changed(state.status):
            return
        text = f'{state.status.name}{": " + state.reason if state.reason else ""}'
        if state.status <= ObserverStatus.STARTING:
            self.get_logger().info(text)
        else:       # a line of its own: rclpy refuses two severities from one
            self.get_logger().warning(text)


def force_matrix(machine: Machine) -> np.ndarray:
    """Hydraulic forces of the cylinders per pressure of the volumes (cylinders, volumes), N/Pa (paper 003 Eq. 50)."""
    p = ca.SX.sym('p', len(machine.volumes))
    force = ca.Function('mbse_force', [p, machine.parameters.symbol], [machine.circuit.hydraulic_forces(p)])
    return np.column_stack([force(unit, machine.parameters.mean).full().ravel() for unit in np.eye(p.numel())])


def main(args: list[str] | None = None) -> NoReturn:
    """Entry point of the executable."""
    run(ObserverNode, args)


if __name__ == '__main__':
    main()
