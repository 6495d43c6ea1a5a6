# SPDX-License-Identifier: Apache-2.0
"""Choice of the independent coordinates at one position.

The rows of N (n, g), an orthonormal basis of the motions that J allows, show how much each coordinate sees of each
motion. g coordinates determine the motion where their rows ``N_z`` are regular; then ``R = N N_z^-1``, and
``|R| = 1 / s_min(N_z)`` is the condition here: the fastest motion of all coordinates for a unit of the independent
ones. s_min(N_z) is also the smallest singular value of the dependent block of J, made to have orthonormal rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import ModuleType

import numpy as np

from ..compiled.of_scipy import compiled_part
from ..errors import SingularConfigurationError
from .formulations.decomposition import decompose

WORST = 1e6     # condition, |R|, of a choice that is not offered and not taken: zdd keeps four digits there


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


def choose_independent(J: np.ndarray, prefer: Iterable[int] = (), candidates: Iterable[int] | None = None,
                       names: Sequence[str] = ()) -> list[int]:
    """Places (g,) of well-conditioned independent coordinates for a constraint Jacobian (m, n), ascending.

    QR with column pivoting on ``N'``; rows of J may be redundant. ``prefer``: taken before others as far as they are
    independent; ``candidates``: the only coordinates that may be chosen. Raises SingularConfigurationError where these
    do not determine the motion.
    """
    N = decompose(J).null
    n, g = N.shape
    allowed = list(range(n)) if candidates is None else list(dict.fromkeys(candidates))
    preferred = [i for i in dict.fromkeys(prefer) if i in allowed]
    chosen: list[int] = []
    for group in (preferred, [i for i in allowed if i not in preferred]):
        chosen += _pivots(N, group, chosen)
    if len(chosen) < g:
        labels = names or [f'q[{i}]' for i in range(n)]
        raise SingularConfigurationError([labels[i] for i in allowed], np.inf)
    return sorted(chosen)


def condition(J: np.ndarray, independent: Sequence[int]) -> float:
    """Condition ``|R|`` >= 1 of a choice of independent coordinates; infinite at a dead point or for a wrong number."""
    N = decompose(J).null
    if N.shape[1] != len(independent):
        return np.inf
    return _condition(N, list(independent))


def alternatives(J: np.ndarray, independent: Sequence[int], candidates: Iterable[int] | None = None,
                 count: int = 3) -> list[list[int]]:
    """Choices that would do where ``independent`` does not, best conditioned first, at most ``count``.

    Each differs in one coordinate: the one most involved in what the choice sees twice makes way for one that sees the
    motion which the choice does not see. Empty where no exchange of one helps (use ``choose_independent``).
    """
    N = decompose(J).null
    independent = list(independent)
    if not independent or N.shape[1] != len(independent):
        return []
    left, _, right = np.linalg.svd(N[independent])
    place = int(np.argmax(np.abs(left[:, -1])))
    sees = np.abs(N @ right[-1])
    others = [i for i in (range(len(N)) if candidates is None else candidates) if i not in independent]
    likely = sorted(others, key=lambda i: -sees[i])[:2 * count]
    choices = [independent[:place] + [added] + independent[place + 1:] for added in likely]
    found = sorted((_condition(N, choice), choice) for choice in choices)
    return [choice for worst, choice in found if worst < WORST][:count]


def _condition(N: np.ndarray, independent: list[int]) -> float:
    if not independent:
        return 1.0
    smallest = np.linalg.svd(N[independent], compute_uv=False)[-1]
    return float(1.0 / smallest) if smallest > 1.0 / np.finfo(float).max else np.inf


def _pivots(N: np.ndarray, group: list[int], chosen: list[int]) -> list[int]:
    """Members of a group that see what the chosen ones do not, most independent first."""
    if not group or len(chosen) == N.shape[1]:
        return []
    seen = np.linalg.qr(N[chosen].T)[0]
    rest = N[group].T
    rest = rest - seen @ (seen.T @ rest)
    R, order = pivoted(rest)
    pivots = np.abs(np.diag(R))
    room = N.shape[1] - len(chosen)
    return [group[i] for i, pivot in zip(order, pivots[:room]) if pivot > 1.0 / WORST]
