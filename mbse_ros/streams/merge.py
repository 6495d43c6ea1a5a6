# SPDX-License-Identifier: Apache-2.0
"""Longer segments out of those of single sensor periods: less to do for a log, where delay does not matter."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite

import numpy as np

from .records import Segment
from .regular import SegmentBlock


class Merger:
    """Joins segments that follow each other on one grid until they last ``duration_ns``.

    The states at all steps stay what they are, bit for bit; there are fewer covariances, innovations and masses.
    A restart, a hole, another step or another sharing of samples begins a new one; a segment in which a sample is
    missing stays alone, since it is judged as a whole.
    """

    def __init__(self, duration_ns: int) -> None:
        self.duration_ns = duration_ns
        self._waiting: list[Segment] = []

    def add(self, segment: Segment) -> tuple[Segment, ...]:
        """Take a segment; those that are complete come out."""
        whole = isfinite(np.add.reduce(segment.values, axis=None))
        done = self.flush() if self._waiting and not (whole and self._follows(segment)) else ()
        self._waiting.append(segment)
        if not whole or segment.stamp_ns - self._waiting[0].start_ns >= self.duration_ns:
            return (*done, *self.flush())
        return done

    def add_block(self, block: SegmentBlock) -> list[Segment]:
        """Take the segments of a block; what comes out is as of one by one."""
        found: list[Segment] = []
        bounds, first = block.bounds, 0
        changes = np.flatnonzero((block.repeats[1:] != block.repeats[:-1]).any(axis=1)) + 1
        for stop in (*changes.tolist(), len(block)):
            while first < stop:
                follows = self._waiting and self._follows(block.joined(first, first + 1))
                begin = self._waiting[0].start_ns if follows else int(bounds[first])
                last = min(max(int(np.searchsorted(bounds, begin + self.duration_ns)), first + 1), stop)
                found.extend(self.add(block.joined(first, last)))
                first = last
        return found

    def flush(self) -> tuple[Segment, ...]:
        """What waits, joined."""
        waiting, self._waiting = self._waiting, []
        if len(waiting) < 2:
            return tuple(waiting)
        return (replace(waiting[0], sequence=waiting[-1].sequence, periods=sum(s.periods for s in waiting),
                        values=np.concatenate([s.values for s in waiting]),
                        command_values=np.concatenate([s.command_values for s in waiting])),)

    def _follows(self, segment: Segment) -> bool:
        last = self._waiting[-1]
        return (not segment.restart and segment.start_ns == last.stamp_ns and segment.step_ns == last.step_ns
                and segment.repeats.tobytes() == last.repeats.tobytes())
