# SPDX-License-Identifier: Apache-2.0
"""Discrete extended Kalman filter with exponential transition, as CasADi expressions: predict and correct.

Paper 003 Eqs. 38-42. The correction takes one measurement after the other, as ``P - s k k'`` on one triangle, so
that the covariance stays symmetric, and positive where a measurement has noise; a missing one has weight 0.
"""

from __future__ import annotations

import casadi as ca

from ..transition.exponential import exact_step, transition
from ..transition.noise import integrated_noise, paper_noise, symmetric


def predict(X: ca.SX, P: ca.SX, f: ca.SX, A: ca.SX, W: ca.SX, dt: ca.SX, order: str, noise: str,
            halvings: int) -> tuple[ca.SX, ca.SX]:
    """State (n,) and covariance (n, n) one step ``dt``, s, later; ``f`` and ``A`` are taken at X, ``W`` is a PSD.

    ``halvings`` (at least 2) of the step make it exact.
    """
    flows, increment = exact_step(A, f, dt, halvings)
    if order == 'exact':
        F = flows[-1]
    else:
        F, G = transition(A, dt, order)
        increment = G @ f
    sigma = integrated_noise(flows, W, dt) if noise == 'van_loan' else paper_noise(A, W, dt)
    return X + increment, symmetric(ca.densify(F @ P @ F.T + sigma))


def correct(X: ca.SX, P: ca.SX, row: int | ca.SX, error: ca.SX, variance: ca.SX, present: ca.SX,
            gate: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX, ca.SX, ca.SX]:
    """State and covariance after one measurement of an entry ``row`` of the state, or by a row (1, n) of derivatives.

    ``error`` is what it differs from its prediction at X, a finite number also where it is missing; it is left out
    where it is not ``present`` or its square is more than ``gate`` times its variance. Also returns the innovation, 0
    where it is missing, its variance, its square over that and whether it was used.
    """
    column = P[:, row] if isinstance(row, int) else P @ row.T
    spread = (P[row, row] if isinstance(row, int) else row @ column) + variance
    innovation = present * error
    inverse = 1 / spread
    square = innovation * innovation * inverse
    used = present * (square <= gate)
    gain = column * (used * inverse)
    return X + gain * innovation, symmetric(ca.densify(P - gain @ column.T)), innovation, spread, square, used
