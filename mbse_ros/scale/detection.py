# SPDX-License-Identifier: Apache-2.0
"""Loads out of readings, one by one: taken, carried, dropped.

A mass that has stayed the same for a while is a level. A load begins with a level that is heavier than an empty
machine and ends with one that is not; levels between are what was spilt, shaken off or added. Only masses that the
payload stage stands for make levels: while it says that the load changes, or that the machine touches something,
nothing is decided, unless it is sure for long that most of a load is gone. Where the mass was unknown for so long that
another load may have been taken, and is another after it, it is another load.

One mass over the time in which it stays the same: many estimates of it made one, without making it too certain.

Each estimate of the payload stage is made of all samples so far, so that they are wrong together: their weighted mean
(weights by their variances) is as uncertain as they are, not less. What is known to be noise alone is the information
of the samples; by how much the estimates differ from each other over the phase is added, as other poses make other
errors.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from math import isfinite, sqrt

import numpy as np

from ..monitor.faults import NONE, Fault
from ..payload.mass import NORMAL
from ..streams.records import PayloadStatus
from .load import CARRIED, COUNTED, EMPTY, NOTHING, PUT_BACK, UNKNOWN, Carried, Level, Load, UncertainMass
from .reading import KNOWN, Place, Reading, named_slopes
from .scale_file import ScaleSettings
from .tool_question import Stops

BIN_NS = 50_000_000     # of the part that may yet be left out
HELD = 1e-3             # weight of an estimate that is only held, in that of one that is measured
LONGEST = 0.1           # s that one estimate counts at most
GONE = 1.5      # s for which a load must surely be gone, where no level tells
DUG = 0.5       # s of contact where a load was taken, from which on the machine digs there again
UNSEEN = 4.0    # s of an unknown mass, in less than which no machine puts a load down and takes another
SURE = 2.0      # standard deviations
UNSET_NS = 315_360_000_000_000_000      # stamps below it, ten years, are of a clock that has not been set
REST = 0.15     # of a load: less is left of one that is gone


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
        self.seconds, self.trusted, self.doubted = 0.0, False, False
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

    def without_earlier(self, reading: Reading) -> Plateau:
        """The same, with a reading alone: those before were too sure."""
        found = Plateau(reading, self._names, 1e-9 * self._guard_ns)
        found.begin_ns, found.first_place, found.seconds = self.begin_ns, self.first_place, self.seconds
        found.trusted |= self.trusted
        found.doubted = True
        return found

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
        if self.doubted:        # what is known by now holds for all of it
            stddev = max(stddev, self.last.stddev)
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


class Detector:
    """Of a machine with uncertain numbers ``names`` and payload.limits ``span``, kg, apart.

    To be set from outside: ``tare``, what an empty machine weighs; ``truck``: where its loads went, None before the
    first. ``counted_before``: kg of a load, tare included, that was counted before a restart and may still hang there.
    """

    def __init__(self, names: tuple[str, ...], span: float, settings: ScaleSettings = ScaleSettings()) -> None:
        self.settings, self._names, self._span = settings, names, span
        self.tare: UncertainMass = NOTHING
        self.truck: Place | None = None
        self.counted_before: float | None = None
        self.reset()

    def reset(self) -> None:
        """Forget what hangs there."""
        self._plateau: Plateau | None = None        # the level by now
        self._candidate: Plateau | None = None      # and what it may have become
        self._carried: Carried | None = None
        self._gone, self._dug, self._unknown = 0.0, 0.0, 0.0
        self._faults = NONE     # for which the mass was held since the last level without a load
        self._last_ns: int | None = None
        self._empty = False     # whether the machine has been seen without a load
        self._doubted = False   # whether masses before have turned out to be too sure
        self._place: Place | None = None
        self._seen: Place | None = None         # where the machine was when the mass was not held last
        self._came: Place | None = None         # and before the level that may begin
        self.stops = Stops()

    @property
    def carrying(self) -> bool:
        """Whether a load hangs there."""
        return self._carried is not None

    @property
    def counted(self) -> bool:
        """Whether the load that hangs there has been counted."""
        return self._carried is not None and self._carried.counted

    @property
    def since_ns(self) -> int | None:
        """Since when a load is carried."""
        return self._carried.start_ns if self._carried else None

    @property
    def carried(self) -> Carried | None:
        """The load that hangs there."""
        return self._carried

    @property
    def settled(self) -> bool:
        """Whether a level has been found."""
        return self._plateau is not None

    def same(self, first: float, second: float) -> bool:
        """Whether two masses, kg, differ by less than counts."""
        return abs(first - second) <= self.settings.change(self._span)

    @property
    def level(self) -> UncertainMass:
        """The mass that hangs there, tare included; unknown before the first level and after a load of which it is
        only known that it is gone."""
        return self._plateau.mass(False) if self._plateau is not None else UNKNOWN

    @property
    def tare_now(self) -> UncertainMass:
        """What is taken off the load that hangs there."""
        return self._carried.tare if self._carried else self.tare

    def process(self, reading: Reading) -> list[Load]:
        """Loads that end with this reading; ``status`` 'counted': one that the operator had counted before."""
        if self._last_ns is not None and reading.stamp_ns <= self._last_ns:
            self.reset()        # the clock was set back: what is carried now is a new load
        elif self._carried is not None and self._last_ns is not None and self._last_ns < UNSET_NS <= reading.stamp_ns:
            self._carried.start_ns += reading.stamp_ns - self._last_ns      # the clock of a computer without a battery
            self._last_ns = None
        pause = 0.0 if self._last_ns is None else 1e-9 * (reading.stamp_ns - self._last_ns)
        dt, self._last_ns = min(pause, LONGEST), reading.stamp_ns
        self._doubted |= reading.doubted
        if reading.held and not reading.known or pause > UNSEEN:
            self._unknown += pause
        if reading.held and self._carried is not None:
            self._carried.faults |= reading.faults
        elif reading.held:
            self._faults |= reading.faults
        self._place = reading.place or self._place
        reading = replace(reading, place=self._place) if reading.place is None else reading
        self.stops.take(reading, pause)
        if reading.status is PayloadStatus.CONTACT:
            self._touch(reading, dt)
        if not (reading.known or self._settling(reading)):
            self._seen = self._seen if reading.held else reading.place
            if self._carried is None and self._plateau is not None and self._plateau.trusted:
                self.stops.lighter(reading, self._plateau.mass(True), self.settings.least_time)
            return self._unsure(reading, dt)
        self._gone = 0.0
        if self._plateau is not None and self._doubted:
            self._plateau, self._candidate = self._plateau.without_earlier(reading), None
        self._doubted = False
        if self._plateau is not None and self._same(reading, self._plateau):
            self._plateau.add(reading)
            self._candidate, self._dug, self._unknown = None, 0.0, 0.0
            if self._carried is not None:       # not after it may have been dropped
                self._carried.moved(reading.place)
            else:
                self._faults = NONE
        elif self._candidate is not None and self._same(reading, self._candidate):
            self._candidate.add(reading)
        else:
            self._candidate, self._came = Plateau(reading, self._names, self.settings.guard), self._seen
        self._seen = reading.place
        if self._candidate is not None and self._candidate.seconds >= self.settings.least_time:
            return self._settle(self._candidate)
        return []

    def count_now(self) -> Load | None:
        """The operator says that the load that hangs there is done; None where none hangs there, or it was counted."""
        if self._carried is None or (now := self._by_now) is None:
            return None
        self._carried.counted = True
        return now.delivered(self.settings.dump_radius, self.truck)

    @property
    def _by_now(self) -> Carried | None:
        """What is carried with its present level; None where nothing is, or it has been counted."""
        if self._carried is None or self._plateau is None or self._carried.counted:
            return None
        return replace(self._carried, levels=[*self._carried.levels, self._level(self._plateau)])

    def part(self) -> Load | None:
        """What this truck has got of a load that is still carried; the rest is another load from here on."""
        if self._carried is None or self._plateau is None or self._carried.counted:
            return None
        found = self._carried.delivered_so_far(self.settings.dump_radius, self.truck, self._level(self._plateau))
        if found is not None:
            self._carried.levels, self._carried.start_ns = [], found.end_ns
        return found

    def end(self) -> Load | None:
        """The load that hangs there when the log ends, or of which most is surely gone by then."""
        now, load = self._by_now, self.count_now()
        if now is None or load is None or not self._was_load(now):
            return None
        if not self._gone:
            return replace(load, status=CARRIED, dropped=None)
        back = now.put_back(self.settings.dump_radius, self.settings.least_travel)
        return replace(load, status=PUT_BACK) if back else load

    def discard(self) -> None:
        """What hangs there is no load: the operator says that the machine is empty."""
        self._carried, self._candidate = None, None

    def _same(self, reading: Reading, plateau: Plateau) -> bool:
        """Whether a reading is of that level: they differ by less than counts, or by less than is known."""
        room = max(self.settings.change(self._span), reading.stddev)
        return abs(reading.mass - plateau.level) <= room

    def _settling(self, reading: Reading) -> bool:
        """Whether a mass that the payload stage does not stand for yet is known well enough to be one, if it stays."""
        return (reading.status is PayloadStatus.CHANGING and reading.finite and Fault.FIRST_MASS not in reading.faults
                and reading.stddev <= self.settings.change(self._span))

    def _touch(self, reading: Reading, dt: float) -> None:
        """The machine touches something: where the load was taken it digs."""
        taken = self._carried.taken if self._carried else None
        if taken is not None and reading.place is not None and (
                reading.place.distance(taken) <= self.settings.dump_radius):
            self._dug += dt

    def _digs_again(self, carried: Carried, old: Plateau, new: Plateau) -> bool:
        """Whether the load was put back unseen, and this level is another's: the machine has dug where it was taken,
        after the load had been carried away, or has come up with less."""
        return self._dug >= DUG and (carried.farthest > self.settings.dump_radius
                                     or new.level < old.level - self.settings.change(self._span))

    def _is_load(self, plateau: Plateau) -> bool:
        """Whether a level is that of a load; what may be nothing is none."""
        least = max(self.settings.lightest(self._span), plateau.last.stddev)
        return plateau.level - self.tare.value >= least

    def _stayed(self, new: Plateau) -> bool:
        """Whether a level begins where the mass was not held last: else the load was taken on the way, or before."""
        came, begins = self._came, new.first_place
        return came is None or begins is None or came.distance(begins) <= self.settings.dump_radius

    def _was_load(self, carried: Carried) -> bool:
        """Whether what began as a load was one: a first estimate may have been too high."""
        most = max((level.mass for level in carried.levels), key=lambda mass: mass.value) - carried.tare
        return most.value >= self.settings.lightest(self._span) and most.interval[0] > 0.0

    def _is_gone(self, carried: Carried, plateau: Plateau) -> bool:
        """Whether a level is what is left of a load: little of it, even where the empty machine seems to weigh more."""
        most = max((level.mass.value for level in carried.levels), default=0.0) - carried.tare.value
        return not self._is_load(plateau) or plateau.level - carried.tare.value < REST * most

    @staticmethod
    def _level(plateau: Plateau) -> Level:
        """The level that is over, or may be."""
        return Level(plateau.mass(True), plateau.last.place, plateau.last.stamp_ns, plateau.trusted,
                     1e-9 * (plateau.last.stamp_ns - plateau.begin_ns))

    def _settle(self, new: Plateau) -> list[Load]:
        """Another level begins; returns the load that ends by it."""
        old, carried, found, unseen = self._plateau, self._carried, [], self._unknown > UNSEEN
        if carried is None and old is not None and old.trusted:
            self.stops.changed(new.mass(False) - old.mass(True))
        if carried is None:
            if self._is_load(new):
                self._take(old, new, not unseen, self._empty and not unseen and self._stayed(new))
            self._empty = True      # or there is a load now
        else:
            if old is not None:
                carried.levels.append(self._level(old))
            again = old is not None and self._digs_again(carried, old, new)
            other = unseen and old is not None and not _may_be_one(old, new)
            if again or other or self._is_gone(carried, new):
                found = self._finish(carried)
            if (again or other) and self._is_load(new):
                self._take(None, new, False, again)
        self._plateau, self._candidate, self._unknown = new, None, 0.0
        return found

    def _take(self, old: Plateau | None, new: Plateau, left: bool, placed: bool) -> None:
        """A load begins where the level before was seen to be ``left``, else with its own first level; ``placed``:
        whether it was taken there, and did not hang there before."""
        tare = self.tare
        if self.settings.carry_back and old is not None:
            tare = old.mass(True)
        begin_ns, faults = (old.last.stamp_ns, self._faults) if old is not None and left else (new.begin_ns, NONE)
        self._carried = Carried(begin_ns, new.first_place if placed else None, tare, faults=faults)
        self._faults = NONE
        self._carried.moved(self._place)
        if old is None and self.counted_before is not None:
            room = max(self.settings.change(self._span), new.last.stddev)
            self._carried.counted = abs(new.level - self.counted_before) <= room
        self.counted_before = None

    def _unsure(self, reading: Reading, dt: float) -> list[Load]:
        """The mass changes: only that a load is gone can be said, where that is sure for long."""
        if self._carried is None or self._plateau is None or reading.status is not PayloadStatus.CHANGING:
            return []
        half = 0.5 * (self._plateau.level + self.tare.value)
        if not (isfinite(reading.stddev) and reading.mass + SURE * reading.stddev < half):
            self._gone = 0.0
            return []
        self._gone += dt
        if self._gone < GONE:
            return []
        self._carried.levels.append(self._level(self._plateau))
        self._plateau = self._candidate = None
        return self._finish(self._carried)

    def _finish(self, carried: Carried) -> list[Load]:
        """The load has ended."""
        self._carried, self._gone, self._dug = None, 0.0, 0.0
        load = carried.delivered(self.settings.dump_radius, self.truck)
        if carried.counted:
            return [replace(load, status=COUNTED)]
        if not self._was_load(carried):
            return [replace(load, status=EMPTY)]
        if carried.put_back(self.settings.dump_radius, self.settings.least_travel):
            return [replace(load, status=PUT_BACK)]
        return [load]


def _may_be_one(old: Plateau, new: Plateau) -> bool:
    """Whether the intervals of two levels meet: nothing says that they are of two loads."""
    return abs(new.level - old.level) <= NORMAL * (old.last.stddev + new.last.stddev)
