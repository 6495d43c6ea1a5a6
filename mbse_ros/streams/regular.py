# SPDX-License-Identifier: Apache-2.0
"""Interpolation of rows of samples, one of every input with one stamp, many rows at a time.

The rules are those of ``interpolation``, and so is each operation on a number: the results are the same bit for bit.
Where every input sends with one stamp each row completes one segment, from the grid's last instant to the newest that
the stamp reaches; nothing is awaited, given up or dropped.
"""

from __future__ import annotations

import numpy as np

from .channel_buffer import SHORT, ChannelBuffer
from .segment_grid import SIMILAR_RATE, SegmentGrid
from .stretch import Stretch

LEAST = 4           # rows, after which nothing of the buffers is from before them


def periods(grid: SegmentGrid) -> tuple[int, int]:
    """Shortest and longest time from row to row, ns, for which the rules come down to that."""
    return grid.step, min(grid.gap // SHORT, grid.gap - grid.step, (grid.patience - 1) // 2)


def take_rows(grid: SegmentGrid, order: list[ChannelBuffer], stamps: np.ndarray, values: np.ndarray) -> Stretch | None:
    """Segments of the first rows, as many as are regular: stamps (n,), ns, values (n, inputs) in the ``order`` in which
    they came, as of ``rows.regular_rows`` with ``periods``.

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
    stretch = Stretch(grid.sequence + 1, grid.step, bounds, first, grid.channels, interpolated, repeats, grid.commands,
                      commands)
    _go_on(grid, order, t, values, bounds)
    return stretch


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
