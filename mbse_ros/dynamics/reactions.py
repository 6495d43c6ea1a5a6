# SPDX-License-Identifier: Apache-2.0
"""Reactions of joints from the multipliers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .terms_arrays import Terms


def reactions(terms: Terms, multipliers: np.ndarray, groups: Mapping[str, Sequence[int]]) -> dict[str, np.ndarray]:
    """Generalised forces ``-J_g' lam_g`` (n,), N or N m, by which each group of constraint rows acts on the system.

    With ``M qdd + J' lam = Q`` the sum over groups that hold each row once is ``M qdd - Q``. Of redundant rows only the
    sum is determined; multipliers of least norm share it. Raises ValueError for a wrong number of multipliers.
    """
    multipliers = np.asarray(multipliers, dtype=float)
    if multipliers.shape != (terms.m,):
        raise ValueError(f'multipliers: shape {multipliers.shape}, expected ({terms.m},)')
    return {name: -terms.J[list(rows)].T @ multipliers[list(rows)] for name, rows in groups.items()}
