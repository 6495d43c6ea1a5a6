# SPDX-License-Identifier: Apache-2.0
"""trajectory_node over DDS: a client of the action moves a simulated machine, and hears how its goal ended."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
pytest.importorskip('control_msgs.action')
from action_msgs.msg import GoalStatus
from builtin_interfaces.msg import Duration
from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTolerance
from nodes_support import MATCH, Peer, ros
from rclpy.action import ActionClient
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from mbse_ros.msg import HydraulicState, MachineTruth
from mbse_ros.streams.records import ObserverStatus

NAME = 'trajectory_node/follow_joint_trajectory'


# A fifth of real time, so that a busy computer is no delay of the loop.
PARAMETERS = """
plant_node: {ros__parameters: {speed: 0.2}}
trajectory_node: {ros__parameters: {oldest: 5.0}}
"""


@pytest.fixture(scope='module')
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A simulated machine with the controller, a peer that hears it, and a client of the action."""
    parameters = tmp_path_factory.mktemp('trajectory') / 'slow.yaml'
    parameters.write_text(PARAMETERS)
    words = ['up', 'machine', 'machine:=patu655_lift', 'payload:=200', 'trajectory:=true', 'cycle:=topic',
             'visualization:=false', f'params_file:={parameters}']
    with ros():
        peer = Peer(truth=MachineTruth, state=HydraulicState, valve_command=JointState)
        client = ActionClient(peer.node, FollowJointTrajectory, NAME)
        process = subprocess.Popen([sys.executable, '-m', 'mbse_ros.cli', *words], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        try:
            peer.until(client.server_is_ready, 3 * MATCH)
            peer.until(lambda: peer.heard['state'] and peer.heard['state'][-1].status == ObserverStatus.OK, 3 * MATCH)
            yield peer, client
        finally:
            client.destroy()
            peer.close()
            process.terminate()
            process.wait(MATCH)


def _position(peer: Peer) -> float:
    return float(peer.heard['truth'][-1].position[0])


def _to(*points: tuple[float, float], names: tuple[str, ...] = ('lift',)) -> JointTrajectory:
    return JointTrajectory(joint_names=list(names), points=[JointTrajectoryPoint(
        positions=[place], velocities=[0.0], time_from_start=Duration(
            sec=int(time), nanosec=round(time % 1 * 1e9))) for time, place in points])


def _sent(peer: Peer, client: ActionClient, trajectory: JointTrajectory, **more: Any) -> tuple[Any, Any, list[Any]]:
    """Handle of a goal, future of its result, and the feedback so far."""
    feedback: list[Any] = []
    asked = client.send_goal_async(FollowJointTrajectory.Goal(trajectory=trajectory, **more),
                                   lambda message: feedback.append(message.feedback))
    peer.until(asked.done, MATCH)
    handle = asked.result()
    assert handle.accepted
    return handle, handle.get_result_async(), feedback


def _ended(peer: Peer, result: Any) -> tuple[int, Any]:
    peer.until(result.done, MATCH)
    return result.result().status, result.result().result


def test_a_goal_moves_the_machine_to_its_last_point(graph: Any) -> None:
    """The true piston, not the estimate's; the feedback was in the tolerance all the way; then the valve is neutral."""
    peer, client = graph
    begin = _position(peer)
    _, result, feedback = _sent(peer, client, _to((2.0, begin + 0.06)))
    status, told = _ended(peer, result)
    assert (status, told.error_code, told.error_string) == (GoalStatus.STATUS_SUCCEEDED, 0, '')
    assert abs(_position(peer) - begin - 0.06) < 0.006
    assert len(feedback) > 10 and feedback[0].joint_names == ['lift']
    assert np.abs([message.error.positions[0] for message in feedback]).max() < 0.02
    peer.until(lambda: peer.heard['valve_command'][-1].position[0] == 0.0, MATCH)
    assert max(np.abs(message.position[0]) for message in peer.heard['valve_command']) > 0.5


def test_a_cancelled_goal_stops_the_machine(graph: Any) -> None:
    peer, client = graph
    begin = _position(peer)
    handle, result, feedback = _sent(peer, client, _to((8.0, begin + 0.1)))
    peer.until(lambda: len(feedback) > 5, MATCH)
    peer.until(handle.cancel_goal_async().done, MATCH)
    status, told = _ended(peer, result)
    assert status == GoalStatus.STATUS_CANCELED and told.error_string == 'cancelled'
    peer.until(lambda: peer.heard['valve_command'][-1].position[0] == 0.0, MATCH)
    assert _position(peer) - begin < 0.09


def test_the_next_goal_takes_over_and_the_first_hears_it(graph: Any) -> None:
    peer, client = graph
    begin = _position(peer)
    _, first, feedback = _sent(peer, client, _to((8.0, begin + 0.1)))
    peer.until(lambda: len(feedback) > 5, MATCH)
    _, second, _ = _sent(peer, client, _to((1.0, begin)))
    assert _ended(peer, first)[0] == GoalStatus.STATUS_ABORTED
    assert 'another trajectory' in first.result().result.error_string
    assert _ended(peer, second)[0] == GoalStatus.STATUS_SUCCEEDED and abs(_position(peer) - begin) < 0.006


@pytest.mark.parametrize('change, code, text', [
    ({'names': ('boom',)}, -2, 'lift'), ({'points': [(1.0, 5.0)]}, -1, 'stroke'), ({'points': []}, -1, 'point'),
    ({'points': [(2.0, 0.2), (1.0, 0.2)]}, -1, 'rise')])
def test_a_goal_that_cannot_be_followed_hears_why(graph: Any, change: dict[str, Any], code: int, text: str) -> None:
    peer, client = graph
    trajectory = _to(*change.get('points', [(1.0, _position(peer))]), names=change.get('names', ('lift',)))
    status, told = _ended(peer, _sent(peer, client, trajectory)[1])
    assert (status, told.error_code) == (GoalStatus.STATUS_ABORTED, code) and text in told.error_string


def test_a_path_tolerance_that_nothing_keeps_aborts(graph: Any) -> None:
    peer, client = graph
    tight = [JointTolerance(name='lift', position=1e-6)]
    status, told = _ended(peer, _sent(peer, client, _to((2.0, _position(peer) + 0.05)), path_tolerance=tight)[1])
    assert (status, told.error_code) == (GoalStatus.STATUS_ABORTED, -4) and '1e-06' in told.error_string
