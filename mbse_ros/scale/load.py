# SPDX-License-Identifier: Apache-2.0
"""One load: the levels of its mass from where it was taken to where it ended, and how much of it was delivered.

Its mass has errors that are partly its own and partly common to all that the machine weighs. Own errors (noise) average
out over many loads, errors of the machine's numbers do not: friction that is 20 % off makes each load wrong in the same
direction. So the sum of many masses is as uncertain as the squares of what is their own, and the sums, with their
signs, of what each common cause does to all of them (the law of propagation of uncertainty with correlations, JCGM
100:2008, 5.2.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import hypot, inf, isfinite, nan, sqrt

from ..monitor.faults import NONE, Fault
from ..payload.mass import NORMAL
from .reading import Place

ANY = ''        # a common cause of which nothing is known: it is taken to be the same as any other
WEIGHED, PUT_BACK, CARRIED, COUNTED, EMPTY = 'weighed', 'put_back', 'carried', 'counted', 'empty'
SHORT = 2.0     # s, for which what is left of a load is not a load that is carried elsewhere
COUNTS = WEIGHED, CARRIED       # in totals


@dataclass(frozen=True)
class UncertainMass:
    """``value``, kg; ``own``: standard deviation of errors that no other mass shares, kg; ``common``: by cause, what
    one standard deviation of it does to this mass, kg, with its sign."""

    value: float
    own: float = 0.0
    common: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def stddev(self) -> float:
        """Standard deviation of all errors together, kg. What is common without a name adds to the named ones."""
        named = sqrt(sum(kg * kg for cause, kg in self.common.items() if cause != ANY))
        return hypot(self.own, named + abs(self.common.get(ANY, 0.0)))

    @property
    def interval(self) -> tuple[float, float]:
        """Ends of the 95 % interval, kg."""
        return self.value - NORMAL * self.stddev, self.value + NORMAL * self.stddev

    @property
    def known(self) -> bool:
        """Whether there is a mass with an interval."""
        return isfinite(self.value) and isfinite(self.stddev)

    def __add__(self, other: UncertainMass) -> UncertainMass:
        return combined(((1.0, self), (1.0, other)))

    def __sub__(self, other: UncertainMass) -> UncertainMass:
        return combined(((1.0, self), (-1.0, other)))


NOTHING = UncertainMass(0.0)
UNKNOWN = UncertainMass(nan, nan)


def combined(parts: Iterable[tuple[float, UncertainMass]]) -> UncertainMass:
    """Sum of masses, each by its factor; each is another one: what is their own is independent."""
    value, variance = 0.0, 0.0
    common: dict[str, float] = {}
    for factor, mass in parts:
        value += factor * mass.value
        variance += (factor * mass.own) ** 2
        for cause, kg in mass.common.items():
            common[cause] = common.get(cause, 0.0) + factor * kg
    return UncertainMass(value, sqrt(variance), common)


@dataclass(frozen=True)
class Level:
    """A mass of a load, tare included, where and when it changed, whether the payload stage stands for it, and how long
    it lasted, s."""

    mass: UncertainMass
    place: Place | None
    stamp_ns: int
    trusted: bool = True
    seconds: float = inf


@dataclass(frozen=True)
class Load:
    """A load, from ``start_ns`` to ``end_ns``.

    ``mass``: what of it was delivered, without tare; ``taken``, ``dropped``: where, None where it was not seen;
    ``most``, kg: what it weighed at most, without tare; ``trusted``: whether the payload stage stands for a mass of
    what was delivered. ``status``: 'weighed'; 'put_back': where it was taken, it does not count; 'carried': it hung
    there when the log ended; 'counted': the end of a load that the operator had counted; 'empty': it was none.
    ``faults``: for which the mass was held since it was taken, until its end was seen.
    """

    start_ns: int
    end_ns: int
    mass: UncertainMass
    taken: Place | None = None
    dropped: Place | None = None
    most: float = 0.0
    trusted: bool = True
    status: str = WEIGHED
    faults: Fault = NONE

    @property
    def counts(self) -> bool:
        """Whether it belongs into a total."""
        return self.status in COUNTS


@dataclass
class Carried:
    """A load while it is carried: since when, from where, what an empty machine weighed before, its levels so far, the
    farthest it has been from where it was taken, m; ``counted``: by the operator, before its end; ``faults``: as of a
    Load."""

    start_ns: int
    taken: Place | None
    tare: UncertainMass
    levels: list[Level] = field(default_factory=list)
    farthest: float = 0.0
    counted: bool = False
    faults: Fault = NONE

    def moved(self, place: Place | None) -> None:
        """The load is there now."""
        if place is not None and self.taken is not None:
            self.farthest = max(self.farthest, place.distance(self.taken))

    def delivered(self, radius: float, before: Place | None) -> Load:
        """The load as it ended: the last level went to nothing. ``before``: where the loads of this truck went.

        What was lost within ``radius``, m, of there is delivered, or where nothing was lost there, what was lost within
        it of where most was: all that a bucket shakes off in one place, but no spill on the way, and of a bucket that
        was only tipped over the truck not the rest that went back to the heap. Not of the end: at low rates a part of
        the load seems to be there until the bucket has swung back.
        """
        chosen = lost_near(self.levels, before, radius) if before is not None else []
        after = [*(level.mass.value for level in self.levels[1:]), self.tare.value]
        most = max(zip(self.levels, after), key=lambda pair: pair[0].mass.value - pair[1])[0]
        return self._load(chosen or lost_near(self.levels, most.place, radius), self.levels)

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
        """By the losses that count; a level between two of them is not in the sum at all. It went to where most of it
        was lost, and ended with the last level that the payload stage stands for: others are of a drop already."""
        factors = [0.0] * (len(levels) + 1)
        for i in chosen:
            factors[i] += 1.0
            factors[i + 1] -= 1.0
        masses = [*(level.mass for level in levels), self.tare]
        most = max(chosen, key=lambda i: masses[i].value - masses[i + 1].value)
        last = max((i for i in chosen if levels[i].trusted), default=chosen[-1])
        return Load(self.start_ns, levels[last].stamp_ns, combined(zip(factors, masses)), self.taken,
                    levels[most].place,
                    max(level.mass.value for level in levels) - self.tare.value,
                    all(level.trusted for level, factor in zip(levels, factors) if factor), faults=self.faults)


def lost_near(levels: Sequence[Level], place: Place | None, radius: float) -> list[int]:
    """Places in the list of levels after which mass was lost within a radius, m, of a place; where it is not known
    where, it is near. What is lost shortly after such a loss belongs to it: estimates lag behind a bucket that swings
    back already."""
    after = [*(level.mass.value for level in levels[1:]), -inf]
    found: list[int] = []
    for i, (level, mass) in enumerate(zip(levels, after)):
        near = place is None or level.place is None or level.place.distance(place) <= radius
        if mass < level.mass.value and (near or i - 1 in found and level.seconds < SHORT):
            found.append(i)
    return found
