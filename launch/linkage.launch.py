# SPDX-License-Identifier: Apache-2.0
"""The graph of any mechanism, simulated or real; `ros2 launch mbse_ros linkage.launch.py --show-args` lists arguments.

It is described in mbse_ros.nodes.graphs.linkage_graph; the nodes bring themselves up where autostart is true.
"""

from launch import LaunchDescription

from mbse_ros.nodes.graphs.launching import launch_description
from mbse_ros.nodes.graphs.linkage_graph import LinkageArguments, linkage_graph


def generate_launch_description() -> LaunchDescription:
    """Arguments and, once they are known, the processes."""
    return launch_description(LinkageArguments, linkage_graph)
