# SPDX-License-Identifier: Apache-2.0
"""Where samples come in rows: one of every input with one stamp, in one order, row after row.

So a log does that one computer wrote. What is regular can be interpolated many rows at a time, see ``regular``.
"""

from __future__ import annotations

import numpy as np

FEWEST = 8          # rows for which arrays are worth while
LARGEST = 1e15      # of a sample, SI: no sensor measures more, and squares of it are finite


def regular_rows(places: np.ndarray, stamps: np.ndarray, values: np.ndarray, count: int, shortest: int, longest: int
                 ) -> list[tuple[int, int]]:
    """Stretches (first, stop) of samples in rows of ``count`` inputs, at least ``FEWEST`` rows in each.

    ``places`` (n,), which input from 0 on, ``stamps`` (n,), ns, ``values`` (n,). From row to row the stamp rises by
    ``shortest`` to ``longest``, ns; all values are finite.
    """
    if len(stamps) < FEWEST * count:
        return []
    first = np.concatenate(([0], np.flatnonzero(stamps[1:] != stamps[:-1]) + 1))
    full = np.diff(first, append=len(stamps)) == count
    rows = first[full]
    samples = rows[:, None] + np.arange(count)
    order, largest = places[samples], np.abs(values[samples]).max(axis=1, initial=0.0)
    good = (largest < LARGEST) & (np.sort(order, axis=1) == np.arange(count)).all(axis=1)     # NaN is not smaller
    period = np.diff(stamps[rows])
    follows = np.zeros(len(rows) + 1, dtype=bool)       # and an end that follows nothing
    follows[1:-1] = (good[1:] & good[:-1] & (np.diff(rows) == count) & (order[1:] == order[:-1]).all(axis=1)
                     & (period >= shortest) & (period <= longest))
    heads = np.flatnonzero(~follows[:-1])               # each begins what follows it
    lengths = np.diff(heads, append=len(rows))
    return [(int(rows[head]), int(rows[head]) + count * int(length)) for head, length in zip(heads, lengths)
            if length >= FEWEST]
