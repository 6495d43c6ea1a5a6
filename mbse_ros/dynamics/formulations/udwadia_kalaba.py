# SPDX-License-Identifier: Apache-2.0
"""The Udwadia-Kalaba equation, at once and recursively over groups of constraints (Orsino, modular modelling,
section 4).

The recursion is the measurement update of a Kalman filter: constraints are the measurements, without noise, and
``P0 = I`` in the coordinates ``a = M^1/2 qdd``. Here it runs in square-root form, ``P = L L'``: with ``E = [Ht L, N]``,
``N N' = R`` the clearance, ``K = [L, 0] E^+`` (Eqs. 4.16, 4.17) and ``L+ = [L, 0] Z`` with Z orthonormal, ``E Z = 0``
(Eqs. 4.15, 4.18). Without clearance L stays an orthonormal basis, so P stays a projector however many groups there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from .decomposition import decompose, row_sizes
from .redundancy import with_definite_mass
from .terms_arrays import Accelerations, Terms

ROUNDING = 1e-13    # eigenvalue of a clearance with unit diagonal that counts as zero

Clearance = Sequence[ArrayLike | None] | None


def inverse_root(M: np.ndarray) -> np.ndarray:
    """Symmetric ``M^-1/2`` (n, n) of a positive definite matrix.

    From the singular values of the Cholesky factor: eigenvalues of M lose twice the digits of light bodies.
    """
    U, s, _ = np.linalg.svd(np.linalg.cholesky(M))
    return (U / s) @ U.T


def batch(terms: Terms) -> Accelerations:
    """Accelerations by ``a = a0 + H^+ (b - H a0)``, ``H = J M^-1/2``, ``a0 = M^-1/2 Q`` (Orsino, modular modelling,
    Eq. 4.9).

    Raises SingularEquationsError where rows contradict each other or mass is missing.
    """
    regular = with_definite_mass(terms)
    root = inverse_root(regular.M)
    H, a0 = terms.J @ root, root @ regular.Q
    qdd = root @ (a0 + decompose(H).solve(terms.c - H @ a0))
    terms.check_consistent(qdd)
    return Accelerations(qdd, terms.least_multipliers(qdd))


def recursive(terms: Terms, groups: Iterable[Sequence[int]],
              clearance: Clearance = None) -> tuple[Accelerations, np.ndarray]:
    """Accelerations and projector P (n, n), group after group of constraint rows (Orsino, modular modelling,
    Eqs. 4.14-4.18).

    ``groups`` name every row at least once; their order does not matter. P, of ``a = M^1/2 qdd``, projects onto the
    kernel of ``J M^-1/2`` (M of ``with_definite_mass``). ``clearance``: for each group None or R, a number, (k,) or
    (k, k): the constraint gives way by ``J qdd - c = R lam``, (m/s2)/N for a length; P is then the covariance of
    Eq. 4.18.
    Coordinates without mass must be held by rows without clearance. Raises ValueError for groups and clearances that do
    not fit, SingularEquationsError as ``batch`` does.
    """
    groups = [list(group) for group in groups]
    terms.check_groups(groups)
    roots = _clearance_roots(groups, clearance)
    exact = sorted({i for group, N in zip(groups, roots) for i, row in zip(group, N) if not row.any()})
    regular = with_definite_mass(terms, exact)
    root = inverse_root(regular.M)
    H, start = terms.J @ root, root @ regular.Q
    a, L = start, np.eye(terms.n)
    for group, N in zip(groups, roots):
        a, L = _enforce(a, L, H[group], terms.c[group], N)
    qdd = root @ a
    terms.check_consistent(qdd, exact)
    soft = len(exact) < terms.m
    lam = _soft_multipliers(terms, H, start, groups, roots) if soft else terms.least_multipliers(qdd)
    return Accelerations(qdd, lam), L @ L.T


def _enforce(a: np.ndarray, L: np.ndarray, H: np.ndarray, b: np.ndarray,
             N: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One group: new accelerations and square root of P."""
    update = decompose(np.hstack([H @ L, N]), row_sizes(np.hstack([H, N])))
    columns = L.shape[1]
    return a + L @ update.solve(b - H @ a)[:columns], L @ update.null[:columns]


def _soft_multipliers(terms: Terms, H: np.ndarray, start: np.ndarray, groups: Sequence[Sequence[int]],
                      roots: list[np.ndarray]) -> np.ndarray:
    """``(H H' + R) lam = H a0 - c``; a row of several groups gets the sum of its multipliers."""
    from scipy.linalg import block_diag  # here: slow to import
    rows = [i for group in groups for i in group]
    E = decompose(np.hstack([H[rows], block_diag(*roots)]))
    lam = np.zeros(terms.m)
    np.add.at(lam, rows, E.solve_transposed(E.solve(H[rows] @ start - terms.c[rows])))
    return lam


def _clearance_roots(groups: Sequence[Sequence[int]], clearance: Clearance) -> list[np.ndarray]:
    """A square root N (k, j) of each group's clearance, without columns where there is none."""
    if clearance is None:
        return [np.zeros((len(group), 0)) for group in groups]
    if len(clearance) != len(groups):
        raise ValueError(f'clearance: {len(clearance)} entries, expected one for each of {len(groups)} groups')
    return [_root(np.zeros(()) if R is None else np.asarray(R, dtype=float), len(group))
            for R, group in zip(clearance, groups)]


def _root(R: np.ndarray, k: int) -> np.ndarray:
    """Square root N (k, j) of a covariance, its rows in units of their own."""
    if R.shape not in ((), (k,), (k, k)):
        raise ValueError(f'clearance: shape {R.shape}, expected (), ({k},) or ({k}, {k})')
    full = R if R.ndim == 2 else np.diag(np.broadcast_to(R, (k,)))
    diagonal = np.diag(full)
    unit = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    scaled = full / np.outer(unit, unit)
    if not (np.isfinite(full).all() and np.allclose(scaled, scaled.T, rtol=0, atol=1e-9)):
        raise ValueError('clearance: expected a symmetric matrix of finite numbers')
    values, vectors = np.linalg.eigh(scaled)
    if values.min(initial=0.0) < -ROUNDING:
        raise ValueError('clearance: expected a matrix without negative eigenvalues')
    kept = values > ROUNDING
    return unit[:, None] * vectors[:, kept] * np.sqrt(values[kept])
