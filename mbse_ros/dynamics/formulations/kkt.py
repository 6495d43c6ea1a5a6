# SPDX-License-Identifier: Apache-2.0
"""Accelerations and multipliers together, index 1: ``[M J'; J 0] [qdd; lam] = [Q; c]`` (Naya et al., review, Eq. 1).

Also with a penalty instead of the constraints (Naya et al., review, Eqs. 27, 28).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...errors import SingularEquationsError
from .decomposition import decompose
from .redundancy import UNDETERMINED, independent_rows, undetermined
from .terms_arrays import Accelerations, Terms

PENALTY, STABILISED = 1e7, (1.0, 10.0)      # its default; damping ratio and natural frequency, rad/s, beside it
WORST_CONDITION = 1e13      # of the scaled matrix; about the square of that of J, so dependent rows lie beyond


def kkt(terms: Terms, use_sparse: bool = False, redundant: bool = False) -> Accelerations:
    """Accelerations by the full equations, by LAPACK's symmetric LDL' or by SuperLU (``use_sparse``).

    ``redundant``: allow rows that depend on others, if consistently; else they raise SingularEquationsError, as do
    missing mass and rows that contradict each other.
    """
    if redundant:
        rows = independent_rows(terms.J)
        qdd = kkt(terms.take(rows), use_sparse).qdd
        terms.check_consistent(qdd)
        return Accelerations(qdd, terms.least_multipliers(qdd))
    K = np.block([[terms.M, terms.J.T], [terms.J, np.zeros((terms.m, terms.m))]])
    try:
        x = solve_symmetric(K, np.concatenate([terms.Q, terms.c]), use_sparse)
    except np.linalg.LinAlgError:
        raise _diagnosis(terms) from None
    return Accelerations(x[:terms.n], x[terms.n:])


def penalty(terms: Terms, alpha: float = PENALTY, zeta: float = STABILISED[0], omega: float = STABILISED[1]
            ) -> Accelerations:
    """Accelerations with ``lam = alpha (J qdd - c + 2 zeta omega Phidot + omega^2 Phi)`` instead of the constraints.

    ``alpha`` > 0 penalty (1e7 to 1e10), ``zeta`` damping ratio, ``omega`` natural frequency, rad/s. Redundant rows do
    no harm. Solved as ``[M J'; J -I/alpha]``, which is Eq. 28 before lam is eliminated: ``M + alpha J'J`` would lose as
    many digits as alpha has zeros, and those of lam once more. At Phi = Phidot = 0 the result is that of the
    Udwadia-Kalaba recursion with the clearance 1 / alpha. Raises SingularEquationsError for coordinates that neither
    mass nor constraints determine.
    """
    if not 0 < alpha < np.inf:
        raise ValueError(f'alpha: got {alpha}, expected a positive number')
    K = np.block([[terms.M, terms.J.T], [terms.J, -np.eye(terms.m) / alpha]])
    right = np.concatenate([terms.Q, terms.stabilized(zeta, omega).c])
    try:
        x = solve_symmetric(K, right)
    except np.linalg.LinAlgError:
        free = undetermined(terms)
        if free:
            raise SingularEquationsError(UNDETERMINED, free) from None
        x = solve_symmetric(K, right, worst=np.inf)         # redundant rows: alpha alone makes the condition
    return Accelerations(x[:terms.n], x[terms.n:])


def solve_symmetric(K: np.ndarray, b: np.ndarray, use_sparse: bool = False,
                    worst: float = WORST_CONDITION) -> np.ndarray:
    """Solution of a symmetric indefinite system (k, k), scaled to entries of one size, refined once.

    Raises LinAlgError where the condition of the scaled matrix is beyond ``worst``.
    """
    scale = _equilibrate(K)
    K, b = K * np.outer(scale, scale), b * scale
    solve = (_factor_sparse if use_sparse else _factor_dense)(K)
    if not _condition(K, solve) < worst:
        raise np.linalg.LinAlgError('singular')
    x = solve(b)
    return scale * (x + solve(b - K @ x))


def _equilibrate(K: np.ndarray) -> np.ndarray:
    """Symmetric scaling (k,) towards a largest entry of 1 in every row (Ruiz, 2001)."""
    scale, size = np.ones(len(K)), np.abs(K)
    for _ in range(6):
        largest = scale * (size @ np.diag(scale)).max(axis=1, initial=0.0)
        scale = scale / np.sqrt(np.where(largest > 0, largest, 1.0))
    return scale


def _factor_dense(K: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    from scipy.linalg.lapack import dsytrf, dsytrs  # here: slow to import
    ldu, pivots, info = dsytrf(K, lower=1)
    if info > 0:
        raise np.linalg.LinAlgError('singular')
    return lambda b: dsytrs(ldu, pivots, b, lower=1)[0].reshape(b.shape)


def _factor_sparse(K: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    from scipy import sparse  # here: slow to import
    from scipy.sparse.linalg import splu
    try:
        return splu(sparse.csc_matrix(K)).solve
    except RuntimeError:                                # what SuperLU raises for an exact zero pivot
        raise np.linalg.LinAlgError('singular') from None


def _condition(K: np.ndarray, solve: Callable[[np.ndarray], np.ndarray]) -> float:
    """Estimate of the condition, from below, by inverse iteration."""
    v = np.cos(np.arange(len(K)) ** 2 + 1.0)            # any vector that is orthogonal to nothing in particular
    growth = 0.0
    for _ in range(4):
        v = solve(v / np.linalg.norm(v))
        growth = float(np.linalg.norm(v))
        if not np.isfinite(growth):
            return np.inf
    return growth * float(np.abs(K).sum(axis=1).max())


def _diagnosis(terms: Terms) -> SingularEquationsError:
    """What makes the equations singular, by name."""
    rows = independent_rows(terms.J)
    if len(rows) < terms.m:
        return SingularEquationsError('redundant constraints, or a singular position',
                                      [terms.rows[i] for i in range(terms.m) if i not in rows])
    free = undetermined(terms)
    if free:
        return SingularEquationsError(UNDETERMINED, free)
    weakest = np.abs(decompose(terms.J).left[:, -1]) if terms.m else np.zeros(0)
    return SingularEquationsError('almost singular, by the constraints',
                                  [terms.rows[i] for i in np.flatnonzero(weakest > 0.1).tolist()])
