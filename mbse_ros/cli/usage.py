# SPDX-License-Identifier: Apache-2.0
"""Processor time of child processes."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

START_UP = 6.0      # s: imports and compilation are not the running cost


class CpuMeter:
    """Shares of a core that named processes use after their start-up (Linux; 0 elsewhere)."""

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._first: dict[str, tuple[float, float]] = {}
        self._last: dict[str, tuple[float, float]] = {}

    @property
    def seconds(self) -> float:
        """Time since the meter was made, s."""
        return time.monotonic() - self._begin

    def update(self, processes: Mapping[str, int]) -> None:
        """Read the times of the processes, name to pid."""
        if self.seconds < START_UP:
            return
        for name, pid in processes.items():
            used = _cpu_seconds(pid)
            if used is not None:
                now = time.monotonic(), used
                self._first.setdefault(name, now)
                self._last[name] = now

    def share(self, name: str) -> float:
        """Share of one core between the first and the last reading."""
        (t0, used0), (t1, used1) = self._first.get(name, (0.0, 0.0)), self._last.get(name, (0.0, 0.0))
        return (used1 - used0) / (t1 - t0) if t1 > t0 else 0.0


def _cpu_seconds(pid: int) -> float | None:
    try:
        fields = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')
