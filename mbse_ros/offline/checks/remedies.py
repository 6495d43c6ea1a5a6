# SPDX-License-Identifier: Apache-2.0
"""What may be wrong with the samples of a log, and how to fix it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

import numpy as np

from ...machine import Machine
from ...machine.channels import ATMOSPHERE
from ...machine.equations import pressure_pairs

PRESSURE_UNITS = {'bar': 1e5, 'kPa': 1e3, 'MPa': 1e6, 'psi': 6894.757}
LENGTH_UNITS = {'mm': 1e-3, 'cm': 1e-2}
DEGREE = float(np.pi / 180)
MANY = 4            # cylinders up to which all sets of swapped ones are tried
PLAINLY = 0.8       # times the square of the misfit, below which a trial is better than one before
T = TypeVar('T')


@dataclass(frozen=True)
class Finding:
    """What is wrong with ``channels``: ``kind``, one word; what is ``seen``, with numbers; the ``remedy``."""

    kind: str
    channels: tuple[str, ...]
    seen: str
    remedy: str
    of_all: bool = False        # channels that there are

    @property
    def line(self) -> str:
        """In words."""
        return f'{"all channels" if self.of_all else ", ".join(self.channels)}: {self.seen}; {self.remedy}'


@dataclass(frozen=True)
class Remedy:
    """``changes``: by channel the one whose samples it has in truth, a gain and an offset, SI; ``words`` for it."""

    kind: str
    changes: tuple[tuple[str, str, float, float], ...]
    words: str

    @property
    def channels(self) -> tuple[str, ...]:
        """Those that it changes."""
        return tuple(change[0] for change in self.changes)

    def mended(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The values with the changes made."""
        made = {channel: gain * values[source] + offset for channel, source, gain, offset in self.changes
                if source in values}
        return {**values, **made}


def scaled(channel: str, factor: float, unit: str) -> Remedy:
    """Samples in another unit."""
    return Remedy('unit', ((channel, channel, factor, 0.0),), f'multiply by {factor:.6g}: the values look like {unit}')


def negated(channel: str) -> Remedy:
    """Samples with the wrong sign."""
    return Remedy('negated', ((channel, channel, -1.0, 0.0),), 'multiply by -1: the values look negated')


def gauge(channel: str) -> Remedy:
    """Pressures counted from the atmosphere's."""
    return Remedy('gauge', ((channel, channel, 1.0, ATMOSPHERE),),
                  f'add {ATMOSPHERE:g} Pa, or state `reference: gauge` for this sensor in the file: the values are '
                  'relative to the atmosphere')


def swapped(first: str, second: str) -> Remedy:
    """Samples of each other."""
    return Remedy('swapped', ((first, second, 1.0, 0.0), (second, first, 1.0, 0.0)),
                  f'swap {first} and {second}: the forces balance that way')


def reversed_(channel: str, low: float, high: float, unit: str) -> Remedy:
    """A position counted from the other end of its range."""
    return Remedy('reversed', ((channel, channel, -1.0, low + high),),
                  f'take {low + high:.4g} {unit} minus the value: the forces balance that way')


def position_remedies(machine: Machine, channel: str) -> tuple[Remedy, ...]:
    """Other units and zeros that the samples of a position outside its range may have, the usual first."""
    name = channel.partition('/')[2]
    cylinder = machine.description.cylinders.get(name)
    if cylinder is None:
        return scaled(channel, DEGREE, 'degrees'), negated(channel), Remedy(
            'unit', ((channel, channel, -DEGREE, 0.0),), f'multiply by {-DEGREE:.6g}: the values look like degrees, '
            'negated')
    closed = cylinder.closed_length.value
    units = tuple(scaled(channel, factor, unit) for unit, factor in LENGTH_UNITS.items())
    lengths = tuple(Remedy('unit', ((channel, channel, factor, -closed),),
                           f'multiply by {factor:g} and subtract the closed length of {closed:g} m: the values look '
                           f'like the length from pin to pin in {unit}')
                    for unit, factor in {'m': 1.0, **LENGTH_UNITS}.items())
    added = Remedy('offset', ((channel, channel, 1.0, -2.0 * closed),),
                   f'subtract {2.0 * closed:g} m, twice the closed length of {closed:g} m: it looks added where it '
                   'is to be subtracted (the sign of `offset` in a map)')
    return (added, *units, *lengths, negated(channel))


def swap_sets(machine: Machine) -> list[tuple[Remedy, ...]]:
    """Sets of cylinders whose chambers may be swapped, the smallest first; of many cylinders one at a time, or all."""
    swaps = [swapped(*pair) for pair in dict.fromkeys(pressure_pairs(machine).values())]
    sizes = range(len(swaps) + 1) if len(swaps) <= MANY else (0, 1, len(swaps))
    return [chosen for size in sizes for chosen in combinations(swaps, size)]


def position_reversals(machine: Machine) -> Iterable[Remedy]:
    """Positions of what cylinders move, from the other end or with the other sign."""
    for k in machine.actuated:
        name, (low, high) = machine.coordinates[k], machine.range[k]
        channel, unit = f'position/{name}', 'm' if name in machine.cylinders else 'rad'
        if channel in machine.channels:
            yield reversed_(channel, float(low), float(high), unit)
            if name not in machine.cylinders:
                yield negated(channel)


def position_swaps(machine: Machine) -> Iterable[Remedy]:
    """Positions of two cylinders, or of two joints that cylinders move, that may be each other's."""
    known = [(name, f'position/{name}') for name in (machine.coordinates[k] for k in machine.actuated)
             if f'position/{name}' in machine.channels]
    for (one, first), (other, second) in combinations(known, 2):
        if (one in machine.cylinders) == (other in machine.cylinders):
            yield swapped(first, second)


def least(trials: Sequence[T], misfit: Callable[[T], float]) -> T:
    """The trial that fits best; an earlier one where a later one is not plainly better."""
    best, size = trials[0], misfit(trials[0])
    for trial in trials[1:]:
        other = misfit(trial)
        if other < PLAINLY * size:
            best, size = trial, other
    return best


def together(remedies: Iterable[Remedy], values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Values with several remedies, one after the other."""
    found = dict(values)
    for remedy in remedies:
        found = remedy.mended(found)
    return found
