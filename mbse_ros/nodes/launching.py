# SPDX-License-Identifier: Apache-2.0
"""A described graph as a launch description: what the launch files share. It needs the launch of ROS 2."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from ..settings import Settings
from .graph import Graph, Process, describe, parse_arguments, word


def launch_description(kind: type[Settings], graph: Callable[[Settings], Graph]) -> LaunchDescription:
    """Arguments of a kind and, once they are known, the processes of their graph."""
    def processes(context: LaunchContext) -> list[Node]:
        given = {item.name: LaunchConfiguration(item.name).perform(context) for item in fields(kind)}
        return [node(process) for process in graph(parse_arguments(given, kind)).processes]

    return LaunchDescription([
        *(DeclareLaunchArgument(item.name, default_value=word(item.default), description=describe(item))
          for item in fields(kind)),
        OpaqueFunction(function=processes),
    ])


def node(process: Process) -> Node:
    """Action that starts a process, again where it dies; the end of a final one ends all."""
    return Node(
        package=process.package, executable=process.executable, name=process.name, namespace=process.namespace,
        parameters=[dict(process.parameters)], remappings=list(process.remappings.items()),
        arguments=list(process.arguments), output='screen', respawn=process.respawn, respawn_delay=1.0,
        on_exit=Shutdown(reason=f'{process.name} has ended') if process.final else None)
