# SPDX-License-Identifier: Apache-2.0
"""Singular positions ahead on a motion: where constraints lose their rank, whatever the coordinates."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from ..model import Model

RANK_LOST = 1e-3        # smallest singular value of the rows of unit length that tells a singular position


def unit_rows(J: np.ndarray) -> np.ndarray:
    """Rows (m, n) of unit length."""
    return J / np.linalg.norm(J, axis=1, keepdims=True)


def smallest(J: np.ndarray) -> float:
    """Smallest singular value of the rows of unit length; 1 without rows."""
    return float(np.linalg.svd(unit_rows(J), compute_uv=False)[-1]) if J.size else 1.0


def next_singular(model: Model, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, t: float,
                  horizon: float) -> float | None:
    """Time, s, until the motion predicted from (q, qd, qdd) (n,) passes a singular position; None within the horizon.

    A rank can only be lost where J changes by more than the smallest singular values at both ends together.
    """
    def jacobian(s: float) -> np.ndarray:
        return model.residual(q + s * (qd + s / 2 * qdd), t + s)[1][model.active]

    here, there = jacobian(0.0), jacobian(horizon)
    if not here.size or not np.isfinite(there).all():
        return None
    change = np.linalg.norm(unit_rows(there) - unit_rows(here), 2)
    if smallest(here) + smallest(there) > 1.2 * change:
        return None
    found = minimize_scalar(lambda s: smallest(jacobian(s)), bounds=(0.0, horizon), method='bounded',
                            options={'xatol': 1e-7 * horizon})
    inside = 1e-3 * horizon < found.x < (1 - 1e-6) * horizon
    return float(found.x) if inside and found.fun < RANK_LOST else None
