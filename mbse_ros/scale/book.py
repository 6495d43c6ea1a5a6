# SPDX-License-Identifier: Apache-2.0
"""Totals out of records, one by one: by truck and by day, with undo, target and what remains of it.

The book is nothing but what its records say: read again from the first one it is the same.
"""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime, timedelta, timezone
from math import sqrt
from typing import Any

from .load import NOTHING, UncertainMass
from .reading import Place
from .record import ATTACHMENT, ENDED, LOAD, MISSED, TAKEN, TARGET, TRUCK, UNDO, ZERO, Record, place_of

KEPT = 10_000       # loads that can be undone, and fillings that are kept
FIRST = 'truck 1'


class _Sum:
    """Of masses, which can be taken out again."""

    def __init__(self, count: int, mass: UncertainMass) -> None:
        self.count, self._value, self._variance = count, mass.value, mass.own ** 2
        self._common = dict(mass.common)

    def add(self, mass: UncertainMass, sign: int, count: int = 1) -> None:
        self.count += sign * count
        self._value += sign * mass.value
        self._variance += sign * mass.own ** 2
        for cause, kg in mass.common.items():
            self._common[cause] = self._common.get(cause, 0.0) + sign * kg
        if not self.count:
            self._value, self._variance, self._common = 0.0, 0.0, {}

    @property
    def mass(self) -> UncertainMass:
        return UncertainMass(self._value, sqrt(max(self._variance, 0.0)), dict(self._common))


class Tally:
    """Loads, which can be taken out again: the total of those that are trusted, and that of the others beside it."""

    def __init__(self, trusted: int = 0, mass: UncertainMass = NOTHING, untrusted: int = 0,
                 doubted: UncertainMass = NOTHING) -> None:
        self._trusted, self._doubted = _Sum(trusted, mass), _Sum(untrusted, doubted)

    def add(self, mass: UncertainMass, trusted: bool = True, sign: int = 1) -> None:
        """A load more, or with ``sign`` -1 one less."""
        (self._trusted if trusted else self._doubted).add(mass, sign)

    def join(self, other: Tally) -> None:
        """All loads of another one more."""
        for own, more in ((self._trusted, other._trusted), (self._doubted, other._doubted)):
            own.add(more.mass, 1, more.count)

    @property
    def count(self) -> int:
        """All loads."""
        return self._trusted.count + self._doubted.count

    @property
    def untrusted(self) -> int:
        """How many of them are not trusted."""
        return self._doubted.count

    @property
    def mass(self) -> UncertainMass:
        """The total: of the loads that are trusted."""
        return self._trusted.mass

    @property
    def doubted(self) -> UncertainMass:
        """Of those that are not, which is not in the total."""
        return self._doubted.mass

    @property
    def values(self) -> dict[str, Any]:
        """All of it as JSON has it, kg."""
        return {'loads': self.count, 'total': self.mass.value, 'total_interval': list(self.mass.interval),
                'untrusted': self.untrusted, 'untrusted_total': self.doubted.value,
                'untrusted_interval': list(self.doubted.interval)}


class Filling:
    """One truck from its arrival to the next: its name, target, kg, 0 for none, loads, and where they went."""

    def __init__(self, name: str, target: float = 0.0) -> None:
        self.name, self.target, self.tally = name, target, Tally()
        self.place: Place | None = None

    @property
    def remaining(self) -> float | None:
        """What is missing to the target, kg, below 0 where it is more; None without a target. Loads that are not
        trusted are on the truck all the same."""
        return self.target - self.tally.mass.value - self.tally.doubted.value if self.target else None

    @property
    def reached(self) -> bool:
        """Whether the target is reached."""
        return self.remaining is not None and self.remaining <= 0.0


class Book:
    """Totals of one machine. ``day_starts``, h: when a day begins, after 00:00 UTC."""

    def __init__(self, day_starts: float = 0.0) -> None:
        self._shift = timedelta(hours=day_starts)
        self.filling = Filling(FIRST)
        self.fillings = 1
        self.days: OrderedDict[str, Tally] = OrderedDict()
        self.trucks: OrderedDict[str, Tally] = OrderedDict()
        self.all = Tally()
        self.loads: OrderedDict[int, tuple[Record, Filling]] = OrderedDict()     # the last ones, those undone left out
        self.places: dict[int, int] = {}        # of these, by their numbers: which load it is, counted from 1
        self.recorded = 0                       # loads, of all kinds
        self.zero: Record | None = None
        self.attachment: Record | None = None
        self.hanging: float | None = None       # kg of a load that was counted and may still hang on the machine
        self.open: Record | None = None         # of a load that was taken and has not ended
        self.missed: Record | None = None       # one that was gone when the scale came back, the operator may count it
        self.orders: OrderedDict[str, Record] = OrderedDict()       # the last ones that had a key, by it
        self.number = 0                         # of the last record

    def apply(self, record: Record) -> None:
        """Take a record; those of a kind that is not known are passed over."""
        self.number = max(self.number, record.number)
        if order := record.data.get('order'):
            self.orders[order] = record
            if len(self.orders) > KEPT:
                self.orders.popitem(last=False)
        if record.kind in (LOAD, ENDED, ZERO, MISSED, TAKEN):
            self.open = record if record.kind == TAKEN else None
        if record.kind in (LOAD, ENDED, ZERO, MISSED, TAKEN, TRUCK):
            self.missed = record if record.kind == MISSED else None
        if record.kind == LOAD:
            self._add(record)
        elif record.kind == UNDO:
            self._undo(int(record.data['load']))
        elif record.kind == TRUCK:
            self.filling = Filling(str(record.data['truck']), float(record.data.get('target', 0.0)))
            self.fillings += 1
        elif record.kind == TARGET:
            self.filling.target = float(record.data['target'])
        elif record.kind == ZERO:
            self.zero = record
        elif record.kind == ATTACHMENT:
            self.attachment = record
        elif record.kind == ENDED:
            self.hanging = None

    @property
    def last(self) -> Record | None:
        """The last load that counts and is not undone."""
        for number in reversed(self.loads):
            record, _ = self.loads[number]
            if record.counts:
                return record
        return None

    def day_of(self, stamp_ns: int) -> str:
        """Day of an instant, YYYY-MM-DD."""
        return (datetime.fromtimestamp(stamp_ns * 1e-9, tz=timezone.utc) - self._shift).date().isoformat()

    def _tallies(self, record: Record, filling: Filling) -> list[Tally]:
        return [filling.tally, self.all, self.days.setdefault(self.day_of(record.stamp_ns), Tally()),
                self.trucks.setdefault(str(record.data['truck']), Tally())]

    def _add(self, record: Record) -> None:
        self.recorded += 1
        self.loads[record.number], self.places[record.number] = (record, self.filling), self.recorded
        if len(self.loads) > KEPT:
            self.places.pop(self.loads.popitem(last=False)[0])
        self.hanging = record.data.get('hanging')
        if record.counts:
            self.filling.place = place_of(record.data['dropped']) or self.filling.place
            for tally in self._tallies(record, self.filling):
                tally.add(record.mass, record.data['trusted'])

    def _undo(self, number: int) -> None:
        found = self.loads.pop(number, None)
        self.places.pop(number, None)
        if found is not None and found[0].counts:
            for tally in self._tallies(*found):
                tally.add(found[0].mass, found[0].data['trusted'], -1)
