# SPDX-License-Identifier: Apache-2.0
"""Inputs of a mechanism: each is in force from its instant on, over the step after it, until another one comes."""

from __future__ import annotations

import numpy as np

from .grid import Cells


class HeldInputs:
    """``start`` (k,): in force before the grid begins. Those that are ahead of the grid wait."""

    def __init__(self, count: int) -> None:
        self.start = np.zeros(count)
        self._waiting: list[tuple[int, int, float]] = []        # instant, place, value

    def add(self, index: int, place: int, value: float) -> None:
        """An input of an instant."""
        self._waiting.append((index + 1, place, value))

    def placed(self, cells: Cells) -> int | None:
        """Put them into those of their instants that are there: the first one that they change, or the one after the
        newest; None where nothing waits."""
        if not self._waiting:
            return None
        first = after = cells.last.index + 1
        ahead = []
        for item in self._waiting:
            index, place, value = item
            if index < after:
                index = max(index, cells.base.index + 1)
                cells[index].u[place] = value
                first = min(first, index)
            else:
                ahead.append(item)
        self._waiting = ahead
        return first
