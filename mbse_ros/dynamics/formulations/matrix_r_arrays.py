# SPDX-License-Identifier: Apache-2.0
"""Matrix-R on arrays: ``[S R] = inv([J; B])``, ``z = B q`` (Naya et al., review, Eqs. 18-20, Pyrhönen et al., mass
estimation, Eqs. 4-6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import SingularConfigurationError, SingularEquationsError
from ..partition import WORST, alternatives, choose_independent, condition
from .massless import UNDETERMINED
from .redundancy import independent_rows
from .terms_arrays import Accelerations, Terms


def s_and_r(J: np.ndarray, independent: Sequence[int], names: Sequence[str] = ()) -> tuple[np.ndarray, np.ndarray]:
    """``S`` (n, m) and ``R`` (n, g): J S = I, J R = 0, B S = 0, B R = I.

    Where rows of J (m, n) are redundant, S is the inverse of the independent ones and zero for the others (S c is right
    for consistent c). Raises SingularConfigurationError where the coordinates (places) do not determine the motion.
    """
    m, n = J.shape
    independent = list(independent)
    worst = condition(J, independent)
    if not worst < WORST:
        names = names or [f'q[{i}]' for i in range(n)]
        raise SingularConfigurationError([names[i] for i in independent], worst,
                                         [[names[i] for i in choice] for choice in alternatives(J, independent)])
    rows = list(range(m)) if m + len(independent) == n else independent_rows(J)
    whole = np.linalg.inv(np.vstack([J[rows], np.eye(n)[independent]]))
    S = np.zeros((n, m))
    S[:, rows] = whole[:, :len(rows)]
    return S, whole[:, len(rows):]


def matrix_r(terms: Terms, independent: Sequence[int] | None = None) -> Accelerations:
    """Accelerations ``qdd = R zdd + S c`` with ``R' M R zdd = R' (Q - M S c)``; multipliers ``S' (Q - M qdd)``.

    ``independent``: places of the coordinates z; well-conditioned ones are chosen where it is left out. Raises
    SingularConfigurationError as ``s_and_r``, SingularEquationsError for contradicting rows and for missing mass.
    """
    independent = choose_independent(terms.J) if independent is None else independent
    S, R = s_and_r(terms.J, independent, terms.coordinates)
    Sc = S @ terms.c
    zdd = _reduced(R.T @ terms.M @ R, R.T @ (terms.Q - terms.M @ Sc), [terms.coordinates[i] for i in independent])
    qdd = R @ zdd + Sc
    if terms.m + len(independent) == terms.n:
        return Accelerations(qdd, S.T @ (terms.Q - terms.M @ qdd))
    terms.check_consistent(qdd)
    return Accelerations(qdd, terms.least_multipliers(qdd))


def _reduced(Mbar: np.ndarray, Qbar: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Accelerations zdd (g,); raises SingularEquationsError where a motion moves no mass."""
    from scipy.linalg import cho_factor, cho_solve  # here: slow to import
    if not Mbar.size:
        return np.zeros(0)
    diagonal = np.diag(Mbar)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    try:
        factor = cho_factor(Mbar * np.outer(scale, scale))
    except np.linalg.LinAlgError:
        raise SingularEquationsError(UNDETERMINED, names) from None
    return scale * cho_solve(factor, scale * Qbar)
