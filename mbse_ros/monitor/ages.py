# SPDX-License-Identifier: Apache-2.0
"""How old samples are when they come: what one channel differs by from the others is its stamps or its way.

Live by the time of the arrival, of a bag by the recorder's. All that is common, such as a clock that is set, a slow
network or a bag that was written from a table, cancels out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

APART = 0.1         # s by which ages of channels may differ: a bus and its gateway
EACH = 24           # samples of each channel that are compared at once, so that a clock that is set changes all alike
PARTS = 8           # of a block of samples that are looked at, of a later one 1
MANY = 64           # blocks, from which on fewer and fewer are looked at
KEPT = 512          # comparisons; of a stream the last ones
RECENT = 16
PAUSE = 2           # times as many samples of a stream that are then left out
FEWEST, SURE = 3, 6     # comparisons that say something: of a bag, and of a stream, in which samples may have waited
SET = 1.0           # s by which the age of all changes where their clock is set, ...
STEADY = 10.0       # ... and times that it changes else, as of a bag that was played slowly
T = TypeVar('T')


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
        self._kept, self._fewest = (RECENT, SURE) if stream else (KEPT, FEWEST)
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
