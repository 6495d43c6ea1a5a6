# SPDX-License-Identifier: Apache-2.0
"""The truth of a simulated machine at other instants than those it was recorded at."""

from __future__ import annotations

import numpy as np

from ..bags.series import TruthSeries
from ..machine import Machine

LONGEST_HOLE_NS = 100_000_000
COLUMNS = ('position', 'velocity', 'acceleration', 'pressure', 'payload')


def truth_at(truth: TruthSeries | None, machine: Machine, stamps_ns: np.ndarray) -> TruthSeries | None:
    """Truth at stamps (n,), ns: linear between those recorded, NaN outside them and in holes of more than 0.1 s.

    None where there is none, or it is of a machine with other independent coordinates or volumes.
    """
    if truth is None or (truth.cylinders, truth.volumes) != (machine.coordinates, machine.volumes):
        return None
    known, rows = np.unique(truth.stamp_ns, return_index=True)
    after = np.clip(np.searchsorted(known, stamps_ns), min(1, len(known) - 1), len(known) - 1)
    hole = (known[after] - known[np.maximum(after - 1, 0)] > LONGEST_HOLE_NS) & (known[after] != stamps_ns)
    t, wanted = (known - known[0]) * 1e-9, np.where(hole, np.nan, (stamps_ns - known[0]) * 1e-9)

    def at(column: np.ndarray) -> np.ndarray:
        flat = column[rows].reshape(len(known), -1).T
        values = np.array([np.interp(wanted, t, row, left=np.nan, right=np.nan) for row in flat])
        return values.T.reshape(len(stamps_ns), *column.shape[1:])

    columns = {name: at(getattr(truth, name)) for name in COLUMNS}
    return TruthSeries(stamps_ns, truth.cylinders, volumes=truth.volumes, **columns)
