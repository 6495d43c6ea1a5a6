# SPDX-License-Identifier: Apache-2.0
"""Whether the values of a number can be those of a channel, in which unit: by its range alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import log, nan
from typing import NamedTuple

import numpy as np

from ...description.coordinate_units import measured_unit, unit_of
from ...description.language.units import parse_unit
from ...dynamics.model import Model
from ...machine import Machine
from ...machine.channels import Channel
from ...report.text import number

UNITS = {'Pa': ('Pa', 'kPa', 'bar', 'MPa'), 'rad': ('rad', 'deg'), 'm': ('m', 'mm', 'cm'), 'rad/s': ('rad/s', 'deg/s'),
         'm/s': ('m/s', 'mm/s'), 'm/s^2': ('m/s^2', 'standard_gravity')}
LARGEST = (3e6, 45e6)       # Pa, the largest pressure of a machine at work
RELIEF = 30e6               # Pa
LOWEST = -0.3e6             # Pa, of a sensor that is off by so much
ROOM = 0.05                 # of a range, that values may be outside it
FAST = {'rad/s': 5.0, 'm/s': 3.0}       # no machine is faster; a mechanism without cylinders may be, ...
FASTER = 20.0               # ... by so many times
TURNS = 100.0               # rad to each side of 0 of an angle of such a mechanism that has no limits
GRAVITY = (5.0, 15.0)       # m/s^2, usual length of the vector that an accelerometer measures
STILL = 0.02                # of a range, that a position moves at least: else its range says little


class UnitFit(NamedTuple):
    """In ``unit``, with ``offset`` text or '', the values span ``low`` to ``high``, SI; ``share`` of the channel's
    range that they cover, NaN where it has none; ``words`` about it."""

    unit: str
    offset: str
    low: float
    high: float
    share: float
    words: str


def ends(values: np.ndarray) -> tuple[float, float]:
    """Lowest and highest value, without single spikes."""
    low, high = np.percentile(values, [0.2, 99.8])
    return float(low), float(high)


def pressure_units(largest: float, hints: Iterable[str] = ()) -> list[str]:
    """Units in which the largest of several pressures is one of a machine at work: those that names hint at first,
    then the one that comes nearest to what relief valves are set to."""
    hinted = {word.lower() for word in hints}
    sizes = {unit: largest * parse_unit(unit)[0] for unit in UNITS['Pa']}
    fitting = [unit for unit, size in sizes.items() if LARGEST[0] <= size <= LARGEST[1]]
    return sorted(fitting, key=lambda unit: (unit.lower() not in hinted, abs(log(sizes[unit] / RELIEF))))


def pressure_fit(values: np.ndarray, unit: str) -> UnitFit | None:
    """Of a pressure in a unit; None where values are below zero by far."""
    low, high = (parse_unit(unit)[0] * end for end in ends(values))
    if low < LOWEST or high > LARGEST[1]:
        return None
    return UnitFit(unit, '', low, high, float('nan'), f'{1e-6 * low:.2g} to {1e-6 * high:.3g} MPa as {unit}')


def position_fits(values: np.ndarray, item: Machine | Model, channel: Channel) -> list[UnitFit]:
    """Units, and zeros of a stroke, with which the values are inside the channel's range; the best first."""
    unit = measured_unit(item.description, channel.sensor.name)
    low, high, zeros = channel_range(item, channel)
    found = []
    for name in UNITS[unit]:
        factor = parse_unit(name)[0]
        first, last = (factor * end for end in ends(values))
        for zero in zeros:
            room = ROOM * (high - low)
            if low - room <= first - zero and last - zero <= high + room:
                share = (last - first) / (high - low)
                offset = f'{-zero:g} m' if zero else ''
                told = f'{_shown(first - zero, unit)} to {_shown(last - zero, unit)} of {_shown(low, unit)} to ' \
                       f'{_shown(high, unit)} as {name}' + (' pin to pin' if zero else '')
                found.append(UnitFit(name, offset, first - zero, last - zero, share, told))
    return sorted(found, key=lambda fit: -fit.share)


def channel_range(item: Machine | Model, channel: Channel) -> tuple[float, float, Sequence[float]]:
    """Range of a position channel, SI, and what its zeros may be: of a stroke also the pins' distance, closed."""
    name, description = channel.name.partition('/')[2], item.description
    if name in description.cylinders:
        cylinder = description.cylinders[name]
        return 0.0, cylinder.stroke.value, (0.0, cylinder.closed_length.value)
    if isinstance(item, Machine) and name in item.coordinates:
        low, high = item.range[item.coordinates.index(name)].tolist()
        return low, high, (0.0,)
    coordinate = description.coordinates.get(name)
    joint = description.joints.get(coordinate.joint) if coordinate else None
    if joint is not None and joint.limits is not None:
        return *joint.limits, (0.0,)
    if channel.sensor.kind == 'inclination':
        return -0.8, 0.8, (0.0,)
    turning = (unit_of(description, name) or 'rad') == 'rad' or channel.sensor.kind == 'inclinometer'
    wide = 20.0 if not turning else np.pi if isinstance(item, Machine) or channel.sensor.wraps else TURNS
    return -wide, wide, (0.0,)


def rate_fits(values: np.ndarray, unit: str, length: float = nan, fast: float = 1.0) -> list[UnitFit]:
    """Units in which a velocity, an angular velocity or a specific force is one of a machine, or of what is so many
    times as ``fast``; ``length``: usual one of
    the vector of which a specific force is a component, NaN where it is not known."""
    found = []
    for name in UNITS[unit]:
        low, high = (parse_unit(name)[0] * end for end in ends(values))
        weight = parse_unit(name)[0] * length if unit == 'm/s^2' else nan
        if max(-low, high) <= fast * FAST.get(unit, 30.0) and not (weight < GRAVITY[0] or weight > GRAVITY[1]):
            found.append(UnitFit(name, '', low, high, nan, f'{number(low)} to {number(high)} {unit} as {name}'))
    return found


def _shown(value: float, unit: str) -> str:
    factor, name = {'rad': (180.0 / np.pi, 'deg'), 'm': (1e3, 'mm')}.get(unit, (1.0, unit))
    return f'{number(factor * value)} {name}'
