# SPDX-License-Identifier: Apache-2.0
"""Whether the samples of a log can be those of a machine: units, signs, chambers, zeros and sensors that repeat.

What one channel's values say goes first; then the balance of forces says which unit it was, and whether chambers or
positions are the wrong way round. A finding from the balance needs both: the forces do not balance as the samples are,
and they do balance, well, with one remedy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...description.coordinate_units import unit_and_scale
from ...filters.hydraulic_state import PUSHED
from ...machine import Machine
from ...monitor.clocks import Ages
from ...streams.interpolation import InterpolationSettings
from ..log_samples import LogSamples, Means, Series, means_of, series_of
from .command_rules import command_findings, seldom_findings
from .force_fit import Fit, ForceFit, fit_of
from .offset_rules import comes_late, offset_findings
from .pressure_rules import Suspects, balancing_pressures, cylinder_findings, finding_of, suspects, unbalanced
from .remedies import PLAINLY, Finding, Remedy, least, position_reversals, position_swaps, swap_sets, together
from .sensor_rules import huge_values, same_signals, sensor_findings, step_findings
from .time_rules import age_findings, joined, leaps, rare_findings, time_findings
from .value_rules import beyond_limits

BAD, GOOD = 1.3, 1.1    # misfit from which forces do not balance, and up to which they do
BETTER = 0.5            # times the misfit as it is
DEEPEST = 3             # positions that may be reversed at once
FEWEST_MASSES = 0.8     # share of the windows whose mass is out of its limits
FAR = 0.3               # of the range of the limits
OWN = 'noise', 'coarse'     # kinds of findings with numbers of a channel, which are others in its right unit
FEWEST_MEANS = 0.9      # share of the instants that have a mean of a sensor


@dataclass(frozen=True)
class Verdict:
    """What is wrong; what could not be looked at, each with its reason; what is worth a word and not wrong."""

    findings: tuple[Finding, ...]
    unchecked: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def judged(samples: LogSamples, machine: Machine, ages: Ages | None = None,
           settings: InterpolationSettings = InterpolationSettings()) -> Verdict:
    """Findings on samples of a machine's channels and commands, SI; ``ages`` on arrival, if they are known."""
    series = series_of(samples, machine.delays)
    rare, notes = rare_findings(series, machine)
    times = [*_times(samples, series, ages, settings, machine), *rare, *seldom_findings(machine, series)]
    means, fit = means_of(series), fit_of(machine)
    findings = [*huge_values(samples), *(
        finding for channel in machine.all_channels if channel.name in series
        for finding in sensor_findings(channel, series[channel.name], *unit_and_scale(
            machine.description, channel.name, True)))]
    stuck = {channel for finding in findings if finding.kind == 'stuck' for channel in finding.channels}
    same = same_signals(series, means, {channel.name: channel.sensor.noise for channel in machine.all_channels})
    doubled = {channel for finding in same for channel in finding.channels}
    findings += same
    means = means._replace(values={name: item for name, item in means.values.items() if name not in doubled})
    exchanged = _exchanged(fit, means)
    means = means._replace(values=together(exchanged, means.values))
    found = suspects(machine, {name: item for name, item in series.items() if name not in stuck | doubled}, means)
    turning = {channel for item in found.findings if item.kind == 'step' for channel in item.channels}
    findings = [item for item in findings if item.kind not in ('noise', 'spikes') or not turning & set(item.channels)]
    findings += found.findings
    chosen = _chosen(fit, means, found.remedies)
    means = means._replace(values=together(list(chosen.values()), means.values))
    now = None if fit.unmeasured else fit.fit(means)
    wrong_way = _wrong_way(fit, means, now)
    likely = _of_pressures(fit, means, now) if all(item.kind == 'rate' for item in times) else []
    if likely and wrong_way:
        wrong_way, likely = (wrong_way, []) if _misfit(fit, means, wrong_way) * PLAINLY <= _misfit(
            fit, means, likely[:1]) else ([], likely)
    sure = bool(wrong_way or likely) or now is not None and now.worst < GOOD
    other = {*found.seen, *(name for remedy in (*exchanged, *likely) for name in remedy.channels)}
    findings = [item for item in findings if item.kind not in OWN or not other & set(item.channels)]
    # of one equation the load makes up for pressures that are too small all alike
    findings += [_mended(channel, found, chosen.get(channel), sure and (
        len(machine.weighing) > 1 or channel not in found.huge)) for channel in found.seen]
    findings += [Finding(remedy.kind, remedy.channels, 'the forces do not balance as the positions are', remedy.words)
                 for remedy in exchanged]
    findings += [Finding(remedy.kind, remedy.channels, _lacks(now), remedy.words) for remedy in wrong_way if now]
    findings += [finding_of(likely, _lacks(now))] if likely and now is not None else []
    findings += _beyond(machine, series, {name for item in findings for name in item.channels})
    findings += step_findings(series, machine, {name for item in (*times, *findings) for name in item.channels})
    means = means._replace(values=together([*wrong_way, *likely[:1]], means.values))
    if not any(item.kind == 'clock' for item in times):     # of another time valves seem to be closed
        findings += command_findings(machine, fit, means, {
            name for remedy in (*wrong_way, *likely) for name in remedy.channels})
    if not findings and now is not None:
        findings += _mass_findings(machine, now) or ([] if times else cylinder_findings(
            fit, means, now, BAD, GOOD) or unbalanced(fit, now))
    why = 'the balance of forces, since two sensors show one signal' if same else _why(fit, means, machine)
    return Verdict((*times, *findings), () if now is not None else (why,), tuple(notes))


def _times(samples: LogSamples, series: Mapping[str, Series], ages: Ages | None, settings: InterpolationSettings,
           machine: Machine) -> list[Finding]:
    """Findings on stamps: by themselves, by their arrival, by what moves together; of each channel the first.

    What comes late, and yet moves with the others, has right stamps.
    """
    times = time_findings(samples, settings)
    times += leaps(series, {channel.name: channel.sensor.noise for channel in machine.all_channels
                            if channel.kind == 'position'})
    moved, lags = offset_findings(series)
    apart = ages.apart if ages else {}
    aged = age_findings({name: age for name, age in apart.items() if not comes_late(name, lags, apart)})
    for findings in joined(aged), moved:
        told = {name for finding in times for name in finding.channels}
        times += [finding for finding in findings if not told & set(finding.channels)]
    return times


def _exchanged(fit: ForceFit, means: Means) -> list[Remedy]:
    """Positions of two cylinders that are each other's: forces balance that way, and do not balance, or the cylinders
    do not reach, as they are, whatever chambers or directions are exchanged."""
    swaps = list(position_swaps(fit.machine))
    if not means.values.keys() >= {channel for swap in swaps for channel in swap.channels}:
        return []
    if fit.unmeasured or not swaps or (now := fit.fit(means)) is not None and now.worst < BAD:
        return []
    if now is not None and _wrong_way(fit, means, now):
        return []
    best = least([(), *((swap,) for swap in swaps)], lambda way: _misfit(fit, means, way))
    then = fit.fit(means._replace(values=together(best, means.values))) if best else None
    return list(best) if then is not None and then.worst <= GOOD else []


def _chosen(fit: ForceFit, means: Means, opened: Mapping[str, tuple[Remedy, ...]]) -> dict[str, Remedy]:
    """The remedy of each channel with which the forces balance best; the first where they cannot be judged."""
    chosen = {channel: remedies[0] for channel, remedies in opened.items() if remedies}
    if fit.unmeasured or not any(len(remedies) > 1 for remedies in opened.values()):
        return chosen

    def fitted(trial: dict[str, Remedy], swaps: Sequence[Remedy] = ()) -> float:
        return _misfit(fit, means, [*trial.values(), *swaps])

    units = dict.fromkeys(remedy.words for remedies in opened.values() for remedy in remedies)
    same = [{channel: next((r for r in remedies if r.words == words), chosen[channel])
             for channel, remedies in opened.items() if remedies} for words in units]
    ways = swap_sets(fit.machine) if min(map(fitted, same)) > GOOD ** 2 else [()]
    best, way = least([(trial, way) for way in ways for trial in same], lambda pair: fitted(*pair))
    for channel in [*best, *best]:
        best = least([best, *({**best, channel: remedy} for remedy in opened[channel])],
                     lambda trial: fitted(trial, way))
    return best if fitted(best, way) < GOOD ** 2 else chosen


def _misfit(fit: ForceFit, means: Means, remedies: Iterable[Remedy]) -> float:
    """Mean square of what the forces lack with remedies; infinite where they cannot be judged."""
    found = fit.fit(means._replace(values=together(remedies, means.values)))
    return float('inf') if found is None else float(np.mean(found.misfit ** 2))


def _mended(channel: str, found: Suspects, remedy: Remedy | None, sure: bool) -> Finding:
    """The finding on a suspect channel; where the balance is not ``sure``, with all its remedies."""
    seen = found.seen[channel]
    if remedy is None:
        kind = 'range' if channel.startswith('position/') else 'impossible'
        return Finding(kind, (channel,), seen, 'another machine, or look at its scaling and its zero')
    others = [] if sure else [item.words for item in found.remedies[channel] if item is not remedy]
    if not sure and channel.startswith('position/'):
        others.append('look at its zero')
    return Finding(remedy.kind, (channel,), seen, ', or '.join([remedy.words, *others]))


def _wrong_way(fit: ForceFit, means: Means, now: Fit | None) -> list[Remedy]:
    """Swapped chambers and reversed positions, with which forces balance that do not balance without."""
    if now is None or now.worst < BAD:
        return []
    taken = list(least(swap_sets(fit.machine), lambda way: _misfit(fit, means, way)))
    for _ in range(DEEPEST):
        others = [remedy for remedy in position_reversals(fit.machine)
                  if not any(set(remedy.channels) & set(other.channels) for other in taken)]
        better = least([taken, *([*taken, remedy] for remedy in others)], lambda way: _misfit(fit, means, way))
        if better is taken:
            break
        taken = better
    best = fit.fit(means._replace(values=together(taken, means.values)))
    return taken if best is not None and best.worst <= GOOD and best.worst < BETTER * now.worst else []


def _of_pressures(fit: ForceFit, means: Means, now: Fit | None) -> list[Remedy]:
    """Units and lines of pressures, one of which makes forces balance that do not balance without, the best first."""
    return [] if now is None or now.worst < BAD else balancing_pressures(fit, means, now, GOOD, BETTER)


def _beyond(machine: Machine, series: Mapping[str, Series], told: set[str]) -> list[Finding]:
    """Positions beyond the limits of the machine of which nothing else is said."""
    found = {channel.name: beyond_limits(machine, channel, series[channel.name]) for channel in machine.all_channels
             if channel.kind == 'position' and channel.name in series and channel.name not in told}
    return [Finding('range', (name,), seen, "look at the sensor's zero and scaling; or correct stroke, points or "
                    "limits in the machine's file") for name, seen in found.items() if seen]


def _lacks(now: Fit) -> str:
    """How badly the forces balance, and what load they ask for."""
    low, high = np.percentile(now.mass, [25, 75])
    return (f'the forces lack up to {now.worst:.2g} times what model and noise explain, and ask for loads of {low:.0f} '
            f'to {high:.0f} kg')


def _mass_findings(machine: Machine, now: Fit) -> list[Finding]:
    """A load that lies far beyond its limits all the time."""
    payload = machine.description.payload
    if payload is None or not now.mass.size:
        return []
    low, high = payload.limits
    room = FAR * (high - low)
    outside = (now.mass < low - room) | (now.mass > high + room)
    if outside.mean() < FEWEST_MASSES or now.worst < BAD:
        return []
    pressures = tuple(name for name in machine.channels if name.startswith(PUSHED))
    return [Finding('mass', pressures, f'they ask for a load of {np.median(now.mass):.0f} kg, limits {low:g} to '
                    f'{high:g} kg', 'another machine, or look at scaling and zeros of pressures, efforts and '
                    'positions')]


def _why(fit: ForceFit, means: Means, machine: Machine) -> str:
    """Why the balance of forces cannot be judged."""
    if any(channel not in means.values for channel in machine.channels):
        return 'the balance of forces, which needs samples of all positions and pressures, or efforts'
    if fit.unmeasured:
        return f'the balance of forces, as no sensor measures {", ".join(fit.unmeasured)} itself'
    least = FEWEST_MEANS * len(means.t)
    few = [name for name in machine.channels if np.isfinite(means.values[name]).sum() < least]
    if few:
        return f'the balance of forces, which needs samples at 10 Hz and of one time: too few of {", ".join(few)}'
    return 'the balance of forces: the cylinders do not reach the positions, or there are too few samples'
