# SPDX-License-Identifier: Apache-2.0
"""What a process of a graph is before it is a node: a file to be run, with nothing of the package at its top.

`python child.py PARENT SIGNAL command...` becomes a command that ends with its parent. A parent that is killed cannot
stop its children; Linux sends them the signal instead (PR_SET_PDEATHSIG, which an exec keeps). It stands before every
node and must start at once.

`python -m mbse_ros.nodes.graphs.child` is a warm standby: it has imported what the nodes import, and waits to become
one of them. Of the two seconds until a node that died works again, imports take three quarters; on a busy computer of
ten. It reads a line of JSON on stdin: module, arguments, the signal that comes with the parent's death (0: none). If
stdin ends without one, the process is not needed any longer.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG, PR_SET_NAME = 1, 15
FIRST = ('machine_nodes', 'observer_node', 'payload_node', 'visualization_node', 'interpolation_node', 'recorder_node')


def follow_parent(parent: int, number: int, words: list[str]) -> None:
    """Ask for the signal, make sure that the parent is not dead already, become the command."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:      # it died before the signal was asked for, and none will come
        sys.exit(1)
    os.execvp(words[0], words)


def stand_by() -> None:
    """Import, wait, become the node."""
    import json
    from importlib import import_module

    from .catalogue import NODES
    from .graph import COMPOSED
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
    if sys.argv[1:]:
        follow_parent(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
    else:
        stand_by()
