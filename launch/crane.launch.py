# SPDX-License-Identifier: Apache-2.0
"""The crane's graph: ros2 launch mbse_ros crane.launch.py --show-args tells the arguments.

The graph itself is described in mbse_ros.nodes.graph; the nodes bring themselves up where autostart is true.
"""

from dataclasses import fields

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from mbse_ros.nodes.graph import CraneArguments, Process, crane_graph, describe, parse_arguments, word


def generate_launch_description() -> LaunchDescription:
    """Arguments and, once they are known, the processes."""
    return LaunchDescription([
        *(DeclareLaunchArgument(item.name, default_value=word(item.default), description=describe(item))
          for item in fields(CraneArguments)),
        OpaqueFunction(function=_processes),
    ])


def _processes(context: LaunchContext) -> list:
    given = {item.name: LaunchConfiguration(item.name).perform(context) for item in fields(CraneArguments)}
    return [_node(process) for process in crane_graph(parse_arguments(given)).processes]


def _node(process: Process) -> Node:
    return Node(
        package=process.package, executable=process.executable, name=process.name, namespace=process.namespace,
        parameters=[dict(process.parameters)], remappings=list(process.remappings.items()),
        arguments=list(process.arguments), output='screen', respawn=process.respawn, respawn_delay=1.0,
        on_exit=Shutdown(reason=f'{process.name} has ended') if process.final else None)
