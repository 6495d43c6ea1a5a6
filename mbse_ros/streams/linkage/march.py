# SPDX-License-Identifier: Apache-2.0
"""The filter over instants of the grid, each by the filter of its time; and what it made of an instant's samples."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from ...errors import DivergenceError
from ..records import Measured, Sampled
from .entries import transferred
from .grid import Cell, Cells, Work
from .linkage_settings import LinkageSettings


def march(before: Cell, cells: Sequence[Cell], rows: np.ndarray, settings: LinkageSettings) -> bool:
    """Give cells after ``before`` their states from rows ``[o, u, t]``; False where they are not finite."""
    start = 0
    for _, group in groupby(cells, key=lambda cell: id(cell.work)):
        part = list(group)
        work, stop = part[0].work, start + len(part)
        try:
            states, outputs = work.engine.run(_handed(before, work, settings), rows[start:stop], work.tuned)
        except DivergenceError:
            return False
        if not (np.isfinite(states).all() and np.isfinite(outputs).all()):
            return False
        for cell, state, output in zip(part, states, outputs):
            cell.state, cell.output, cell.revision = state, output, cell.revision + 1
        before, start = part[-1], stop
    return True


def _handed(cell: Cell, work: Work, settings: LinkageSettings) -> np.ndarray:
    """State of an instant for the filter of the next one."""
    old, new = cell.work.engine, work.engine
    if old is new:
        return cell.state
    out = old.filter.outputs.arrays(cell.output)
    return transferred(old.filter, cell.state, out, new.filter, cell.index * new.dt, settings, new.tangents)


def sampled(cells: Cells, cell: Cell) -> Sampled:
    """What the filter made of the samples of an instant."""
    out = cell.work.engine.outputs(cell.output)
    measured = tuple(Measured.MISSING if o != o else Measured.USED if used > 0.5 else Measured.REJECTED
                     for o, used in zip(cell.o.tolist(), out['used'].tolist()))
    after = cells[cell.index + 1].held if cell.index < cells.last.index else cell.held
    return Sampled(cell.o, measured, np.where(np.isnan(cell.o), np.nan, out['innovation']),
                   np.sqrt(np.fmax(out['spread'], 0.0)), (cell.held + after) / 2)
