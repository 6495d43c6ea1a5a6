# SPDX-License-Identifier: Apache-2.0
"""``examples/ros_node.py``: encoder in, angle out; ``examples/effort_relay.py``: estimates as ros2_control takes them;
through the graph."""

import math
import time

import numpy as np
import pytest

rclpy = pytest.importorskip('rclpy')

from machine_energy import model_of  # noqa: E402
from machine_frames import frames_of  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from source_tree import example  # noqa: E402
from std_msgs.msg import Float64MultiArray  # noqa: E402
from test_nodes_outputs import payload, state  # noqa: E402

import mbse_ros as mbse  # noqa: E402
from mbse_ros.nodes.base.node_settings import OutputsSettings  # noqa: E402
from mbse_ros.nodes.messages.load_effects import LoadEffects, Pose  # noqa: E402
from mbse_ros.nodes.observer_node import JointStates  # noqa: E402

PATIENCE = 300.0     # s, until a message that does not come is an error


def test_the_node_of_one_s_own(ros_domain):
    run = mbse.simulate('four_bar', 0.5, sensors=['encoder'])
    rclpy.init()
    executor = SingleThreadedExecutor()
    try:
        node, other, heard = example('ros_node').AngleNode(), rclpy.create_node('encoder'), []
        executor.add_node(node)
        executor.add_node(other)
        other.create_subscription(JointState, 'angle', heard.append, 10)
        output = other.create_publisher(JointState, 'sensors/joint_states', 10)
        waiting(executor, lambda: output.get_subscription_count() and node.output.get_subscription_count())
        for k, angle in enumerate(run.samples['encoder'].tolist(), 1):
            message = JointState(name=['encoder'], position=[angle])
            message.header.stamp.nanosec = round(5e6 * k)
            output.publish(message)
            waiting(executor, lambda: len(heard) == k)
    finally:
        executor.shutdown()
        rclpy.shutdown()
    assert len(heard) == 100 and heard[-1].header.stamp.nanosec == 500_000_000
    assert abs(heard[-1].position[0] - run['theta'][-1]) < 5 * heard[-1].effort[0] < 0.1
    assert math.isfinite(heard[-1].effort[0])


def test_the_relay_for_ros2_control(ros_domain):
    """Of what outputs_node and observer_node make of a state: efforts and states in the order of the controller."""
    machine, sent = frames_of('zx200').machine, state(frames_of('zx200').machine)
    rclpy.init()
    executor = SingleThreadedExecutor()
    try:
        relay, other, heard = example('effort_relay').EffortRelay(), rclpy.create_node('controller'), {}
        executor.add_node(relay)
        executor.add_node(other)
        for topic, kind in (('effort_controller/commands', Float64MultiArray), ('robot_joint_states', JointState)):
            other.create_subscription(kind, topic, heard.setdefault(topic, []).append, 10)
        outputs = {topic: other.create_publisher(JointState, topic, 10)
                   for topic in ('feed_forward', 'estimated/joint_states')}
        waiting(executor, lambda: all(output.get_subscription_count() for output in (
            *outputs.values(), relay.commands, relay.states)))
        effects = LoadEffects(machine, lambda kind, topic, qos=None: outputs.get(topic, Nobody), 'outputs_node', 'base')
        q, zero = machine.model.start.q, np.zeros(4)
        effects.known(sent.stamp_ns, Pose(q, zero, zero, {}), payload(), OutputsSettings())
        position, velocity, effort = (values.tolist() for values in JointStates(machine)(sent))
        outputs['estimated/joint_states'].publish(JointState(
            name=JointStates(machine).names, position=position, velocity=velocity, effort=effort))
        waiting(executor, lambda: all(heard.values()))
    finally:
        executor.shutdown()
        rclpy.shutdown()
    forward = model_of('zx200')[1]
    torques = dict(zip(forward.joints, forward(q, 800.0).torques))
    assert list(heard['effort_controller/commands'][0].data) == [torques[joint] for joint in relay.joints]
    got = heard['robot_joint_states'][0]
    assert list(got.name) == ['boom_joint', 'arm_joint', 'bucket_joint'] and np.isfinite(got.effort).all()
    assert list(got.position) == pytest.approx(q[machine.system.indices(relay.joints)], abs=1e-12)
    with pytest.raises(ValueError, match='zx200 has .*, not all of elbow'):
        rclpy.init()
        try:
            example('effort_relay').EffortRelay(joints=['elbow'])
        finally:
            rclpy.shutdown()


class Nobody:
    """A publisher without readers."""

    @staticmethod
    def get_subscription_count():
        return 0

    @staticmethod
    def publish(message):
        """To nobody."""


def waiting(executor, done):
    """Spin until something has come; it is an error where it does not."""
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end, 'nothing came'
        executor.spin_once(timeout_sec=0.5)
