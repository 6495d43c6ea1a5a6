# SPDX-License-Identifier: Apache-2.0
"""The filter's grid: stamps to instants, measurements by instant, the states to go back to when a sample is late."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from .engine import Engine, FilterTuning

CONFIRMED = 3           # samples in sequence out of the grid's reach make a new one
NEAR_NS = 1_000_000_000
MOST_TIMES = 3          # other times that are remembered
NONE = np.zeros(0)      # of an instant that the filter has not reached


class StampStatus(Enum):
    """What to do with a sample by its stamp."""

    USE = 'use'
    LATE = 'later than the delay window'
    AWAY = 'its stamp is out of reach of all others'
    RESTART = 'time has jumped'


class TimeGrid:
    """Grid whose instant 1 is the first sample's; a sample belongs to the nearest instant (an error of half a step)."""

    origin_ns: int

    def __init__(self, step_ns: int) -> None:
        self.step_ns = step_ns
        self._away: list[tuple[int, int]] = []      # other times: their last stamp, and how many agree

    def start(self, stamp_ns: int) -> None:
        """Begin a grid with a sample."""
        self.origin_ns, self._away = stamp_ns - self.step_ns, []

    def index(self, stamp_ns: int) -> int:
        """Nearest instant of a stamp."""
        return (2 * (stamp_ns - self.origin_ns) + self.step_ns) // (2 * self.step_ns)

    def stamp(self, index: int) -> int:
        """Stamp of an instant, ns."""
        return self.origin_ns + index * self.step_ns

    def judge(self, stamp_ns: int, oldest: int, newest: int, reach_ns: int) -> StampStatus:
        """Verdict on a stamp: instants ``oldest`` and before are settled; beyond ``reach_ns`` of the newest one lies
        another time, which counts once CONFIRMED samples agree on it."""
        ahead = stamp_ns - self.stamp(newest)
        if ahead > reach_ns or ahead < -max(NEAR_NS, 2 * (newest - oldest) * self.step_ns):
            return StampStatus.RESTART if self._confirmed(stamp_ns) else StampStatus.AWAY
        self._away = []
        return StampStatus.LATE if self.index(stamp_ns) <= oldest else StampStatus.USE

    def _confirmed(self, stamp_ns: int) -> bool:
        """Whether enough samples agree on another time; those of a third one, of a wrong clock, may lie between."""
        near = next((item for item in self._away if abs(stamp_ns - item[0]) <= NEAR_NS), (0, 0))
        self._away = [*[item for item in self._away if item is not near][-MOST_TIMES:], (stamp_ns, near[1] + 1)]
        return near[1] + 1 >= CONFIRMED


@dataclass(frozen=True)
class Work:
    """A filter with a tuning: what runs an instant."""

    engine: Engine
    tuned: FilterTuning


@dataclass
class Cell:
    """One instant ``index`` of the grid: measurements ``o`` (s,), NaN where missing; ``work``: the filter that runs
    it, and its tuning; ``u``: inputs that change here, by their place; ``state`` and ``output`` of the filter after it,
    ``held`` inputs (k,) in force, NONE before it runs; ``revision``."""

    index: int
    o: np.ndarray
    work: Work
    u: dict[int, float]
    state: np.ndarray
    output: np.ndarray
    held: np.ndarray
    revision: int = -1


class Cells:
    """The last instants, one after the other; the oldest is what can be gone back to."""

    def __init__(self, channels: int, inputs: int, base: Cell) -> None:
        self._shape, self._missing = (channels, inputs), np.full(channels, np.nan)
        self._cells: deque[Cell] = deque([base])

    @property
    def base(self) -> Cell:
        """The oldest instant: its measurements are settled."""
        return self._cells[0]

    @property
    def last(self) -> Cell:
        """The newest instant."""
        return self._cells[-1]

    def __getitem__(self, index: int) -> Cell:
        return self._cells[index - self.base.index]

    def since(self, index: int) -> list[Cell]:
        """Cells from an instant on."""
        return [self._cells[i] for i in range(index - self.base.index, len(self._cells))]

    def extend(self, index: int, work: Work) -> None:
        """Empty instants up to one that is new."""
        for new in range(self.last.index + 1, index + 1):
            self._cells.append(Cell(new, self._missing.copy(), work, {}, NONE, NONE, NONE))

    def trim(self, count: int) -> None:
        """Keep the base and ``count`` instants after it."""
        while len(self._cells) > count + 1:
            self._cells.popleft()

    def rows(self, cells: Sequence[Cell], dt: float) -> np.ndarray:
        """Rows ``[o, u, t]`` of cells for the filter; the inputs are held from the cell before."""
        held = self[cells[0].index - 1].held
        rows = np.empty((len(cells), sum(self._shape) + 1))
        s = self._shape[0]
        for row, cell in zip(rows, cells):
            if cell.u:
                held = held.copy()
                held[list(cell.u)] = list(cell.u.values())
            cell.held = held
            row[:s], row[s:-1], row[-1] = cell.o, held, cell.index * dt
        return rows
