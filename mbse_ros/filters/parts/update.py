# SPDX-License-Identifier: Apache-2.0
"""Covariance algebra of the filters, as functions of scalar operations: propagation and correction;
by square roots they cannot leave the positive cone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import casadi as ca
import numpy as np

STRIDE = 0.5        # rad or m
DOUBT = 0.5         # s
LARGEST_SCALAR = 150      # entries of a square root up to which products are written out in scalar operations
ROUNDING = 1e-14      # of a pivot, against its diagonal entry


@lru_cache(maxsize=64)
def propagation(size: int) -> ca.Function:
    """``(F, P, Sigma) -> F P F' + Sigma`` (size, size), symmetric by construction."""
    F, P, Sigma = (ca.SX.sym(name, size, size) for name in ('F', 'P', 'Sigma'))
    return ca.Function('propagation', [F, P, Sigma], [_mirrored(F @ P @ F.T + Sigma)])


@lru_cache(maxsize=64)
def correction(size: int, angular: tuple[bool, ...], positions: int = 0) -> ca.Function:
    """``(x, P, o, h, H, variance, gate) -> (x, P, innovation, innovation_variance, used)``, of separate noises.

    One measurement after the other (``P - k s k'`` on one triangle), which equals the joint correction: x (size,),
    P (size, size), o, h, variance (s,), H (s, size). A NaN in o is missing. A measurement whose normalised innovation
    squared exceeds ``gate`` is left out; ``used`` (s,) is 1 for those that count, and the sum of ``innovation^2 /
    innovation_variance`` over them is the NIS. ``angular`` (s,): innovations wrapped to +-pi.

    The first ``positions`` entries of x are moved by one measurement no further than ``STRIDE``, from where Newton's
    method still closes the mechanism on the same branch: its gain is made smaller, with Joseph's covariance of that
    gain, and the next samples go the rest of the way.
    """
    s = len(angular)
    x, P = ca.SX.sym('x', size), ca.SX.sym('P', size, size)
    o, h, variance, gate = ca.SX.sym('o', s), ca.SX.sym('h', s), ca.SX.sym('variance', s), ca.SX.sym('gate')
    H = ca.SX.sym('H', s, size)
    mean, cov, parts = x, P, []
    for k in range(s):
        present = there(o[k])
        error = innovation_of(o[k], h[k], angular[k])
        innovation = error - H[k, :] @ (mean - x)
        column = cov @ H[k, :].T
        innovation_variance = H[k, :] @ column + variance[k]
        used = present * (innovation ** 2 <= gate * innovation_variance)
        gain = column * (used / innovation_variance)
        share = _share(gain[:positions] * innovation)
        mean, cov = mean + share * gain * innovation, _mirrored(cov - (share * (2 - share)) * gain @ column.T)
        parts.append((innovation * present, innovation_variance, used))
    outputs = [ca.vertcat(*column) if s else ca.SX(0, 1) for column in (zip(*parts) if s else ((), (), ()))]
    return ca.Function('correction', [x, P, o, h, H, variance, gate], [mean, cov, *outputs], {'cse': True})


@lru_cache(maxsize=64)
def widening(s: int) -> ca.Function:
    """``(doubt, o, used, dt) -> (doubt, factor)``: for how long, s, the gate has refused all samples of each channel
    (s,), and by what the covariance is to be multiplied.

    Half of the channels of a sample, or more, refused for longer than ``DOUBT``: then the estimate is what is wrong,
    and its standard deviations grow e-fold every ``DOUBT`` until it takes the samples up again.
    """
    doubt, o, used, dt = ca.SX.sym('doubt', s), ca.SX.sym('o', s), ca.SX.sym('used', s), ca.SX.sym('dt')
    here = ca.vertcat(*(there(o[k]) for k in range(s)))
    longer = ca.if_else(here, ca.if_else(used > 0, 0.0, doubt + dt), doubt)
    late = ca.sum1(ca.if_else(here, ca.if_else(longer > DOUBT, 1.0, 0.0), 0.0))
    factor = ca.if_else(late > 0, ca.if_else(2 * late >= ca.sum1(here), ca.exp(2 * dt / DOUBT), 1.0), 1.0)
    return ca.Function('widening', [doubt, o, used, dt], [longer, factor])


@lru_cache(maxsize=64)
def constant_noise(g: int, blocks: int) -> ca.Function:
    """``(q_c, dt) -> Sigma`` of a white noise of density ``q_c`` (g,) on the last of a chain of ``blocks`` integrators.

    Two blocks: ``q_c [[dt^3/3, dt^2/2], [dt^2/2, dt]]`` (Naya et al., review, section 12.1: the acceleration is in
    error).
    """
    density, dt = ca.SX.sym('q_c', g), ca.SX.sym('dt')
    powers = [[dt ** (2 * blocks - 1 - i - j) / ((2 * blocks - 1 - i - j) * _factorial(blocks - 1 - i)
                                                 * _factorial(blocks - 1 - j)) for j in range(blocks)]
              for i in range(blocks)]
    Sigma = ca.vertcat(*(ca.horzcat(*(ca.diag(density) * entry for entry in row)) for row in powers))
    return ca.Function('constant_noise', [density, dt], [ca.densify(Sigma)])


def block_matrix(kind: type[ca.SX], rows: Sequence[Sequence[ca.SX | float]], g: int) -> ca.SX:
    """Matrix of blocks (g, g); a number means that multiple of the identity."""
    def block(entry: ca.SX | float) -> ca.SX:
        scalar = isinstance(entry, (int, float)) or entry.numel() == 1 and g > 1
        return entry * kind.eye(g) if scalar else entry
    return ca.densify(ca.vertcat(*(ca.horzcat(*(block(entry) for entry in row)) for row in rows)))


def _factorial(k: int) -> float:
    return float(np.prod(np.arange(1, k + 1)))


def measured(innovation: ca.SX, innovation_variance: ca.SX, used: ca.SX) -> dict[str, ca.SX]:
    """Outputs about the measurements."""
    return {'innovation': innovation, 'innovation_variance': innovation_variance, 'used': used}


def there(o: ca.SX) -> ca.SX:
    """1 where a measurement is a finite number, else 0 (``o == o`` would not do: it is simplified to 1)."""
    return ca.if_else(ca.fabs(o) < np.inf, 1.0, 0.0)


def innovation_of(o: ca.SX, h: ca.SX, angular: bool) -> ca.SX:
    """Measurement less its prediction, 0 where it is missing, wrapped to +-pi if it is an angle."""
    error = ca.if_else(there(o), o - h, 0.0)
    return wrapped(error) if angular else error


def wrapped(angle: ca.SX) -> ca.SX:
    """Angle between -pi and pi, rad."""
    return angle - 2 * np.pi * ca.floor((angle + np.pi) / (2 * np.pi))


def _share(move: ca.SX) -> ca.SX:
    """Largest share, up to 1, of a move of positions that goes no further than ``STRIDE``."""
    farthest = ca.mmax(ca.fabs(move)) if move.numel() else 0.0
    return 1.0 if not move.numel() else ca.if_else(farthest > STRIDE, STRIDE / ca.fmax(farthest, STRIDE), 1.0)


def _mirrored(M: ca.SX) -> ca.SX:
    return ca.tril2symm(ca.tril(ca.densify(M)))


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
