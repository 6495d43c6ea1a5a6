# SPDX-License-Identifier: Apache-2.0
"""Interpolation where samples come in rows, one of every input with one stamp, many rows at a time.

So a log does that one computer wrote. The rules are those of ``interpolation``, and so is each operation on a number:
the results are the same bit for bit. Each row completes one segment, from the grid's last instant to the newest that
the stamp reaches; nothing is awaited, given up or dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .channel_buffer import SHORT, ChannelBuffer
from .records import Segment
from .segment_grid import SIMILAR_RATE, SegmentGrid

FEWEST = 8          # rows for which arrays are worth while
LARGEST = 1e15      # of a sample, SI: no sensor measures more, and squares of it are finite
LEAST = 4           # rows, after which nothing of the buffers is from before them


def regular_rows(places: np.ndarray, stamps: np.ndarray, values: np.ndarray, count: int, shortest: int, longest: int
                 ) -> list[tuple[int, int]]:
    """Stretches (first, stop) of samples in rows of ``count`` inputs, at least ``FEWEST`` rows in each.

    ``places`` (n,), which input from 0 on, ``stamps`` (n,), ns, ``values`` (n,). From row to row the stamp rises by
    ``shortest`` to ``longest``, ns; all values are finite.
    """
    if len(stamps) < FEWEST * count:
        return []
    first = np.concatenate(([0], np.flatnonzero(stamps[1:] != stamps[:-1]) + 1))
    full = np.diff(first, append=len(stamps)) == count
    rows = first[full]
    samples = rows[:, None] + np.arange(count)
    order, largest = places[samples], np.abs(values[samples]).max(axis=1, initial=0.0)
    good = (largest < LARGEST) & (np.sort(order, axis=1) == np.arange(count)).all(axis=1)     # NaN is not smaller
    period = np.diff(stamps[rows])
    follows = np.zeros(len(rows) + 1, dtype=bool)       # and an end that follows nothing
    follows[1:-1] = (good[1:] & good[:-1] & (np.diff(rows) == count) & (order[1:] == order[:-1]).all(axis=1)
                     & (period >= shortest) & (period <= longest))
    heads = np.flatnonzero(~follows[:-1])               # each begins what follows it
    lengths = np.diff(heads, append=len(rows))
    return [(int(rows[head]), int(rows[head]) + count * int(length)) for head, length in zip(heads, lengths)
            if length >= FEWEST]


@dataclass(frozen=True)
class SegmentBlock:
    """Segments of which none misses a sample or begins after a restart.

    ``sequence`` of the first; ``bounds`` (n + 1,), ns: where each begins, and the last one ends; ``first`` (n + 1,):
    the same as rows of ``values`` (steps, channels) and ``command_values`` (steps, commands); ``repeats``
    (n, channels).
    """

    sequence: int
    step_ns: int
    bounds: np.ndarray
    first: np.ndarray
    channels: tuple[str, ...]
    values: np.ndarray
    repeats: np.ndarray
    commands: tuple[str, ...]
    command_values: np.ndarray

    def __len__(self) -> int:
        return len(self.repeats)

    def joined(self, first: int, stop: int) -> Segment:
        """Segments from ``first`` to before ``stop``, which have the same ``repeats``, as one."""
        rows = slice(int(self.first[first]), int(self.first[stop]))
        return Segment(self.sequence + stop - 1, int(self.bounds[first]), self.step_ns, False, self.channels,
                       self.values[rows], self.repeats[first], self.commands, self.command_values[rows], stop - first)

    def segments(self) -> list[Segment]:
        """One by one."""
        return [self.joined(k, k + 1) for k in range(len(self))]


def periods(grid: SegmentGrid) -> tuple[int, int]:
    """Shortest and longest time from row to row, ns, for which the rules come down to that."""
    return grid.step, min(grid.gap // SHORT, grid.gap - grid.step, (grid.patience - 1) // 2)


def take_rows(grid: SegmentGrid, order: list[ChannelBuffer], stamps: np.ndarray, values: np.ndarray
              ) -> SegmentBlock | None:
    """Segments of the first rows, as many as are regular: stamps (n,), ns, values (n, inputs) in the ``order`` in which
    they came, as of ``regular_rows`` with ``periods``.

    None, and nothing is taken, where these are fewer than ``LEAST``, or what came before was not regular.
    """
    before = order[0].stamps
    if not _ready(grid, order) or grid.cursor is None:
        return None
    t = np.concatenate((before[-1:], stamps))
    count = _similar(grid, before, np.diff(t))
    if count < LEAST:
        return None
    t, values = t[:count + 1], values[:count]
    bounds = grid.cursor + (t - grid.cursor) // grid.step * grid.step
    place = {buffer.name: k for k, buffer in enumerate(order)}
    sensors, held = (np.column_stack([np.append(buffer.values[-1:], values[:, place[buffer.name]])
                                      for buffer in buffers]) if buffers else np.zeros((len(t), 0))
                     for buffers in (grid.sensors, grid.held))
    first = (bounds - bounds[0]) // grid.step
    interpolated, repeats = _interpolated(grid, t, bounds, first, sensors)
    commands = np.repeat(held[:-1], np.diff(first), axis=0)
    reached = t[1:] == bounds[1:]           # a command with the stamp of the last step counts there
    commands[first[1:][reached] - 1] = held[1:][reached]
    block = SegmentBlock(grid.sequence + 1, grid.step, bounds, first, grid.channels, interpolated, repeats,
                         grid.commands, commands)
    _go_on(grid, order, t, values, bounds)
    return block


def _ready(grid: SegmentGrid, order: list[ChannelBuffer]) -> bool:
    """Whether all that is left are the last samples of a row that has completed a segment."""
    stamps, cursor = order[0].stamps, grid.cursor
    if cursor is None or grid.restart or grid.blocker is not order[-1] or grid.wait <= 0:
        return False
    if any(buffer.lost or buffer.stamps != stamps or not np.isfinite(buffer.values).all() for buffer in order):
        return False
    if len(stamps) == 1:
        return stamps[0] == cursor
    return len(stamps) == 2 and stamps[0] <= cursor < stamps[1] < cursor + grid.step


def _similar(grid: SegmentGrid, before: list[int], intervals: np.ndarray) -> int:
    """How many of the first rows no command is too rare for to be waited for, none being much longer than the next."""
    known = max([0, *(buffer.interval for buffer in grid.held)]), before[-1] - before[0]
    shortest, longest = periods(grid)
    if known[1] > longest or not shortest <= intervals[0] <= longest:
        return 0
    earlier = np.concatenate((known, intervals))
    rare = np.maximum(earlier[:-2], earlier[1:-1]) > SIMILAR_RATE * intervals
    return int(np.argmax(rare)) if rare.any() else len(intervals)


def _interpolated(grid: SegmentGrid, t: np.ndarray, bounds: np.ndarray, first: np.ndarray, sensors: np.ndarray
                  ) -> tuple[np.ndarray, np.ndarray]:
    """Values (steps, channels) and repeats (n, channels) of rows with stamps ``t`` (n + 1,) and samples (n + 1,
    channels), the row before included: by ``ChannelBuffer.line`` from a stamp on the grid, else by ``interpolate``."""
    steps, interval = np.diff(first), np.diff(t)
    slope = (sensors[1:] - sensors[:-1]) / interval[:, None]
    lines = np.stack((sensors[1:] - slope * (t[1:] - bounds[1:])[:, None], slope), axis=1)
    values = np.empty((int(first[-1]), sensors.shape[1]))
    on_grid = t[:-1] == bounds[:-1]
    rows, begins, lengths = np.flatnonzero(on_grid), first.tolist(), steps.tolist()
    for k in rows.tolist():
        np.dot(grid.line[-lengths[k]:], lines[k], out=values[begins[k]:begins[k + 1]])
    if len(rows) < len(steps):
        row = np.repeat(np.arange(len(steps)), steps)
        pieced = np.flatnonzero(~on_grid[row])
        row = row[pieced]
        to_end = grid.line[len(grid.line) - first[row + 1] + pieced, 1] + (bounds[1:] - t[1:])[row]
        values[pieced] = sensors[1:][row] + to_end[:, None] * slope[row]
    share = np.where(on_grid, np.where(interval > grid.step, interval / grid.step, 1.0),
                     steps / (steps * grid.step / np.maximum(interval, grid.step)))
    return values, np.repeat(share[:, None], sensors.shape[1], axis=1)


def _go_on(grid: SegmentGrid, order: list[ChannelBuffer], t: np.ndarray, values: np.ndarray, bounds: np.ndarray
           ) -> None:
    """Buffers and grid as after these rows one by one."""
    stamps, end = t[-LEAST:].tolist(), int(bounds[-1])
    for column, buffer in zip(values.T[:, -LEAST:].tolist(), order):
        buffer.stamps, buffer.values = list(stamps), column
        buffer.newest, buffer.suspect, buffer.share = stamps[-1], None, 1.0
        buffer.trim(end)
    grid.cursor = end
    grid.sequence += len(values)
    if order[-1].held:      # sensors have looked again where the wait for the last command was over
        row = 1
        while (row := max(row, int(np.searchsorted(t, grid.deadline)))) < len(t):
            grid.deadline = int(t[row]) + grid.wait
