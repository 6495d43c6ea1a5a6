# SPDX-License-Identifier: Apache-2.0
"""Inputs whose clock is not that of the others: what arrives together should have stamps that are near each other."""

from __future__ import annotations

from collections.abc import Sequence

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
