# SPDX-License-Identifier: Apache-2.0
"""What the values of one channel say by themselves: no pressure and no position is like that."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import DescriptionError
from ...machine import Machine
from ...machine.channels import ATMOSPHERE, Channel
from ...machine.reach import reach_of
from ..log_samples import STEP, Series

TINY = 50e3         # Pa: a pressure in Pa that never exceeds it is hardly one of a hydraulic machine
HIGHEST = 200e6     # Pa, beyond which no hydraulic pressure lies
VACUUM = -5e3       # Pa, mean below which a pressure is impossible
EMPTY = 25e3        # Pa, below which no chamber rests whose tank is at 0.1 MPa
TANK = 0.09e6       # Pa
SHORT = 0.5         # s
DEEP = 1.2 * ATMOSPHERE
OUTSIDE, ROOM = 0.5, 0.05       # share of the samples outside the range by so much of it
BEYOND, NOISES = 0.02, 6.0      # of the range, and deviations of the noise, by which a position is beyond its limits
LASTING = 0.3       # s for which it is
FAST = 3.0          # rad/s, of a joint without limits
TURN, NEAR_TURN = 2.0 * np.pi, 0.3      # rad, and by how much a step may differ from a turn: the motion of an interval
USUAL = 95.0        # % of its speeds: more are of turns that are counted from 0 again, or of logs put together


@dataclass(frozen=True)
class Pressure:
    """A pressure by what its values look like: ``looks`` is '', 'tiny', 'negated', 'gauge', 'impossible' or 'huge'."""

    looks: str
    seen: str = ''


def pressure_looks(channel: Channel, values: np.ndarray, means: np.ndarray, resting: np.ndarray,
                   tank: float | None) -> Pressure:
    """From samples (n,), their means (k,) on the grid, and whether the machine rests then (k,); Pa.

    ``tank``: the lowest supply of the file, None without.
    """
    gain, offset, zero = channel.nominal
    there = np.isfinite(means)
    absolute, resting = (means[there] - offset) / gain + zero, resting[there]
    if values.size < 10 or not absolute.size:
        return Pressure('')
    low, high = float(absolute.min()), float(absolute.max())
    if np.percentile(np.abs(values), 98) < TINY and not _dead(values, channel.sensor.noise):
        return Pressure('tiny', f'{values.min():.4g} to {values.max():.4g}, no pressures in Pa')
    if np.median(absolute) > HIGHEST:
        return Pressure('huge', f'{low:.3g} to {high:.3g} Pa, more than any hydraulic pressure')
    below = absolute < VACUUM
    if low < -DEEP and below.mean() > 0.5:
        return Pressure('negated', f'{low:.3g} to {high:.3g} Pa, mostly below vacuum')
    if low < -DEEP and below.sum() * STEP >= SHORT:
        return Pressure('impossible', f'down to {low:.3g} Pa, far below vacuum')
    if below.sum() * STEP >= SHORT:
        return Pressure('gauge', f'for {below.sum() * STEP:.1f} s below vacuum, down to {low:.3g} Pa')
    if tank is not None and tank >= TANK and resting.size and not channel.sensor.gauge:
        empty = resting & (absolute < EMPTY)
        if empty.sum() * STEP >= SHORT:
            return Pressure('gauge', f'rests at {np.median(absolute[empty]):.3g} Pa, the tank of the file at '
                                     f'{tank:.3g} Pa')
    return Pressure('')


def _dead(values: np.ndarray, noise: float) -> bool:
    """Whether they are noise around zero, or zero."""
    negative = float(np.mean(values < 0))
    return not values.any() or 0.1 < negative < 0.9 and float(values.std()) > 0.2 * noise


def turns(values: np.ndarray) -> int:
    """How often an angle that stays within a turn, rad, steps by a whole one from sample to sample (n,)."""
    there = values[np.isfinite(values)]
    if not there.size or np.ptp(there) > TURN + NEAR_TURN:
        return 0
    return int(np.sum(np.abs(np.abs(np.diff(there)) - TURN) < NEAR_TURN))


def outside_range(machine: Machine, channel: str, means: np.ndarray, t: np.ndarray) -> str:
    """What is seen of a position whose means (k,) at instants ``t`` (k,), s, of the grid are mostly not in the range of
    its coordinate; '' where they are.

    A joint without limits may count its turns: of it the speed tells, between neighbours on the grid.
    """
    name, there = channel.partition('/')[2], np.isfinite(means)
    means, t = means[there], t[there]
    if name not in machine.coordinates or not means.size:
        return ''
    low, high = machine.range[machine.coordinates.index(name)]
    unit, room = 'm' if name in machine.cylinders else 'rad', ROOM * (high - low)
    seen = f'{means.min():.4g} to {means.max():.4g}, range {low:.4g} to {high:.4g} {unit}'
    if not limited(machine, name):
        steps = np.diff(t)
        speed = (np.abs(np.diff(means)) / steps)[steps < 1.5 * STEP]
        fast = float(np.percentile(speed, USUAL)) if speed.size else 0.0
        moving = speed[(speed > 0.1 * fast) & (speed <= fast)]
        return f'{seen}, speeds up to {fast:.3g} rad/s' if moving.size and np.median(moving) > FAST else ''
    outside = (means < low - room) | (means > high + room)
    return seen if outside.mean() > OUTSIDE else ''


def beyond_limits(machine: Machine, channel: Channel, series: Series) -> str:
    """What is seen of a position that stays where its cylinder or joint cannot be; '' of one that does not."""
    name = channel.name.partition('/')[2]
    if channel.sensor.wraps or name not in machine.coordinates or not series.values.size:
        return ''
    limits = _limits(machine, name)
    if limits is None:
        return ''
    low, high, what = limits
    room = BEYOND * (high - low) + NOISES * channel.sensor.noise
    gain, offset, zero = channel.nominal
    values = (series.values - offset) / gain + zero
    outside = np.concatenate([[False], (values < low - room) | (values > high + room), [False]])
    starts, ends = (np.flatnonzero(np.diff(outside.astype(np.int8)) == sign) for sign in (1, -1))
    spells = series.t[ends - 1] - series.t[starts]
    if not spells.size or spells.max() < LASTING:
        return ''
    unit = 'm' if name in machine.cylinders else 'rad'
    return (f'{values.min():.4g} to {values.max():.4g} {unit}, for {spells.sum():.1f} s outside {what} of {low:.4g} to '
            f'{high:.4g} {unit}')


def _limits(machine: Machine, name: str) -> tuple[float, float, str] | None:
    """Stroke of a cylinder, limits of a joint, or what the stroke of its cylinder lets it reach."""
    if limited(machine, name):
        low, high = machine.range[machine.coordinates.index(name)].tolist()
        return low, high, 'the stroke' if name in machine.cylinders else 'the limits'
    try:
        found = [reach.moved[name] for reach in reach_of(machine) if name in reach.moved]
    except DescriptionError:
        return None
    return (*found[0], 'what its cylinder reaches,') if len(found) == 1 else None


def limited(machine: Machine, name: str) -> bool:
    """Whether a coordinate has a stroke or limits."""
    coordinate = machine.description.coordinates.get(name)
    joint = machine.description.joints.get(coordinate.joint if coordinate else '')
    return name in machine.cylinders or (joint is not None and joint.limits is not None)
