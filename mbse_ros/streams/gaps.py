# SPDX-License-Identifier: Apache-2.0
"""Samples that are missing in a sensor's stream, by its stamps: best effort loses messages without a word.

A stream tells how many only where it is regular: most of its last intervals are nearly the same. Then an interval of k
of them says that k - 1 samples are missing. Longer holes are pauses, not losses.
"""

from __future__ import annotations

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
