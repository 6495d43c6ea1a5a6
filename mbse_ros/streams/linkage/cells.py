# SPDX-License-Identifier: Apache-2.0
"""The filter's grid: measurements by instant, and the states to go back to when a sample comes late."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from .engine import Engine, Tuned


@dataclass(frozen=True)
class Work:
    """A filter with a tuning: what runs an instant."""

    engine: Engine
    tuned: Tuned


@dataclass
class Cell:
    """One instant ``index`` of the grid: measurements ``o`` (s,), NaN where missing; ``work``: the filter that runs
    it, and its tuning; ``u``: inputs that change here, by their place; ``state`` and ``output`` of the filter after it;
    ``held`` inputs (k,) in force; ``revision``."""

    index: int
    o: np.ndarray
    work: Work
    u: dict[int, float] = field(default_factory=dict)
    state: np.ndarray | None = None
    output: np.ndarray | None = None
    held: np.ndarray | None = None
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
            self._cells.append(Cell(new, self._missing.copy(), work))

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
