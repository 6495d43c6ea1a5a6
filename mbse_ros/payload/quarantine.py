# SPDX-License-Identifier: Apache-2.0
"""Guard time around rejected samples.

The observer's acceleration lags: when the machine brakes, the force has changed already while the gates still see
nothing. So a sample waits for the guard time and is dropped when a gate closes meanwhile; after a gate has opened
again, the same time passes before samples are taken.
"""

from __future__ import annotations

import numpy as np


class Quarantine:
    """Lets rows pass, delayed, that have only clean neighbours within the guard on both sides."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Drop what waits."""
        self._waiting: np.ndarray | None = None
        self._run = 0       # clean samples since the last rejected one

    def pass_through(self, rows: np.ndarray, clean: np.ndarray, guard: int) -> np.ndarray:
        """Rows (k, m) released by the samples ``rows`` (n, m), of which ``clean`` (n,) may count; guard in samples."""
        if clean.all():
            return self._append(rows, guard)
        released, begin = [rows[:0]], 0
        for k in np.flatnonzero(~clean):
            if k > begin:
                released.append(self._append(rows[begin:k], guard))
            self.clear()
            begin = k + 1
        if begin < len(rows):
            released.append(self._append(rows[begin:], guard))
        return np.concatenate(released)

    def _append(self, rows: np.ndarray, guard: int) -> np.ndarray:
        """Add clean rows; those older than the guard leave."""
        young = max(0, guard - self._run)       # too soon after a rejected sample
        self._run += len(rows)
        rows = rows[young:]
        waiting = rows if self._waiting is None or not len(self._waiting) else np.concatenate([self._waiting, rows])
        leave = max(0, len(waiting) - guard)
        self._waiting = waiting[leave:]
        return waiting[:leave]
