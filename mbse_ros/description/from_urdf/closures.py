# SPDX-License-Identifier: Apache-2.0
"""The ways in which a cylinder of given lengths and a joint of a URDF may be put together.

A distance from two pins says not on which side of their line the third one is, and a rocker and a link close on two
sides. For each the angles of the joint are found over which the piston goes from closed to extended without a dead
point. Where the URDF has limits, those that agree with them remain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

GRID = 1441             # angles of the circle that are tried, every quarter of a degree
AGREES = 0.6            # of the shorter one of range and limits: what both share
BETTER = 0.75           # a range counts beside the best where it has as much in common with the limits
EXACT = np.radians(4.0)     # a range whose ends are so near to the limits excludes those that are as much farther off
SAME = 0.01             # rad: two ranges are one
Lengths = Callable[[np.ndarray], np.ndarray]        # of a cylinder, m, by the angle of its joint, rad; NaN: open


@dataclass(frozen=True)
class Closure:
    """One way: number of the ``choice``, angles of the joint ``closed``, in the ``middle`` of the stroke and
    ``extended``, rad, and ``agreement`` with the limits of the URDF, 1 where there are none."""

    choice: int
    closed: float
    middle: float
    extended: float
    agreement: float = 1.0

    @property
    def range(self) -> tuple[float, float]:
        """Of the joint, rad."""
        return min(self.closed, self.extended), max(self.closed, self.extended)


def closures(choices: Sequence[Lengths], ends: tuple[float, float], limits: tuple[float, float] | None
             ) -> list[Closure]:
    """All ways, the best first (without limits those near 0), that a piston between two lengths, m, may have."""
    found = [Closure(k, *way) for k, lengths in enumerate(choices) for way in _ways(lengths, ends, limits)]
    if limits is None:
        return _different(sorted(found, key=lambda item: abs(item.middle)))
    shared = [(_shared(item.range, limits), item) for item in found]
    rated = [replace(item, agreement=both / (np.ptp(item.range) + np.ptp(limits) - both)) for both, item in shared
        if both >= AGREES * min(np.ptp(item.range), np.ptp(limits))]
    rated.sort(key=lambda item: -item.agreement)
    off = [max(abs(end - limit) for end, limit in zip(item.range, limits)) for item in rated]
    return _different([item for item, away in zip(rated, off) if item.agreement >= BETTER * rated[0].agreement
                       and (off[0] > EXACT or away <= off[0] + EXACT)])


def spans(choices: Sequence[Lengths], limits: tuple[float, float]) -> list[tuple[float, float]]:
    """Shortest and longest length, m, of each choice over the limits of a joint."""
    angles = np.linspace(*limits, 181)
    found = [lengths(angles) for lengths in choices]
    return [(float(item.min()), float(item.max())) for item in found if np.isfinite(item).all()]


def _ways(lengths: Lengths, ends: tuple[float, float], limits: tuple[float, float] | None
          ) -> Iterator[tuple[float, float, float]]:
    """Angles closed, in the middle and extended of each range over which the length grows, or falls, from one end to
    the other."""
    middle = 0.0 if limits is None else 0.5 * (limits[0] + limits[1])
    angles = middle + np.linspace(-1.5 * np.pi, 1.5 * np.pi, GRID * 3 // 2)
    values = lengths(angles)
    rising = np.sign(np.diff(values))
    start = 0
    for k in range(1, len(rising) + 1):
        if k < len(rising) and rising[k] == rising[start]:
            continue
        if np.isfinite(rising[start]) and rising[start]:
            some, where = values[start:k + 1], angles[start:k + 1]
            if some.min() <= ends[0] and ends[1] <= some.max():
                order = np.argsort(some)
                way = np.interp((ends[0], 0.5 * (ends[0] + ends[1]), ends[1]), some[order], where[order])
                if abs(way[1] - middle) <= np.pi:
                    yield float(way[0]), float(way[1]), float(way[2])
        start = k


def _shared(one: tuple[float, float], other: tuple[float, float]) -> float:
    return max(min(one[1], other[1]) - max(one[0], other[0]), 0.0)


def _different(found: list[Closure]) -> list[Closure]:
    """Each once: a pin on the line has no sides."""
    kept: list[Closure] = []
    for item in found:
        if not any(abs(item.closed - other.closed) < SAME and abs(item.extended - other.extended) < SAME
                   for other in kept):
            kept.append(item)
    return kept
