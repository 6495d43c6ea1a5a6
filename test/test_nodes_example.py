# SPDX-License-Identifier: Apache-2.0
"""``examples/ros_node.py``: encoder in, angle out, through the graph."""

import math
import time

import pytest

rclpy = pytest.importorskip('rclpy')

from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from test_examples import example  # noqa: E402

import mbse_ros as mbse  # noqa: E402

PATIENCE = 30.0     # s, until a message that does not come is an error


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


def waiting(executor, done):
    """Spin until something has come; it is an error where it does not."""
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end, 'nothing came'
        executor.spin_once(timeout_sec=0.5)
