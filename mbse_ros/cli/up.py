# SPDX-License-Identifier: Apache-2.0
"""``mbse up`` and ``mbse replay``: the nodes as processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..bags.bag import open_bag
from ..errors import BagError, SettingError
from ..nodes.graphs.linkage_graph import LinkageArguments, linkage_graph
from ..nodes.graphs.machine_graph import Graph, MachineArguments, Process, machine_graph, parse_arguments
from ..nodes.graphs.run_graph import up

GRAPHS: dict[str, tuple[type[Any], Callable[[Any], Graph]]] = {
    'machine': (MachineArguments, machine_graph), 'crane': (MachineArguments, machine_graph),
    'linkage': (LinkageArguments, linkage_graph)}


def up_graph(name: str, words: Sequence[str], duration: float | None) -> int:
    """Start a graph by its name with arguments ``name:=value``; exit status."""
    if name not in GRAPHS:
        raise SettingError('graph', name, 'machine, crane or linkage')
    given = {}
    for word in words:
        key, sign, value = word.partition(':=')
        if not sign:
            raise SettingError('argument', word, 'name:=value')
        given[key] = value
    arguments, graph = GRAPHS[name]
    return up(graph(parse_arguments(given, arguments)), duration=duration)


def replay_bag(bag: Path, rate: float, loop: bool, paused: bool, everything: bool, wait: float) -> int:
    """Start the replay node; exit status. Without ``everything`` only the sensors are played: live nodes estimate."""
    if not rate > 0:
        raise SettingError('rate', rate, 'a number above 0')
    known = open_bag(bag).topics
    topics = [] if everything else [topic for topic in known if '/sensors/' in topic]
    if not everything and not topics:
        raise BagError(str(bag), 'no sensors to replay; there are ' + ', '.join(sorted(known)) + ' (--all plays them)')
    parameters = {'bag': str(bag), 'rate': rate, 'loop': loop, 'paused': paused, 'topics': ' '.join(topics),
                  'wait_subscribers': 1 if wait > 0 else 0, 'wait_time': wait}
    return up(Graph((Process('replay_node', 'replay_node', parameters=parameters, final=True),)))
