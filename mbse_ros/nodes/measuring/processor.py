# SPDX-License-Identifier: Apache-2.0
"""Time of a process on the processor."""

from __future__ import annotations

import os
from pathlib import Path


def cpu_seconds(pid: int) -> float | None:
    """Seconds that a process, all its threads and the system for it have used so far; None where nothing says it."""
    try:
        fields = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')
