# SPDX-License-Identifier: Apache-2.0
"""Whether what a log needs fits into memory, so that a long one is refused at once and not killed by the system."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import BagError

CGROUP = Path('/sys/fs/cgroup')         # of a container: its own, see cgroups(7)
MEMINFO = Path('/proc/meminfo')
STATM = Path('/proc/self/statm')
SPARE = 200e6       # bytes that others may need
GIGA = 1e9


def used() -> int:
    """Bytes of memory of this process; 0 where the system does not say."""
    try:
        return int(STATM.read_text().split()[1]) * os.sysconf('SC_PAGE_SIZE')
    except (OSError, ValueError, IndexError):
        return 0


def available() -> float:
    """Bytes that this process can still have, of the computer and of the container's limit; inf where none is said."""
    found = float('inf')
    try:
        lines = dict(line.split(':', 1) for line in MEMINFO.read_text().splitlines())
        found = 1024.0 * int(lines['MemAvailable'].split()[0])
    except (OSError, ValueError, KeyError, IndexError):
        pass
    try:
        limit, now = ((CGROUP / name).read_text().strip() for name in ('memory.max', 'memory.current'))
        if limit != 'max':
            found = min(found, float(limit) - float(now))
    except (OSError, ValueError):
        pass
    return found


class Room:
    """Looks from time to time whether the rest of a log will fit, from what the first part of it took."""

    def __init__(self, name: str) -> None:
        self._name, self._begin = name, used()

    def check(self, done: int, count: int) -> None:
        """After ``done`` of ``count`` samples. Raises BagError where the others will not fit."""
        taken, left = used() - self._begin, available() - SPARE
        rest = taken * (count - done) / max(done, 1)
        if rest > left:
            whole, free = (taken + rest) / GIGA, max(left, 0.0) / GIGA
            raise BagError(self._name, f'the whole log takes about {whole:.1f} GB of memory or more, and {free:.1f} GB '
                           'are free: `mbse loads` and `mbse fleet` weigh logs of any length, `ros2 bag convert` cuts '
                           'them')
