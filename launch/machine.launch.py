# SPDX-License-Identifier: Apache-2.0
"""The graph of any machine, simulated or real; `ros2 launch mbse_ros machine.launch.py --show-args` lists arguments.

It is described in mbse_ros.nodes.graphs.machine_graph; the nodes bring themselves up where autostart is true.
"""

from launch import LaunchDescription

from mbse_ros.nodes.graphs.launching import launch_description
from mbse_ros.nodes.graphs.machine_graph import MachineArguments, machine_graph


def generate_launch_description() -> LaunchDescription:
    """Arguments and, once they are known, the processes."""
    return launch_description(MachineArguments, machine_graph)
