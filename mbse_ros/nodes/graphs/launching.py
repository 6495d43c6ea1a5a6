# SPDX-License-Identifier: Apache-2.0
"""A described graph as a launch description: what the launch files share. It needs the launch of ROS 2."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from itertools import chain
from os.path import abspath
from typing import Any

from launch import Action, LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, LogInfo, OpaqueFunction, Shutdown, TimerAction
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from .graph import OURS, A, Graph, Process, describe, parse_arguments, refuse_misspelt, word
from .run_graph import BAD_START, DRAIN, found, parameter_text

RESPAWN_DELAY = 1.0     # s
PUSHED = 'ros_namespace'        # where launch_ros keeps what PushRosNamespace says
OnExit = Callable[[ProcessExited, LaunchContext], 'list[Action] | None']


def launch_description(kind: type[A], graph: Callable[[A], Graph]) -> LaunchDescription:
    """Arguments of a kind and, once they are known, the processes of their graph."""
    def processes(context: LaunchContext) -> list[Node]:
        refuse_misspelt(typed_for(description, context), kind)
        given = {item.name: LaunchConfiguration(item.name).perform(context) for item in fields(kind)}
        if above := getattr(context, 'launch_configurations', {}).get(PUSHED, ''):     # of a group that includes ours
            given['namespace'] = f'/{above.strip("/")}/{given["namespace"]}'.rstrip('/') if not (
                given['namespace'].startswith('/')) else given['namespace']
        described = graph(parse_arguments(given, kind)).processes
        for process in described:
            if process.package != OURS:
                found(process)      # refused before anything runs: launch would leave the others alone behind
        return [node(process) for process in described]

    description = LaunchDescription([
        *(DeclareLaunchArgument(item.name, default_value=word(item.default), description=describe(item))
          for item in fields(kind)),
        OpaqueFunction(function=processes),
    ])
    return description


def typed_for(description: LaunchDescription, context: LaunchContext) -> list[str]:
    """Words of the command line that are arguments of our launch file. Where another file includes ours, it is that
    file's line.

    `ros2 launch` makes a description of one action, which includes the file with all that was typed.
    """
    known: dict[str, Any] = getattr(context, 'get_locals_as_dict', dict)()
    top = getattr(known.get('event'), 'launch_description', None)
    if 'event' not in known or top is description:
        return list(context.argv)
    included = top.entities if top is not None else []
    source = getattr(included[0], 'launch_description_source', None) if len(included) == 1 else None
    if source is None or abspath(source.location) != known.get('current_launch_file_path'):
        return []
    given = [name for name, _ in included[0].launch_arguments]
    return [text for text in context.argv if text.partition(':=')[0] in given]


def node(process: Process) -> Node:
    """Action that starts a process, again where it dies; the end of a final one ends all, once the others have had
    the last messages."""
    on_exit = None
    if process.final:
        on_exit = TimerAction(period=DRAIN, actions=[Shutdown(reason=f'{process.name} has ended')])
    elif process.respawn:
        on_exit = started_again(process.name, lambda: node(process.once_more()))
    own = [('-p', f'{name}:={parameter_text(value)}') for name, value in process.own_parameters().items()]
    words = ['--ros-args', *chain(*own), '--'] if own else []
    parameters = [dict(process.parameters)] if process.parameters else []
    return Node(
        package=process.package, executable=process.executable, name=None if process.parts else process.name,
        namespace=process.namespace, remappings=list(process.remappings.items()),
        parameters=[*parameters, *process.files], arguments=[*process.arguments, *words],
        output='screen', on_exit=on_exit)


def started_again(name: str, make: Callable[[], Action]) -> OnExit:
    """What to do when a process ends by itself. The ``respawn`` of launch would start for ever what cannot start."""
    def ended(event: ProcessExited, context: LaunchContext) -> list[Action] | None:
        if context.is_shutdown:
            return None
        if event.returncode == BAD_START:
            return [LogInfo(msg=f'{name} cannot start with these parameters: it is not started again')]
        return [TimerAction(period=RESPAWN_DELAY, actions=[make()])]

    return ended
