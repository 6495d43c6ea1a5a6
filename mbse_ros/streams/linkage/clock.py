# SPDX-License-Identifier: Apache-2.0
"""Stamps to instants of the filter's grid, and stamps that do not fit it."""

from __future__ import annotations

from enum import Enum

CONFIRMED = 3           # samples in sequence out of the grid's reach make a new one
NEAR_NS = 1_000_000_000


class Verdict(Enum):
    """What to do with a sample by its stamp."""

    USE = 'use'
    LATE = 'later than the delay window'
    AWAY = 'its stamp is out of reach of all others'
    RESTART = 'time has jumped'


class Clock:
    """Grid whose instant 1 is the first sample's; a sample belongs to the nearest instant (an error of half a step)."""

    def __init__(self, step_ns: int) -> None:
        self.step_ns = step_ns
        self.origin_ns: int | None = None
        self._away: list[int] = []

    def start(self, stamp_ns: int) -> None:
        """Begin a grid with a sample."""
        self.origin_ns, self._away = stamp_ns - self.step_ns, []

    def index(self, stamp_ns: int) -> int:
        """Nearest instant of a stamp."""
        return (2 * (stamp_ns - self.origin_ns) + self.step_ns) // (2 * self.step_ns)

    def stamp(self, index: int) -> int:
        """Stamp of an instant, ns."""
        return self.origin_ns + index * self.step_ns

    def judge(self, stamp_ns: int, oldest: int, newest: int, reach_ns: int) -> Verdict:
        """Verdict on a stamp: instants ``oldest`` and before are settled; beyond ``reach_ns`` of the newest one lies
        another time, which counts once CONFIRMED samples agree on it."""
        ahead = stamp_ns - self.stamp(newest)
        if ahead > reach_ns or ahead < -max(NEAR_NS, 2 * (newest - oldest) * self.step_ns):
            if self._away and abs(stamp_ns - self._away[-1]) > NEAR_NS:
                self._away = []
            self._away.append(stamp_ns)
            return Verdict.RESTART if len(self._away) >= CONFIRMED else Verdict.AWAY
        self._away = []
        return Verdict.LATE if self.index(stamp_ns) <= oldest else Verdict.USE
