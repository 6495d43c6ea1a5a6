# SPDX-License-Identifier: Apache-2.0
"""Cylinders along trajectories: action FollowJointTrajectory and topic joint_trajectory in, commands of valves out.

Not a safety function: it stops a motion by neutral commands, which a program that has died cannot send.
"""

from __future__ import annotations

import time
from typing import Any

from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.action.server import ServerGoalHandle
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from ..bags.topics import PAYLOAD, STATE
from ..errors import MbseError
from ..machine import Machine
from ..msg import HydraulicState
from ..msg import PayloadEstimate as PayloadMessage
from ..streams.records import PayloadEstimate, StateEstimate
from ..streams.tracking import Outcome, Tolerances, Tracked, TrackingSettings, TrajectoryTracking, outcome_of
from .base.lifecycle import ManagedNode
from .base.middleware import OUTPUT
from .base.node_settings import TrajectoryNodeSettings
from .base.record_node import received
from .base.timing import Pace
from .messages.trajectories import ACTION, feedback_of, result_of, tolerances_of, trajectory_of
from .messages.wire import message_class, packed_joints

LOOKS = 4           # at the age of the last state, in the time that it may have
NO_ACTION = ('no action ~/follow_joint_trajectory: control_msgs is not installed (package ros-<distro>-control-msgs); '
             'the topic ~/joint_trajectory works')


class TrajectoryNode(ManagedNode[Machine]):
    """Gives states and goals to the controller; publishes its commands, for the valves that take part alone.

    A goal that cannot be followed is accepted and aborted at once, so that its sender hears the reason.
    """

    executable = 'trajectory_node'
    hurried = True       # who cancels must not wait
    settings: TrajectoryNodeSettings
    tuning: TrackingSettings
    _server: ActionServer | None = None
    _goal: ServerGoalHandle | None = None

    def build(self, machine: Machine) -> None:
        """The controller, and what it sends and takes."""
        self._tracking = TrajectoryTracking(machine, self.tuning)
        for kind in (STATE, PAYLOAD):       # learnt here, not at the first message
            message_class(kind)
        self._commands = self.output(JointState, 'valve_command')
        if ACTION is None:
            self.get_logger().error(NO_ACTION)
        else:
            self._server = ActionServer(
                self, ACTION, '~/follow_joint_trajectory', self._finished, handle_accepted_callback=self.on_goal,
                goal_callback=lambda goal: GoalResponse.ACCEPT if self.active else GoalResponse.REJECT,
                cancel_callback=self.on_cancel)

    def retune(self, tuning: TrackingSettings) -> None:
        """Other gains and limits, from the next state on."""
        self._tracking.configure(tuning)

    def connect(self) -> None:
        """Take states, masses and trajectories from here on."""
        self._tracking.reset()
        self._pace, self._heard = Pace(), time.monotonic()
        self.input(HydraulicState, self.settings.state, self.on_state, OUTPUT, raw=True)
        self.input(PayloadMessage, 'payload', self.on_payload, OUTPUT, raw=True)
        self.input(JointTrajectory, '~/joint_trajectory', self.on_trajectory, OUTPUT)

    def on_state(self, cdr: bytes) -> None:
        """One control step."""
        try:
            state = received(StateEstimate, cdr, self.machine, self.fingerprint)
        except MbseError as error:
            self.warnings('state', f'state dropped: {error}')
            return
        self._heard = time.monotonic()
        self._say(self._tracking.process(state))

    def on_payload(self, cdr: bytes) -> None:
        """What the load weighs."""
        try:
            self._tracking.weigh(received(PayloadEstimate, cdr, self.machine, self.fingerprint))
        except MbseError as error:
            self.warnings('payload', f'payload dropped: {error}')

    def on_goal(self, goal: ServerGoalHandle) -> None:
        """A goal of the action, in place of what is followed, if it can be followed."""
        try:
            self._follow(goal.request.trajectory, tolerances_of(goal.request), goal)
        except MbseError as error:
            self.get_logger().warning(f'goal refused: {error}')
            self._end(goal, outcome_of(error), str(error))

    def on_trajectory(self, message: JointTrajectory) -> None:
        """A trajectory that nobody waits for; one without points stops the motion."""
        if not message.points:
            self._say(self._tracking.stop(Outcome.STOPPED, 'a trajectory without points'))
            return
        try:
            self._follow(message, Tolerances(), None)
        except MbseError as error:
            self.warnings('trajectory', f'trajectory refused: {error}')

    def on_cancel(self, goal: ServerGoalHandle) -> CancelResponse:
        """The next tick ends it with neutral commands: then it is in the state CANCELING."""
        return CancelResponse.ACCEPT if self._goal is not None and goal == self._goal else CancelResponse.REJECT

    def tick(self) -> float | None:
        """Stop where the client asks for it, and where no state comes any more, by the clock of the computer."""
        if not self.active or not self._tracking.busy:
            return None
        if self._goal is not None and self._goal.is_cancel_requested:
            self._say(self._tracking.stop(Outcome.STOPPED, 'cancelled'))
            return None
        silent, oldest = time.monotonic() - self._heard, self.tuning.oldest
        if silent > oldest:
            self._say(self._tracking.stop(Outcome.STOPPED, f'no {self.settings.state} for {silent:.2f} s'))
            return None
        return oldest / LOOKS

    def do_rest(self) -> None:
        """No message counts any more."""
        self._stop('trajectory_node ends')

    def process_values(self) -> dict[str, object]:
        """With whether it moves the machine, and by which mass."""
        moving = self._machine is not None and self._tracking.busy
        mass = self._tracking.mass if moving else None
        return {**super().process_values(), 'following': moving,
                **({'load': 'not known' if mass is None else f'{mass:.1f} kg'} if moving else {})}

    def _follow(self, message: JointTrajectory, tolerances: Tolerances, goal: ServerGoalHandle | None) -> None:
        trajectory, start = trajectory_of(message)
        self._tracking.follow(trajectory, tolerances, start)
        before, self._goal = self._goal, goal
        if before is not None:
            self._end(before, Outcome.STOPPED, 'another trajectory has come')
        self.get_logger().info(f'following {", ".join(trajectory.names)} for {trajectory.duration:.2f} s')

    def _say(self, tracked: Tracked | None) -> None:
        """Publish commands, and tell the client."""
        if tracked is None:
            return
        names = list(tracked.commands)
        self._commands.publish(packed_joints(tracked.stamp_ns, self.machine.name, names,
                                             [tracked.commands[name] for name in names]))
        goal = self._goal
        if tracked.outcome is not None:
            self._goal = None
            if tracked.outcome is Outcome.SUCCESSFUL:
                self.get_logger().info('trajectory over: at its last point')
            else:
                self.get_logger().warning(f'trajectory over: {tracked.outcome.name} {tracked.reason}')
            if goal is not None:
                self._end(goal, tracked.outcome, tracked.reason)
        elif goal is not None and self._pace.is_due('feedback', tracked.stamp_ns, self.settings.feedback_rate):
            self._pace.done('feedback', tracked.stamp_ns)
            goal.publish_feedback(feedback_of(tracked, self.machine.name))

    def _end(self, goal: ServerGoalHandle, outcome: Outcome, reason: str) -> None:
        """Tell the client of a goal how it ended. It is ACCEPTED until here, not EXECUTING: a callback of rclpy that
        waits for the end would be called all the time (EventsExecutor)."""
        goal.outcome = outcome, reason
        goal.execute()

    def _finished(self, goal: ServerGoalHandle) -> Any:
        outcome, reason = goal.outcome
        if goal.is_cancel_requested:
            goal.canceled()
        elif outcome is Outcome.SUCCESSFUL:
            goal.succeed()
        else:
            goal.abort()
        return result_of(outcome, reason)

    def _stop(self, reason: str) -> None:
        if self._machine is not None and self.active:
            self._say(self._tracking.stop(Outcome.STOPPED, reason))

    def _disconnect(self) -> None:
        self._stop('trajectory_node is deactivated')
        super()._disconnect()

    def _tear_down(self) -> None:
        super()._tear_down()
        if self._server is not None:
            self._server.destroy()
            self._server = None


main = TrajectoryNode.main

if __name__ == '__main__':
    main()
