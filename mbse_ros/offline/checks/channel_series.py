# SPDX-License-Identifier: Apache-2.0
"""The samples of a log by channel, and their means over short times on one grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ...streams.regular import LARGEST as MEASURABLE
from ..log_samples import Column, LogSamples

STEP = 0.05         # s, of the grid
HALF = 0.05         # s: a mean is over the samples so near
WINDOW = 3.0        # s
LARGEST = 16        # windows
MOST = 300          # windows among which they are chosen
ODD = 0.5           # % of the stamps at either end that may be wrong


class Series(NamedTuple):
    """Samples of a channel in the order of their stamps: ``t`` (n,), s from the first of the log; ``values`` (n,)."""

    t: np.ndarray
    values: np.ndarray


class Means(NamedTuple):
    """Means of the channels (k,) at times ``t`` (k,), s, and which window of the log each is in (k,)."""

    t: np.ndarray
    window: np.ndarray
    values: dict[str, np.ndarray]


def series_of(samples: LogSamples) -> dict[str, Series]:
    """Finite samples by channel, without numbers that nothing measures; of those with one stamp the first."""
    found = {name: own for name in samples.by_first('finite') if (own := _ascending(samples[name]))[0].size}
    first = min((int(stamps[0]) for stamps, _ in found.values()), default=0)
    return {name: Series((stamps - first) * 1e-9, values) for name, (stamps, values) in found.items()}


def _ascending(column: Column) -> tuple[np.ndarray, np.ndarray]:
    """Stamps and finite values (n,) of a channel, each stamp once; in the usual log views of what is there."""
    finite = np.abs(column.values) < MEASURABLE
    stamps, values = (column[:2] if finite.all() else (column.stamps[finite], column.values[finite]))
    if np.all(stamps[1:] > stamps[:-1]):
        return stamps, values
    stamps, rows = np.unique(stamps, return_index=True)
    return stamps, values[rows]


def means_of(series: Mapping[str, Series]) -> Means:
    """Means of all channels over the windows of the log in which the positions move most; commands are held.

    A mean is over the middle half of the samples: spikes do not reach it. NaN where a channel is silent.
    """
    grid, window = _grid([item for name, item in series.items() if not name.startswith('command/')])
    values = {name: (_held if name.startswith('command/') else _middle_means)(item, grid)
              for name, item in series.items()}
    motion = {int(k): sum(_span(column[window == k]) / (_span(column) or 1.0)
                          for name, column in values.items() if name.startswith('position/'))
              for k in np.unique(window)}
    chosen = np.isin(window, sorted(motion, key=lambda k: -motion[k])[:LARGEST])
    return Means(grid[chosen], window[chosen], {name: column[chosen] for name, column in values.items()})


def _grid(sensors: Sequence[Series]) -> tuple[np.ndarray, np.ndarray]:
    """Instants (k,), s, and their windows (k,): of a long log windows all over it. Single stamps far off count for
    nothing."""
    if not sensors:
        return np.zeros(0), np.zeros(0, dtype=int)
    start, end = np.percentile(np.concatenate([item.t for item in sensors]), [ODD, 100.0 - ODD])
    first, last = start + HALF, max(start, end - HALF)
    count = int((last - first) / WINDOW) + 1
    kept = np.unique(np.linspace(0, count - 1, min(count, MOST)).astype(int))
    steps = np.arange(round(WINDOW / STEP))
    grid, window = (first + WINDOW * kept[:, None] + STEP * steps).ravel(), np.repeat(kept, len(steps))
    return grid[grid < last], window[grid < last]


def _span(values: np.ndarray) -> float:
    """Difference of the largest and the smallest that are there."""
    there = values[np.isfinite(values)]
    return float(np.ptp(there)) if there.size else 0.0


def _held(series: Series, grid: np.ndarray) -> np.ndarray:
    """Last value before each instant (k,)."""
    place = np.searchsorted(series.t, grid, 'right') - 1
    return np.where(place >= 0, series.values[np.maximum(place, 0)], np.nan)


def _middle_means(series: Series, grid: np.ndarray) -> np.ndarray:
    """Means of the middle half of the samples around each instant (k,); NaN where there are none."""
    first, last = np.searchsorted(series.t, grid - HALF), np.searchsorted(series.t, grid + HALF)
    found = np.full(len(grid), np.nan)
    for i, (a, b) in enumerate(zip(first.tolist(), last.tolist())):
        if b > a:
            ordered = np.sort(series.values[a:b])
            found[i] = ordered[(b - a) // 4:(b - a) - (b - a) // 4].mean()
    return found
