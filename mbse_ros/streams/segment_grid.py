# SPDX-License-Identifier: Apache-2.0
"""The time grid of the segments: when one can be released, where it ends, what is in it.

The rules are those of ``interpolation``; all stamps are integer nanoseconds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Mapping

import numpy as np

from .channel_buffer import NEVER, SHORT, UNKNOWN, ChannelBuffer
from .records import Segment

SIMILAR_RATE = 3
"""A command is waited for if its interval is at most so many intervals of the slowest channel."""

USED = 1000
"""Segments in which a late command is looked for."""


class SegmentGrid:
    """Buffers of all inputs and the cursor, the last released instant (None before a start).

    ``step``, ``gap``, ``wait`` and ``patience``, ns, are set by ``configure``. ``sensors`` and ``held`` are the buffers
    of the channels and commands, ``live`` the sensors that are waited for, ``blocker`` the input whose next sample may
    release a segment; where that is a command, so may a sensor's from ``deadline``, ns, on. ``sequence`` of the last
    segment; ``restart``: of the next one. ``line`` (steps, 2): 1 and the time, ns, of the last steps from the end on.
    ``dropped`` counts samples that found no use, ``late`` by command the steps that used another one, since it came
    after their segment.
    """

    def __init__(self, channels: tuple[str, ...], commands: tuple[str, ...], delays: Mapping[str, int]) -> None:
        self.channels, self.commands, self._delays = channels, commands, delays
        self.dropped: Counter[str] = Counter()
        self.late: Counter[str] = Counter()
        self.sequence = 0
        self.reset()

    def reset(self) -> None:
        """Empty buffers, no grid."""
        self.sensors = [ChannelBuffer(name, False, self._delays.get(name, 0)) for name in self.channels]
        self.held = [ChannelBuffer(name, True) for name in self.commands]
        self.live = list(self.sensors)
        self.blocker, self.deadline = self.sensors[0], UNKNOWN
        self.cursor: int | None = None
        self.restart = True
        self._used: deque[tuple[int, np.ndarray]] = deque(maxlen=USED)

    def inputs(self) -> dict[str, ChannelBuffer]:
        """The buffers by name."""
        return {buffer.name: buffer for buffer in self.sensors + self.held}

    def configure(self, step: int, gap: int, wait: int, patience: int) -> None:
        """Set the step, the largest gap, the wait for a command and the silence by which it is lost, ns."""
        self.step, self.gap, self.wait, self.patience = step, gap, wait, patience
        self.deadline = NEVER       # look again with the next sample of a sensor
        self._most_steps = max(gap // step, 1)
        to_end = np.arange(1.0 - self._most_steps, 1.0) * step
        self.line = np.column_stack((np.ones_like(to_end), to_end))
        for buffer in self.sensors:
            buffer.target = -1

    @property
    def waiting_for(self) -> tuple[str, ...]:
        """Names of the inputs without which nothing goes on."""
        if self.cursor is not None:
            return (self.blocker.name,)
        return tuple(buffer.name for buffer in self.sensors + self.held if self._is_missing(buffer))

    @staticmethod
    def _is_missing(buffer: ChannelBuffer) -> bool:
        """Whether the grid cannot start without this input."""
        return not buffer.stamps and (buffer.held or not buffer.lost)

    def set_lost(self, buffer: ChannelBuffer, lost: bool) -> None:
        """Wait no longer, or again, for an input; a lost command is waited for again once it comes regularly."""
        buffer.lost = lost
        if lost:
            buffer.interval = UNKNOWN
        self.live = [sensor for sensor in self.sensors if not sensor.lost]

    def stop(self, resume: int | None) -> None:
        """End the grid; keep of the sensors what is not older than ``resume``, ns, or nothing (None)."""
        last = None if self.cursor is None else self.cursor + self.step
        for buffer in self.sensors:
            old = len(buffer.stamps) if resume is None else bisect_left(buffer.stamps, resume)
            self.dropped['before a restart'] += old - (bisect_left(buffer.stamps, last, 0, old) if last else 0)
            buffer.drop(old)
        if resume is not None:
            for buffer in self.held:
                buffer.trim(resume)
        else:
            self._used.clear()      # their instants may come again
        self.cursor = None

    def prune(self, buffer: ChannelBuffer, span: int, longest: int) -> None:
        """Bound the samples that wait for a start to the newest ``span``, ns, of sending."""
        count = buffer.prune(span, longest)
        if not buffer.held:
            self.dropped['before the start'] += count

    def may_release(self, sender: ChannelBuffer) -> bool:
        """Whether the newest sample of ``sender`` may complete a segment."""
        blocker = self.blocker
        return sender is blocker or blocker.held and not sender.held and sender.newest >= self.deadline

    def release(self, sender: ChannelBuffer) -> tuple[Segment, ...]:
        """All segments that can be released now that ``sender`` has sent."""
        segments = []
        while (cursor := self._start() if self.cursor is None else self.cursor) is not None:
            end = self._next_end(cursor)
            if end is None:
                break
            if self.cursor is None:
                continue
            segments.append(self._segment(cursor, end))
            if sender.newest - end < self.step and self.blocker is sender:     # the usual case: no need to look further
                break
        return tuple(segments)

    def _start(self) -> int | None:
        """Put the cursor on the first instant that all inputs have reached; None as long as one is missing."""
        for buffer in self.sensors + self.held:
            if self._is_missing(buffer):
                self.blocker, self.deadline = buffer, UNKNOWN
                return None
        self.cursor = cursor = max(buffer.stamps[0] for buffer in self.live + self.held)
        self.restart = True
        for buffer in self.held:
            buffer.trim(cursor)
            buffer.since = cursor                               # its rate is learnt again: until then wait for it,
            buffer.interval = UNKNOWN if buffer.lost else 0     # unless it is silent
        return cursor

    def _next_end(self, cursor: int) -> int | None:
        """Last instant of the next segment, ns; None while a sample is awaited. May stop the grid at a hole."""
        gap, latest, slowest = self.gap, cursor, 0
        for buffer in self.live:
            target = buffer.target
            if target < 0:
                target = buffer.aim(cursor, self.step, gap)
                if target < 0:
                    self.blocker = buffer
                    return None
            stamp = buffer.stamps[target]
            if stamp > latest:
                latest = stamp
            if target:
                interval = buffer.interval_before(target, gap)
                if slowest < interval != UNKNOWN:
                    slowest = interval
        common = self._common_stamp(cursor, latest, slowest or gap)      # not known where all aim across a hole
        if common is None:
            return None
        end = cursor + (common - cursor) // self.step * self.step
        return end if SHORT * (latest - cursor) <= gap else self._end_at_hole(cursor, end, latest, slowest)

    def _common_stamp(self, cursor: int, latest: int, slowest: int) -> int | None:
        """Earliest of the samples nearest to ``latest``, one of each awaited input; None while one is missing."""
        common = latest
        for buffer in self.live:
            if buffer.stamps[buffer.target] != latest:
                stamp = buffer.nearest(buffer.target, latest, self.gap)
                if stamp is None:
                    self.blocker = buffer
                    return None
                if stamp < common:
                    common = stamp
        for buffer in self.held:
            stamps = buffer.stamps
            if buffer.lost or buffer.interval > SIMILAR_RATE * slowest or len(stamps) > 1 and stamps[1] == latest:
                continue
            stamp = buffer.nearest(bisect_left(stamps, cursor + self.step), latest, self.gap, slowest)
            if stamp is None:
                deadline = latest + self.wait
                if any(sensor.newest >= deadline for sensor in self.live):
                    if latest - buffer.newest >= self.patience:
                        self.set_lost(buffer, True)
                    continue        # held: what comes now counts from the next segment on
                self.blocker, self.deadline = buffer, deadline
                return None
            if stamp < common:
                common = stamp
        return common

    def _end_at_hole(self, cursor: int, end: int, latest: int, slowest: int) -> int:
        """End of a segment where a channel has a hole: not beyond the ``slowest`` interval, or a third of the largest
        gap, nor into a hole of all channels.

        At such a hole the grid is stopped.
        """
        before, step = cursor, self.step
        for stamp in sorted({stamp for buffer in self.live for stamp in buffer.stamps if cursor < stamp <= latest}):
            if SHORT * (stamp - before) > self.gap and not any(self._covers(buffer, stamp) for buffer in self.live):
                end = min(end, cursor + (before - cursor) // step * step)
                if end == cursor:
                    self.stop(stamp)
                break
            before = stamp
        return min(end, cursor + max(min(self._most_steps, max(self.gap // SHORT, slowest) // step), 1) * step)

    def _covers(self, buffer: ChannelBuffer, stamp: int) -> bool:
        """Whether a channel has values up to ``stamp``, by a sample no later than the one it aims at."""
        index = bisect_left(buffer.stamps, stamp)
        return index <= buffer.target and buffer.interval_before(index, self.gap) != UNKNOWN

    def _segment(self, cursor: int, end: int) -> Segment:
        """The segment from the cursor to ``end``, where the cursor then is."""
        step = self.step
        steps = (end - cursor) // step
        if self.restart:       # a sample before the start may have come after it
            for buffer in self.sensors:
                self.dropped['before the start'] += buffer.trim(cursor)
        values, repeats = self._interpolate(cursor, end, steps)
        commands = np.empty((steps, len(self.held)))
        for column, buffer in enumerate(self.held):
            if len(buffer.stamps) > 1 and (buffer.late or buffer.stamps[1] <= cursor):
                self.late[buffer.name] += buffer.late_steps(
                    cursor, step, [(start, rows[:, column]) for start, rows in self._used])
            buffer.hold(commands[:, column], cursor, step)
        if self.held:
            self._used.append((cursor, commands))
        self.sequence += 1
        segment = Segment(self.sequence, cursor, step, self.restart, self.channels, values, repeats, self.commands,
                          commands)
        self.cursor, self.restart = end, False
        for buffer in self.sensors:
            buffer.trim(end)
        for buffer in self.held:
            buffer.trim(end)
        return segment

    def _interpolate(self, cursor: int, end: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
        """Values (steps, channels) and repeats (channels,); at once for channels with one interval over all steps."""
        step, gap = self.step, self.gap
        at_end: list[float] = []
        slopes, repeats, pieced = [], [], []
        for buffer in self.sensors:
            line = buffer.line(cursor, end, gap)
            if line is None:
                pieced.append(len(at_end))
                line = 0.0, 0.0, step
            at_end.append(line[0])
            slopes.append(line[1])
            repeats.append((line[2] / step if line[2] > step else 1.0) * buffer.share)
        to_end = self.line[-steps:]
        values = to_end.dot(np.array((at_end, slopes)))
        for column in pieced:
            buffer = self.sensors[column]
            repeats[column] = buffer.share * buffer.interpolate(values[:, column], cursor, step, gap, to_end[:, 1])
        return values, np.array(repeats)
