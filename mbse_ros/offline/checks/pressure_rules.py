# SPDX-License-Identifier: Apache-2.0
"""Pressures of another line, or in another unit than they were taken for: with one such change the forces balance that
do not balance as they are.

Each cylinder has its own equation of the force balance, with its own size and direction of force, and all carry one
load: hoses, or plugs, that are exchanged between cylinders, and a factor on one pressure, contradict that.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations, permutations

import numpy as np

from ...machine import Machine
from ...machine.equations import pressure_pairs
from .channel_series import Means
from .force_fit import Fit, ForceFit
from .remedies import PLAINLY, PRESSURE_UNITS, Finding, Remedy

FEWEST = 2          # equations of the force balance: in one alone many changes do the same
MOST = 3            # changes that explain a log about equally well, up to which they are named


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
