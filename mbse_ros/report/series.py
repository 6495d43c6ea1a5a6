# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on sampled curves: gaps, decimation that keeps the peaks, shares and errors."""

from __future__ import annotations

import numpy as np

Z95 = 1.959963984540054   # 97.5 % point of the standard normal distribution
_HOLE = 10.0              # a step this many times the usual one is a hole in the data, not a line


def break_holes(t: np.ndarray, *columns: np.ndarray) -> tuple[np.ndarray, ...]:
    """Times and columns (n,) with a NaN row inside each hole, so that no line is drawn across missing data.

    A hole is a time step of more than ten times the median step.
    """
    steps = np.diff(t)
    if steps.size == 0:
        return (t, *columns)
    holes = np.flatnonzero(steps > _HOLE * np.median(steps)) + 1
    middle = 0.5 * (t[holes - 1] + t[holes])
    return (np.insert(t, holes, middle), *(np.insert(column, holes, np.nan) for column in columns))


def decimate(t: np.ndarray, y: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """At most ``limit`` of the points (t, y) (n,): per bin the least, the largest and, if any, a gap.

    Nothing between the kept points leaves their envelope: a single outlier stays visible. The first and last
    points stay. Points that are not finite come back as NaN.
    """
    y = np.where(np.isfinite(y), y, np.nan)
    if y.size <= limit:
        return t, y
    edges = np.linspace(0, y.size, max(1, (limit - 2) // 3) + 1).astype(int)
    bins = np.repeat(np.arange(edges.size - 1), np.diff(edges))
    gap = np.isnan(y)
    kept = [np.array([0, y.size - 1]), _first_per_bin(gap, bins)]
    for extreme, filler in ((np.minimum, np.inf), (np.maximum, -np.inf)):
        filled = np.where(gap, filler, y)
        kept.append(_first_per_bin(filled == extreme.reduceat(filled, edges[:-1])[bins], bins))
    index = np.unique(np.concatenate(kept))
    return t[index], y[index]


def envelope(lower: np.ndarray, upper: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Of so many bins, or fewer, the first and the middle row (b,), the least of ``lower`` (n,) and the largest of
    ``upper`` (n,) in them, NaN where a bin has no other."""
    edges = np.unique(np.linspace(0, lower.size, count + 1).astype(int))
    first = edges[:-1]
    return first, (first + edges[1:]) // 2, np.fmin.reduceat(lower, first), np.fmax.reduceat(upper, first)


def _first_per_bin(hit: np.ndarray, bins: np.ndarray) -> np.ndarray:
    """Index of the first hit (n,) in each bin that has one; ``bins`` (n,) is the bin of each point."""
    hits = np.flatnonzero(hit)
    return hits[np.unique(bins[hits], return_index=True)[1]]


def finite_runs(*columns: np.ndarray) -> list[slice]:
    """Slices of consecutive rows in which all columns (n,) are finite."""
    good = np.all([np.isfinite(column) for column in columns], axis=0).astype(np.int8)
    turns = np.flatnonzero(np.diff(good, prepend=0, append=0))
    return [slice(start, stop) for start, stop in zip(turns[::2], turns[1::2])]


def band_outline(t: np.ndarray, lower: np.ndarray, upper: np.ndarray, limit: int) -> list[np.ndarray]:
    """Closed outlines (k, 2) of the area between two curves (n,), one per run without a gap.

    All of them together have about ``limit`` points.
    """
    t, lower, upper = break_holes(t, lower, upper)
    outlines = []
    for run in finite_runs(lower, upper):
        share = max(8, limit // 2 * (run.stop - run.start) // t.size)
        top, bottom = (np.column_stack(decimate(t[run], y[run], share)) for y in (upper, lower))
        outlines.append(np.vstack([top, bottom[::-1], top[:1]]))
    return outlines


def equal_runs(t: np.ndarray, codes: np.ndarray) -> list[tuple[float, float, int]]:
    """(start, end, code) of each stretch of equal integers (n,); a stretch ends where the next one starts."""
    if t.size == 0:
        return []
    starts = np.flatnonzero(np.diff(codes, prepend=codes[0] - 1))
    ends = np.append(t[starts[1:]], t[-1])
    return [(float(t[s]), float(end), int(codes[s])) for s, end in zip(starts, ends)]


def share_inside(value: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> float:
    """Share of the finite values (n,) between their bounds; NaN if there is none."""
    counted = np.isfinite(value) & np.isfinite(lower) & np.isfinite(upper)
    inside = (value >= lower) & (value <= upper)
    return float(np.mean(inside[counted])) if counted.any() else float('nan')


def root_mean_square(value: np.ndarray) -> float:
    """Root of the mean square of the finite values; NaN if there is none."""
    finite = value[np.isfinite(value)]
    return float(np.sqrt(np.mean(finite**2))) if finite.size else float('nan')


def resample(t: np.ndarray, grid: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Values at times t (n,) of the curve (grid, y) (m,), linear between its points, NaN outside it and in its gaps."""
    if grid.size == 0:
        return np.full(t.shape, np.nan)
    return np.interp(t, grid, y, left=np.nan, right=np.nan)


def interval(middle: np.ndarray, stddev: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ends (n,) of a 95 % interval."""
    return middle - Z95 * stddev, middle + Z95 * stddev
