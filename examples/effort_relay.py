# SPDX-License-Identifier: Apache-2.0
"""Estimates as ros2_control takes them: efforts for an effort controller, states for a topic-based hardware."""

import rclpy
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

import mbse_ros as mbse


class EffortRelay(Node):
    """feed_forward -> effort_controller/commands, in the order of its `joints`; estimated/joint_states ->
    robot_joint_states, these joints alone. What stops here stops there: nothing is held."""

    def __init__(self, machine='zx200', joints=('boom_joint', 'arm_joint', 'bucket_joint')):
        super().__init__('effort_relay')
        known, self.joints = mbse.load(machine).model.names, list(joints)
        if set(joints) - set(known):
            raise ValueError(f'{machine} has {", ".join(known)}, not all of {", ".join(joints)}')
        self.commands = self.create_publisher(Float64MultiArray, 'effort_controller/commands', 10)
        self.states = self.create_publisher(JointState, 'robot_joint_states', 10)
        self.create_subscription(JointState, 'feed_forward', self.command, 10)
        self.create_subscription(JointState, 'estimated/joint_states', self.state, 10)

    def command(self, message):
        self.commands.publish(Float64MultiArray(data=self.pick(message.name, message.effort)))

    def state(self, message):
        fields = {key: self.pick(message.name, getattr(message, key)) for key in ('position', 'velocity', 'effort')}
        self.states.publish(JointState(header=message.header, name=self.joints, **fields))

    def pick(self, names, values):
        return [values[names.index(joint)] for joint in self.joints]


if __name__ == '__main__':
    rclpy.init()
    rclpy.spin(EffortRelay())
