# SPDX-License-Identifier: Apache-2.0
"""Segments in, states of the hydraulic machine out, and joints and pistons out of its independent coordinates."""

from __future__ import annotations

import time

import casadi as ca
import numpy as np
from sensor_msgs.msg import JointState

from ..bags.messages import packed_record
from ..compiled import Kernel
from ..errors import MbseError
from ..filters.observer_settings import ObserverSettings
from ..machine import Machine
from ..machine.feed_forward import joint_forces
from ..msg import HydraulicState
from ..simulation.crane import TrueSamples
from ..srv import SetState
from ..streams.records import ObserverStatus, Segment, StateEstimate
from ..streams.stages import ObserverStage
from .base.node_settings import ObserverNodeSettings
from .base.record_node import PRESSURE, STEP_NS, STEPS, RecordNode
from .messages.wire import packed_joints


class JointStates:
    """Positions, velocities and forces of ``names``: the independent coordinates, then the other joints and pistons."""

    def __init__(self, machine: Machine) -> None:
        self.machine, model = machine, machine.model
        own = {*machine.cylinders, *machine.description.joints, *machine.description.coordinates}
        self.names = (*machine.coordinates,
                      *(name for name in model.names if name in own and name not in machine.coordinates))
        self._places = [model.names.index(name) for name in self.names]
        self._pistons = [self.names.index(name) for name in machine.cylinders]
        zd, p = ca.SX.sym('zd', len(machine.coordinates)), ca.SX.sym('p', len(machine.volumes))
        forces = machine.circuit.hydraulic_forces(p)
        carrying, torques = joint_forces(machine, forces)
        self._carrying = [self.names.index(name) for name in carrying]
        self._kernel = Kernel(ca.Function('mbse_joints', [machine.system.q, zd, p, machine.parameters.symbol], [
            machine.reduced.R[self._places, :] @ zd, forces, torques], {'cse': True}), 'vm')
        self._q: np.ndarray | None = None

    def __call__(self, state: StateEstimate) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """At the last step: positions, m or rad, velocities, and efforts: hydraulic forces of pistons, N, and of the
        joints that carry the load what the cylinders do about them, N m, or along them, N; else NaN.

        Along the loops from the last solution; where there is none only the independent coordinates are known.
        """
        last, g = state.mean[-1], len(self.machine.coordinates)
        z, zd, pressure = last[:g], last[g:2 * g], last[3 * g:3 * g + len(self.machine.volumes)]
        try:
            self._q = self.machine.position(z, None if state.restart else self._q)
        except MbseError:
            self._q = None
        q = np.full(len(self.machine.model.names), np.nan) if self._q is None else self._q
        velocity, force, torque = self._kernel(q, zd, pressure, self.machine.parameters.mean)
        position, effort = q[self._places], np.full(len(self.names), np.nan)
        effort[self._carrying] = np.where(np.isfinite(torque), torque, np.nan)      # infinite at a dead point
        position[:g], velocity[:g], effort[self._pistons] = z, zd, force
        return position, velocity, effort


def warm_up_observer(stage: ObserverStage, machine: Machine) -> None:
    """Run the observer over a made-up segment, at rest where the machine's file starts, and forget it."""
    model, rest, none = machine.model, np.zeros(len(machine.coordinates)), np.zeros(len(machine.channels))
    samples = TrueSamples(machine, machine.all_channels).read(
        model.start.q, model.start.q[model.z], rest, rest, np.full(len(machine.volumes), PRESSURE), none, {})
    row = [samples[channel] for channel in machine.channels]
    stage.process(Segment(1, 0, STEP_NS, True, machine.channels, np.tile(row, (STEPS, 1)),
                          np.full(len(row), float(STEPS)), machine.commands, np.zeros((STEPS, len(machine.commands)))))
    stage.reset()


class ObserverNode(RecordNode[Segment, StateEstimate]):
    """Runs the observer stage over each segment; starts by itself wherever the stream begins, and after ~/reset."""

    executable = 'observer_node'
    forgets = 'the state is forgotten; the next segment starts it'
    takes, sends = Segment, StateEstimate
    settings: ObserverNodeSettings
    tuning: ObserverSettings
    stage: ObserverStage

    def __init__(self) -> None:
        super().__init__()
        self.create_service(SetState, '~/set_state', self.on_set_state)
        if self.settings.predict_rate:
            self.longest_wait = min(self.longest_wait, 0.25 / self.settings.predict_rate)

    def build(self, machine: Machine) -> None:
        """Compile the observer of the machine."""
        super().build(machine)
        self._all = JointStates(machine)
        self._joints = self.output(JointState, 'estimated/joint_states')
        self._ahead = self.output(HydraulicState, 'state/predicted') if self.settings.predict_rate else None

    def make_stage(self, machine: Machine) -> ObserverStage:
        """The observer stage, warmed up."""
        stage = ObserverStage(machine, self.tuning, self.settings.backend)
        warm_up_observer(stage, machine)
        return stage

    def connect(self) -> None:
        """Take segments from here on, with nothing known."""
        self.stage.reset()
        self._last: StateEstimate | None = None
        self._due = 0.0
        super().connect()

    def tick(self) -> float | None:
        """The state now, ``predict_rate`` times a second, while somebody listens: not of one that is LOST, nor farther
        ahead than ``predict_for``."""
        if not self.active or self._ahead is None:
            return None
        now = time.monotonic()
        if now < self._due:
            return self._due - now
        self._due = max(self._due + 1.0 / self.settings.predict_rate, now)
        last, stamp = self._last, self._now()
        if last is not None and last.status is not ObserverStatus.LOST and self._ahead.get_subscription_count() and (
                0 < stamp - last.stamp_ns <= self.settings.predict_for * 1e9):
            try:
                result = self.stage.predicted(last, stamp)
            except MbseError as error:
                self.warnings('predicted', f'state/predicted: {error}')
            else:
                if result is not None:
                    name = self.machine.description.name
                    self._ahead.publish(packed_record(result, name, self.fingerprint))
        return max(0.0, self._due - time.monotonic())

    def publish_more(self, result: StateEstimate) -> None:
        """All joints and pistons, while somebody listens and they can be trusted: TF may come of them."""
        self._last = result
        if result.status is not ObserverStatus.LOST and self._joints.get_subscription_count():
            self._joints.publish(packed_joints(result.stamp_ns, self.machine.name, self._all.names, *self._all(result)))

    def on_set_state(self, request: SetState.Request, response: SetState.Response) -> SetState.Response:
        """Continue from a state that the caller knows; a refusal says why, and changes nothing."""
        names, values, stddev = list(request.names), list(request.values), list(request.stddev)
        if not self.active or self._last is None:
            response.message = 'no state yet: the node is not active, or has had no sample'
        elif len(set(names)) < len(names) or len(values) != len(names) or len(stddev) not in (0, len(names)):
            response.message = (f'got {len(names)} names, {len(values)} values, {len(stddev)} stddev, expected a value '
                                'for each name, each name once, and as many stddev or none')
        else:
            try:
                self.stage.set_state(dict(zip(names, values)), dict(zip(names, stddev)))
            except MbseError as error:
                response.message = str(error)
            else:
                response.success, response.message = True, f'set: {", ".join(names)}'
                self.get_logger().info(f'state {response.message}')
        return response

    def values(self, result: StateEstimate) -> dict[str, object]:
        """Numbers of the diagnostics."""
        health = self.stage.health()
        return {'NIS': f'{result.nis:.3g} of {result.nis_dof} measurements',
                'mean NIS per measurement': f'{health.mean_nis:.3g}', 'whiteness (p-value)': f'{health.whiteness:.3g}'}


main = ObserverNode.main

if __name__ == '__main__':
    main()
