# SPDX-License-Identifier: Apache-2.0
"""Turns into another command that ends with its parent: `python parent_death.py PARENT SIGNAL command...`.

A parent that is killed cannot stop its children; Linux sends them the signal instead (PR_SET_PDEATHSIG, which an exec
keeps). A file to be run, with nothing of the package in it: it stands before every node and must start at once.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Ask for the signal, make sure that the parent is not dead already, become the command."""
    parent, number = int(sys.argv[1]), int(sys.argv[2])
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:      # it died before the signal was asked for, and none will come
        sys.exit(1)
    os.execvp(sys.argv[3], sys.argv[3:])


if __name__ == '__main__':
    main()
