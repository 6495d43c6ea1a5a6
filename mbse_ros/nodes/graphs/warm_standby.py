# SPDX-License-Identifier: Apache-2.0
"""A process that has imported what the nodes import, and waits to become one of them: a warm standby.

Of the two seconds until a node that died works again, imports take three quarters; on a busy computer of ten. It
reads a line of JSON on stdin: module, arguments, the signal that comes with the parent's death (0: none). Where
stdin ends without one the process is needed no more.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from importlib import import_module

from .catalogue import NODES
from .graph import COMPOSED
from .parent_death import PR_SET_PDEATHSIG

PR_SET_NAME = 15
FIRST = ('machine_nodes', 'observer_node', 'payload_node', 'visualization_node', 'interpolation_node', 'recorder_node')


def node_line(module: str, arguments: list[str], signal: int) -> str:
    """The line that makes a waiting process a node."""
    return json.dumps([module, arguments, signal]) + '\n'


def main() -> None:
    """Import, wait, become the node."""
    for name in FIRST:
        import_module(f'mbse_ros.nodes.{name}')
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    module, arguments, signal = json.loads(line)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    name = module.rpartition('.')[2]
    if name not in (*NODES, COMPOSED):
        sys.exit(f'{name} is not a node')
    if sys.platform.startswith('linux'):
        libc = ctypes.CDLL(None)
        libc.prctl(PR_SET_NAME, name[:15].encode(), 0, 0, 0)
        libc.prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0)
    sys.argv = [name, *arguments]
    import_module(module).main()


if __name__ == '__main__':
    main()
