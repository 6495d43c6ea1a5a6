# SPDX-License-Identifier: Apache-2.0
"""Coordinates without mass of their own: an equivalent system whose mass matrix is positive definite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...errors import SingularEquationsError
from .decomposition import decompose, row_sizes
from .terms_arrays import Terms

UNDETERMINED = 'neither mass nor constraints determine'
SLIGHT = 1e-14      # share of the largest mass from which a coordinate is measured by its own
MASSLESS = 1e-10    # eigenvalue of the mass matrix with unit diagonal below which a direction has no mass of its own


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
