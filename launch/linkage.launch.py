# SPDX-License-Identifier: Apache-2.0
"""The graph of any mechanism, simulated or real: ros2 launch mbse_ros linkage.launch.py --show-args tells arguments.

The graph itself is described in mbse_ros.nodes.linkage_graph; the nodes bring themselves up where autostart is true.
"""

from dataclasses import fields

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from mbse_ros.nodes.graph import Process, describe, parse_arguments, word
from mbse_ros.nodes.linkage_graph import LinkageArguments, linkage_graph


def generate_launch_description() -> LaunchDescription:
    """Arguments and, once they are known, the processes."""
    return LaunchDescription([
        *(DeclareLaunchArgument(item.name, default_value=word(item.default), description=describe(item))
          for item in fields(LinkageArguments)),
        OpaqueFunction(function=_processes),
    ])


def _processes(context: LaunchContext) -> list:
    given = {item.name: LaunchConfiguration(item.name).perform(context) for item in fields(LinkageArguments)}
    return [_node(process) for process in linkage_graph(parse_arguments(given, LinkageArguments)).processes]


def _node(process: Process) -> Node:
    return Node(
        package=process.package, executable=process.executable, name=process.name, namespace=process.namespace,
        parameters=[dict(process.parameters)], remappings=list(process.remappings.items()),
        arguments=list(process.arguments), output='screen', respawn=process.respawn, respawn_delay=1.0,
        on_exit=Shutdown(reason=f'{process.name} has ended') if process.final else None)
