# SPDX-License-Identifier: Apache-2.0
"""What makes equations of motion singular: constraint rows that depend on others, on which, and coordinates without
mass of their own, with an equivalent system whose mass matrix is positive definite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...errors import SingularEquationsError
from .decomposition import RANK_TOLERANCE, decompose, row_sizes
from .terms_arrays import Terms

INVOLVED = 1e-6     # share of a row in another, both of unit length, from which it counts
UNDETERMINED = 'neither mass nor constraints determine'
SLIGHT = 1e-14      # share of the largest mass from which a coordinate is measured by its own
MASSLESS = 1e-10    # eigenvalue of the mass matrix with unit diagonal below which a direction has no mass of its own


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


def mass_roots(M: np.ndarray, least: float = 0.0) -> np.ndarray:
    """Square roots (n,) of the diagonal, by which kg and kg m2 become comparable.

    A typical one is used where there is no mass, or less than ``least`` of the largest.
    """
    diagonal = np.diag(M)
    own = diagonal > least * diagonal.max(initial=0.0)
    return np.sqrt(np.where(own, diagonal, np.median(diagonal[own]) if own.any() else 1.0))


def undetermined(terms: Terms) -> list[str]:
    """Names of the coordinates whose accelerations neither mass nor constraints determine; mostly none."""
    scale = mass_roots(terms.M)
    rows = terms.J / scale
    scaled, sizes = np.vstack([terms.M / np.outer(scale, scale), rows]), np.append(np.ones(terms.n), row_sizes(rows))
    size = np.abs(decompose(scaled, sizes, MASSLESS).null / scale[:, None]).max(axis=1, initial=0.0)
    return [name for name, part in zip(terms.coordinates, size) if part > 1e-6 * size.max(initial=0.0)]


def with_definite_mass(terms: Terms, rows: Sequence[int] | None = None) -> Terms:
    """The same motion and multipliers with ``M + J' W J`` and ``Q + J' W c`` instead of M and Q.

    Where ``J qdd = c`` both sides of ``M qdd + J' lam = Q`` grow by the same ``J' W c``, whatever the symmetric W:
    neither qdd nor lam changes, and no direction is lost if it has a little mass after all. The choice
    ``W = w (J N)^+' (J N)^+``, with N (n, k) the directions without mass, gives ``N' (J' W J) N = w I``: each gets the
    mass w, the mean of the others (less where the constraints magnify it), so that the new matrix is as well
    conditioned as the old one on the rest. ``rows``: take J and c of these rows only (those that hold exactly). Terms
    whose M is definite are returned as they are. Raises SingularEquationsError for coordinates that neither mass nor
    constraints determine.
    """
    scale = mass_roots(terms.M, SLIGHT)
    values, vectors = np.linalg.eigh(terms.M / np.outer(scale, scale))
    light = values < MASSLESS
    if not light.any():
        return terms
    N = np.linalg.qr(vectors[:, light] / scale[:, None])[0]
    exact = terms if rows is None else terms.take(rows)
    held = decompose(exact.J @ N, row_sizes(exact.J))
    free = undetermined(exact) if held.rank < N.shape[1] else []
    if free:
        raise SingularEquationsError(UNDETERMINED, free)
    follow, rest = held.solve(exact.J), held.solve(exact.c)             # (J N)^+ J (k, n), (J N)^+ c (k,)
    w = np.mean(scale ** 2) / max(1.0, np.linalg.norm(follow, 2) ** 2)
    return replace(terms, M=terms.M + w * follow.T @ follow, Q=terms.Q + w * follow.T @ rest)
