# SPDX-License-Identifier: Apache-2.0
"""Coordinates without mass of their own: an equivalent system whose mass matrix is positive definite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..errors import SingularEquationsError
from .decomposition import decompose, row_sizes
from .terms_arrays import Terms

UNDETERMINED = 'neither mass nor constraints determine'
MASSLESS = 1e-10    # eigenvalue of the mass matrix with unit diagonal below which a direction has no mass of its own


def undetermined(terms: Terms) -> list[str]:
    """Names of the coordinates whose accelerations neither mass nor constraints determine; mostly none."""
    diagonal = np.diag(terms.M)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    scaled = np.vstack([terms.M / np.outer(scale, scale), terms.J / scale])
    return _involved(terms, decompose(scaled, tolerance=MASSLESS).null / scale[:, None])


def with_definite_mass(terms: Terms, rows: Sequence[int] | None = None) -> Terms:
    """The same motion and multipliers with ``M + J' W J`` and ``Q + J' W c`` in place of M and Q.

    Where ``J qdd = c`` both sides of ``M qdd + J' lam = Q`` grow by the same ``J' W c``, whatever the symmetric W:
    neither qdd nor lam changes, and no direction is lost if it is wrongly taken for one without mass. The choice
    ``W = w (J N)^+' (J N)^+``, with N (n, k) the directions without mass, gives ``N' (J' W J) N = w I``: each gets the
    mass w, the mean of the others (less where the constraints magnify it), so that the new matrix is as well
    conditioned as the old one on the rest. ``rows``: take J and c of these rows only (those that hold exactly). Terms
    whose M is definite are returned as they are. Raises SingularEquationsError for coordinates that neither mass nor
    constraints determine.
    """
    diagonal = np.diag(terms.M)
    # A unit diagonal makes kg and kg m2 comparable; a zero on it is a row of zeros, as M is semi-definite.
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    values, vectors = np.linalg.eigh(terms.M / np.outer(scale, scale))
    light = values < MASSLESS
    if not light.any():
        return terms
    N = np.linalg.qr(vectors[:, light] / scale[:, None])[0]
    exact = terms if rows is None else terms.take(rows)
    held = decompose(exact.J @ N, row_sizes(exact.J))
    if held.rank < N.shape[1]:
        raise SingularEquationsError(UNDETERMINED, _involved(terms, N @ held.null))
    follow, rest = held.solve(exact.J), held.solve(exact.c)             # (J N)^+ J (k, n), (J N)^+ c (k,)
    mass = diagonal[diagonal > 0].mean() if (diagonal > 0).any() else 1.0
    w = mass / max(1.0, np.linalg.norm(follow, 2) ** 2)
    return replace(terms, M=terms.M + w * follow.T @ follow, Q=terms.Q + w * follow.T @ rest)


def _involved(terms: Terms, directions: np.ndarray) -> list[str]:
    """Names of the coordinates that take part in directions (n, k)."""
    size = np.abs(directions).max(axis=1, initial=0.0)
    return [name for name, part in zip(terms.coordinates, size) if part > 1e-6 * size.max(initial=0.0)]
