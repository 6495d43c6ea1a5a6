# SPDX-License-Identifier: Apache-2.0
"""Whether memory is left for the rest of a log, so that one is refused and not killed by the system."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from ..errors import BagError

CGROUP = Path('/sys/fs/cgroup')         # of a container: its own, see cgroups(7)
MEMINFO = Path('/proc/meminfo')
SPARE = 200e6       # bytes that others may need
MEGA = 1e6


def available() -> float:
    """Bytes that this process can still have, of the computer and of the container's limit; inf where none is said."""
    found = float('inf')
    with suppress(OSError, ValueError, KeyError, IndexError):
        lines = dict(line.split(':', 1) for line in MEMINFO.read_text().splitlines())
        found = 1024.0 * int(lines['MemAvailable'].split()[0])
    with suppress(OSError, ValueError):
        limit, now = ((CGROUP / name).read_text().strip() for name in ('memory.max', 'memory.current'))
        if limit != 'max':
            found = min(found, float(limit) - float(now))
    return found


def check_memory(name: str) -> None:
    """Raises BagError where almost none is left for the rest of a log."""
    left = available() - SPARE
    if left < 0.0:
        raise BagError(name, f'no memory is left for the rest of the log ({max(available(), 0.0) / MEGA:.0f} MB): '
                       '`mbse loads` and `mbse fleet` weigh logs of any length, `ros2 bag convert` cuts them')
