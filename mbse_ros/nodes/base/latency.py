# SPDX-License-Identifier: Apache-2.0
"""How old the results of a node are when they leave it: from the stamp of the newest sample, by the node's clock."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from time import time_ns
from typing import Any

MOST = 4000         # results that are looked at, of one period of the diagnostics
SHARE = 0.99


def clock_ns(node: Any) -> Callable[[], int]:
    """The time, ns, that stamps are compared with: of the wall, that of /clock with the parameter use_sim_time."""
    clock = node.get_clock()
    return (lambda: clock.now().nanoseconds) if node.get_parameter('use_sim_time').value else time_ns


class Latency:
    """Collects ages of results between two looks of the diagnostics."""

    def __init__(self) -> None:
        self._ages: list[float] = []
        self._last: tuple[float, float] | None = None      # median and 99 %, s

    def take(self, age: float) -> None:
        """A result that leaves ``age``, s, after the stamp of its newest sample."""
        if len(self._ages) < MOST:
            self._ages.append(age)

    def warning(self, budget: float) -> str:
        """What is wrong with the ages since the last look, '' where nothing; ``budget``, s, 0: none."""
        ages, self._ages = sorted(self._ages), []
        self._last = (ages[len(ages) // 2], ages[ceil(SHARE * len(ages)) - 1]) if ages else None
        if self._last is None or not budget or self._last[1] <= budget:
            return ''
        return (f'late: results are up to {1e3 * self._last[1]:.1f} ms old (99 %), beyond latency_budget, '
                f'{1e3 * budget:g} ms')

    def values(self) -> dict[str, object]:
        """Numbers of the diagnostics, of the ages up to the last look."""
        if self._last is None:
            return {}
        return {'latency, median': f'{1e3 * self._last[0]:.1f} ms', 'latency, 99 %': f'{1e3 * self._last[1]:.1f} ms'}
