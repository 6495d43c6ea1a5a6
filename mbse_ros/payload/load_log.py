# SPDX-License-Identifier: Apache-2.0
"""Loads one after the other: where an estimate of motion and mass gives up what it knew of the mass, a load changes.

The observer forgets old information on the mass when the mass keeps changing in one direction (see
``estimators.weighing``). That alone may be an accident; so the mass before and the mass after decide, once the latter
is known, whether it was another load.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import hypot, inf, isfinite, nan

from .mass import Mass

LOOK_BACK = 0.5         # s over which forgetting counts as a change
CHANGED = 0.5           # of the logarithm of the share of information that is kept, and ...
LOST = 1.1              # ... factor on the noise, from which a change begins
ANOTHER = 25.0          # of that logarithm, at once: the payload has found out that the load is another
AGREES = 2.0            # deviations that the noise said before, by which the first mass may still move
CALM = 1.0              # deviations of the noise by which the mass still moves within that time when it is over
DIFFERENT = 4.0         # standard deviations of the noise: what stays wrong is wrong in both masses
LEAST = 0.01            # of the range of the payload's limits that two loads differ by
SHORT = 1.0             # s: what could not be weighed for no longer than that is left out
KNOWN = 0.01            # of that range: standard deviation of the noise from which the mass after a change is judged
UNSURE = 0.02           # ... and up to which a mass that still agrees with that before has not changed
KEPT = 10_000           # loads, the last ones: a node may run for years
REMARKS = {'empty': ', nothing', 'implausible': ', not plausible'}    # on a load, by its status


@dataclass(frozen=True)
class Load:
    """One load from ``start`` to ``end``, s; its ``mass`` with the 95 % interval, kg, NaN where it was not weighed.

    ``plausible``: false where it is beyond the payload's limits, and the machine cannot carry it, or where masses of
    different poses contradict each other.
    """

    start: float
    end: float
    mass: float
    lower: float
    upper: float
    plausible: bool = True

    @property
    def status(self) -> str:
        """'unknown', 'implausible', 'empty', where the interval holds no load at all, or 'weighed'."""
        if not isfinite(self.upper - self.lower):
            return 'unknown'
        if not self.plausible:
            return 'implausible'
        return 'empty' if self.lower <= 0.0 <= self.upper else 'weighed'

    def at(self, start: float, end: float) -> Load:
        """The same load, its times by another clock."""
        return replace(self, start=start, end=end)


def plain_difference(new: Mass, old: Mass) -> tuple[float, float]:
    """By how much two masses differ, kg, and how uncertain that is where both are as wrong: not at all."""
    return new.mass - old.mass, 0.0


class LoadLog:
    """Loads of one machine; ``limits``, kg, of its payload; ``difference``: see ``PayloadEstimator.difference``;
    ``least``: s of weighing before the first mass counts."""

    def __init__(self, limits: tuple[float, float],
                 difference: Callable[[Mass, Mass], tuple[float, float]] = plain_difference,
                 least: float = 0.0) -> None:
        self._difference, self._least, self._weighed = difference, least, 0.0
        self._limits, self._span = limits, limits[1] - limits[0]
        self.closed: deque[Load] = deque(maxlen=KEPT)
        self._recent: deque[tuple[float, float, Mass]] = deque()
        self._start = inf       # s; before the first mass
        self.found = False      # whether the first mass has agreed with itself for a while
        self.unseen = False     # whether the load may be another since it was weighed, and hardly was weighed again
        self._before: tuple[float, Mass] | None = None      # while a load changes: since when, and the mass before
        self._different = DIFFERENT     # and from which deviations of the noise the mass after is another's
        self._paused, self._after_pause = inf, False     # s of weighing since a pause; whether that is why it changes

    def pause(self) -> None:
        """All sensors have paused: that something is forgotten next does not mean another load."""
        self._paused = 0.0

    def take(self, t: float, mass: Mass, kept: float, look_back: float = LOOK_BACK) -> None:
        """The mass at ``t``, s, which increases (``streams.elapsed``), and ``kept``: logarithm of the share of the
        first information that still counts; ``look_back``, s, over which forgetting counts as a change."""
        self._start = min(self._start, t)
        weighed = t - self._recent[-1][0] if mass.taken and self._recent else 0.0
        self._weighed += weighed
        self._paused += weighed
        if not mass.taken and self._recent and kept < self._recent[-1][1]:
            self._weighed, self.unseen = 0.0, True      # what is forgotten though nothing was weighed
        self.unseen = self.unseen and self._weighed < self._least
        self._recent.append((t, kept, mass))
        while t - self._recent[0][0] > look_back:
            self._recent.popleft()
        begin, most, old = self._recent[0]
        if not self.found:
            self.found = (self._agree(mass, old, AGREES * old.noise, AGREES) and t - begin > LOOK_BACK / 2
                          and self._weighed >= self._least)
        elif self._before is None:
            forgotten = most - kept > CHANGED and mass.noise > max(LOST * old.noise, LEAST / 2 * self._span)
            if most - kept > ANOTHER:
                self._before, self._different = (begin, old), AGREES
                self._after_pause = self._paused <= look_back
                self._recent = deque([self._recent[-1]])
            elif (forgotten and not self._calm(mass, old, AGREES, UNSURE)
                  or isfinite(old.mass) and not isfinite(mass.mass)):
                self._before, self._different = (begin, old), DIFFERENT
                self._after_pause = self._paused <= look_back
        elif t - begin > LOOK_BACK / 2 and self._calm(mass, old, CALM, KNOWN) and not self.unseen:
            self._judge(begin, mass, *self._before)

    def _calm(self, new: Mass, old: Mass, deviations: float, known: float) -> bool:
        """Whether a mass is known to that share of the range, and the same as half a second before."""
        return new.noise < known * self._span and self._agree(new, old, deviations * new.noise, deviations)

    def _agree(self, new: Mass, old: Mass, room: float, deviations: float) -> bool:
        """Whether two masses differ by no more than ``room``, kg, and ``deviations`` of what the uncertain numbers make
        of another pose."""
        off, stddev = self._difference(new, old)
        return abs(off) <= hypot(room, deviations * stddev)

    @property
    def changing(self) -> bool:
        """Whether the load changes, or has changed and is not known yet."""
        return self._before is not None

    @property
    def just_paused(self) -> bool:
        """Whether a mass still settles after a pause."""
        return self._paused <= SHORT

    @property
    def unknown_again(self) -> bool:
        """The same, where only a pause of all sensors is the reason."""
        return self.changing and self._after_pause

    def _judge(self, begin: float, mass: Mass, since: float, old: Mass) -> None:
        """The mass after the change at ``since``, known from ``begin`` on: another load than ``old``, or the same."""
        room = max(self._different * hypot(mass.noise, old.noise), LEAST * self._span)
        if not self._agree(mass, old, room, self._different):
            load = self._load(self._start, since, old)
            if load.status not in ('unknown', 'implausible') or since - self._start > SHORT:
                self.closed.append(load)
            self._start = begin
        self._before = None

    def all(self, t: float, mass: Mass) -> tuple[Load, ...]:
        """The loads up to ``t``, s, the last one still carried."""
        if self._start == inf:
            return ()
        if self._before is None:
            return (*self.closed, self._load(self._start, t, mass))
        since, old = self._before
        after = Load(since, t, nan, nan, nan) if self.unseen else self._load(since, t, mass)
        return (*self.closed, self._load(self._start, since, old), after)

    def _load(self, start: float, end: float, mass: Mass) -> Load:
        return Load(start, end, mass.mass, mass.mass - mass.half_width, mass.mass + mass.half_width,
                    not (mass.beyond(self._limits) or mass.contradiction))
