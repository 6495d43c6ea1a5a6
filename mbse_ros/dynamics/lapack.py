# SPDX-License-Identifier: Apache-2.0
"""Least squares, null spaces and pivots by SciPy's LAPACK: its routines with the arguments that `scipy.linalg` gives
them, so the same numbers bit for bit, without its import."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from ..compiled.of_scipy import compiled_part


def lstsq(a: np.ndarray, b: np.ndarray, cond: float) -> np.ndarray:
    """Shortest solution (n,) of ``a x = b``, a (m, n), in the sense of least squares, as `scipy.linalg.lstsq`; singular
    values below ``cond`` times the largest count as zero.

    Raises ValueError for what is not finite, LinAlgError where it does not converge.
    """
    a, b = np.asarray_chkfinite(a), np.asarray_chkfinite(b)
    m, n = a.shape
    if m == 0 or n == 0:
        return np.zeros(n)
    if m < n:
        b = np.concatenate([b, np.zeros(n - m)])
    routines = _routines()
    work, integers, _ = routines.dgelsd_lwork(m, n, 1, cond)
    x, _, _, info = routines.dgelsd(a, b, int(work), int(integers), cond, False, False)
    _check(info)
    return x[:n]


def null_space(a: np.ndarray, rcond: float) -> np.ndarray:
    """Orthonormal basis (n, k) of what a (m, n) takes to zero, as `scipy.linalg.null_space`; raises as ``lstsq``."""
    a = np.asarray_chkfinite(a)
    if not a.size:
        return np.identity(a.shape[1])
    routines = _routines()
    work, _ = routines.dgesdd_lwork(*a.shape, compute_uv=True, full_matrices=True)
    _, s, v, info = routines.dgesdd(a, compute_uv=True, lwork=int(work), full_matrices=True, overwrite_a=False)
    _check(info)
    return v[np.sum(s > np.amax(s) * rcond, dtype=int):].T


def pivoted(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``R`` (k, n) and the order (n,) of the columns of QR with column pivoting, as `scipy.linalg.qr` has them in its
    mode 'economic'; raises ValueError for what is not finite."""
    a = np.asarray_chkfinite(a)
    m, n = a.shape
    routines = _routines()
    work = int(routines.dgeqp3(a, lwork=-1, overwrite_a=False)[-2][0])
    factored, order, *_, info = routines.dgeqp3(a, lwork=work, overwrite_a=False)
    _check(info)
    return np.triu(factored if m < n else factored[:n]), order - 1


def _check(info: int) -> None:
    if info > 0:
        raise np.linalg.LinAlgError('SVD did not converge')
    if info < 0:
        raise ValueError(f'illegal value in argument {-info} of LAPACK')


def _routines() -> ModuleType:
    return compiled_part('linalg', '_flapack', 'scipy.linalg.lapack', 'dgelsd_lwork', 'dgelsd',
                         'dgesdd_lwork', 'dgesdd', 'dgeqp3')
