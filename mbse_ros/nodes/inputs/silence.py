# SPDX-License-Identifier: Apache-2.0
"""How long nothing has come, against the interval at which something usually comes."""

from __future__ import annotations

import time
from collections.abc import Callable

FEW = 5.0           # intervals
SHORTEST = 0.4      # s: a busy computer may be late by that
AGAIN = 1.0         # s between two looks while nothing comes


class Silence:
    """By the clock of the computer: what is played from a bag has stamps of another time, at any speed."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock or time.monotonic
        self._last: float | None = None
        self._intervals = (0.0, 0.0)

    def heard(self) -> None:
        """Something has come."""
        now = self._clock()
        if self._last is not None:
            self._intervals = (self._intervals[1], now - self._last)
        self._last = now

    @property
    def patience(self) -> float:
        """After so many s without anything it has fallen silent. One long interval alone is a pause."""
        return max(SHORTEST, FEW * min(self._intervals))

    @property
    def lifetime(self) -> float:
        """How long what is shown may stay without another, s: until after the first look at the silence."""
        return 1.5 * self.patience

    def look(self) -> tuple[float | None, float]:
        """For how many s nothing has come, None where that is not long; and seconds until the next look."""
        if self._last is None:
            return None, AGAIN
        silent = self._clock() - self._last
        return (silent, AGAIN) if silent >= self.patience else (None, min(AGAIN, self.patience - silent))
