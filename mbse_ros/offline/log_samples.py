# SPDX-License-Identifier: Apache-2.0
"""The samples of a log by channel, as arrays that grow, those of them that were refused, and their means over short
times on one grid.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from ..bags.channel_samples import Sample
from ..bags.reader import BagReader
from ..errors import SampleError
from ..monitor.clocks import PAUSE_NS
from ..streams.regular import LARGEST as MEASURABLE

MANY = 4096     # single samples that become arrays at once
SEVERAL = 3     # channels whose stamps were refused, from which on it is one cause
LIMIT = 200     # characters of a refused sample's message
SLACK = 1.125   # times the rows that are needed
STEP = 0.05         # s, of the grid
HALF = 0.05         # s: a mean is over the samples so near
WINDOW = 3.0        # s
LARGEST = 16        # windows
MOST = 300          # windows among which they are chosen
ODD = 0.5           # % of the stamps at either end that may be wrong


class Growing:
    """Rows that follow each other, moved rarely and with little to spare: a large array is moved by the system, which
    copies nothing."""

    def __init__(self) -> None:
        self._data, self._count, self._given = np.zeros(0), 0, False

    def extend(self, rows: np.ndarray) -> None:
        """More rows (k, ...), of the first ones' type."""
        if not self._count:
            self._data = np.zeros((0, *rows.shape[1:]), rows.dtype)
        end = self._count + len(rows)
        if end > len(self._data):
            if self._given:         # somebody looks at the old place
                self._data = self._data.copy()
            self._data.resize((int(SLACK * end) + 1, *self._data.shape[1:]), refcheck=False)
            self._given = False
        self._data[self._count:end] = rows
        self._count = end

    @property
    def array(self) -> np.ndarray:
        """All rows (n, ...); they stay as they are when others follow."""
        self._given = True
        return self._data[:self._count]


class Column(NamedTuple):
    """Samples of a channel in the order of the log: ``stamps`` (n,), ns; ``values`` (n,); ``used`` (n,): not
    refused."""

    stamps: np.ndarray
    values: np.ndarray
    used: np.ndarray


def block_of(samples: Sequence[Sample | tuple[str, int, float]]
             ) -> tuple[tuple[str, ...], np.ndarray, np.ndarray, np.ndarray]:
    """Channels of single samples, and places among them (n,), stamps (n,), ns, values (n,), SI."""
    known: dict[str, int] = {}
    places = [known.setdefault(sample[0], len(known)) for sample in samples]
    return (tuple(known), np.array(places, np.int32), np.array([sample[1] for sample in samples], np.int64),
            np.array([sample[2] for sample in samples], float))


class LogSamples:
    """Samples by channel, 17 bytes each; ``count`` of all."""

    def __init__(self) -> None:
        self.count = 0
        self._order: dict[str, dict[str, None]] = {'used': {}, 'finite': {}, 'missing': {}}
        self._columns: dict[str, tuple[Growing, Growing, Growing]] = {}
        self._block: tuple[Sequence[str], np.ndarray, np.ndarray, np.ndarray] | None = None
        self._refused: list[int] = []

    @classmethod
    def of(cls, samples: Iterable[Sample | tuple[str, int, float]]) -> LogSamples:
        """Of single samples ``(channel, stamp in ns, value)``."""
        found, rest = cls(), iter(samples)
        while part := list(islice(rest, MANY)):
            found.add_single(part)
        return found

    @classmethod
    def read(cls, reader: BagReader) -> LogSamples:
        """Of a bag."""
        found = cls()
        for block in reader.blocks():
            found.add(reader.channels, *block)
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """Channels that have samples."""
        self._settle()
        return tuple(self._columns)

    def by_first(self, kind: str) -> tuple[str, ...]:
        """Channels in the order of their first sample that is 'used' (not refused), 'finite', or 'missing' (NaN, not
        refused)."""
        self._settle()
        return tuple(self._order[kind])

    @property
    def span_ns(self) -> tuple[int, int]:
        """The first and the last stamp, ns; 0 without samples."""
        stamps = [self[name].stamps for name in self.names]
        return min((int(s.min()) for s in stamps), default=0), max((int(s.max()) for s in stamps), default=0)

    @property
    def covered(self) -> float:
        """What the log covers, s, by the channel with most: without steps of its clock and long pauses."""
        steps = [np.diff(self[name].stamps) for name in self.names]
        return max((int(own[(own > 0) & (own <= PAUSE_NS)].sum()) for own in steps), default=0) * 1e-9

    def add(self, names: Sequence[str], places: np.ndarray, stamps: np.ndarray, values: np.ndarray) -> None:
        """Samples (n,) that follow: ``places`` among ``names``, stamps, ns, and values, SI."""
        self._settle()
        self._block = names, places, stamps, values
        self.count += len(places)

    def add_single(self, samples: Sequence[Sample | tuple[str, int, float]]) -> None:
        """The same of single ones."""
        self.add(*block_of(samples))

    def refuse(self, row: int) -> None:
        """A sample of those added last was refused."""
        self._refused.append(row)

    def __getitem__(self, name: str) -> Column:
        """All samples of a channel; none of one that has not sent."""
        self._settle()
        if name not in self._columns:
            return Column(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, bool))
        return Column(*(column.array for column in self._columns[name]))

    def _settle(self) -> None:
        """The last block goes to its channels."""
        if self._block is None:
            return
        names, places, stamps, values = self._block
        used = np.ones(len(places), bool)
        used[self._refused] = False
        self._block, self._refused = None, []
        for kind, rows in ('used', used), ('finite', np.isfinite(values)), ('missing', used & np.isnan(values)):
            if not all(name in self._order[kind] for name in names):
                found, first = np.unique(places[rows], return_index=True)
                self._order[kind].update(dict.fromkeys(names[place] for place in found[np.argsort(first)]))
        order = np.argsort(places, kind='stable')
        ends = np.cumsum(np.bincount(places, minlength=len(names)))
        for name, own in zip(names, np.split(order, ends[:-1])):
            if len(own):
                for column, found in zip(self._columns.setdefault(name, (Growing(), Growing(), Growing())),
                                         (stamps, values, used)):
                    column.extend(found[own])


class Dropped:
    """Samples that were refused: the first of each channel and kind, with how many there were."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, bool], tuple[SampleError, int]] = {}

    def add(self, error: SampleError) -> None:
        """One more."""
        kind = error.channel, error.expected.startswith('a stamp')
        first, count = self._kinds.get(kind, (error, 0))
        self._kinds[kind] = first, count + 1

    def counts(self) -> dict[str, int]:
        """How many of each channel."""
        found: dict[str, int] = {}
        for (channel, _), (_, count) in self._kinds.items():
            found[channel] = found.get(channel, 0) + count
        return found

    def lines(self) -> list[str]:
        """In words; of many channels whose stamps were refused one line."""
        stamps = [(channel, *kept) for (channel, of_stamp), kept in self._kinds.items() if of_stamp]
        many = [f'{counted(sum(count for *_, count in stamps))} of {len(stamps)} channels dropped, most of '
                f'{max(stamps, key=lambda item: item[2])[0]}, the first: {str(stamps[0][1])[:LIMIT]}'
                ] if len(stamps) > SEVERAL else []
        return many + [f'{counted(count)} of {channel} dropped, the first: {str(first)[:LIMIT]}'
                       for (channel, of_stamp), (first, count) in self._kinds.items() if not (of_stamp and many)]


def counted(count: int) -> str:
    """So many samples."""
    return f'{count} sample' + ('' if count == 1 else 's')


class Series(NamedTuple):
    """Samples of a channel in the order of their stamps: ``t`` (n,), s from the first of the log; ``values`` (n,)."""

    t: np.ndarray
    values: np.ndarray


class Means(NamedTuple):
    """Means of the channels (k,) at times ``t`` (k,), s, and which window of the log each is in (k,)."""

    t: np.ndarray
    window: np.ndarray
    values: dict[str, np.ndarray]


def series_of(samples: LogSamples, delays: Mapping[str, int] = MappingProxyType({})) -> dict[str, Series]:
    """Finite samples by channel, without numbers that nothing measures; of those with one stamp the first. ``delays``,
    ns, are taken off the stamps of channels."""
    found = {name: own for name in samples.by_first('finite') if (own := _ascending(samples[name]))[0].size}
    found |= {name: (found[name][0] - delay, found[name][1]) for name, delay in delays.items() if name in found}
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
