# SPDX-License-Identifier: Apache-2.0
"""What stamps say of clocks and transport: inputs whose clock is not that of the others, samples that are missing, or
old on arrival, and time of data on one axis that only increases, whatever the clock of the stamps does.

What arrives together should have stamps that are near each other.

How many samples are missing a stream tells only where it is regular: most of its last intervals are nearly the same.
Then an interval of k of them says that k - 1 samples are missing. Longer holes are pauses, not losses.

Where a stream starts again after a short pause the axis goes on with it. After a long one, a clock that was set, or at
the next round of a loop, it continues without a hole: a stamp cannot tell an hour's pause from a clock set forward.

How old samples are when they come: what one channel differs by from the others is its stamps or its way. Live that is
by the time of the arrival, of a bag by the recorder's. All that is common, such as a clock that is set, a slow
network or a bag that was written from a table, cancels out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

EVERY = 61          # samples from look to look: a prime, so that every input has its turn
LIMIT = 500_000_000     # ns, beyond which it is no delay of the transport
TURNS = 5           # samples of each input, after which one that has not sent is no measure
APART = 0.1         # s by which ages of channels may differ: a bus and its gateway
EACH = 24           # samples of each channel that are compared at once, so that a clock that is set changes all alike
PARTS = 8           # of a block of samples that are looked at, of a later one 1
MANY = 64           # blocks, from which on fewer and fewer are looked at
AGES = 512          # comparisons; of a stream the last ones
RECENT = 16
PAUSE = 2           # times as many samples of a stream that are then left out
ENOUGH, SURE = 3, 6     # comparisons that say something: of a bag, and of a stream, in which samples may have waited
SET = 1.0           # s by which the age of all changes where their clock is set, ...
STEADY = 10.0       # ... and times that it changes else, as of a bag that was played slowly
T = TypeVar('T')


class Clocks:
    """Compares stamps by their arrival: the sender of each 61st sample with the median of what the others sent last."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all."""
        self._newest: dict[str, tuple[int, int]] = {}       # stamp, number of the sample
        self._count = 0
        self._apart: dict[str, int] = {}
        self._suspects: dict[str, int] = {}

    def take(self, name: str, stamp: int) -> None:
        """A sample of an input."""
        self._count = count = self._count + 1
        self._newest[name] = stamp, count
        if count % EVERY == 0:
            self._look(name, stamp)

    def take_rows(self, names: Sequence[str], stamps: Sequence[int]) -> None:
        """Rows of samples, one of each of at least two inputs with one stamp, rising by less than ``LIMIT``: as by
        ``take``, where from the second row on each look finds clocks that agree."""
        for name in names:
            self.take(name, stamps[0])
        first, self._count = self._count, self._count + len(names) * (len(stamps) - 1)
        if self._suspects or self._apart:
            for count in range(first + EVERY - first % EVERY, self._count + 1, EVERY):
                name = names[(count - first - 1) % len(names)]
                self._apart.pop(name, None)
                self._suspects.pop(name, None)
        for number, name in enumerate(names, self._count - len(names) + 1):
            self._newest[name] = stamps[-1], number

    @property
    def apart(self) -> dict[str, float]:
        """Inputs whose clock is ahead of the others (above 0) or behind, s."""
        return {name: offset * 1e-9 for name, offset in self._apart.items()}

    @property
    def words(self) -> str:
        """The same as text; '' where all agree."""
        return ', '.join(f'the clock of {name} is {abs(offset):.1f} s {"ahead of" if offset > 0 else "behind"} those '
                         'of the others' for name, offset in self.apart.items())

    def _look(self, name: str, stamp: int) -> None:
        """Twice in sequence: a clock that is set takes all inputs with it, one after the other."""
        oldest = self._count - TURNS * len(self._newest)
        others = sorted(known for other, (known, number) in self._newest.items() if other != name and number > oldest)
        if not others:
            return
        middle = others[(len(others) - 1) // 2:len(others) // 2 + 1]        # two, where it is between them
        offset = min((stamp - item for item in middle), key=abs)
        self._apart.pop(name, None)
        if abs(offset) > LIMIT:
            if name in self._suspects:
                self._apart[name] = offset
            self._suspects[name] = offset
        else:
            self._suspects.pop(name, None)


FEWEST = 4              # intervals from which a median says how often samples come
LOOKED_AT = 32          # intervals from which the usual one is taken
SAME = 0.2              # share by which intervals of a regular stream differ
REGULAR = 0.75          # of them must be the same
LONGEST = 1_000_000_000     # ns of a hole in which samples count as missing


class Stream:
    """Intervals of one input."""

    __slots__ = ('last', 'beyond', 'usual', 'middle', 'intervals', 'missing', 'seen')

    def __init__(self, stamp: int) -> None:
        self.last = stamp
        self.usual, self.beyond = 0, LONGEST        # ns; 0: not regular, or not known yet
        self.middle = 0         # ns: median, regular or not
        self.intervals: list[int] = []
        self.missing = self.seen = 0

    def take(self, interval: int) -> None:
        """One interval, ns, above 0."""
        if self.usual and self.beyond < interval <= LONGEST:
            self.missing += round(interval / self.usual) - 1
        self.intervals.append(interval)
        if len(self.intervals) == LOOKED_AT:
            middle = sorted(self.intervals)[LOOKED_AT // 2]
            same = sum(abs(item - middle) <= SAME * middle for item in self.intervals)
            self.middle = middle
            self.usual = middle if same >= REGULAR * LOOKED_AT else 0
            self.beyond = int(1.5 * self.usual) if self.usual else LONGEST      # nearer to two intervals than to one
            self.intervals.clear()


    @property
    def period(self) -> int:
        """How often samples come, ns; 0 where that is not known yet."""
        enough = not self.middle and len(self.intervals) >= FEWEST
        return sorted(self.intervals)[len(self.intervals) // 2] if enough else self.middle


class Gaps:
    """Counts what is missing, by input; ``total`` since it was made."""

    def __init__(self) -> None:
        self.total: dict[str, int] = {}
        self._streams: dict[str, Stream] = {}

    def reset(self) -> None:
        """Another stream begins; ``total`` goes on."""
        self._streams.clear()

    def take(self, name: str, stamp: int) -> None:
        """A sample of an input, ns; one that is no newer than the last one begins another stream."""
        stream = self._streams.get(name)
        if stream is None or stamp < stream.last:
            self._streams[name] = Stream(stamp)
            return
        stream.seen += 1
        if stamp > stream.last:
            stream.take(stamp - stream.last)
            stream.last = stamp

    def slower_than(self, longest: int) -> dict[str, int]:
        """Inputs whose samples usually come in longer intervals, and these, ns."""
        return {name: stream.period for name, stream in self._streams.items() if stream.period > longest}

    def recent(self) -> dict[str, tuple[int, int]]:
        """By input: how many are missing, and how many came, since the last call; only those that miss some."""
        found = {}
        for name, stream in self._streams.items():
            if stream.missing:
                found[name] = stream.missing, stream.seen
                self.total[name] = self.total.get(name, 0) + stream.missing
            stream.missing = stream.seen = 0
        return found


PAUSE_NS = 60_000_000_000   # of all sensors, that is still one
KEPT = 10_000       # pieces whose stamps are known: a node may run for years
SLACK_NS = 5_000_000_000    # by which stamps of records of one clock may come out of order


class Elapsed:
    """Adds up segments; integer ns. ``total``: time at the end of the last one."""

    def __init__(self) -> None:
        self.total = 0
        self._starts: list[int] = []        # stamps where a piece begins and ends, and the time there
        self._ends: list[int] = []
        self._before: list[int] = []

    def add(self, start_ns: int, stamp_ns: int, restart: bool = False) -> int:
        """A segment between two stamps; returns the time at its end."""
        if not self._ends or restart or start_ns < self._ends[-1]:
            if self._ends and 0 < start_ns - self._ends[-1] <= PAUSE_NS:
                self.total += start_ns - self._ends[-1]
            self._starts.append(start_ns)
            self._before.append(self.total)
            self._ends.append(stamp_ns)
            for column in (self._starts, self._before, self._ends):
                del column[:-KEPT]
        self.total = self._before[-1] + stamp_ns - self._starts[-1]
        self._ends[-1] = stamp_ns
        return self.total

    def at(self, stamp_ns: int) -> int:
        """Time at a stamp, ns, of the newest piece that has it; between two pieces where the next one begins."""
        for place in range(len(self._starts) - 1, -1, -1):
            if self._starts[place] <= stamp_ns:
                return self._before[place] + min(stamp_ns, self._ends[place]) - self._starts[place]
            if place and self._ends[place - 1] > self._starts[place]:       # the clock was set back here
                return self._before[place]
        return 0


def elapsed_at(start_ns: np.ndarray, stamp_ns: np.ndarray, restart: np.ndarray, pause_ns: int = PAUSE_NS) -> np.ndarray:
    """The same of all segments (n,) at once: time at their ends (n,), ns."""
    before = np.concatenate([start_ns[:1], stamp_ns[:-1]])
    goes_on = (start_ns >= before) & (~restart | (start_ns - before <= pause_ns))
    return np.cumsum(stamp_ns - np.where(goes_on, before, start_ns))


def set_back(stamps_ns: Sequence[int], begins_ns: Sequence[int] | None = None) -> np.ndarray:
    """What is to be added to stamps (n,) of records in their order, ns, so that a clock that was set back continues;
    ``begins_ns`` (n,): where the records begin, the stamps themselves by default."""
    stamps = np.array(stamps_ns, dtype=np.int64)
    begins = stamps if begins_ns is None else np.array(begins_ns, dtype=np.int64)
    back = np.diff(stamps, prepend=stamps[:1]) < -SLACK_NS
    return np.cumsum(np.where(back, np.concatenate([stamps[:1], stamps[:-1]]) - begins, 0))


@dataclass(frozen=True)
class Age:
    """``offset``, s: by how much the samples of a channel are older on arrival than those of the others; ``jitter``, s:
    how its ages scatter, a standard deviation by the middle 80 %."""

    offset: float
    jitter: float

    @property
    def words(self) -> str:
        """The offset as text."""
        size = f'{abs(self.offset):.2f} s'
        return (f'stamps are {size} older on arrival than those of the others' if self.offset > 0 else
                f'stamps are {size} ahead of those of the others, as they arrive')


class Ages:
    """Compares the ages of channels, ns, some at a time; of a ``stream`` the last ones only."""

    def __init__(self, stream: bool = False) -> None:
        self._kept, self._fewest = (RECENT, SURE) if stream else (AGES, ENOUGH)
        self.reset()

    def reset(self) -> None:
        """Forget all."""
        self._found: dict[str, deque[tuple[float, float]]] = {}
        self._rows: list[tuple[str, int]] = []
        self._blocks = self._rest = 0
        self._common: deque[float] = deque(maxlen=self._kept)

    def take(self, name: str, stamp_ns: int, arrival_ns: int) -> None:
        """A sample and when it came."""
        if self._rest:
            self._rest -= 1
            return
        self._rows.append((name, arrival_ns - stamp_ns))
        if len(self._rows) >= EACH * max(len(self._found), 4):
            known: dict[str, int] = {}
            places = np.array([known.setdefault(name, len(known)) for name, _ in self._rows])
            self._compare(tuple(known), places, np.array([age for _, age in self._rows], dtype=np.int64))
            self._rest = PAUSE * len(self._rows)
            self._rows.clear()

    def take_block(self, names: Sequence[str], places: np.ndarray, stamps: np.ndarray, arrivals: np.ndarray) -> None:
        """The same of samples (n,) as arrays, ``places`` among ``names``: some of them."""
        self._blocks += 1
        if self._blocks % (1 + self._blocks // MANY):
            return
        size = EACH * max(len(names), 4)
        parts = np.linspace(0, max(len(places) - size, 0), PARTS if self._blocks <= PARTS else 1)
        for first in np.unique(parts.astype(int)).tolist():
            part = slice(first, first + size)
            self._compare(names, places[part], arrivals[part] - stamps[part])

    @property
    def found(self) -> dict[str, Age]:
        """By channel, of those of which enough is known."""
        return {name: Age(*np.median(np.array(rows), axis=0).tolist()) for name, rows in self._found.items()
                if len(rows) >= self._fewest}

    @property
    def set_ahead(self) -> float:
        """By how much, s, the clock of all stamps was set ahead at once against that of the arrivals; 0: not."""
        steps = -np.diff(np.array(self._common))
        if not steps.size:
            return 0.0
        largest = float(steps.max(initial=0.0))
        return largest if largest > max(SET, STEADY * float(np.median(np.abs(steps)))) else 0.0

    @property
    def apart(self) -> dict[str, Age]:
        """Channels whose ages are not those of the others."""
        return apart_ages(self.found)

    @property
    def words(self) -> str:
        """The same as text; '' where all agree."""
        same: dict[str, list[str]] = {}
        for name, age in self.apart.items():
            same.setdefault(age.words, []).append(name)
        return '; '.join(f'{", ".join(names)}: {words}' for words, names in same.items())

    def _compare(self, names: Sequence[str], places: np.ndarray, ages: np.ndarray) -> None:
        own = {place: np.sort(ages[places == place]) * 1e-9 for place in set(places.tolist())}
        middle = {place: float(values[len(values) // 2]) for place, values in own.items()}
        self._common.append(float(np.median(list(middle.values()) or [0.0])))
        for place, offset in offsets(middle).items():
            cut = len(own[place]) // 10
            low, high = float(own[place][cut]), float(own[place][-1 - cut])
            self._found.setdefault(names[place], deque(maxlen=self._kept)).append((offset, (high - low) / 2.563))


def apart_ages(ages: Mapping[T, Age]) -> dict[T, Age]:
    """Those that are not as the others."""
    return {name: age for name, age in ages.items() if abs(age.offset) > APART}


def offsets(ages: Mapping[T, float]) -> dict[T, float]:
    """By how much each age differs from the median of the others; of two in the middle from that nearer to it."""
    found = {}
    for name, age in ages.items():
        others = sorted(other for key, other in ages.items() if key != name)
        if others:
            middle = others[(len(others) - 1) // 2:len(others) // 2 + 1]
            found[name] = min((age - item for item in middle), key=abs)
    return found
