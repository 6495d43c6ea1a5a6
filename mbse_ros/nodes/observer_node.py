# SPDX-License-Identifier: Apache-2.0
"""Segments in, states of the hydraulic machine out."""

from __future__ import annotations

from sensor_msgs.msg import JointState

from ..bags.messages import segment_record
from ..bags.topics import SEGMENT, STATE
from ..estimators.observer_settings import ObserverSettings
from ..machine import Machine
from ..streams.records import ObserverStatus, Segment, StateEstimate
from ..streams.stages import ObserverStage
from .base.record_node import RecordNode, RecordSource
from .base.warm_up import warm_up_observer
from .messages.joint_states import JointStates
from .messages.wire import packed_joints


class ObserverNode(RecordNode[Segment, StateEstimate]):
    """Runs the observer stage over each segment; starts by itself wherever the stream begins, and after ~/reset."""

    executable = 'observer_node'
    forgets = 'the state is forgotten; the next segment starts it'
    source, sends = RecordSource('segment', SEGMENT, segment_record), ('state', STATE)
    tuning: ObserverSettings
    stage: ObserverStage

    def build(self, machine: Machine) -> None:
        """Compile the observer of the machine."""
        super().build(machine)
        self._all = JointStates(machine)
        self._joints = self.output(JointState, 'estimated/joint_states')

    def make_stage(self, machine: Machine) -> ObserverStage:
        """The observer stage, warmed up."""
        stage = ObserverStage(machine, self.tuning, self.settings.backend)
        warm_up_observer(stage, machine)
        return stage

    def connect(self) -> None:
        """Take segments from here on, with nothing known."""
        self.stage.reset()
        super().connect()

    def publish_more(self, result: StateEstimate) -> None:
        """All joints and pistons, while somebody listens and they can be trusted: TF may come of them."""
        if result.status is not ObserverStatus.LOST and self._joints.get_subscription_count():
            self._joints.publish(packed_joints(result.stamp_ns, self.machine.name, self._all.names, *self._all(result)))

    def values(self, result: StateEstimate) -> dict[str, object]:
        """Numbers of the diagnostics."""
        mean_nis, whiteness = self.stage.health
        return {'NIS': f'{result.nis:.3g} of {result.nis_dof} measurements',
                'mean NIS per measurement': f'{mean_nis:.3g}', 'whiteness (p-value)': f'{whiteness:.3g}'}


main = ObserverNode.main

if __name__ == '__main__':
    main()
