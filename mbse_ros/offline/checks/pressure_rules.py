# SPDX-License-Identifier: Apache-2.0
"""Channels whose values cannot be what they should be, with the units, signs and zeros they may have instead; and
pressures that the force balance contradicts.

Each cylinder of a machine has its own equation of the force balance, with its own size and direction of force, and all
carry one load. Hoses, or plugs, that are exchanged between cylinders contradict that, and a factor on one pressure:
with one such change the forces balance that do not balance as they are. Which of two pressures it is shows where they
do not change in proportion.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations, permutations

import numpy as np

from ...machine import Machine
from ...machine.channels import Channel
from ...machine.equations import actuators_of, pressure_pairs
from ..log_samples import Means, Series
from .force_fit import Fit, ForceFit
from .remedies import PLAINLY, PRESSURE_UNITS, Finding, Remedy, gauge, negated, position_remedies, scaled
from .sensor_rules import white_noise
from .value_rules import outside_range, pressure_looks, turns

FEWEST = 2          # equations of the force balance: in one alone many changes do the same
MOST = 3            # changes that explain a log about equally well, up to which they are named
GAINS = 0.5, 0.625, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.6, 2.0    # that are tried
FAR_OFF = 3.0       # times what model and noise explain, 1: three deviations
ODD = 0.8           # of what one equation lacks: where so many others lack less, it is the odd one out
REST = 0.01             # of the range of a position, 1/s
HIGHEST = 60e6          # Pa, where the file has no supplies
ABOVE = 1.5             # times the largest supply that a pressure may reach
LOWEST = 30e3           # Pa that the largest of a chamber's pressures reaches
STILL = 2.0             # deviations of the noise: a unit in which a position does not even have its noise is none
ALIKE = 4.0             # times a noise, up or down, that is the same
NEAR = 5.0              # times the file's pressure of a supply, up or down
ANY = 1e3               # values from which on they may be Pa over the atmosphere


def mistaken_units(channel: str, units: Mapping[str, float] = PRESSURE_UNITS) -> tuple[Remedy, ...]:
    """A pressure in one unit that was taken for another; ``units``, Pa."""
    return tuple(Remedy('unit', ((channel, channel, size / taken, 0.0),), f'multiply by {size / taken:.6g}: the values '
                        f'look like {unit} that were taken for {other}')
                 for (unit, size), (other, taken) in permutations(units.items(), 2))


def pressure_remedies(machine: Machine) -> list[Remedy]:
    """Units of each pressure; two pressures of two cylinders that are each other's, or both of each."""
    names = [name for name in machine.channels if name.startswith('pressure/')]
    pairs = list(dict.fromkeys(pressure_pairs(machine).values()))
    same = {frozenset(pair) for pair in pairs}
    found = [remedy for name in names for remedy in mistaken_units(name)]
    found += [_exchanged((one, other)) for one, other in combinations(names, 2) if {one, other} not in same]
    return found + [_exchanged(*zip(one, other)) for one, other in combinations(pairs, 2)]


def balancing_pressures(fit: ForceFit, means: Means, now: Fit, good: float, better: float) -> list[Remedy]:
    """Of forces that do not balance ``now``: the remedies that explain the log about equally well, the best first; none
    where so many do that it says nothing. ``good``: misfit up to which forces balance; ``better``: times that of now.
    """
    if len(now.misfit) < FEWEST:
        return []
    found = []
    for remedy in pressure_remedies(fit.machine):
        then = fit.fit(means._replace(values=remedy.mended(means.values)))
        if then is not None and then.worst <= good and then.worst < better * now.worst:
            found.append((float(np.mean(then.misfit ** 2)), remedy))
    found.sort(key=lambda item: item[0])
    likely = [remedy for misfit, remedy in found if misfit * PLAINLY <= found[0][0]]
    return likely if len(likely) <= MOST else []


def finding_of(likely: list[Remedy], seen: str) -> Finding:
    """The one finding of remedies that explain a log about equally well."""
    channels = tuple(dict.fromkeys(name for remedy in likely for name in remedy.channels))
    return Finding(likely[0].kind, channels, seen, ', or '.join(remedy.words for remedy in likely))


def _exchanged(*pairs: tuple[str, str]) -> Remedy:
    """Samples of each other, of each pair."""
    changes = tuple((own, source, 1.0, 0.0) for one, other in pairs for own, source in ((one, other), (other, one)))
    return Remedy('exchanged', changes, ' and '.join(f'{one} with {other}' for one, other in pairs).join((
        'exchange ', ': the forces balance that way')))


def cylinder_findings(fit: ForceFit, means: Means, now: Fit, bad: float, good: float) -> list[Finding]:
    """``now``: how forces balance; ``bad``: misfit from which they do not, and ``good``, up to which they do."""
    machine, worst = fit.machine, int(np.argmax(now.misfit))
    others = np.delete(now.misfit, worst)
    pair = _pair(machine, worst)
    if not pair or now.misfit[worst] < bad or len(others) < FEWEST or others.max() > ODD * now.worst:
        return []
    found = {name: min((_misfit(fit, means, name, gain, good), gain) for gain in GAINS) for name in pair}
    best = min(misfit for misfit, _ in found.values())
    if not np.isfinite(best):
        return []
    likely = {name: gain for name, (misfit, gain) in found.items() if misfit * PLAINLY <= best}
    words = ' or '.join(f'{name} times {gain:g}' for name, gain in likely.items())
    seen = (f'the forces of this cylinder lack up to {now.worst:.2g} times what model and noise explain, those of the '
            f'others {others.max():.2g} times')
    return [Finding('balance', tuple(likely), seen, f'they balance with {words}: look at its gain and its zero, and at '
                    'the zero of the position of this cylinder')]


def unbalanced(fit: ForceFit, now: Fit) -> list[Finding]:
    """Forces that lack far more than model and noise explain, where no change of a channel that is tried explains it:
    of which cylinder most."""
    machine, place = fit.machine, int(np.argmax(now.misfit))
    if now.misfit[place] < FAR_OFF:
        return []
    efforts = tuple(name for name in machine.channels if name in machine.push_needs[machine.weighing[place]]
                    and name.startswith('effort/'))
    names = efforts or _pair(machine, place) or tuple(
        name for name in machine.channels if name.startswith('pressure/'))
    owner, look = ('drive', 'unit, sign and gain of its effort') if efforts else (
        'cylinder', 'hoses, valves and ranges of its pressure sensors')
    return [Finding('forces', names, f'the forces lack up to {now.worst:.2g} times what model and noise explain, most '
                    f'those of this {owner}', f"look at {look}, its position, and the machine's file; or the tool "
                    'touches something for most of this log')]


def _pair(machine: Machine, place: int) -> tuple[str, ...]:
    """Pressure channels of the cylinder that an equation is of; () where it is of several."""
    cylinders = actuators_of(machine)[machine.weighing[place]]
    return pressure_pairs(machine).get(cylinders[0], ()) if len(cylinders) == 1 else ()


def _misfit(fit: ForceFit, means: Means, name: str, gain: float, good: float) -> float:
    """Mean square of what the forces lack with a pressure times ``gain``; infinite where they do not balance."""
    found = fit.fit(means._replace(values={**means.values, name: gain * means.values[name]}))
    return float(np.mean(found.misfit ** 2)) if found is not None and found.worst <= good else float('inf')


@dataclass
class Suspects:
    """``remedies`` that are open and what is ``seen``, by channel, of which some are ``huge``; ``findings`` that are
    plain."""

    remedies: dict[str, tuple[Remedy, ...]] = field(default_factory=dict)
    seen: dict[str, str] = field(default_factory=dict)
    huge: set[str] = field(default_factory=set)
    findings: list[Finding] = field(default_factory=list)


def suspects(machine: Machine, series: Mapping[str, Series], means: Means) -> Suspects:
    """Of the channels in ``series``."""
    found, resting = Suspects(), resting_of(machine, means)
    for channel in machine.all_channels:
        if channel.name in series and channel.kind == 'position':
            count = 0 if channel.sensor.wraps else turns(series[channel.name].values)
            if count and channel.name.partition('/')[2] not in machine.cylinders:
                found.findings.append(Finding('step', (channel.name,), f'steps by a whole turn, {count} times',
                                              'it does not count its turns: write `wraps: true` at its sensor'))
                continue
            _position(machine, channel, means, found)
            _thousandth(machine, channel, series[channel.name], found)
        elif channel.name in series and channel.kind == 'pressure':
            _pressure(machine, channel, series[channel.name].values, means.values[channel.name], resting, found)
    return found


def _position(machine: Machine, channel: Channel, means: Means, found: Suspects) -> None:
    name = channel.name
    text = outside_range(machine, name, means.values[name], means.t)
    if text:
        found.seen[name] = text
        mended = {remedy: remedy.mended(means.values)[name] for remedy in position_remedies(machine, name)}
        found.remedies[name] = tuple(
            remedy for remedy, values in mended.items() if not outside_range(machine, name, values, means.t)
            and np.nanmax(values) - np.nanmin(values) > STILL * channel.sensor.noise)


def _thousandth(machine: Machine, channel: Channel, series: Series, found: Suspects) -> None:
    """A stroke in m that was taken for mm: it stays at the closed end, with a thousandth of its noise."""
    cylinder = machine.description.cylinders.get(channel.name.partition('/')[2])
    noise, share = white_noise(series), 1e-3 * channel.sensor.noise
    if cylinder is None or channel.name in found.seen or not share / ALIKE < noise < ALIKE * share:
        return
    low, high = float(series.values.min()), float(series.values.max())
    if -ALIKE * noise < low and high < 1e-3 * cylinder.stroke.value + ALIKE * noise:
        found.seen[channel.name] = (f'{low:.3g} to {high:.3g} m with a noise of {noise:.2g}, in the file '
                                    f'{channel.sensor.noise:.2g}')
        found.remedies[channel.name] = (scaled(channel.name, 1e3, 'm that were taken for mm'),)


def _pressure(machine: Machine, channel: Channel, values: np.ndarray, means: np.ndarray, resting: np.ndarray,
              found: Suspects) -> None:
    supplies = machine.hydraulics.supplies
    tank = min((supply.value for supply in supplies.values()), default=None)
    looks, name = pressure_looks(channel, values, means, resting, tank), channel.name
    largest = float(np.percentile(np.abs(values), 98))
    if looks.looks == 'tiny' and not channel.sensor.gauge:      # over the atmosphere it may be as small all the time
        found.seen[name] = looks.seen
        low, high = _expected(machine, channel)
        found.remedies[name] = (*(scaled(name, factor, unit) for unit, factor in PRESSURE_UNITS.items()
                                  if low <= factor * largest <= high), *([gauge(name)] if largest > ANY else []))
    elif looks.looks == 'huge':
        found.seen[name], (low, high) = looks.seen, _expected(machine, channel)
        found.huge.add(name)
        found.remedies[name] = tuple(remedy for remedy in mistaken_units(name, {'Pa': 1.0, **PRESSURE_UNITS})
                                     if low <= remedy.changes[0][2] * largest <= high)
    elif looks.looks == 'negated':
        found.seen[name], found.remedies[name] = looks.seen, (negated(name),)
    elif looks.looks == 'gauge' and not channel.sensor.gauge:
        found.findings.append(Finding('gauge', (name,), looks.seen, gauge(name).words))
    elif looks.looks not in ('', 'tiny'):
        found.findings.append(Finding('impossible', (name,), looks.seen,
                                      'look at its scaling, its zero and its wiring'))


def _expected(machine: Machine, channel: Channel) -> tuple[float, float]:
    """Where the largest pressures of a channel lie, Pa."""
    supplies = machine.hydraulics.supplies
    if channel.sensor.volume in supplies:
        value = supplies[channel.sensor.volume].value
        return value / NEAR, value * NEAR
    return LOWEST, ABOVE * max((supply.value for supply in supplies.values()), default=HIGHEST / ABOVE)


def resting_of(machine: Machine, means: Means) -> np.ndarray:
    """Whether all positions rest at the instants (k,)."""
    rests = np.ones(len(means.t), dtype=bool)
    for name, (low, high) in zip(machine.coordinates, machine.range):
        if f'position/{name}' in means.values and len(means.t) > 1:
            rests &= np.abs(np.gradient(means.values[f'position/{name}'], means.t)) < REST * (high - low)
    return rests
