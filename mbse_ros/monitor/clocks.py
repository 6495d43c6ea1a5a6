# SPDX-License-Identifier: Apache-2.0
"""What stamps say of clocks and transport: inputs whose clock is not that of the others, samples that are missing, and
time of data on one axis that only increases, whatever the clock of the stamps does.

What arrives together should have stamps that are near each other.

How many samples are missing a stream tells only where it is regular: most of its last intervals are nearly the same.
Then an interval of k of them says that k - 1 samples are missing. Longer holes are pauses, not losses.

Where a stream starts again after a short pause the axis goes on with it. After a long one, a clock that was set, or at
the next round of a loop, it continues without a hole: a stamp cannot tell an hour's pause from a clock set forward.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

EVERY = 61          # samples from look to look: a prime, so that every input has its turn
LIMIT = 500_000_000     # ns, beyond which it is no delay of the transport
TURNS = 5           # samples of each input, after which one that has not sent is no measure


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
