# SPDX-License-Identifier: Apache-2.0
"""Sensors at the rate of a CAN bus, live over DDS: the masses are those of the recorded bag, and nothing is blamed."""

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from core_support import work_cycle
from nodes_support import joint_state, own_domain
from sensor_msgs.msg import FluidPressure, JointState
from watched_graph import watched_machine

from mbse_ros.bags.series import read_payload
from mbse_ros.machine import load_machine
from mbse_ros.msg import PayloadEstimate
from mbse_ros.nodes.measuring.demo import agreement
from mbse_ros.nodes.messages.wire import header, to_ns
from mbse_ros.offline.bag import estimate_bag
from mbse_ros.streams.records import PayloadStatus

LOAD = 200.0
START_NS = 1_000_000_000_000
READERS = 2         # interpolation and recorder
BEHIND = 2          # samples that may be on their way


def publish(peer, frame):
    """One instant of all sensors, with a command."""
    stamp = START_NS + frame.stamp_ns
    peer.publish(JointState, 'sensors/valve_command', joint_state(
        stamp, 'patu655_lift', ['lift_valve'], [frame.commands['command/lift_valve']]), READERS)
    peer.publish(JointState, 'sensors/position', joint_state(
        stamp, 'patu655_lift', ['lift'], [frame.samples['position/lift']]), READERS)
    for volume in ('lift_piston', 'lift_rod'):
        peer.publish(FluidPressure, f'sensors/pressure/{volume}', FluidPressure(
            header=header(stamp, 'patu655_lift'), fluid_pressure=frame.samples[f'pressure/{volume}']), READERS)


@pytest.mark.parametrize('intervals', [(8, 12, 10, 11, 9, 12, 8)], ids=['10 Hz, 20 ms of jitter'])
def test_slow_sensors_live_give_what_their_bag_gives(tmp_path, intervals):
    frames, bag = work_cycle(LOAD), tmp_path / 'bag'
    places = np.cumsum(np.resize(intervals, len(frames) // min(intervals)))
    with own_domain():
        graph = watched_machine({'payload': PayloadEstimate}, machine='patu655_lift', simulate='false', record=str(bag),
                                sensor_reliability='reliable')
        try:
            for count, place in enumerate(places[places < len(frames)]):
                publish(graph.peer, frames[place])
                # in step with nodes and recorder: what is sent at once comes in any order, topic by topic, and a
                # topic that runs half a second of stamps ahead would make the others lost
                graph.peer.deliver()
                graph.until(lambda heard=graph.heard('payload'), least=count - BEHIND: len(heard) >= least)
            last = START_NS + frames[place].stamp_ns
            graph.until(lambda: to_ns(graph.heard('payload')[-1].header.stamp) == last)
            graph.peer.settle('recorder_node', len(frames))
        finally:
            graph.close()
    verdict = agreement(read_payload(bag), estimate_bag(bag, load_machine('patu655_lift'), {}))
    assert verdict.agree and verdict.common == len(graph.heard('payload')) > 200, (verdict, graph.log)
    status = [message.status for message in graph.heard('payload')]
    told = [m for m in graph.heard('payload') if m.status == PayloadStatus.UPDATING]
    assert len(told) > 30 and np.mean([m.lower <= LOAD <= m.upper for m in told]) > 0.92
    assert PayloadStatus.IMPLAUSIBLE not in status
    assert PayloadStatus.CHANGING not in status[status.index(PayloadStatus.UPDATING):]
