# SPDX-License-Identifier: Apache-2.0
"""Sensors that are another from one sample on: a position or a single pressure that steps, two pressures of a cylinder
that are exchanged midway."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from ...machine import Machine
from ...machine.equations import pressure_pairs
from ...monitor.steps import CALM, LONGEST, NOISES, SIDE, SUDDEN, WIDTH, suddenness
from .channel_series import Series
from .remedies import Finding

SELDOM = 0.055      # s between samples, beyond which a motion that begins may do all of the way of a step
EVEN = 1.5          # times the usual interval, that no interval beside a step may last
LEVEL = 3           # samples on each side whose medians are compared where pressures may be exchanged
ALIKE = 0.25        # of their difference: by how much each may be off what the other was


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
    slow = np.lib.stride_tricks.sliding_window_view(intervals, WIDTH)[near].max(axis=1) > min(EVEN * usual, longest)
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
