# SPDX-License-Identifier: Apache-2.0
"""Whether the samples of a log can be those of a machine: units, signs, chambers, zeros and sensors that repeat.

What one channel's values say goes first; then the balance of forces says which unit it was, and whether chambers or
positions are the wrong way round. A finding from the balance needs both: the forces do not balance as the samples are,
and they do balance, well, with one remedy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from ..machine import Machine
from .channel_series import STEP, Means, Series, means_of, series_of
from .command_rules import command_findings
from .force_fit import Fit, ForceFit
from .remedies import (PRESSURE_UNITS, Finding, Remedy, balance_remedies, negated, position_remedies, scaled, together)
from .value_rules import outside_range, pressure_looks, sensor_findings

BAD, GOOD = 1.3, 1.1    # misfit from which forces do not balance, and up to which they do
BETTER = 0.5            # times the misfit as it is
DEEPEST = 3             # remedies of the balance together
REST = 0.01             # of the range of a position, 1/s
FEWEST_MASSES = 0.8     # share of the windows whose mass is out of its limits
FAR = 0.3               # of the range of the limits
HIGHEST = 60e6          # Pa, where the file has no supplies
GAUGE = ('the sensor counts from the atmosphere: add 101325 Pa, or state `gauge: true` in the file')


@dataclass(frozen=True)
class Verdict:
    """What is wrong, and what could not be looked at, each with its reason."""

    findings: tuple[Finding, ...]
    unchecked: tuple[str, ...] = ()


def judged(samples: Iterable[tuple[str, int, float]], machine: Machine) -> Verdict:
    """Findings on samples ``(channel, stamp in ns, value)`` of a machine's channels and commands, SI."""
    series = series_of(samples)
    means, fit = means_of(series), ForceFit(machine)
    findings = [found for channel in machine.all_channels if channel.name in series
                for found in sensor_findings(channel, series[channel.name])]
    opened, seen, known = _by_values(machine, series, means)
    findings += known
    chosen = _chosen(fit, means, opened)
    means = means._replace(values=together(list(chosen.values()), means.values))
    now = None if fit.unmeasured else fit.fit(means)
    sure = now is not None and now.worst < GOOD
    findings += [_unit_finding(chosen.get(channel), opened[channel], seen[channel], channel, sure) for channel in seen]
    unchecked = [] if now is not None else [_why(fit, series, machine)]
    wrong_way = _wrong_way(fit, means, now)
    findings += [Finding(remedy.kind, remedy.channels, _lacks(now), remedy.words) for remedy in wrong_way]
    means = means._replace(values=together(wrong_way, means.values))
    findings += command_findings(machine, fit, means, {c for remedy in wrong_way for c in remedy.channels})
    if not findings and now is not None:
        findings += _mass_findings(machine, now)
    return Verdict(tuple(findings), tuple(unchecked))


def _by_values(machine: Machine, series: Mapping[str, Series], means: Means
               ) -> tuple[dict[str, tuple[Remedy, ...]], dict[str, str], list[Finding]]:
    """Remedies that are open by channel, what is seen of these, and findings that need no balance."""
    opened: dict[str, tuple[Remedy, ...]] = {}
    seen: dict[str, str] = {}
    for channel in machine.all_channels:
        if channel.kind == 'position' and channel.name in series:
            text = outside_range(machine, channel.name, means.values[channel.name])
            if text:
                seen[channel.name] = text
                opened[channel.name] = tuple(
                    remedy for remedy in position_remedies(machine, channel.name)
                    if not outside_range(machine, channel.name, remedy.mended(means.values)[channel.name]))
    resting, supplies = _resting(machine, means), machine.description.hydraulics.supplies.values()
    pressures = [supply.value for supply in supplies]
    tank, highest = min(pressures, default=None), 1.5 * max(pressures, default=HIGHEST)
    findings = []
    for channel in machine.all_channels:
        if channel.kind != 'pressure' or channel.name not in series:
            continue
        name, values = channel.name, series[channel.name].values
        looks = pressure_looks(channel, values, means.values[name], resting, tank)
        if looks.looks in ('tiny', 'negated'):
            seen[name], largest = looks.seen, float(np.percentile(np.abs(values), 98))
            opened[name] = (negated(name),) if looks.looks == 'negated' else tuple(
                scaled(name, factor, unit) for unit, factor in PRESSURE_UNITS.items()
                if 0.3e5 <= factor * largest <= highest)
            if channel.sensor.gauge and looks.looks == 'tiny':      # it may rest at the atmosphere's all the time
                del seen[name], opened[name]
        elif looks.looks == 'gauge' and not channel.sensor.gauge:
            findings.append(Finding('gauge', (name,), looks.seen, GAUGE))
        elif looks.looks:
            findings.append(Finding('impossible', (name,), looks.seen, 'look at its scaling, its zero and its wiring'))
    return opened, seen, findings


def _resting(machine: Machine, means: Means) -> np.ndarray:
    """Whether all positions rest at the instants (k,)."""
    rests = np.ones(len(means.t), dtype=bool)
    for name, (low, high) in zip(machine.coordinates, machine.range):
        if f'position/{name}' in means.values and len(means.t) > 1:
            rests &= np.abs(np.gradient(means.values[f'position/{name}'], STEP)) < REST * (high - low)
    return rests


def _chosen(fit: ForceFit, means: Means, opened: Mapping[str, tuple[Remedy, ...]]) -> dict[str, Remedy]:
    """The remedy of each channel with which the forces balance best; the first where they say nothing."""
    chosen = {channel: remedies[0] for channel, remedies in opened.items() if remedies}
    if fit.unmeasured or not any(len(remedies) > 1 for remedies in opened.values()):
        return chosen

    def misfit(trial: Mapping[str, Remedy]) -> float:
        found = fit.fit(means._replace(values=together(list(trial.values()), means.values)))
        return float('inf') if found is None else float(np.sum(found.misfit ** 2))

    trials = [chosen]
    for words in dict.fromkeys(remedy.words for remedies in opened.values() for remedy in remedies):
        same = {channel: next((r for r in remedies if r.words == words), chosen[channel])
                for channel, remedies in opened.items() if remedies}
        trials.append(same)
    best = min(trials, key=misfit)
    for channel in [*best, *best]:
        best = min(({**best, channel: remedy} for remedy in opened[channel]), key=misfit)
    return best


def _unit_finding(remedy: Remedy | None, candidates: tuple[Remedy, ...], seen: str, channel: str, sure: bool
                  ) -> Finding:
    if remedy is None:
        kind = 'range' if channel.startswith('position/') else 'impossible'
        return Finding(kind, (channel,), seen, 'another machine, or look at its scaling and its zero')
    others = [item.words for item in candidates if item is not remedy]
    words = remedy.words if sure or not others else ', or '.join([remedy.words, *others])
    return Finding(remedy.kind, (channel,), seen, words)


def _wrong_way(fit: ForceFit, means: Means, now: Fit | None) -> list[Remedy]:
    """Swapped chambers and reversed positions, with which forces balance that do not balance without."""
    if now is None or now.worst < BAD:
        return []
    remedies, taken, values, best = list(balance_remedies(fit.machine)), [], means.values, now
    while len(taken) < DEEPEST and best.worst > GOOD:
        trials = [(remedy, fit.fit(means._replace(values=remedy.mended(values)))) for remedy in remedies]
        trials = [(remedy, found) for remedy, found in trials if found is not None]
        if not trials:
            return []
        remedy, found = min(trials, key=lambda trial: float(np.sum(trial[1].misfit ** 2)))
        if np.sum(found.misfit ** 2) >= np.sum(best.misfit ** 2):
            return []
        taken, values, best = [*taken, remedy], remedy.mended(values), found
        remedies = [other for other in remedies if not set(other.channels) & set(remedy.channels)]
    return taken if best.worst <= GOOD and best.worst < BETTER * now.worst else []


def _lacks(now: Fit | None) -> str:
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
    pressures = tuple(name for name in machine.channels if name.startswith('pressure/'))
    return [Finding('mass', pressures, f'they ask for a load of {np.median(now.mass):.0f} kg, limits {low:g} to '
                    f'{high:g} kg', 'another machine, or look at scaling and zeros of pressures and positions')]


def _why(fit: ForceFit, series: Mapping[str, Series], machine: Machine) -> str:
    """Why the balance of forces says nothing."""
    silent = [channel for channel in machine.channels if channel not in series]
    if silent:
        return f'no balance of forces: no sample of {", ".join(silent)}'
    if fit.unmeasured:
        return f'no balance of forces: {", ".join(fit.unmeasured)} not measured directly'
    return 'no balance of forces: the cylinders do not reach the positions, or there are too few samples'
