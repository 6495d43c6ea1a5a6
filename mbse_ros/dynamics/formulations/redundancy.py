# SPDX-License-Identifier: Apache-2.0
"""Constraint rows that depend on others: which they are, and on what they depend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .decomposition import RANK_TOLERANCE, row_sizes

INVOLVED = 1e-6     # share of a row in another, both of unit length, from which it counts


@dataclass(frozen=True)
class RedundantRow:
    """A row that says nothing new: ``row`` its place, ``name``, and the names of the earlier rows that imply it."""

    row: int
    name: str
    depends_on: tuple[str, ...]

    def __str__(self) -> str:
        return f'{self.name} ' + (f'depends on {", ".join(self.depends_on)}' if self.depends_on else 'is always true')


def independent_rows(J: np.ndarray, tolerance: float = RANK_TOLERANCE) -> list[int]:
    """Places of rows of full rank, earlier rows kept before later ones.

    ``J`` (m, n), or samples (k, m, n) at several assembled positions. At a singular position rows are dependent that
    are not elsewhere, so a row counts by the largest rank that it and those before it reach at any of the positions.
    """
    largest = np.max(_ranks(_unit_samples(J), tolerance), axis=0, initial=0)
    return [int(i) for i in np.flatnonzero(np.diff(largest, prepend=0))]


def _ranks(samples: np.ndarray, tolerance: float) -> np.ndarray:
    """Rank (k, m) of the rows up to each, at each position, by Gram-Schmidt."""
    count, m, n = samples.shape
    bases, ranks = np.zeros((count, n, min(m, n))), np.zeros((count, m), dtype=int)
    size = np.zeros(count, dtype=int)
    for i in range(m):
        rest = samples[:, i, :]
        for _ in range(2):                              # projected twice: orthogonal to the last digit
            along = np.swapaxes(bases, 1, 2) @ rest[..., None]
            rest = rest - (bases @ along)[..., 0]
        left = np.linalg.norm(rest, axis=1)
        for k in np.flatnonzero(left > tolerance):
            bases[k, :, size[k]] = rest[k] / left[k]
            size[k] += 1
        ranks[:, i] = size
    return ranks


def redundant_rows(J: np.ndarray, names: Sequence[str] = (), tolerance: float = RANK_TOLERANCE) -> list[RedundantRow]:
    """The rows that ``independent_rows`` drops, each with those that imply it.

    ``J`` as there: one (m, n) or samples (k, m, n), all on the constraints; ``names`` (m,) of the rows.
    """
    samples = _unit_samples(J)
    names = tuple(names) or tuple(f'row {i}' for i in range(samples.shape[1]))
    kept = independent_rows(J, tolerance)
    found = []
    for row in sorted(set(range(samples.shape[1])) - set(kept)):
        earlier = [i for i in kept if i < row]
        shares = np.max([_shares(sample, earlier, row) for sample in _regular(samples, earlier)], axis=0, initial=0.0)
        depends_on = tuple(names[i] for i, share in zip(earlier, np.atleast_1d(shares)) if share > INVOLVED)
        found.append(RedundantRow(row, names[row], depends_on))
    return found


def _unit_samples(J: np.ndarray) -> np.ndarray:
    """Samples (k, m, n) with rows of unit length, or zero."""
    samples = np.asarray(J, dtype=float)
    samples = samples[None] if samples.ndim == 2 else samples
    return np.array([sample / row_sizes(sample)[:, None] for sample in samples]).reshape(samples.shape)


def _regular(samples: np.ndarray, rows: list[int]) -> np.ndarray:
    """The samples where these rows are most independent; the rest would name rows that are not involved."""
    if not rows:
        return samples[:1]
    ranks = _ranks(samples[:, rows], RANK_TOLERANCE)[:, -1]
    return samples[ranks == ranks.max()]


def _shares(sample: np.ndarray, earlier: list[int], row: int) -> np.ndarray:
    """How much each of the earlier rows takes part in a row, by QR with column pivoting."""
    from scipy.linalg import lstsq  # here: slow to import
    if not earlier:
        return np.zeros(0)
    return np.abs(lstsq(sample[earlier].T, sample[row], lapack_driver='gelsy')[0])
