# SPDX-License-Identifier: Apache-2.0
"""A calibration on the running graph, over real DDS: the simulated machine through two steps, interrupted between."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from nodes_support import MATCH, Peer, joint_state, ros
from sensor_msgs.msg import JointState

import mbse_ros as mbse
from mbse_ros.api.calibrate import plan_calibration
from mbse_ros.bags.bag import open_bag
from mbse_ros.calibration.balance import CalibrationBalance
from mbse_ros.calibration.guide import Guide
from mbse_ros.calibration.plan import AROUND
from mbse_ros.nodes.live_calibration import LiveCalibration
from mbse_ros.offline.calibration.live_session import LiveSession

SPEED = 2.0     # times real time
TRAVEL, SLOW = 8.0, 4.0     # V


@pytest.fixture
def plant() -> Iterator[subprocess.Popen[bytes]]:
    """A simulated machine, a process of its own."""
    with ros():
        parameters = {'machine': 'patu655_lift', 'cycle': 'topic', 'payload': 0.0, 'speed': SPEED}
        words = [word for item in parameters.items() for word in ('-p', '{}:={}'.format(*item))]
        plant = subprocess.Popen([sys.executable, '-m', 'mbse_ros.nodes.plant_node', '--ros-args', *words],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        yield plant
        plant.terminate()
        plant.wait(MATCH)


@pytest.fixture
def operator(plant: subprocess.Popen[bytes]) -> Iterator[Peer]:
    """At its levers."""
    peer = Peer()
    yield peer
    peer.close()


def begun(folder: Path) -> LiveCalibration:
    found = plan_calibration('patu655_lift')
    session = LiveSession(folder, found.machine)
    return LiveCalibration(Guide(CalibrationBalance(found.machine), found.found, session.done), session)


def work(peer: Peer, live: LiveCalibration) -> list[str]:
    """Move the lift to the pose of the step, and around it, until the step is done; what the guide said."""
    guide, said = live.guide, []
    step = guide.step
    assert step is not None
    around, peer.also = AROUND * guide.machine.stroke[0, 1], live.step
    peer.until(lambda: 'position/lift' in guide.last)
    target, volt = step.pistons[0] - around, TRAVEL
    way = 1.0 if guide.last['position/lift'] < target else -1.0

    def turn() -> bool:
        nonlocal way, volt
        place = guide.last['position/lift']
        if (place - step.pistons[0]) * way >= (around if volt == SLOW else -around * way):
            way, volt = -1.0 if place > step.pistons[0] else 1.0, SLOW
        peer.publish(JointState, 'valve_command', joint_state(0, 'm', ['lift_valve'], [volt * way]))
        if live.state.words not in said:
            said.append(live.state.words)
        return guide.step is not step
    peer.until(turn, 3 * MATCH, lambda: f'at {guide.last}: {said}')
    peer.publish(JointState, 'valve_command', joint_state(0, 'm', ['lift_valve'], [0.0]))
    return said


def test_two_steps_interrupted_in_between(operator: Peer, plant: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """Each is recorded as a bag that a calibration takes; the second session begins at the second step, and says when
    the machine is off."""
    for number in (1, 2):
        live = begun(tmp_path)
        assert live.state.number == number
        said = work(operator, live)
        assert 'good: go on' in said and live.guide.done[-1] == f'pose_{number}/lift'
        if number == 2:
            plant.terminate()
            operator.until(lambda: live.state.advice.kind == 'silent')
        operator.also = lambda: None
        live.close()
    session = LiveSession(tmp_path, live.guide.machine)
    assert session.done == ['pose_1/lift', 'pose_2/lift'] and {'pose_1', 'pose_2'} <= set(session.bags)
    bags = [tmp_path / name for name in session.bags]
    assert open_bag(bags[0]).topics['/sensors/pressure/lift_rod'] == 'sensor_msgs/msg/FluidPressure'
    found = mbse.calibrate(bags, 'patu655_lift', payloads=session.payloads('500'))
    assert all(item.count >= 4 for item in found.bags if item.bag in ('pose_1', 'pose_2'))
