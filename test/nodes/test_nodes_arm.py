# SPDX-License-Identifier: Apache-2.0
"""A robot arm over DDS: its driver's `joint_states` go into the nodes, the mass of its load comes out."""

import time

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
import small_arm
from nodes_support import joint_state, own_domain
from sensor_msgs.msg import JointState
from visualization_msgs.msg import MarkerArray
from watched_graph import watched_machine

from mbse_ros.msg import HydraulicState, PayloadEstimate, SensorSegment

LOAD = 3.0      # kg
TOPICS = {'segment': SensorSegment, 'state': HydraulicState, 'payload': PayloadEstimate, 'markers': MarkerArray}
SOURCES = '\nsources:\n  channels:\n' + ''.join(
    f"    position/{name}_angle: {{topic: /joint_states, path: 'position[name={name}]', unit: rad}}\n"
    f"    effort/{name}: {{topic: /joint_states, path: 'effort[name={name}]', unit: N*m}}\n"
    for name in small_arm.JOINTS)


def test_joint_states_in_and_the_mass_of_the_load_out(tmp_path):
    (tmp_path / 'small_arm.yaml').write_text(small_arm.TEXT + SOURCES)
    log = small_arm.log(60.0, LOAD, 3)
    t = log['effort/elbow'][0]
    rows = [[log[f'{kind}/{name}{end}'][1] for name in small_arm.JOINTS]
            for kind, end in (('position', '_angle'), ('effort', ''))]
    sent, begin = 0, 0

    def send(watched):
        """All samples that are due; their times begin when the node has found the topic and its type."""
        nonlocal sent, begin
        if not watched.peer.node.count_subscribers('/joint_states'):
            return
        begin = begin or time.time_ns()
        while sent < len(t) and begin + int(1e9 * t[sent]) <= time.time_ns():
            position, effort = ([float(column[sent]) for column in values] for values in rows)
            watched.peer.publish(JointState, '/joint_states', joint_state(
                begin + int(1e9 * t[sent]), 'base', list(small_arm.JOINTS), position, [], effort))
            sent += 1
    with own_domain():
        watched = watched_machine(TOPICS, machine=str(tmp_path / 'small_arm.yaml'), simulate='false')
        try:
            watched.peer.outputs['/joint_states'] = watched.peer.node.create_publisher(JointState, '/joint_states', 50)

            def weighed():
                send(watched)
                found = watched.heard('payload')
                return found and found[-1].status == PayloadEstimate.UPDATING and found[-1].stddev < 0.3
            watched.until(weighed, paced=False)
            last = watched.heard('payload')[-1]
        finally:
            watched.close()
    assert last.lower < LOAD < last.upper and last.mass == pytest.approx(LOAD, abs=0.3)
