# SPDX-License-Identifier: Apache-2.0
"""Samples of one input that wait to be interpolated: a measured channel or a held command.

``Reorder`` puts samples that come late back into the order of their stamps, within a window.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from heapq import heappop, heappush

import numpy as np

NEVER = -(1 << 63)
"""Stamp of the newest sample of an input that has sent none, ns."""
UNKNOWN = 1 << 62
"""Interval between a sample and the one before it where there is none, ns."""
SHORT = 3
"""An interval of up to the largest gap over this is interpolated whatever the sensor's rate."""
LONGER = 2.5
"""A longer one is, up to the largest gap, where it is up to so many times as long as one of the two before it."""
Sample = tuple[str, int, float]     # channel, stamp, ns, value


class ChannelBuffer:
    """Samples of one input, from the newest at or before the grid's cursor (the last released instant) on.

    ``stamps`` (ns) and ``values`` (SI) run in parallel. ``interval`` is the time between the two samples before the
    cursor, where none counts before ``since``, ``earlier`` the one before that; 0 or less while there is none.
    ``suspect`` is the last refused sample with a stamp far back. ``target`` is the index of the sample that the next
    segment aims at, -1 while not known. ``share`` of the newest sample, see `Interpolator.add`. ``late``: whether the
    oldest sample of a held input came after its segment. ``delay``, ns: the stamps are those of the samples less it.
    """

    __slots__ = ('name', 'held', 'stamps', 'values', 'newest', 'seen', 'lost', 'suspect', 'interval', 'earlier',
                 'since', 'target', 'share', 'late', 'delay')

    def __init__(self, name: str, held: bool, delay: int = 0) -> None:
        self.name, self.held, self.delay = name, held, delay
        self.stamps: list[int] = []
        self.values: list[float] = []
        self.newest = NEVER
        self.seen = self.lost = False
        self.share = 1.0
        self.forget()

    def forget(self) -> None:
        """Drop all samples and the memory of their stamps, but not that there were some."""
        self.seen = self.has_sent
        self.drop(len(self.stamps))
        self.newest, self.interval, self.earlier, self.since = NEVER, 0, 0, NEVER
        self.suspect: tuple[int, float] | None = None
        self.late = False

    @property
    def has_sent(self) -> bool:
        """Whether the input has ever sent a sample."""
        return self.seen or self.newest > NEVER

    def append(self, stamp: int, value: float) -> None:
        """Take a sample that is newer than all others."""
        self.stamps.append(stamp)
        self.values.append(value)
        self.newest = stamp

    def drop(self, count: int) -> None:
        """Drop the oldest ``count`` samples."""
        del self.stamps[:count], self.values[:count]
        self.target = -1

    def trim(self, cursor: int) -> int:
        """Drop what is older than the newest sample at or before the cursor; returns how many."""
        stamps = self.stamps
        self.target = -1
        count = len(stamps)
        if count < 2 or stamps[1] > cursor:
            return 0
        index = 1 if count == 2 else bisect_right(stamps, cursor) - 1
        before = stamps[index - 1]
        self.earlier = before - stamps[index - 2] if index > 1 else self.interval
        self.interval = stamps[index] - (before if before > self.since else self.since)
        del stamps[:index], self.values[:index]
        return index

    def active_since(self, stamp: int, longest: int) -> int:
        """Time this input has been sending after ``stamp``, ns, where no interval counts more than ``longest``."""
        stamps = self.stamps[max(bisect_right(self.stamps, stamp) - 1, 0):]
        return sum(min(after - before, longest) for before, after in zip(stamps, stamps[1:]))

    def prune(self, span: int, longest: int) -> int:
        """Drop the oldest samples so that ``span`` ns of sending, as in ``active_since``, remain; returns how many."""
        stamps, index, active = self.stamps, len(self.stamps) - 1, 0
        while index > 0 and active < span:
            active += min(stamps[index] - stamps[index - 1], longest)
            index -= 1
        self.drop(max(index, 0))
        return max(index, 0)

    def interval_before(self, index: int, gap: int) -> int:
        """Interval that ends at a sample, ns; UNKNOWN at the first sample and across a hole: what is longer than
        ``gap``, or long, and much longer than those before it."""
        stamps = self.stamps
        interval = stamps[index] - stamps[index - 1] if index else UNKNOWN
        if SHORT * interval <= gap or interval > gap:
            return interval if interval <= gap else UNKNOWN
        last = stamps[index - 1] - stamps[index - 2] if index > 1 else self.interval
        one_more = (stamps[index - 2] - stamps[index - 3] if index > 2 else self.interval if index == 2 else
                    self.earlier)
        usual = max(last, one_more)
        return interval if usual <= 0 or interval <= LONGER * usual else UNKNOWN

    def aim(self, cursor: int, step: int, gap: int) -> int:
        """Find the target: the first sample a step or more after the cursor, except one in whose nearer half it is.

        Returns the target's index, -1 if the sample has not come yet.
        """
        before = cursor - UNKNOWN
        for index, stamp in enumerate(self.stamps):
            ahead = stamp - cursor
            if ahead >= step and (2 * ahead >= stamp - before or self.interval_before(index, gap) == UNKNOWN):
                self.target = index
                return index
            before = stamp
        return -1

    def nearest(self, start: int, instant: int, gap: int, widest: int = UNKNOWN) -> int | None:
        """Stamp of the first sample from index ``start`` on that is after ``instant`` or within half an interval of it.

        The half interval is at most half of ``widest``. None if the sample has not come yet.
        """
        for index in range(start, len(self.stamps)):
            stamp = self.stamps[index]
            if stamp >= instant:
                return stamp
            interval = self.interval_before(index, gap)
            if interval != UNKNOWN and 2 * (instant - stamp) < min(interval, widest):
                return stamp
        return None

    def line(self, cursor: int, end: int, gap: int) -> tuple[float, float, int] | None:
        """Value at ``end``, slope per ns and sample interval where one interval covers cursor to end; else None."""
        stamps = self.stamps
        if len(stamps) < 2 or stamps[1] < end or stamps[0] > cursor:
            return None
        stamp, (before, value) = stamps[1], self.values[:2]
        interval = stamp - stamps[0]
        bridged = SHORT * interval <= gap or self.interval_before(1, gap) != UNKNOWN
        slope = (value - before) / interval if bridged else np.nan
        return value - slope * (stamp - end), slope, interval

    def interpolate(self, column: np.ndarray, cursor: int, step: int, gap: int, to_end: np.ndarray) -> float:
        """Fill a column with linear interpolation at cursor + (k + 1) step; NaN where there is none.

        ``to_end`` is the time of each step from the last one on, ns. Returns how many of the valid steps share one
        sample's information, at least 1.
        """
        steps = len(column)
        end = cursor + steps * step
        done, valid, information = 0, 0, 0.0
        for index, stamp in enumerate(self.stamps):
            last = min((stamp - cursor) // step, steps)
            if last <= done:
                continue
            interval = self.interval_before(index, gap)
            rise = self.values[index] - self.values[index - 1] if interval != UNKNOWN else np.nan
            column[done:last] = self.values[index] + (to_end[done:last] + (end - stamp)) * (rise / interval)
            if rise == rise:
                valid += last - done
                information += (last - done) * step / max(interval, step)
            done = last
        column[done:] = np.nan
        return valid / information if valid else 1.0

    def hold(self, column: np.ndarray, cursor: int, step: int) -> None:
        """Fill a column with the value of the newest sample at or before cursor + (k + 1) step."""
        steps = len(column)
        column[:] = self.values[0]
        for stamp, value in zip(self.stamps[1:], self.values[1:]):
            row = max(-((cursor - stamp) // step) - 1, 0)
            if row >= steps:
                break
            column[row:] = value

    def late_steps(self, cursor: int, step: int, used: Iterable[tuple[int, np.ndarray]]) -> int:
        """Of the steps up to the cursor whose command is known now, how many had another one; of a held input, once a
        sample has come late, until the one after it has come. ``used``: where the newest segments began, ns, and their
        columns."""
        count, stamps = 0, self.stamps
        for start, column in used:
            for stamp, value, after in zip(stamps, self.values, stamps[1:]):
                if stamp > cursor:
                    break
                rows = slice(max(-((start - stamp) // step) - 1, 0),
                             max(-((start - min(after, cursor + 1)) // step) - 1, 0))
                count += int(np.count_nonzero(column[rows] != value))
        self.late = stamps[1] <= cursor
        return count


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
