# SPDX-License-Identifier: Apache-2.0
"""``mbse up``: the nodes as processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from ..errors import SettingError

SETTINGS = {'context_settings': {'allow_extra_args': True, 'ignore_unknown_options': True}}     # of the command


def up(context: typer.Context,
       graph: Annotated[str, typer.Argument(help='machine, crane or linkage')],
       duration: Annotated[float | None, typer.Option(help='Stop after so many seconds.')] = None) -> None:
    """Start the nodes, as ros2 launch does.

    Arguments as there, e.g. mbse up machine machine:=zx200 payload:=800, mbse up linkage mechanism:=five_bar
    estimator:=UKF; docs/parameters.md has all.
    """
    raise typer.Exit(up_graph(graph, context.args, duration))


def up_graph(name: str, words: Sequence[str], duration: float | None) -> int:
    """Start a graph by its name with arguments ``name:=value``; exit status."""
    from ..nodes.graphs.graph import parse_arguments
    from ..nodes.graphs.linkage_graph import LinkageArguments, linkage_graph
    from ..nodes.graphs.machine_graph import MachineArguments, machine_graph
    from ..nodes.graphs.run_graph import up as run
    if name not in ('machine', 'crane', 'linkage'):
        raise SettingError('graph', name, 'machine, crane or linkage')
    given = {}
    for word in words:
        key, sign, value = word.partition(':=')
        if not sign:
            raise SettingError('argument', word, 'name:=value')
        given[key] = value
    if name == 'linkage':
        return run(linkage_graph(parse_arguments(given, LinkageArguments)), duration=duration)
    return run(machine_graph(parse_arguments(given, MachineArguments)), duration=duration)
