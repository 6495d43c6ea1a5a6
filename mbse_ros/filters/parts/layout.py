# SPDX-License-Identifier: Apache-2.0
"""Named parts of a flat vector, for expressions and for arrays; of a covariance one triangle is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

SYMMETRIC = -1      # as the number of columns


@dataclass(frozen=True)
class Layout:
    """``parts``: name -> (rows, columns); columns SYMMETRIC: a symmetric matrix as its lower triangle."""

    parts: dict[str, tuple[int, int]]

    @cached_property
    def places(self) -> dict[str, slice]:
        """Place of each part in the flat vector."""
        places, start = {}, 0
        for name, (rows, columns) in self.parts.items():
            size = rows * (rows + 1) // 2 if columns == SYMMETRIC else rows * columns
            places[name] = slice(start, start + size)
            start += size
        return places

    @property
    def size(self) -> int:
        """Length of the flat vector."""
        return max((place.stop for place in self.places.values()), default=0)

    def unpack(self, flat: ca.SX) -> dict[str, ca.SX]:
        """Expressions of the parts."""
        return {name: _full(flat[self.places[name]], *shape) for name, shape in self.parts.items()}

    def pack(self, **parts: ca.SX) -> ca.SX:
        """Flat expression of all parts."""
        return ca.vertcat(*(_flat(parts[name], *shape) for name, shape in self.parts.items()))

    def arrays(self, flat: np.ndarray) -> dict[str, np.ndarray]:
        """Arrays of the parts: (rows,) of columns, (rows, columns) of matrices; of many vectors (k, size) by row."""
        return {name: _array(flat[..., self.places[name]], *shape) for name, shape in self.parts.items()}

    @cached_property
    def indices(self) -> dict[str, np.ndarray]:
        """Place in the flat vector of each entry of a part, as an array of its shape."""
        return {name: np.ascontiguousarray(part) for name, part in self.arrays(np.arange(self.size)).items()}

    def span(self, names: Sequence[str]) -> slice:
        """Place of parts that stand one after the other."""
        return slice(self.places[names[0]].start, self.places[names[-1]].stop)

    def views(self, flat: np.ndarray) -> dict[str, np.ndarray]:
        """The parts of one vector as its own entries, where all are columns: as ``arrays``, but in no time."""
        return {name: flat[place] for name, place in self.places.items()}

    def flat(self, **parts: ArrayLike) -> np.ndarray:
        """Flat array of all parts."""
        arrays = [(np.asarray(parts[name], dtype=float), *shape) for name, shape in self.parts.items()]
        return np.concatenate([np.zeros(0), *(
            part[triangle(rows)] if columns == SYMMETRIC else part.reshape(rows, columns).ravel(order='F')
            for part, rows, columns in arrays)])


def triangle(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the lower triangle, column by column as CasADi stores it."""
    columns, rows = np.triu_indices(size)
    return rows, columns


def _full(flat: ca.SX, rows: int, columns: int) -> ca.SX:
    if columns != SYMMETRIC:
        return ca.reshape(flat, rows, columns)
    order = np.zeros((rows, rows), dtype=int)
    at = triangle(rows)
    order[at] = order[at[::-1]] = np.arange(len(at[0]))
    return ca.reshape(flat[order.ravel(order='F').tolist()], rows, rows)


def _flat(part: ca.SX, rows: int, columns: int) -> ca.SX:
    if columns != SYMMETRIC:
        return ca.reshape(ca.densify(part), rows * columns, 1)
    at = triangle(rows)
    return ca.vec(ca.densify(part))[(at[0] + rows * at[1]).tolist()]


def _array(flat: np.ndarray, rows: int, columns: int) -> np.ndarray:
    if columns == SYMMETRIC:
        full = np.zeros((*flat.shape[:-1], rows, rows), flat.dtype)
        r, c = triangle(rows)
        full[..., r, c] = full[..., c, r] = flat
        return full
    if columns == 1:
        return flat.copy()
    return np.swapaxes(flat.reshape(*flat.shape[:-1], columns, rows), -1, -2)
