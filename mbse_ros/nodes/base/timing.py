# SPDX-License-Identifier: Apache-2.0
"""When messages come: the pace at which some are due, pairs of one instant out of two streams, and silence."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

FEW = 5.0           # intervals
SHORTEST = 0.4      # s: a busy computer may be late by that
AGAIN = 1.0         # s between two looks while nothing comes
KEPT = 200      # of each stream: two seconds at 100 Hz, by which one may be behind the other on a busy computer


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


class Pace:
    """A rate counted in stamps, each kind of output apart, so that it follows a bag at any speed."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}

    def is_due(self, kind: str, stamp_ns: int, rate: float) -> bool:
        """Whether a period of the rate, Hz, has gone by since the last one, or time went back; never at 0 Hz."""
        if rate == 0.0:
            return False
        last = self._last.get(kind)
        return last is None or not 0 <= stamp_ns - last < 0.999e9 / rate

    def done(self, kind: str, stamp_ns: int) -> None:
        """An output of a kind went out."""
        self._last[kind] = stamp_ns


class Pairs:
    """Items of two streams that have the same stamp, whichever comes first."""

    def __init__(self) -> None:
        self._waiting: tuple[dict[int, Any], dict[int, Any]] = {}, {}

    def take(self, stream: int, stamp_ns: int, item: Any) -> tuple[Any, Any] | None:
        """The pair (of stream 0, of stream 1) that an item completes, None while the other one is not there."""
        own, others = self._waiting[stream], self._waiting[1 - stream]
        if stamp_ns in others:
            other = others.pop(stamp_ns)
            return (other, item) if stream else (item, other)
        own[stamp_ns] = item
        if len(own) > KEPT:
            del own[next(iter(own))]
        return None
