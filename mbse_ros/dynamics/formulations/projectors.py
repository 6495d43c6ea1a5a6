# SPDX-License-Identifier: Apache-2.0
"""Constraints enforced level by level through operators S onto the kernel of the constraints (Orsino, modular
modelling, section 3).

``S_{r+1} = S_r C_{r+1}`` with C onto the kernel of ``A S_r``, A the rows that the level adds (theorem 3.2); at the top
``S' M qdd = S' Q`` and ``J qdd = c`` are solved together (Eq. 3.4), so M may be singular.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import SingularEquationsError
from .decomposition import RANK_TOLERANCE, decompose, row_sizes
from .redundancy import UNDETERMINED, mass_roots, undetermined
from .terms_arrays import Accelerations, Terms


@dataclass(frozen=True)
class Enforced:
    """Model at the top of the hierarchy.

    ``accelerations``; ``S`` onto the kernel of J: (n, g) for 'complement', a projector (n, n) for the others;
    ``ranks``: by level, the number of coordinates that its rows take away (fewer than rows where some are redundant).
    """

    accelerations: Accelerations
    S: np.ndarray
    ranks: tuple[int, ...]


def complement(S: np.ndarray, A: np.ndarray) -> tuple[np.ndarray, int]:
    """Next S (n, g) and the rank of the level, by an orthogonal complement of ``A S`` (theorem 3.2)."""
    level = decompose(A @ S, row_sizes(A))
    return S @ level.null, level.rank


def inverse(S: np.ndarray, A: np.ndarray) -> tuple[np.ndarray, int]:
    """Next projector (n, n) and the rank of the level: ``(I - G A) S``, ``G = (A S)^+`` (corollary 3.3, Eq. 3.10).

    Not the second form ``(I - G A) S (I - G A)'``: there rounding grows with the square of G, here with G.
    """
    level = decompose(A @ S, row_sizes(A))
    return S - level.solve(A @ S), level.rank


def orthonormalized(S: np.ndarray, A: np.ndarray) -> tuple[np.ndarray, int]:
    """Next projector (n, n) and the rank of the level: ``S - N'N``, N the orthonormalized rows of ``A S``
    (proposition 3.1 iv)."""
    from scipy.linalg import qr  # here: slow to import
    Q, R, _ = qr((A @ S).T / row_sizes(A), mode='economic', pivoting=True)
    rank = int(np.count_nonzero(np.abs(np.diag(R)) > RANK_TOLERANCE))
    N = np.linalg.qr(S @ Q[:, :rank])[0]            # back into the range of S, which small pivots leave a little
    return S - N @ N.T, rank


def one_inverse(S: np.ndarray, A: np.ndarray) -> tuple[np.ndarray, int]:
    """Next projector (n, n), oblique, and the rank of the level: ``S (I - G B)`` with a {1}-inverse G of ``B = A S``
    (proposition 3.1 ii, theorem 3.2): the one that pivoted QR gives, without singular values."""
    from scipy.linalg import qr, solve_triangular  # here: slow to import
    B = (A @ S) / row_sizes(A)[:, None]
    Q, R, columns = qr(B, mode='economic', pivoting=True)
    rank = int(np.count_nonzero(np.abs(np.diag(R)) > RANK_TOLERANCE))
    GB = np.zeros((B.shape[1], B.shape[1]))
    GB[columns[:rank]] = solve_triangular(R[:rank, :rank], Q[:, :rank].T @ B)
    return S - S @ GB, rank


WAYS: dict[str, Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, int]]] = {
    'complement': complement, 'inverse': inverse, 'one_inverse': one_inverse, 'orthonormalization': orthonormalized}


def enforce(terms: Terms, levels: Iterable[Sequence[int]], way: str = 'complement') -> Enforced:
    """Accelerations by enforcing the constraint rows of each level, from the lowest upwards.

    ``levels`` name every row at least once; ``way``: one of ``WAYS``. Raises ValueError for levels and ways that do not
    exist, SingularEquationsError for rows that contradict each other and for
    coordinates that neither mass nor constraints determine.
    """
    if way not in WAYS:
        raise ValueError(f'way: got {way!r}, expected one of {", ".join(WAYS)}')
    levels = [list(level) for level in levels]
    terms.check_groups(levels)
    S, ranks = np.eye(terms.n), []
    for level in levels:
        S, rank = WAYS[way](S, terms.J[level])
        ranks.append(rank)
    qdd = _solve(terms, S)
    terms.check_consistent(qdd)
    return Enforced(Accelerations(qdd, terms.least_multipliers(qdd)), S, tuple(ranks))


def _solve(terms: Terms, S: np.ndarray) -> np.ndarray:
    """Accelerations (n,) from ``[S' M; J] qdd = [S' Q; c]``, each coordinate measured by its mass."""
    unit = 1.0 / mass_roots(terms.M)
    motion, rows = S.T @ terms.M * unit, terms.J * unit
    sizes = np.concatenate([np.full(len(motion), np.linalg.norm(terms.M * unit) or 1.0), row_sizes(rows)])
    whole = decompose(np.vstack([motion, rows]), sizes, tolerance=1e-12)
    if whole.rank < terms.n:
        raise SingularEquationsError(UNDETERMINED, undetermined(terms) or terms.coordinates)
    return unit * whole.solve(np.concatenate([S.T @ terms.Q, terms.c]))
