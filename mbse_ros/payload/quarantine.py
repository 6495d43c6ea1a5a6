# SPDX-License-Identifier: Apache-2.0
"""Guard time around rejected samples.

The observer's acceleration lags: when the machine brakes, the force has changed already while the gates still see
nothing. So a sample waits for the guard time and is dropped when a gate closes meanwhile; after a gate has opened
again, the same time passes before samples are taken.
"""

from __future__ import annotations

import numpy as np


class Quarantine:
    """Lets rows (m,) pass, delayed, that have only clean neighbours within the guard on both sides."""

    def __init__(self, width: int) -> None:
        self._rows = np.empty((256, width))
        self.clear()

    def clear(self) -> None:
        """Drop what waits."""
        self._begin = self._end = 0
        self._run = 0       # clean samples since the last rejected one

    def pass_through(self, rows: np.ndarray, clean: np.ndarray | None, guard: int) -> np.ndarray:
        """Rows (k, m) released by the samples ``rows`` (n, m), of which ``clean`` (n,) may count; None: all.

        ``guard`` is in samples. The result is valid until the next call.
        """
        if clean is None:
            return self._append(rows, guard)
        released, begin = [rows[:0]], 0
        for k in np.flatnonzero(~clean):
            if k > begin:
                released.append(self._append(rows[begin:k], guard).copy())
            self.clear()
            begin = int(k) + 1
        if begin < len(rows):
            released.append(self._append(rows[begin:], guard).copy())
        return np.concatenate(released)

    def _append(self, rows: np.ndarray, guard: int) -> np.ndarray:
        """Add clean rows; those older than the guard leave."""
        young = guard - self._run       # so many are too soon after a rejected sample
        self._run += len(rows)
        if young > 0:
            rows = rows[young:]
        n = len(rows)
        if self._end + n > len(self._rows):
            self._make_room(n)
        self._rows[self._end:self._end + n] = rows
        self._end += n
        begin, self._begin = self._begin, max(self._begin, self._end - guard)
        return self._rows[begin:self._begin]

    def _make_room(self, n: int) -> None:
        """Move what waits to the front, into a larger buffer where that is not enough."""
        waiting = self._rows[self._begin:self._end].copy()
        if 2 * (len(waiting) + n) > len(self._rows):
            self._rows = np.empty((4 * (len(waiting) + n), self._rows.shape[1]))
        self._rows[:len(waiting)] = waiting
        self._begin, self._end = 0, len(waiting)
