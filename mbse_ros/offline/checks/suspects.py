# SPDX-License-Identifier: Apache-2.0
"""Channels whose values cannot be what they should be, and the units, signs and zeros they may have instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ...machine import Machine
from ...machine.channels import Channel
from .channel_series import Means, Series
from .pressure_rules import mistaken_units
from .remedies import PRESSURE_UNITS, Finding, Remedy, gauge, negated, position_remedies, scaled
from .sensor_rules import white_noise
from .value_rules import outside_range, pressure_looks, turns

REST = 0.01             # of the range of a position, 1/s
HIGHEST = 60e6          # Pa, where the file has no supplies
ABOVE = 1.5             # times the largest supply that a pressure may reach
LOWEST = 30e3           # Pa that the largest of a chamber's pressures reaches
STILL = 2.0             # deviations of the noise: a unit in which a position does not even have its noise is none
ALIKE = 4.0             # times a noise, up or down, that is the same
NEAR = 5.0              # times the file's pressure of a supply, up or down
ANY = 1e3               # values from which on they may be Pa over the atmosphere


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
