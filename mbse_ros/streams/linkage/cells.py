# SPDX-License-Identifier: Apache-2.0
"""The filter's grid: measurements by instant, and the states to go back to when a sample comes late."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np


@dataclass
class Cell:
    """One instant ``index`` of the grid: measurements ``o`` (s,), NaN where missing; ``u`` (k,) inputs that change
    here, NaN where they are held; ``state`` and ``output`` of the filter after it; ``held`` inputs in force;
    ``revision``."""

    index: int
    o: np.ndarray
    u: np.ndarray
    state: np.ndarray | None = None
    output: np.ndarray | None = None
    held: np.ndarray | None = None
    revision: int = -1


class Cells:
    """The last instants, one after the other; the oldest is what can be gone back to."""

    def __init__(self, channels: int, inputs: int, base: Cell) -> None:
        self._shape = channels, inputs
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

    def extend(self, index: int) -> None:
        """Empty instants up to one that is new."""
        s, k = self._shape
        for new in range(self.last.index + 1, index + 1):
            self._cells.append(Cell(new, np.full(s, np.nan), np.full(k, np.nan)))

    def trim(self, count: int) -> None:
        """Keep the base and ``count`` instants after it."""
        while len(self._cells) > count + 1:
            self._cells.popleft()

    def rows(self, cells: list[Cell], dt: float) -> np.ndarray:
        """Rows ``[o, u, t]`` of cells for the filter; the inputs are held from the cell before."""
        held = self[cells[0].index - 1].held
        rows = np.empty((len(cells), sum(self._shape) + 1))
        s = self._shape[0]
        for row, cell in zip(rows, cells):
            held = cell.held = np.where(np.isnan(cell.u), held, cell.u)
            row[:s], row[s:-1], row[-1] = cell.o, held, cell.index * dt
        return rows
