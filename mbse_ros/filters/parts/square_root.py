# SPDX-License-Identifier: Apache-2.0
"""Covariances by their square roots, as functions that cannot leave the positive cone."""

from __future__ import annotations

from functools import lru_cache

import casadi as ca

from .update import innovation_of, there

LARGEST_SCALAR = 150      # entries of a square root up to which products are written out in scalar operations
ROUNDING = 1e-14      # of a pivot, against its diagonal entry


@lru_cache(maxsize=64)
def factor(size: int) -> ca.Function:
    """``P -> S``, lower triangular (size, size), ``S S' = P``: Cholesky's factor; rounding does not make it fail.

    A pivot below the rounding of its diagonal entry, which a semidefinite or slightly indefinite P has, is raised to
    it, and its column left out; no entry exceeds what is left of its row's variance, as in the factor of every
    semidefinite matrix. So the rows of S are no longer than the standard deviations, whatever P is.
    """
    kind = _kind(size * size)
    P = kind.sym('P', size, size)
    left = ca.fmax(ca.diag(P), 0)
    columns: list[ca.SX] = []
    for j in range(size):
        smallest, bound = ROUNDING * P[j, j], ca.sqrt(left)
        pivot = ca.sqrt(ca.fmax(left[j], ca.fmax(smallest, 0)))
        rest = P[:, j]
        if columns:
            before = ca.horzcat(*columns)
            rest = rest - before @ before[j, :].T
        entries = ca.fmin(ca.fmax(rest / ca.fmax(pivot, 1e-150), -bound), bound) * (left[j] > smallest)
        below = [entries[j + 1:, 0]] if j + 1 < size else []
        columns.append(ca.vertcat(kind.zeros(j, 1), pivot, *below))
        left = ca.fmax(left - columns[-1] ** 2, 0)
    return ca.Function('factor', [P], [ca.densify(ca.horzcat(*columns))], {'cse': True})


@lru_cache(maxsize=64)
def square(size: int, columns: int) -> ca.Function:
    """``S -> S S'`` (size, size) of a square root (size, columns), symmetric by construction."""
    S = _kind(size * columns).sym('S', size, columns)
    return ca.Function('square', [S], [product(S)])


@lru_cache(maxsize=64)
def conditioning(size: int, columns: int, angular: tuple[bool, ...]) -> ca.Function:
    """``(x, S, o, h, E, variance, gate) -> (x, P, innovation, innovation_variance, used)``, of separate noises.

    ``[S; E]`` (size + s, columns) is a square root of the covariance of the state and the predicted measurements
    together; E is ``H S`` of an extended Kalman filter, or what sigma points give. One measurement after the other by
    Potter's formula, ``S+ = S - k e' / (1 + sqrt(r / v))`` with its row e of E and the innovation's variance v: the
    covariance is a square whatever the rounding. All else as ``update.correction``.
    """
    s = len(angular)
    kind = _kind((size + s) * columns)
    x, S, E = kind.sym('x', size), kind.sym('S', size, columns), kind.sym('E', s, columns)
    o, h, variance, gate = kind.sym('o', s), kind.sym('h', s), kind.sym('variance', s), kind.sym('gate')
    root, change, parts = ca.vertcat(S, E), kind.zeros(size + s), []
    for k in range(s):
        present = there(o[k])
        innovation = innovation_of(o[k], h[k], angular[k]) - change[size + k]
        row = root[size + k, :]
        innovation_variance = ca.sumsqr(row) + variance[k]
        used = present * (innovation ** 2 <= gate * innovation_variance)
        gain = (root @ row.T) * (used / innovation_variance)
        change = change + gain * innovation
        root = root - (gain / (1 + ca.sqrt(variance[k] / innovation_variance))) @ row
        parts.append((innovation * present, innovation_variance, used))
    outputs = [ca.vertcat(*column) if s else kind(0, 1) for column in (zip(*parts) if s else ((), (), ()))]
    return ca.Function('conditioning', [x, S, o, h, E, variance, gate],
                       [x + change[:size], product(root[:size, :]), *outputs], {'cse': True})


def product(S: ca.SX) -> ca.SX:
    """``S S'``: one triangle mirrored, or a product of matrices, whose sums are the same in both triangles."""
    return ca.tril2symm(ca.tril(ca.densify(S @ S.T))) if isinstance(S, ca.SX) else S @ S.T


def _kind(entries: int) -> type[ca.SX]:
    return ca.SX if entries <= LARGEST_SCALAR else ca.MX
