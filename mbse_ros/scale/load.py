# SPDX-License-Identifier: Apache-2.0
"""One load: the levels of its mass from where it was taken to where it ended, and how much of it was delivered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, isfinite

from .reading import Place
from .uncertain import UncertainMass, combined

WEIGHED, PUT_BACK, CARRIED, COUNTED = 'weighed', 'put_back', 'carried', 'counted'
COUNTS = WEIGHED, CARRIED       # in totals


@dataclass(frozen=True)
class Level:
    """A mass of a load, tare included, and where and when it changed."""

    mass: UncertainMass
    place: Place | None
    stamp_ns: int


@dataclass(frozen=True)
class Load:
    """A load, from ``start_ns`` to ``end_ns``.

    ``mass``: what of it was delivered, without tare; ``taken``, ``dropped``: where, None where it was not seen;
    ``most``, kg: what it weighed at most, without tare. ``status``: 'weighed'; 'put_back': where it was taken, it does
    not count; 'carried': it hung there when the log ended; 'counted': the end of a load that the operator had counted.
    """

    start_ns: int
    end_ns: int
    mass: UncertainMass
    taken: Place | None = None
    dropped: Place | None = None
    most: float = 0.0
    status: str = WEIGHED

    @property
    def counts(self) -> bool:
        """Whether it belongs into a total."""
        return self.status in COUNTS


@dataclass
class Carried:
    """A load while it is carried: since when, from where, what an empty machine weighed before, its levels so far, the
    farthest it has been from where it was taken, m; ``counted``: by the operator, before its end."""

    start_ns: int
    taken: Place | None
    tare: UncertainMass
    levels: list[Level] = field(default_factory=list)
    farthest: float = 0.0
    counted: bool = False

    def moved(self, place: Place | None) -> None:
        """The load is there now."""
        if place is not None and self.taken is not None:
            self.farthest = max(self.farthest, place.distance(self.taken))

    def delivered(self, radius: float, before: Place | None) -> Load:
        """The load as it ended: the last level went to nothing. ``before``: where the loads of this truck went.

        What was lost within ``radius``, m, of there is delivered, or where nothing was lost there, what was lost within
        it of the end: all that a bucket shakes off in one place, but no spill on the way, and of a bucket that was only
        tipped over the truck not the rest that went back to the heap.
        """
        chosen = lost_near(self.levels, before, radius) if before is not None else []
        chosen = chosen or lost_near(self.levels, self.levels[-1].place, radius)
        return self._load(chosen, self.levels)

    def delivered_so_far(self, radius: float, before: Place | None, now: Level) -> Load | None:
        """What this truck has got of a load that is still carried; None where that is nothing."""
        chosen = [i for i in lost_near([*self.levels, now], before, radius) if i < len(self.levels)] if before else []
        return self._load(chosen, [*self.levels, now]) if chosen else None

    def put_back(self, radius: float, travel: float) -> bool:
        """Whether it ended within ``radius`` of where it was taken, and was never farther than ``travel``, m.

        Of a machine that swings; one that only lifts and lowers has no other place to bring a load to.
        """
        end = self.levels[-1].place
        return (self.taken is not None and end is not None and isfinite(end.swing) and self.farthest < travel
                and end.distance(self.taken) <= radius)

    def _load(self, chosen: Sequence[int], levels: Sequence[Level]) -> Load:
        """By the losses that count; a level between two of them is not in the sum at all."""
        factors = [0.0] * (len(levels) + 1)
        for i in chosen:
            factors[i] += 1.0
            factors[i + 1] -= 1.0
        masses = [*(level.mass for level in levels), self.tare]
        end = levels[chosen[-1]]
        return Load(self.start_ns, end.stamp_ns, combined(zip(factors, masses)), self.taken, end.place,
                    max(level.mass.value for level in levels) - self.tare.value)


def lost_near(levels: Sequence[Level], place: Place | None, radius: float) -> list[int]:
    """Places in the list of levels after which mass was lost within a radius, m, of a place; where it is not known
    where, it is near."""
    after = [*(level.mass.value for level in levels[1:]), -inf]
    return [i for i, (level, mass) in enumerate(zip(levels, after)) if mass < level.mass.value and (
        place is None or level.place is None or level.place.distance(place) <= radius)]


