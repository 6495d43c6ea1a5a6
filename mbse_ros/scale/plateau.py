# SPDX-License-Identifier: Apache-2.0
"""One mass over the time in which it stays the same: many estimates of it made one, without making it too certain.

Each estimate of the payload stage is made of all samples so far, so that they are wrong together: their weighted mean
(weights by their variances) is as uncertain as they are, not less. What is known to be noise alone is the information
of the samples; by how much the estimates differ from each other over the phase is added, as other poses make other
errors.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from math import sqrt

import numpy as np

from .reading import KNOWN, Reading, named_slopes
from .uncertain import UNKNOWN, UncertainMass

BIN_NS = 50_000_000     # of the part that may yet be left out
HELD = 1e-3             # weight of an estimate that is only held, in that of one that is measured
LONGEST = 0.1           # s that one estimate counts at most


@dataclass
class _Sums:
    """Of readings from ``begin_ns`` on: seconds, weights, weights times (mass, mass^2, stddev), information, slopes."""

    begin_ns: int
    values: np.ndarray = field(default_factory=lambda: np.zeros(6))
    slopes: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def add(self, values: np.ndarray, slopes: np.ndarray) -> None:
        self.values = self.values + values
        if slopes.size:
            self.slopes = self.slopes + slopes if self.slopes.size else slopes


class Plateau:
    """Readings of one mass; ``names`` of the machine's numbers that their slopes are of; the last ``guard``, s, can be
    left out. ``trusted``: whether the payload stage stands for one of them."""

    def __init__(self, first: Reading, names: tuple[str, ...], guard: float) -> None:
        self.begin_ns, self.first_place, self.last = first.stamp_ns, first.place, first
        self._names, self._guard_ns, self._offset = names, round(1e9 * guard), first.mass
        self._settled = _Sums(first.stamp_ns)
        self._recent: deque[_Sums] = deque()
        self.seconds, self.trusted = 0.0, False
        self.add(first)

    def add(self, reading: Reading) -> None:
        """A further reading of the same mass."""
        dt = min(max(1e-9 * (reading.stamp_ns - self.last.stamp_ns), 0.0), LONGEST)
        weight = max(dt, 1e-3) / reading.stddev ** 2 * (1.0 if reading.measured else HELD)
        off = reading.mass - self._offset
        if not self._recent or reading.stamp_ns - self._recent[-1].begin_ns >= BIN_NS:
            self._recent.append(_Sums(reading.stamp_ns))
        self._recent[-1].add(np.array([dt, weight, weight * off, weight * off * off, weight * reading.stddev,
                                       reading.information]), reading.slopes)
        while len(self._recent) > 1 and reading.stamp_ns - self._recent[1].begin_ns >= self._guard_ns:
            old = self._recent.popleft()
            self._settled.add(old.values, old.slopes)
        self.last, self.seconds = reading, self.seconds + dt
        self.trusted |= reading.status in KNOWN

    @property
    def level(self) -> float:
        """Its mass by now, kg, without the end that may be left out where there is more: a mass that begins to change
        does not take the level with it."""
        _, weight, first, *_ = self._sums(True)[0]
        return self._offset + float(first / weight)

    def mass(self, ended: bool) -> UncertainMass:
        """The mass, without its last part where it has ``ended`` by a change."""
        (_, weight, first, second, deviation, information), slopes = self._sums(ended)
        if not weight > 0.0:
            return UNKNOWN
        mean, stddev = first / weight, deviation / weight
        scatter = max(second / weight - mean * mean, 0.0)
        noise = min(1 / information, stddev ** 2) if information > 0.0 else 0.0
        common = named_slopes(self._names, slopes, sqrt(max(stddev ** 2 - noise, 0.0)))
        return UncertainMass(self._offset + float(mean), sqrt(noise + scatter), common)

    def _sums(self, ended: bool) -> tuple[np.ndarray, np.ndarray]:
        found = _Sums(self.begin_ns, self._settled.values, self._settled.slopes)
        if not ended or not found.values[1] > 0.0:
            for recent in self._recent:
                found.add(recent.values, recent.slopes)
        return found.values, found.slopes
