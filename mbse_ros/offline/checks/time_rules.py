# SPDX-License-Identifier: Apache-2.0
"""What the stamps of a log say by themselves: empty, coarse, scaled, repeated, out of order, of another clock; sensors
that are silent; and rates with which nothing can be estimated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...filters.between_samples import RARE, line_errors
from ...machine import Machine
from ...monitor.clocks import Age, offsets
from ...monitor.rates import needed_rate
from ...streams.interpolation import InterpolationSettings
from ..log_samples import LogSamples, Series
from .clock_rules import set_findings
from .remedies import Finding

if TYPE_CHECKING:
    from ...filters.linkage_settings import LinkageSettings  # imports all filters

SECOND = 1_000_000_000
FEW = 3                 # samples: fewer wrong stamps are slips that cost nothing
FEWEST = 20             # samples of a channel from which on its stamps are judged
COARSE_NS = 1_000_000   # steps of a clock that are worth a word
WHOLE = 3               # whole seconds, and samples in each, from which on sub-seconds are judged
APART_NS = 500_000_000  # between the clocks of two channels that begin and end as far apart
ALIKE = 0.2             # of that: by how much the two ends may differ
SCALED = 50.0           # times the span of the others with as many samples, or so much less
SELDOM = 0.105          # s between samples, to 5 %: at 10 Hz and more a machine that moves slowly is seen
LONGEST_WHOLE = 0.015   # s between samples, up to which the observer takes a sample at once
SHORTEST = 2e-5         # s between samples of a sensor
SILENT_S = 1.0          # s in all for which a sensor alone is silent over more than max_gap
LEAP, LOOK = 10.0, 8     # s of a pause that may be a leap of the clock; samples on each side of it
NOISES = 6.0            # deviations of a sensor's noise
OFTEN = 0.1             # share of the samples beside which lines are too far off
ADVISED = 0.055         # s from sample to sample: 20 Hz, to 10 %
MANY = 200              # pauses of a sensor that are looked at
PAUSED = 5.0            # times the usual interval of a mechanism's sensor, from which on it pauses
HELD = ('command/', 'input/')       # what is held until it is another
ZONE, NEAR = 3600.0, 5.0            # s: whole hours are a time zone, to some seconds
LEAPS = (18.0, 19.0, 37.0)          # s between UTC, GPS and TAI
EPOCH = 1e7             # s, four months: more is no clock that is set wrong, but one that counts from elsewhere
RECORD = 'stamp each message with the instant of its sample, by one synchronised clock'
ARRIVAL = 'let the driver fill in header.stamp; until then read it by its arrival (`stamp: arrival` in a map)'


@dataclass(frozen=True)
class _Stamps:
    """Stamps (n,), ns, of a channel in the order of the log."""

    name: str
    stamps: np.ndarray

    @property
    def ends(self) -> tuple[int, int]:
        """First and last instant, without single stamps far off."""
        low, high = np.percentile(self.stamps.astype(np.float64), [0.5, 99.5], method='nearest')
        return int(low), int(high)


def time_findings(samples: LogSamples, settings: InterpolationSettings | LinkageSettings = InterpolationSettings()
                  ) -> list[Finding]:
    """Findings on the stamps of all channels and commands; channels with the same fate share one. ``settings``: of a
    machine, whose samples are interpolated, or of the filter of a mechanism."""
    found: list[Finding] = []
    sound: list[_Stamps] = []
    for name in samples.names:
        own = _own(name, samples[name].stamps)
        found += own
        if not own and samples[name].stamps.size >= FEWEST:
            sound.append(_Stamps(name, samples[name].stamps))
    leapt = set_findings({item.name: item.stamps for item in sound})
    told = {name for finding in leapt for name in finding.channels}
    apart = _apart([item for item in sound if item.name not in told]) if not leapt else []
    found += [*leapt, *apart]
    strange = {name for finding in apart for name in finding.channels}
    sensors = [item for item in sound if not item.name.startswith(HELD) and item.name not in told | strange]
    rates = {item.name: _rate(item, settings) for item in sensors}
    found += [finding for findings in rates.values() for finding in findings]
    found += _silences([item for item in sensors if not rates[item.name]], settings)
    return joined(found, samples.names)


def joined(findings: Iterable[Finding], known: Sequence[str] = ()) -> list[Finding]:
    """One finding for channels of which the same is said, of all that are ``known`` as such."""
    same: dict[tuple[str, str, str], list[str]] = {}
    for finding in findings:
        same.setdefault((finding.kind, finding.seen, finding.remedy), []).extend(finding.channels)
    return [Finding(kind, tuple(channels), seen, remedy, len(channels) > 2 and set(channels) >= set(known) != set())
            for (kind, seen, remedy), channels in same.items()]


def age_findings(apart: Mapping[str, Age]) -> list[Finding]:
    """Channels whose stamps are not those of the others by the times at which they came."""
    return [Finding('offset', (name,), f'{age.words} (scatter {1e3 * age.jitter:.0f} ms)', delayed(-age.offset, (
        'or it comes late, and its stamps are right' if age.offset > 0.0 else '')))
            for name, age in apart.items()]


def delayed(offset: float, doubt: str = '') -> str:
    """The remedy for stamps that are so far ahead of the others, s, or behind."""
    return '; '.join(filter(None, [f'{RECORD}; for this log `delay: {offset:.2f} s` in a map', doubt]))


def refused_stamps(counts: Mapping[str, tuple[int, str]]) -> list[Finding]:
    """Messages without a time, that a reader refused: how many by topic or channel, and the first of their stamps."""
    return [Finding('unstamped', (name,), f'{count} message{"s" * (count != 1)} whose stamp is not a time, such as '
                    f'{first}', f'{RECORD}: nanosec is below {SECOND}') for name, (count, first) in counts.items()]


def _own(name: str, stamps: np.ndarray) -> list[Finding]:
    """Of one channel."""
    count, zeros = len(stamps), int(np.sum(stamps == 0))
    if zeros >= FEW or zeros == count > 1:
        return [Finding('unstamped', (name,), f'{_share(zeros, count)} have the stamp 0', ARRIVAL)]
    if count < FEWEST:
        return []
    return _fractions(name, stamps) or _coarse(name, stamps) or _order(name, stamps)


def _fractions(name: str, stamps: np.ndarray) -> list[Finding]:
    """Sub-seconds that never come near a second."""
    seconds, fractions = np.divmod(stamps, SECOND)
    largest, whole = int(fractions.max()), np.unique(seconds).size
    if not 0 < largest < SECOND // 2 or whole < WHOLE or len(stamps) < WHOLE * whole or (
            np.unique(fractions).size < WHOLE):
        return []
    factor = SECOND / (largest + 1)
    units = {3: 'microseconds', 6: 'milliseconds', 7: 'hundredths of a second'}
    power = int(np.floor(np.log10(factor) + 0.05))
    looks = f': it looks like {units[power]}' if power in units else ''
    return [Finding('stamp', (name,), f'within {whole} s nanosec never exceeds {largest}{looks}',
                    f'multiply nanosec by {10 ** power}' if power else RECORD)]


def _coarse(name: str, stamps: np.ndarray) -> list[Finding]:
    """A clock of large steps: many samples have one stamp."""
    distinct = np.unique(stamps)
    if len(stamps) < 1.5 * (distinct.size - 1) or distinct.size < FEW:      # no step can be large enough
        return []
    step = int(np.gcd.reduce(np.diff(distinct)))
    if step < COARSE_NS or step < 1.5 * (int(distinct[-1]) - int(distinct[0])) / len(stamps):
        return []
    words = 'are whole seconds (nanosec is 0)' if step % SECOND == 0 and not np.any(distinct % SECOND) else (
        f'go by steps of {step * 1e-9:g} s')
    return [Finding('stamp', (name,), f'stamps {words}, {len(stamps) / distinct.size:.0f} samples have the same one',
                    f'{RECORD}, with its sub-seconds')]


def _order(name: str, stamps: np.ndarray) -> list[Finding]:
    """Stamps that repeat, come out of order, or go back for good."""
    found, steps = [], np.diff(stamps)
    back = np.flatnonzero(steps < 0)
    repeated = int(np.sum(steps == 0))
    newest = np.maximum.accumulate(stamps)
    # Not one stamp far ahead, nor one far behind.
    lasting = [k for k in back.tolist() if FEW <= k + 1 < len(stamps) - FEW and np.all(steps[k + 1:k + FEW] >= 0)
               and np.all(stamps[k + 1 - FEW:k + 1] > stamps[k + 1])
               and np.all(stamps[k + 1:k + 1 + FEW] <= stamps[k])]
    late = len(back) - len(lasting)
    if repeated >= FEW:
        found.append(Finding('repeated', (name,), f'{_share(repeated, len(stamps))} have the stamp of the one before',
                             f'look for two publishers, or a driver that sends a sample again; {RECORD}'))
    if lasting:
        sizes = np.array([-int(steps[k]) for k in lasting]) * 1e-9
        times = '' if len(lasting) == 1 else f', and {len(lasting) - 1} times more'
        wraps = np.allclose(sizes, 2.0 ** 32 * 1e-9, atol=0.1)
        found.append(Finding('jump', (name,), f'stamps go back by {sizes[0]:.3f} s after '
                             f'{(int(stamps[lasting[0]]) - int(stamps[0])) * 1e-9:.1f} s{times}'
                             + (', as a counter of 32 bits of nanoseconds' if wraps else ''),
                             'keep the clock from being set while it records, or cut the log there: the estimate '
                             'starts again'))
    if late >= FEW:
        most = float((newest[:-1] - stamps[1:])[back].max()) * 1e-9
        found.append(Finding('order', (name,), f'{_share(late, len(stamps))} are older than one before, by up to '
                             f'{most:.3g} s', 'send them in order, or wait for them: interpolation.delay, s'))
    return found


def _apart(channels: list[_Stamps]) -> list[Finding]:
    """Clocks that are not those of the others: they begin and end as far apart, or are scaled."""
    found: list[Finding] = []
    ends = {item.name: item.ends for item in channels}
    begin, end = (offsets({name: float(pair[k]) for name, pair in ends.items()}) for k in (0, 1))
    for item in channels if len(channels) > 1 else ():
        others = [ends[other.name] for other in channels if other is not item]
        (first, last), size = ends[item.name], len(item.stamps)
        span = max(last - first, 1)
        usual = float(np.median([stop - start for start, stop in others]))
        counts = float(np.median([len(other.stamps) for other in channels if other is not item]))
        if usual > 0 and not 1 / SCALED < span / usual < SCALED and 0.1 < size / counts < 10.0:
            found.append(Finding('clock', (item.name,), f'stamps cover {span * 1e-9:.3g} s, those of the others '
                                 f'{usual * 1e-9:.3g} s', f'the unit of its stamps is wrong; {RECORD}'))
            continue
        at = begin[item.name], end[item.name]
        offset, room = sum(at) / 2, 2.0 * span / size
        if min(map(abs, at)) > APART_NS + room and abs(at[0] - at[1]) < ALIKE * abs(offset) + room:
            found.append(apart_finding(item.name, offset * 1e-9))
    return found


def apart_finding(name: str, offset: float) -> Finding:
    """A clock that is ahead of the others (above 0) or behind, s."""
    size = abs(offset)
    hours = round(size / ZONE)
    cause = ('it counts from another instant, such as its start' if size > EPOCH else
             f'{hours} h are a time zone: local time is not UTC' if hours and abs(size - hours * ZONE) < NEAR else
             'as far are UTC, GPS time and TAI apart' if min(abs(size - leap) for leap in LEAPS) < 0.2 else '')
    words = f'stamps are {size:.3f} s {"ahead of" if offset > 0 else "behind"} those of the others'
    return Finding('clock', (name,), words + (f' ({cause})' if cause else ''),
                   delayed(offset))


def _rate(item: _Stamps, settings: InterpolationSettings | LinkageSettings) -> list[Finding]:
    """A channel whose usual interval is none of a sensor, or is not interpolated."""
    intervals = np.diff(np.unique(item.stamps)) * 1e-9
    usual = float(np.median(intervals))
    if usual < SHORTEST:
        return [Finding('stamp', (item.name,), f'a sample each {usual:.3g} s',
                        f'the unit of its stamps is wrong; {RECORD}')]
    if usual <= SELDOM or not isinstance(settings, InterpolationSettings):
        return []
    used = (f'what moves in between is not seen, though it is interpolated up to interpolation.max_gap '
            f'({settings.max_gap:g} s)' if usual <= settings.max_gap else
            f'nothing is interpolated over more than interpolation.max_gap ({settings.max_gap:g} s)')
    higher = '' if usual <= settings.max_gap else f', or estimate with interpolation.max_gap={1.5 * usual:.2g}'
    return [Finding('rate', (item.name,), f'comes at {1 / usual:.3g} Hz, each {usual:.3g} s: {used}',
                    f'record it at 20 Hz or more{higher}')]


def _silences(sensors: list[_Stamps], settings: InterpolationSettings | LinkageSettings) -> list[Finding]:
    """Sensors that send nothing for longer than is interpolated, or than a filter bears, while others go on: three
    times, or for long."""
    found, sorted_stamps = [], {item.name: np.unique(item.stamps) for item in sensors}
    end = max((item.ends[1] for item in sensors), default=0)
    for name, stamps in sorted_stamps.items():
        longest = (settings.max_gap if isinstance(settings, InterpolationSettings) else
                   max(settings.coast_after, PAUSED * 1e-9 * float(np.median(np.diff(stamps)))))
        begins, ends = stamps, np.append(stamps[1:], max(end, int(stamps[-1])))
        pauses = np.flatnonzero(ends - begins > longest * SECOND)
        pauses = pauses[np.argsort(begins[pauses] - ends[pauses], kind='stable')][:MANY]
        others = [other for key, other in sorted_stamps.items() if key != name]
        alone = [k for k in pauses.tolist() if others and np.median(
            [np.searchsorted(other, ends[k]) - np.searchsorted(other, begins[k], 'right') for other in others]) > 1]
        seconds = float(sum(int(ends[k] - begins[k]) for k in alone)) / SECOND
        if len(alone) >= FEW or seconds >= SILENT_S:
            times = f'{len(alone)} times for more than {longest:g} s, ' if len(alone) > 1 else ''
            at = int(begins[alone[0]] - min(own[0] for own in sorted_stamps.values())) / SECOND
            seen = f'sends nothing {times}for {seconds:.1f} s in all, the longest from t = {at:.1f} s, others do'
            found.append(Finding('gap', (name,), seen, 'look at its cable, its driver and its bus: '
                                 + ('the mass is held' if isinstance(settings, InterpolationSettings) else
                                    'an estimate may coast') + ' meanwhile'))
    return found


def leaps(series: Mapping[str, Series], noises: Mapping[str, float]) -> list[Finding]:
    """Stamps that leap ahead while the machine moves on as if nothing was missing, by positions and the ``noises`` of
    their sensors; a machine that rests may have paused."""
    names = [name for name in noises if name in series]
    found: dict[int, list[bool]] = {}
    for name in names:
        t, values = series[name]
        for k in np.flatnonzero(np.diff(t) > LEAP).tolist():
            if k + 1 >= LOOK and len(t) - k - 1 >= LOOK and (goes := _goes_on(t, values, k, noises[name])) is not None:
                found.setdefault(round(float(t[k + 1] - t[k])), []).append(goes)
    sizes = [size for size, goes in found.items() if all(goes)]
    return [Finding('jump', tuple(names), f'stamps leap by {sizes[0]} s while the machine moves on as if nothing was '
                    'missing', 'keep the clock from being set while it records, or cut the log there: the estimate '
                    'starts again')] if sizes else []


def _goes_on(t: np.ndarray, values: np.ndarray, k: int, noise: float) -> bool | None:
    """Whether a position goes on behind the pause after sample k where it was, as fast; None of one that rests."""
    before, after = slice(k + 1 - LOOK, k + 1), slice(k + 1, k + 1 + LOOK)
    if max(np.ptp(t[before]), np.ptp(t[after])) > LEAP / 2:
        return None
    (v0, x0), (v1, x1) = (np.polyfit(t[part] - t[at], values[part], 1) for part, at in ((before, k), (after, k + 1)))
    span, room = float(np.ptp(t[before])), NOISES * noise
    if max(abs(v0), abs(v1)) * span < room:
        return None
    step = 0.5 * (v0 + v1) * span / (LOOK - 1)
    return bool(abs(v1 - v0) < 0.5 * max(abs(v0), abs(v1)) and abs(x1 - x0 - step) < abs(step) + room)


def rare_findings(series: Mapping[str, Series], machine: Machine) -> tuple[list[Finding], list[str]]:
    """Sensors whose samples are too rare for the motion, by the observer's own rule (``line_errors``), and that it is
    so of those that come as often as is advised, which is no fault of the log: their masses count less."""
    found: dict[bool, list[tuple[str, float, float]]] = {True: [], False: []}       # by: more rarely than advised
    shares: list[float] = []
    for channel in machine.all_channels:
        own = series.get(channel.name)
        interval = float(np.median(np.diff(own.t))) if own is not None and own.t.size > FEWEST else 0.0
        if own is None or interval < LONGEST_WHOLE or not channel.sensor.noise > 0.0:
            continue
        even = np.maximum(np.diff(own.t)[1:], np.diff(own.t)[:-1]) < 1.5 * interval
        off = line_errors(own.values, channel.sensor.noise ** 2)[even]
        share = float(np.mean(off > RARE)) if off.size else 0.0
        if share > OFTEN and interval <= SELDOM:
            shares.append(share)
            found[interval > ADVISED].append((channel.name, 1.0 / interval, float(np.quantile(off, 1.0 - OFTEN))))
    lines = {slow: _rare(items, max(shares)) for slow, items in found.items() if items}
    return ([Finding('rate', tuple(name for name, *_ in found[True]), lines[True], 'record it more often, or move more '
                     'slowly: masses count less while it moves so')] if True in lines else [],
            [f'{", ".join(name for name, *_ in found[False])}: {lines[False]}: masses count less while it moves so']
            if False in lines else [])


def _rare(items: list[tuple[str, float, float]], share: float) -> str:
    name, rate, off = max(items, key=lambda item: item[1] * item[2] ** 0.5)
    return (f'too rare for this motion for up to {100 * share:.0f} % of the time: {name} comes at {rate:.2g} Hz and '
            f'needs about {needed_rate(rate, off)} Hz')


def _share(count: int, total: int) -> str:
    return f'{count} of {total} samples'
