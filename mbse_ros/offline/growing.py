# SPDX-License-Identifier: Apache-2.0
"""An array that grows by rows."""

from __future__ import annotations

import numpy as np

SLACK = 1.125       # times what is needed


class Growing:
    """Rows that follow each other, moved rarely and with little to spare: a large array is moved by the system, which
    copies nothing."""

    def __init__(self) -> None:
        self._data, self._count, self._given = np.zeros(0), 0, False

    def extend(self, rows: np.ndarray) -> None:
        """More rows (k, ...), of the first ones' type."""
        if not self._count:
            self._data = np.zeros((0, *rows.shape[1:]), rows.dtype)
        end = self._count + len(rows)
        if end > len(self._data):
            if self._given:         # somebody looks at the old place
                self._data = self._data.copy()
            self._data.resize((int(SLACK * end) + 1, *self._data.shape[1:]), refcheck=False)
            self._given = False
        self._data[self._count:end] = rows
        self._count = end

    @property
    def array(self) -> np.ndarray:
        """All rows (n, ...); they stay as they are when others follow."""
        self._given = True
        return self._data[:self._count]
