# SPDX-License-Identifier: Apache-2.0
"""interpolation_node, observer_node and payload_node of a machine in one process.

They keep their names, parameters, services and topics. Records go from one to the next in memory; a topic that nobody
reads costs nothing. A parameter is that of one node: ``-p observer_node:backend:=c``.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import MbseError
from .base.run import Runnable, run_together
from .graphs.graph import COMPOSED
from .interpolation_node import InterpolationNode
from .observer_node import ObserverNode
from .payload_node import PayloadNode


def linked_nodes() -> list[Runnable]:
    """The nodes, each of which hands its records to the next; the last one first, so that the first finds it ready.

    Raises MbseError where the process's arguments give all of them one name.
    """
    payload, observer, interpolation = nodes = PayloadNode(), ObserverNode(), InterpolationNode()
    names = {node.get_name() for node in nodes}
    if len(names) < len(nodes):
        raise MbseError(f'{COMPOSED}: three nodes cannot all be called {names.pop()}: no __node:=, and no name in a '
                        'launch file')
    for node in nodes:
        node.company = [other for other in nodes if other is not node]
    for sender, receiver in ((interpolation, observer), (observer, payload)):
        sender.receiver, receiver.fed = receiver.receive, True
    return list(nodes)


def main(args: Sequence[str] | None = None) -> None:
    """Entry point of the executable."""
    run_together(linked_nodes, COMPOSED, args)


if __name__ == '__main__':
    main()
