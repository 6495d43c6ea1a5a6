# SPDX-License-Identifier: Apache-2.0
"""Trajectories, tolerances, feedback and results as messages of trajectory_msgs and control_msgs.

control_msgs is not part of every ROS 2: without it there is no action, and ``ACTION`` is None.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from builtin_interfaces.msg import Duration
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ...errors import SettingError
from ...streams.tracking import Outcome, Tolerances, Tracked
from ...streams.trajectory import Trajectory
from .wire import header, to_ns

try:
    from control_msgs.action import FollowJointTrajectory
    ACTION: Any = FollowJointTrajectory
except ImportError:
    ACTION = None

FIELDS = ('velocities', 'accelerations')


def trajectory_of(message: JointTrajectory) -> tuple[Trajectory, int | None]:
    """The motion of a message, and its stamp, ns, None where that is 0: at once. Raises SettingError."""
    points, names = message.points, list(message.joint_names)
    if any(len(point.effort) for point in points):
        raise SettingError('trajectory.points.effort', 'given', 'none: the forces follow from the motion')
    rows = [[point.positions for point in points]]
    for name in FIELDS:
        found = [getattr(point, name) for point in points]
        some = [len(row) > 0 for row in found]
        if any(some) and not all(some):
            raise SettingError(f'trajectory.points.{name}', f'{sum(some)} of {len(points)} points have them',
                               'all or none')
        rows.append(found if any(some) else [])
    stamp = to_ns(message.header.stamp)
    return Trajectory(names, [_seconds(point.time_from_start) for point in points], *rows), stamp or None


def tolerances_of(goal: Any) -> Tolerances:
    """Those of a goal of the action; raises SettingError for what is not checked here."""
    for name, rows in (('path_tolerance', goal.path_tolerance), ('goal_tolerance', goal.goal_tolerance)):
        if any(row.acceleration > 0.0 for row in rows):
            raise SettingError(f'{name}.acceleration', 'given', '0: accelerations are not checked')
    if goal.multi_dof_trajectory.points or goal.component_path_tolerance or goal.component_goal_tolerance:
        raise SettingError('multi_dof_trajectory', 'given', 'none: a machine of cylinders has no such joints')
    time = _seconds(goal.goal_time_tolerance)
    return Tolerances(_limits(goal.path_tolerance, 'position'), _limits(goal.path_tolerance, 'velocity'),
                      _limits(goal.goal_tolerance, 'position'), _limits(goal.goal_tolerance, 'velocity'),
                      None if time == 0.0 else max(time, 0.0))


def feedback_of(tracked: Tracked, frame: str) -> Any:
    """Feedback of the action after a state."""
    desired, none = tracked.desired, np.zeros(0)
    return ACTION.Feedback(
        header=header(tracked.stamp_ns, frame), joint_names=list(tracked.names),
        desired=_point(*desired), actual=_point(tracked.position, tracked.velocity, none),
        error=_point(desired.position - tracked.position, desired.velocity - tracked.velocity, none))


def result_of(outcome: Outcome, reason: str) -> Any:
    """Result of the action."""
    return ACTION.Result(error_code=int(outcome), error_string=reason)


def _limits(rows: Iterable[Any], field: str) -> dict[str, float]:
    """By name; 0 is none, -1 any, as control_msgs has it."""
    given = {row.name: getattr(row, field) for row in rows}
    return {name: math.inf if value == -1.0 else value for name, value in given.items() if value != 0.0}


def _seconds(duration: Duration) -> float:
    return float(duration.sec + duration.nanosec * 1e-9)


def _point(position: np.ndarray, velocity: np.ndarray, acceleration: np.ndarray) -> JointTrajectoryPoint:
    return JointTrajectoryPoint(positions=position.tolist(), velocities=velocity.tolist(),
                                accelerations=acceleration.tolist())
