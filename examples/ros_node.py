# SPDX-License-Identifier: Apache-2.0
"""A ROS 2 node of your own around the stage of the package's nodes: encoder in, angle and deviation out."""

import math

import rclpy
from rclpy.node import Node
from sensor_msgs.msg import JointState

import mbse_ros as mbse
from mbse_ros.streams.linkage import LinkageSettings, LinkageStage


class AngleNode(Node):
    """sensors/joint_states (position of `encoder`) -> angle (position theta, effort: its standard deviation)."""

    def __init__(self, step=0.005):
        super().__init__('angle_node')
        settings = LinkageSettings(estimator='errorEKF_FE')
        self.stage = LinkageStage(mbse.load('four_bar'), settings, ['encoder'], step)
        self.output = self.create_publisher(JointState, 'angle', 10)
        self.create_subscription(JointState, 'sensors/joint_states', self.take, 10)

    def take(self, message):
        stamp = message.header.stamp.sec * 10 ** 9 + message.header.stamp.nanosec
        for estimate in self.stage.add(stamp, {'encoder': message.position[message.name.index('encoder')]}):
            answer = JointState(name=['theta'], position=[float(estimate.mean[0])],
                                effort=[math.sqrt(estimate.covariance[0, 0])])
            answer.header.stamp.sec, answer.header.stamp.nanosec = divmod(estimate.stamp_ns, 10 ** 9)
            self.output.publish(answer)


def main():
    rclpy.init()
    rclpy.spin(AngleNode())


if __name__ == '__main__':
    main()
