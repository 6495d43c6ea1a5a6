# SPDX-License-Identifier: Apache-2.0
"""Timing that can be compared: all cases in turn, in short bursts, the fastest burst of each."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping
from pathlib import Path


def interleaved(calls: Mapping[str, tuple[Callable[[], object], int]], rounds: int) -> dict[str, float]:
    """Seconds a call, by name: the minimum over ``rounds`` bursts of so many calls, the cases taking turns."""
    best = {name: float('inf') for name in calls}
    for _ in range(rounds):
        for name, (call, burst) in calls.items():
            start = time.perf_counter()
            for _ in range(burst):
                call()
            best[name] = min(best[name], (time.perf_counter() - start) / burst)
    return best


def machine_name() -> str:
    """Processor and Python of this machine."""
    try:
        lines = Path('/proc/cpuinfo').read_text().splitlines()
        model = next(line.split(':', 1)[1].strip() for line in lines if line.startswith('model name'))
    except (OSError, StopIteration):
        model = platform.machine()
    return f'{model}, Python {platform.python_version()}'
