# SPDX-License-Identifier: Apache-2.0
"""Time of data on one axis that only increases, whatever the clock of the stamps does.

Where a stream starts again after a short pause the axis goes on with it. After a long one, a clock that was set, or at
the next round of a loop, it continues without a hole: a stamp cannot tell an hour's pause from a clock set forward.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

PAUSE_NS = 60_000_000_000   # of all sensors, that is still one
KEPT = 10_000       # pieces whose stamps are known: a node may run for years
SLACK_NS = 5_000_000_000    # by which stamps of records of one clock may come out of order


class Elapsed:
    """Adds up segments; integer ns. ``total``: time at the end of the last one."""

    def __init__(self) -> None:
        self.total = 0
        self._starts: list[int] = []        # stamps where a piece begins and ends, and the time there
        self._ends: list[int] = []
        self._before: list[int] = []

    def add(self, start_ns: int, stamp_ns: int, restart: bool = False) -> int:
        """A segment between two stamps; returns the time at its end."""
        if not self._ends or restart or start_ns < self._ends[-1]:
            if self._ends and 0 < start_ns - self._ends[-1] <= PAUSE_NS:
                self.total += start_ns - self._ends[-1]
            self._starts.append(start_ns)
            self._before.append(self.total)
            self._ends.append(stamp_ns)
            for column in (self._starts, self._before, self._ends):
                del column[:-KEPT]
        self.total = self._before[-1] + stamp_ns - self._starts[-1]
        self._ends[-1] = stamp_ns
        return self.total

    def at(self, stamp_ns: int) -> int:
        """Time at a stamp, ns, of the newest piece that has it; between two pieces where the next one begins."""
        for place in range(len(self._starts) - 1, -1, -1):
            if self._starts[place] <= stamp_ns:
                return self._before[place] + min(stamp_ns, self._ends[place]) - self._starts[place]
            if place and self._ends[place - 1] > self._starts[place]:       # the clock was set back here
                return self._before[place]
        return 0


def elapsed_at(start_ns: np.ndarray, stamp_ns: np.ndarray, restart: np.ndarray, pause_ns: int = PAUSE_NS) -> np.ndarray:
    """The same of all segments (n,) at once: time at their ends (n,), ns."""
    before = np.concatenate([start_ns[:1], stamp_ns[:-1]])
    goes_on = (start_ns >= before) & (~restart | (start_ns - before <= pause_ns))
    return np.cumsum(stamp_ns - np.where(goes_on, before, start_ns))


def set_back(stamps_ns: Sequence[int], begins_ns: Sequence[int] | None = None) -> np.ndarray:
    """What is to be added to stamps (n,) of records in their order, ns, so that a clock that was set back continues;
    ``begins_ns`` (n,): where the records begin, the stamps themselves by default."""
    stamps = np.array(stamps_ns, dtype=np.int64)
    begins = stamps if begins_ns is None else np.array(begins_ns, dtype=np.int64)
    back = np.diff(stamps, prepend=stamps[:1]) < -SLACK_NS
    return np.cumsum(np.where(back, np.concatenate([stamps[:1], stamps[:-1]]) - begins, 0))
