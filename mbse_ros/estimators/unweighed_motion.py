# SPDX-License-Identifier: Apache-2.0
"""Motion that no equation weighs: while only cylinders without pressure sensors move, a load changes unseen.

A scale with the boom's pressures alone learns of it when the boom moves again. Until then the mass may be that of
another load: its variance grows with the way of the others, up to that of a mass of which nothing is known.
"""

from __future__ import annotations

from math import log

import numpy as np

from ..machine import Machine
from .mass_information import LOG_KEPT

UNSEEN = 0.03       # of the range of a coordinate, moved while nothing weighs, from which the load may be another ...
ANOTHER = 0.3       # ... and from which it may be any
ANY = 0.5           # of the range of the payload's limits: standard deviation of any load
AGAIN = 1e5         # activity of the mass when an equation weighs again: the first moments of a motion are its worst


class UnweighedMotion:
    """Of one machine; ``whole``: whether each coordinate that cylinders move has an equation that weighs. ``moved``,
    ``activity``, ``mass``: where the packed state of an observer says in which equations pistons move, how lively the
    mass is, and its variance."""

    def __init__(self, machine: Machine, moved: slice = slice(0), activity: int = 0, mass: int = 0) -> None:
        self._coordinates, self._moved, self._activity, self._mass = len(machine.coordinates), moved, activity, mass
        self._actuated, limits = machine.actuated, machine.range[machine.actuated]
        self._range = limits[:, 1] - limits[:, 0]
        self._weighed = np.array([machine.actuated.index(k) for k in machine.weighed], dtype=int)
        self.whole = len(self._weighed) == len(self._actuated)
        self.reset()

    def reset(self) -> None:
        """Nothing has moved."""
        self._since: np.ndarray | None = None       # where they were when an equation weighed last
        self.variance = 0.0     # of what the load may have changed by since then, in ranges of the payload's limits

    def forget(self, packed: np.ndarray, reported: np.ndarray, open: np.ndarray | None) -> None:
        """Of an observer: change the ``packed`` state after a segment, and what is ``reported`` of its last step, see
        MassInformation; ``open``: as below."""
        if self.whole and open is None and self._since is None:
            return      # nearly always
        share, variance = self.take(packed[:self._coordinates], packed[self._moved] > 0.5, packed[self._mass], open)
        reported[LOG_KEPT] += share
        if variance:
            packed[self._mass] += variance
            packed[self._activity] = max(packed[self._activity], AGAIN)

    def take(self, position: np.ndarray, moved: np.ndarray, known: float, open: np.ndarray | None = None
             ) -> tuple[float, float]:
        """After a segment that ends at a ``position`` (g,), SI: logarithm of the share of what was known of the mass
        that still counts, and, where an equation weighs again, the variance by which the load may have changed.

        ``moved`` (a,): in which equations pistons move; ``known``: variance of the mass; both variances in ranges of
        the payload's limits; ``open`` (a,): equations whose pressures all have samples, None: all."""
        whole = self.whole and (open is None or bool(open.all()))
        if whole and self._since is None:
            return 0.0, 0.0
        place, before = position[self._actuated], self.variance
        if (moved if open is None else moved & open).any():
            self.reset()
            self._since = None if whole else place
            return 0.0, before
        self._since = place if self._since is None else self._since
        ways = np.abs(place - self._since) / self._range
        ways[self._weighed if open is None else self._weighed[open]] = 0.0
        way = float(ways.max(initial=0.0))
        if way > UNSEEN:
            self.variance = max(before, (ANY * min(way / ANOTHER, 1.0)) ** 2)
        return log((known + before) / (known + self.variance)), 0.0
