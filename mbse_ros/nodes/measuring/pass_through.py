# SPDX-License-Identifier: Apache-2.0
"""The least that a node of rclpy can do: a SensorSegment in, the same out. `mbse benchmark graph` measures it.

Nothing here is ours on purpose, not even the executor: it is what rclpy and DDS cost anybody.
"""

from __future__ import annotations

import rclpy
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from mbse_ros.msg import SensorSegment

try:
    from rclpy.experimental import EventsExecutor as Executor
except ImportError:     # Humble
    from rclpy.executors import SingleThreadedExecutor as Executor

IN, OUT, DEPTH = 'segment_in', 'segment_out', 1000
TURN = 0.1      # s; spin() of EventsExecutor, which has no limit, takes the processor and no message (Jazzy)


def main() -> None:
    """Serve until the process is ended: SIGTERM does it at once."""
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = Node('pass_through')
    publisher = node.create_publisher(SensorSegment, OUT, DEPTH)
    node.create_subscription(SensorSegment, IN, publisher.publish, DEPTH)
    executor = Executor()
    executor.add_node(node)
    while rclpy.ok():
        executor.spin_once(timeout_sec=TURN)


if __name__ == '__main__':
    main()
