# SPDX-License-Identifier: Apache-2.0
"""Rank, null space and pseudo-inverse of constraint matrices: one policy for all formulations.

Rows of constraints come in all units (a length squared, a length, an angle), so a row counts as dependent where what
the others leave of it is below ``RANK_TOLERANCE`` of its own size. At an assembled position redundant rows leave about
1e-13, rows of a usable mechanism more than 1e-5; the tolerance is between. A row that nearly vanishes, as at a singular
position, is measured by ``LIGHT`` of the largest row: what rounding leaves of it is no constraint.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

RANK_TOLERANCE = 1e-9
LIGHT = 1e-3        # share of the largest row below which a row is not measured by its own size


def row_sizes(A: np.ndarray) -> np.ndarray:
    """What the rows (k,) of a matrix (k, n) are measured by: their norms, at least ``LIGHT`` of the largest; 1 where
    all are zero."""
    sizes = np.linalg.norm(A, axis=1)
    least = LIGHT * np.max(sizes, initial=0.0)
    return np.maximum(sizes, least) if least > 0 else np.ones_like(sizes)


@dataclass(frozen=True)
class Decomposition:
    """Singular values of a matrix (k, n) with scaled rows: ``A = diag(sizes) left diag(singular) right'``.

    ``left`` (k, r), ``singular`` (r,), ``right`` (n, r) for the rank r; ``null`` (n, n - r) with ``A null = 0``,
    ``left_null`` (k, k - r) in the scaled rows; both orthonormal.
    """

    sizes: np.ndarray
    left: np.ndarray
    singular: np.ndarray
    right: np.ndarray
    null: np.ndarray
    left_null: np.ndarray

    @property
    def rank(self) -> int:
        """Rank r."""
        return len(self.singular)

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Solution (n,) of least norm of ``A x = b``; (n, j) for columns b (k, j)."""
        scaled = (b.T / self.sizes).T
        return self.right @ ((self.left.T @ scaled).T / self.singular).T

    def solve_transposed(self, f: np.ndarray) -> np.ndarray:
        """Solution (k,) of least norm of ``A' y = f`` (n,)."""
        y = (self.left @ ((self.right.T @ f) / self.singular)) / self.sizes
        if self.left_null.shape[1]:
            free = np.linalg.qr(self.left_null / self.sizes[:, None])[0]
            y = y - free @ (free.T @ y)
        return y


def decompose(A: np.ndarray, sizes: np.ndarray | None = None, tolerance: float = RANK_TOLERANCE) -> Decomposition:
    """Decompose a matrix (k, n) down to its rank.

    ``sizes`` (k,): what the rows are measured by, their own norms where left out; a row that was projected is measured
    by its norm before.
    """
    sizes = row_sizes(A) if sizes is None else sizes
    left, singular, right = np.linalg.svd(A / sizes[:, None], full_matrices=True)
    rank = int(np.count_nonzero(singular > tolerance))
    return Decomposition(sizes, left[:, :rank], singular[:rank], right[:rank].T, right[rank:].T, left[:, rank:])
