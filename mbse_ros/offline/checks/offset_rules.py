# SPDX-License-Identifier: Apache-2.0
"""Sensors whose stamps are not of the instants of the others, by what moves together.

When a valve opens or closes, pressures change and pistons accelerate. How much each channel changes, whatever its sign
and unit, correlates with that of the others best where their stamps agree. A channel that agrees with most of its
partners only when it is shifted has other stamps.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import combinations
from math import sqrt

import numpy as np

from ..log_samples import Series
from .remedies import Finding
from .time_rules import delayed

KINDS = 'pressure', 'position', 'command'
SLOWEST = 0.15          # s between samples, beyond which only their interpolation changes
STEP = 0.02             # s, of the grid
MEAN, APART = 5, 5      # steps over which values are averaged, and over which they change
SLOW = 2.0              # s over which the mean change is subtracted
LONGEST = 0.8           # s: larger offsets show in the ends of the log
BLOCK, MOST = 30.0, 8   # s of a part of the log, and how many of them, those with the most motion
SHORTEST = 12.0         # s of log
DEVIATIONS, INDEPENDENT = 3.5, 0.2      # by which a correlation is not by chance, where so many s are one sample of it
PLAINLY = 0.12          # by which it is larger than without a shift
ALIKE = {True: 0.12, False: 0.26}       # s between channels of one kind, or of two: a force comes before its motion
LOOKED = 1000           # parts among which they are chosen, of a log of days
DEEPEST = 3             # channels that may be wrong
MOSTLY = 0.6            # share of its partners that a channel with other stamps comes closer to
FEWEST = 2              # pressures without which nothing is said of a position: a swing has one by chance
EQUAL = 0.9             # of the gain: another channel explains it as well


Lags = dict[str, dict[str, float]]


def offset_findings(series: Mapping[str, Series]) -> tuple[list[Finding], Lags]:
    """Of pressures and positions by their series, and of all others by channel those that move with it, and how much
    later than theirs its stamps are, s; neither where too little moves together."""
    lags = _partners({name: item for name, item in series.items() if _kind(name) in KINDS and item.t.size > 1
                      and float(np.median(np.diff(item.t))) < SLOWEST})
    found: list[Finding] = []
    for _ in range(DEEPEST):
        gains = {name: _gain(name, own) for name, own in lags.items()}
        name = max(gains, key=lambda name: gains[name][0], default='')
        gain, offset = gains.get(name, (0.0, 0.0))
        if not gain > 0.0:
            break
        equals = [name, *(other for other, (size, _) in gains.items() if size > EQUAL * gain and other != name)]
        seen = f'{abs(offset):.2f} s {"later" if offset > 0 else "earlier"} than {", ".join(lags[name])}'
        if len(equals) > 1:     # which of them is wrong does not show
            found.append(Finding('offset', tuple(equals), f'what should change together is {abs(offset):.2f} s apart',
                                 delayed(offset, 'or the other one is wrong')))
            break
        found.append(Finding('offset', (name,), f'changes {seen}, with which it should', delayed(offset)))
        for other in lags.pop(name):
            del lags[other][name]
    return found, lags


def comes_late(name: str, lags: Lags, apart: Collection[str]) -> bool:
    """Whether a channel whose samples are older on arrival than those of the others moves with one of its kind that is
    not among those that are ``apart``, too: then its stamps are right."""
    same = [lag for other, lag in lags.get(name, {}).items() if _kind(other) == _kind(name) and other not in apart]
    return bool(same) and abs(float(np.median(same))) < ALIKE[True] / 2


def _gain(name: str, lags: Mapping[str, float]) -> tuple[float, float]:
    """How much closer to its partners a channel comes by a shift, s in all, and the shift; 0 where it has no need."""
    offset = float(np.median(list(lags.values()))) if lags else 0.0
    same = any(_kind(name) == _kind(other) for other in lags)
    if not same and len(lags) < FEWEST:
        return 0.0, 0.0
    gain = sum(abs(lag) - abs(lag - offset) for lag in lags.values())
    return (gain, offset) if abs(offset) > ALIKE[same] and gain > MOSTLY * abs(offset) * len(lags) else (0.0, 0.0)


def _kind(name: str) -> str:
    return name.partition('/')[0]


def _partners(channels: Mapping[str, Series]) -> Lags:
    """See ``offset_findings``."""
    found: Lags = {name: {} for name in channels}
    if len(channels) < 2:
        return found
    begin, end = max(item.t[0] for item in channels.values()), min(item.t[-1] for item in channels.values())
    if end - begin < SHORTEST:
        return found
    starts = _blocks(channels, float(begin), float(end))
    if not starts:
        return found
    length = min(BLOCK, float(end - begin))
    grid = np.arange(0.0, length, STEP)
    spectra = {name: np.array([_spectrum(item, start + grid, _kind(name)) for start in starts])
               for name, item in channels.items()}
    power = {name: float(np.sum(np.fft.irfft(np.abs(item) ** 2, axis=1)[:, 0])) for name, item in spectra.items()}
    least = DEVIATIONS / sqrt(length * len(starts) / INDEPENDENT)
    width = round(LONGEST / STEP)
    for one, other in combinations(channels, 2):
        if _kind(one) == _kind(other) != 'pressure':
            continue            # of two drives that have nothing to do with each other
        product = np.fft.irfft(np.sum(spectra[one] * np.conj(spectra[other]), axis=0))
        scale = sqrt(power[one] * power[other])
        if not scale > 0.0:
            continue
        likeness = np.concatenate([product[-width:], product[:width + 1]]) / scale
        best = int(likeness.argmax())
        if likeness[best] < least or best in (0, 2 * width):
            continue
        lag = (best - width) * STEP if likeness[best] > likeness[width] + PLAINLY else 0.0
        found[one][other], found[other][one] = lag, -lag
    return found


def _blocks(channels: Mapping[str, Series], begin: float, end: float) -> list[float]:
    """Starts, s, of the parts in which most moves, of those that have samples: a clock may be set by years."""
    rarest = min(channels.values(), key=lambda item: item.t.size).t
    last = int(max(end - BLOCK - begin, 0.0) / BLOCK + 1e-9)
    numbers = np.unique(((rarest - begin) / BLOCK).astype(np.int64))
    numbers = numbers[(numbers >= 0) & (numbers <= last)]
    starts = begin + BLOCK * numbers[:: max(1, len(numbers) // LOOKED)]
    motion = np.zeros(len(starts))
    for name, item in channels.items():
        if name.startswith('position/') and len(starts) > MOST:
            values = np.interp(starts[:, None] + np.linspace(0.0, BLOCK, 60), item.t, item.values)
            motion += np.abs(np.diff(values, axis=1)).sum(axis=1) / (float(np.ptp(item.values)) or 1.0)
    return sorted(starts[np.argsort(-motion, kind='stable')[:MOST]].tolist())


def _spectrum(series: Series, t: np.ndarray, kind: str) -> np.ndarray:
    """Of how much a channel changes at instants (k,): a pressure by its rate, a position by its acceleration."""
    held = series.values[np.maximum(np.searchsorted(series.t, t, 'right') - 1, 0)] if kind == 'command' else np.interp(
        t, series.t, series.values)
    values = np.convolve(held, np.full(MEAN, 1.0 / MEAN), 'same')
    values[:MEAN], values[-MEAN:] = values[MEAN], values[-MEAN - 1]
    ahead, behind = values[2 * APART:], values[:-2 * APART]
    change = np.abs(ahead - behind if kind != 'position' else ahead - 2.0 * values[APART:-APART] + behind)
    usual = float(np.percentile(change, 75))
    change = change / (change + usual) if usual > 0.0 else 0.0 * change
    width = min(round(SLOW / STEP), len(change))
    change -= np.convolve(change, np.full(width, 1.0 / width), 'same')
    return np.asarray(np.fft.rfft(np.pad(change, APART), 2 * len(t)))
