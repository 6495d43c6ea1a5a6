# SPDX-License-Identifier: Apache-2.0
"""Quality of service of the topics."""

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

# Between the nodes nothing may get lost: ten seconds at 100 Hz are kept for a reader that is slow for a moment.
OUTPUT = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE)
LATEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
# The last one is kept for those who come later.
LASTING = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)

TF = QoSProfile(depth=100, reliability=ReliabilityPolicy.RELIABLE)        # as tf2_ros has it


def sensor_input(reliability: str) -> QoSProfile:
    """Subscription to sensors: 'best_effort' matches every publisher, 'reliable' only reliable ones."""
    policy = {'best_effort': ReliabilityPolicy.BEST_EFFORT, 'reliable': ReliabilityPolicy.RELIABLE}[reliability]
    return QoSProfile(depth=100 if reliability == 'best_effort' else 200, reliability=policy)


def deep_input(reliability: str) -> QoSProfile:
    """The same for a node that may get no turn for seconds (a filter is compiled, other programs have the processor):
    what comes meanwhile waits."""
    profile = sensor_input(reliability)
    profile.depth = 4000
    return profile
