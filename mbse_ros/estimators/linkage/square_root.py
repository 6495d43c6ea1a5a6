# SPDX-License-Identifier: Apache-2.0
"""Covariances by their square roots, as functions of scalar operations that cannot leave the positive cone."""

from __future__ import annotations

from functools import lru_cache

import casadi as ca

from .update import wrapped

ROUNDING = 1e-14      # of a pivot, against its diagonal entry


@lru_cache(maxsize=64)
def factor(size: int) -> ca.Function:
    """``P -> S``, lower triangular (size, size), ``S S' = P``: Cholesky's factor, of which rounding is no failure.

    A pivot below the rounding of its diagonal entry, which a semidefinite or slightly indefinite P has, is raised to
    it, and its column left out; no entry exceeds what is left of its row's variance, as in the factor of every
    semidefinite matrix. So the rows of S are no longer than the standard deviations, whatever P is.
    """
    P = ca.SX.sym('P', size, size)
    S, left = ca.SX(size, size), [ca.fmax(P[i, i], 0) for i in range(size)]
    for j in range(size):
        smallest = ROUNDING * P[j, j]
        S[j, j] = ca.sqrt(ca.fmax(left[j], ca.fmax(smallest, 0)))
        for i in range(j + 1, size):
            entry = (P[i, j] - ca.dot(S[i, :j], S[j, :j])) / ca.fmax(S[j, j], 1e-150)
            bound = ca.sqrt(left[i])
            S[i, j] = ca.if_else(left[j] > smallest, ca.fmin(ca.fmax(entry, -bound), bound), 0.0)
            left[i] = ca.fmax(left[i] - S[i, j] ** 2, 0)
    return ca.Function('factor', [P], [ca.densify(S)], {'cse': True})


@lru_cache(maxsize=64)
def square(size: int, columns: int) -> ca.Function:
    """``S -> S S'`` (size, size) of a square root (size, columns), symmetric by construction."""
    S = ca.SX.sym('S', size, columns)
    return ca.Function('square', [S], [product(S)])


@lru_cache(maxsize=64)
def conditioning(size: int, columns: int, angular: tuple[bool, ...]) -> ca.Function:
    """``(x, S, o, h, E, variance, gate) -> (x, P, innovation, spread, used)`` for measurements with separate noise.

    ``[S; E]`` (size + s, columns) is a square root of the covariance of the state and the predicted measurements
    together; E is ``H S`` of an extended Kalman filter, or what sigma points give. One measurement after the other by
    Potter's formula, ``S+ = S - k v' / (1 + sqrt(r / spread))``: the covariance is a square whatever the rounding. All
    else as ``update.correction``.
    """
    s = len(angular)
    x, S = ca.SX.sym('x', size), ca.SX.sym('S', size, columns)
    o, h, variance, gate = ca.SX.sym('o', s), ca.SX.sym('h', s), ca.SX.sym('variance', s), ca.SX.sym('gate')
    E = ca.SX.sym('E', s, columns)
    root, change, parts = ca.vertcat(S, E), ca.SX.zeros(size + s), []
    for k in range(s):
        present = ca.if_else(o[k] == o[k], 1.0, 0.0)
        error = ca.if_else(present, o[k] - h[k], 0.0)
        error = wrapped(error) if angular[k] else error
        innovation = error - change[size + k]
        row = root[size + k, :]
        spread = ca.sumsqr(row) + variance[k]
        used = present * (innovation ** 2 <= gate * spread)
        gain = (root @ row.T) * (used / spread)
        change = change + gain * innovation
        root = root - (gain / (1 + ca.sqrt(variance[k] / spread))) @ row
        parts.append((innovation * present, spread, used))
    outputs = [ca.vertcat(*column) if s else ca.SX(0, 1) for column in (zip(*parts) if s else ((), (), ()))]
    return ca.Function('conditioning', [x, S, o, h, E, variance, gate],
                       [x + change[:size], product(root[:size, :]), *outputs], {'cse': True})


def product(S: ca.SX) -> ca.SX:
    """``S S'``, one triangle mirrored."""
    return ca.tril2symm(ca.tril(ca.densify(S @ S.T)))
