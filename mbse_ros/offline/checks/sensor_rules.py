# SPDX-License-Identifier: Apache-2.0
"""Sensors that repeat a value, end at one, give coarser steps or far more noise than the file says, or spikes; that are
another from one sample on: a position or a pressure that steps, two of a cylinder that are exchanged midway.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import combinations
from math import sqrt

import numpy as np

from ...machine import Machine
from ...machine.channels import Channel
from ...machine.equations import pressure_pairs
from ...monitor.steps import CALM, LONGEST, NOISES, SIDE, SUDDEN, WIDTH, suddenness
from ...streams.regular import LARGEST
from ..log_samples import LogSamples, Means, Series
from .remedies import Finding

STUCK_S, STUCK = 1.0, 50        # s and samples with one value, of a sensor that is never so still otherwise
REPEATED = 0.05                 # share of the other samples that are as the one before: then it has steps
HELD, DISTINCT = 0.5, 0.9       # shares of the values that come again at once, and that come at one time alone
SATURATED = 0.02                # share of the samples at one value
COARSE = 2.0                    # times the noise of the file
LEVELS, PER_LEVEL = 5, 5        # values, and samples of each, from which on steps are believed
EVEN = 0.02                     # of a step, to which all values are multiples of it
FEW = 3                         # samples: fewer are slips that cost nothing
PIECE = 25                      # samples in each of which noise is looked at
NOISY = 10.0                    # times the noise of the file, in nine pieces of ten
SLOWEST = 0.06                  # s between samples, from which on vibrations of a load look like noise
QUIETEST = 10.0                 # % of the pieces, those with the least noise
WHITE = -0.5                    # correlation of neighbouring second differences, which of white noise is -2/3
SPIKE_S, SPIKE = 0.025, 0.1     # s from sample to sample at most, and share of the sensor's values, of a spike
STANDS_OUT = 8.0                # times the usual change, and deviations of the noise
AGREE = 0.25                    # of a spike, by which its neighbours differ at most
USUAL, EXTREME = 90.0, 2.0      # %: changes up to the usual one, and values at each end that say nothing of the range
SPIKES = 5                      # spikes
ALONE = 0.5                     # share of the times with one value that stand out so: else it is one of the others
SELDOM = 0.055      # s between samples, beyond which a motion that begins may do all of the way of a step
SPACED = 1.5        # times the usual interval, that no interval beside a step may last
LEVEL = 3           # samples on each side whose medians are compared where pressures may be exchanged
SHARED = 50         # means of both, of two sensors that show one signal
MOVES = 10.0        # times their noise, by which they move at least
ONE_LINE = 0.02     # of their motion, up to which two pressures are one, with gains and noises of two sensors
ALIKE = 0.25        # of their difference: by how much each may be off what the other was


def huge_values(samples: LogSamples) -> list[Finding]:
    """Channels and commands with numbers that nothing measures; they are left out of all else."""
    found = []
    for name in samples.names:
        values = samples[name].values
        huge = np.abs(values) >= LARGEST
        if (count := int(huge.sum())) >= FEW:
            found.append(Finding('huge', (name,), f'{count} of {values.size} samples are numbers that nothing '
                                 f'measures, such as {values[huge][0]:.3g}', 'look at its driver, or how its bytes are '
                                 'read: an estimate drops them'))
    return found


def same_signals(series: Mapping[str, Series], means: Means, noises: Mapping[str, float]) -> list[Finding]:
    """Two sensors that show one signal: a map reads one field for both, whose noise is the same then, at rest too; or
    two pressure sensors are in one line, which shows where the pressure changes. ``noises`` by channel, of the sensors
    that are looked at."""
    found, remedy = [], 'look whether a map names one topic, field or column for both, and whether both are in one line'
    for one, other in combinations([name for name in noises if name in means.values], 2):
        kind = one.partition('/')[0]
        if other.partition('/')[0] != kind:
            continue
        if _copied(series[one].values, series[other].values):
            found.append(Finding('same', (one, other), 'have the same samples', remedy))
            continue
        both = np.array([means.values[one], means.values[other]])
        both = both[:, np.isfinite(both).all(axis=0)]
        if kind != 'pressure' or both.shape[1] < SHARED:
            continue
        span, apart = both.std(axis=1).min(), float((both[0] - both[1]).std())
        room = MOVES * max(noises[one], noises[other])
        if span > room and apart <= ONE_LINE * span:
            seen = f'show one signal: their difference changes by {apart / span:.1%} of what they do'
            found.append(Finding('same', (one, other), seen, remedy))
    return found


def _copied(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether samples of two sensors are the same ones; not of values so few that a resolution makes them alike."""
    count = min(len(one), len(other))
    return (abs(len(one) - len(other)) <= FEW and count >= SHARED and len(np.unique(one[:count])) > PER_LEVEL
            and float(np.mean(one[:count] == other[:count])) > DISTINCT)


def sensor_findings(channel: Channel, series: Series, unit: str = '', scale: float = 1.0) -> list[Finding]:
    """A sensor that is stuck, saturated, or coarser or noisier than the file says, or has spikes; differences are said
    in ``unit``, of which SI has ``scale``.

    One with a resolution in the file, or that often gives the same value twice, may rest at one.
    """
    values, noise, name = series.values, channel.sensor.noise, channel.name
    if values.size < STUCK or noise <= 0:
        return []
    starts, lengths = _runs(values)
    coarse = _step(values)
    if coarse / sqrt(12.0) > COARSE * noise:
        return [Finding('coarse', (name,), f'values in steps of {scale * coarse:.3g} {unit}, noise in the file '
                        f'{scale * noise:.3g} {unit}', 'state it in the file '
                        f'(sensors.{channel.sensor.name}.resolution: {scale * coarse:.3g} {unit})')]
    if held := _held(name, series, starts, lengths):
        return held
    found = [*_spikes(name, series, noise, unit, scale), *_noise(name, series, noise, unit, scale)][:1]
    longest = int(lengths.argmax())
    first, last = int(starts[longest]), int(starts[longest] + lengths[longest] - 1)
    seconds = float(series.t[last] - series.t[first])
    at, elsewhere = values[starts] == values[first], values[starts] != values[first]
    repeated = lengths[elsewhere & (lengths > 1)].sum()
    if channel.sensor.resolution > 0 or repeated > REPEATED * lengths[elsewhere].sum():
        return found
    share = float(lengths[at].sum() / values.size)
    extreme = values[first] in (values.min(), values.max()) and np.unique(values).size > LEVELS
    if extreme and np.sum(at & (lengths > 1)) > 1 and share > SATURATED and lengths[longest] >= STUCK // 2:
        return [Finding('saturated', (name,), f'{100 * share:.0f} % of the samples are exactly '
                        f'{scale * values[first]:.6g} {unit}, again and again',
                        'a sensor or converter with a larger range: its own ends there')]
    if lengths[longest] >= STUCK and seconds >= STUCK_S:
        return [Finding('stuck', (name,), f'exactly {scale * values[first]:.6g} {unit} for {seconds:.1f} s '
                        f'from t = {series.t[first]:.1f} s, without the noise of the sensor',
                        'look at its cable and its driver, or its range ends there: it repeats one value')]
    return _fillers(name, series, noise, unit, scale) or found


def _held(name: str, series: Series, starts: np.ndarray, lengths: np.ndarray) -> list[Finding]:
    """Samples that are sent again and again until there is another: a slower sensor, or a gateway with a clock of its
    own. Each value is another, unlike those of a sensor with steps; ``starts``, ``lengths`` (r,): see ``_runs``."""
    if len(starts) < STUCK or np.mean(lengths > 1) < HELD or (
            np.unique(series.values).size < DISTINCT * len(starts)):
        return []
    sent, sampled = (1.0 / float(np.median(np.diff(t))) for t in (series.t, series.t[starts]))
    return [Finding('held', (name,), f'sent at {sent:.3g} Hz, but its value changes at {sampled:.3g} Hz: samples are '
                    'sent again with newer stamps', 'send each sample once, with the instant at which it was taken')]


def _noise(name: str, series: Series, noise: float, unit: str, scale: float) -> list[Finding]:
    """White noise that is far above the file's wherever one looks: by the second differences, of which motion leaves
    less the smoother it is."""
    calm = white_noise(series)
    if calm < NOISY * noise:
        return []
    return [Finding('noise', (name,), f'noise of {scale * calm:.3g} {unit}, in the file {scale * noise:.3g} {unit}',
                    'look at its cable, its shield and its supply; or state the noise in the file')]


def white_noise(series: Series) -> float:
    """Its standard deviation where there is the least, by the second differences; 0 where they are not those of white
    noise, or the samples are too rare."""
    change = np.diff(series.values, 2)
    pieces = change[:len(change) // PIECE * PIECE].reshape(-1, PIECE)
    if not len(pieces) or float(np.median(np.diff(series.t))) > SLOWEST:
        return 0.0
    calm = float(np.percentile(np.median(np.abs(pieces), axis=1), QUIETEST)) / (0.6745 * sqrt(6.0))
    return 0.0 if float(np.mean(change[1:] * change[:-1])) > WHITE * float(np.mean(change ** 2)) else calm


def _spikes(name: str, series: Series, noise: float, unit: str, scale: float) -> list[Finding]:
    """Single samples far from both neighbours, which agree with each other."""
    values = series.values
    steps = np.diff(values)
    if not 0.0 < float(np.median(np.diff(series.t))) <= SPIKE_S:
        return []
    out, back = np.abs(steps[:-1]), np.abs(steps[1:])
    usual = float(np.percentile(np.abs(steps), USUAL))
    reach = float(np.ptp(np.percentile(values, [EXTREME, 100.0 - EXTREME])))
    least = max(SPIKE * reach, STANDS_OUT * usual, STANDS_OUT * noise)
    single = (np.minimum(out, back) > least) & (np.abs(steps[:-1] + steps[1:]) < AGREE * np.minimum(out, back))
    count = int(single.sum())
    if count < SPIKES:
        return []
    first = int(np.flatnonzero(single)[0])
    return [Finding('spikes', (name,), f'{count} of {values.size} samples stand out alone by '
                    f'{scale * least:.3g} {unit} and more, the first at t = {series.t[first + 1]:.1f} s',
                    'look at its cable, its shield and its driver: an estimate rejects them, unless its gate is 1')]


def _fillers(name: str, series: Series, noise: float, unit: str, scale: float) -> list[Finding]:
    """One value, sent where there is none: again and again exactly the same, far from what is beside it on both sides,
    which is on one side of it."""
    values = series.values
    known, counts = np.unique(values, return_counts=True)
    filler, (starts, lengths) = known[counts.argmax()], _runs(values)
    inner = (values[starts] == filler) & (starts > 0) & (starts + lengths < values.size)
    before, after = values[starts[inner] - 1] - filler, values[(starts + lengths)[inner]] - filler
    others = values[values != filler]
    if before.size < SPIKES or np.unique(others).size <= LEVELS:
        return []
    least = max(SPIKE * float(np.ptp(np.percentile(others, [EXTREME, 100.0 - EXTREME]))), STANDS_OUT * noise)
    count = int(np.sum((np.minimum(np.abs(before), np.abs(after)) > least) & (before * after > 0)))
    if count < max(SPIKES, ALONE * before.size):
        return []
    return [Finding('spikes', (name,), f'{counts.max()} of {values.size} samples are exactly '
                    f'{scale * filler:.6g} {unit}, {count} times far from those beside them',
                    'let its driver send nothing where it has no value: an estimate rejects them, unless its gate is '
                    '1')]


def _runs(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places (r,) and lengths (r,) of the runs of equal values."""
    starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]])) if values.size else np.zeros(1, int)
    return starts, np.diff(np.append(starts, values.size))


def _step(values: np.ndarray) -> float:
    """Step of values that are all multiples of one, from the first on; 0 where there is none."""
    levels = np.unique(values)
    if levels.size < LEVELS or values.size < PER_LEVEL * levels.size:
        return 0.0
    step = float(np.diff(levels).min())
    count = (levels - levels[0]) / step
    return step if np.abs(count - np.round(count)).max() < EVEN else 0.0


def step_findings(series: Mapping[str, Series], machine: Machine, told: Collection[str]) -> list[Finding]:
    """Of the channels in ``series`` of which nothing else is ``told``."""
    channels = {channel.name: channel for channel in machine.all_channels
                if channel.name in series and channel.name not in told and not channel.sensor.wraps}
    found = [finding for name, channel in channels.items() if channel.kind == 'position'
             for finding in _stepped(name, series[name], sudden_changes(series[name], channel.sensor.noise, SELDOM),
                                     'm' if name.partition('/')[2] in machine.cylinders else 'rad', 'its zero has moved'
                                     ': look at its mounting, its plug and its driver')]
    for pair in pressure_pairs(machine).values():
        if all(name in channels for name in pair):
            found += _of_pair(pair, [series[name] for name in pair], [channels[name].sensor.noise for name in pair])
    return found


def _of_pair(pair: tuple[str, ...], both: list[Series], noises: list[float]) -> list[Finding]:
    """Of the two pressures of a cylinder, the second one at the instants of the first."""
    t = both[0].t
    values = [both[0].values, np.interp(t, both[1].t, both[1].values)]
    factors = [sudden_changes(Series(t, own), noise, SELDOM) for own, noise in zip(values, noises)]
    exchanged = [k for k in np.flatnonzero(np.fmax(*factors) > SUDDEN).tolist() if _swap(values[0], values[1], k)]
    if exchanged:
        times = f' and back, {len(exchanged)} times' if len(exchanged) > 1 else ''
        return [Finding('swapped', pair, f'each has the values of the other from t = {t[exchanged[0]]:.1f} s on{times}',
                        'look at the hoses, the plugs and the driver: the log is right on one side of it')]
    found = []
    for name, own, other, noise in zip(pair, both, both[::-1], noises):
        alone = sudden_changes(own, noise, LONGEST)
        beside = sudden_changes(Series(own.t, np.interp(own.t, other.t, other.values)), noise, LONGEST)
        found += _stepped(name, own, np.where(beside < CALM, alone, 0.0), 'Pa', 'neither a flow nor a force makes that'
                          ': look at its supply, its plug and its amplifier')
    return found


def sudden_changes(series: Series, noise: float, longest: float) -> np.ndarray:
    """How sudden the change after each sample (n - 1,) is; 0 at the ends, and beside intervals that are longer than the
    usual ones, or than ``longest``, s."""
    changes, found = np.diff(series.values), np.zeros(max(len(series.values) - 1, 0))
    if len(changes) < WIDTH:
        return found
    intervals = np.diff(series.t)
    usual = float(np.median(intervals))
    windows = np.lib.stride_tricks.sliding_window_view(changes, WIDTH)
    near = np.flatnonzero(np.abs(changes[SIDE:-SIDE]) > SUDDEN * NOISES * noise)
    slow = np.lib.stride_tricks.sliding_window_view(intervals, WIDTH)[near].max(axis=1) > min(SPACED * usual, longest)
    found[SIDE + near] = np.where(slow, 0.0, suddenness(windows[near], noise))
    return found


def _stepped(name: str, series: Series, factors: np.ndarray, unit: str, remedy: str) -> list[Finding]:
    places = np.flatnonzero(factors > SUDDEN)
    if not places.size:
        return []
    k = int(places[0])
    more = f', and {places.size - 1} times more' if places.size > 1 else ''
    return [Finding('step', (name,), f'steps by {series.values[k + 1] - series.values[k]:.3g} {unit} from one sample '
                    f'to the next at t = {series.t[k]:.1f} s{more}, while it hardly changes before and after', remedy)]


def _swap(one: np.ndarray, other: np.ndarray, k: int) -> bool:
    """Whether two pressures exchange their values after sample k."""
    before, after = ([float(np.median(own[part])) for own in (one, other)] for part in (
        slice(max(k + 1 - LEVEL, 0), k + 1), slice(k + 1, k + 1 + LEVEL)))
    room = ALIKE * abs(before[0] - before[1])
    return abs(after[0] - before[1]) < room and abs(after[1] - before[0]) < room
