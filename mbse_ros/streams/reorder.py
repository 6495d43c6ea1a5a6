# SPDX-License-Identifier: Apache-2.0
"""Samples that come late or out of order, put back into the order of their stamps within a window."""

from __future__ import annotations

from heapq import heappop, heappush

from .channel_buffer import NEVER

Sample = tuple[str, int, float]     # channel, stamp, ns, value


class Reorder:
    """Holds each sample until one has come whose stamp is ``delay`` ns later; with 0 they pass as they come.

    Of one stamp the order of arrival is kept. A sample that is later than the window passes at once: what reads it says
    what is wrong with it.
    """

    def __init__(self, delay: int = 0) -> None:
        self.delay = delay
        self.reset()

    def reset(self) -> None:
        """Forget what waits."""
        self._waiting: list[tuple[int, int, str, float]] = []
        self._newest, self._count, self._left = NEVER, 0, NEVER

    def add(self, channel: str, stamp: int, value: float) -> list[Sample]:
        """Take a sample; those that need not wait any longer, in order."""
        if stamp < self._left:      # too late, or the clock was set back
            waiting = []
            if self._left - stamp > 10 * self.delay:
                waiting = self.flush()
                self.reset()
            return [*waiting, (channel, stamp, value)]
        self._count += 1
        heappush(self._waiting, (stamp, self._count, channel, value))
        self._newest = max(self._newest, stamp)
        ready = []
        while self._waiting and self._waiting[0][0] <= self._newest - self.delay:
            ready.append(self._pop())
        return ready

    def flush(self) -> list[Sample]:
        """All that waits, in order."""
        return [self._pop() for _ in range(len(self._waiting))]

    def _pop(self) -> Sample:
        stamp, _, channel, value = heappop(self._waiting)
        self._left = stamp
        return channel, stamp, value
