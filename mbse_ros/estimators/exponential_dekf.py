# SPDX-License-Identifier: Apache-2.0
"""Discrete extended Kalman filter with exponential transition, as CasADi expressions: predict and correct.

Pyrhönen et al., mass estimation, Eqs. 38-42. The correction takes one measurement after the other, as ``P - s k k'`` on
one triangle, so that the covariance stays symmetric, and positive where a measurement has noise; a missing one has
weight 0.
"""

from __future__ import annotations

import casadi as ca

from ..transition.exponential import exact_step, transition
from ..transition.noise import integrated_noise, paper_noise, symmetric


def predict(X: ca.SX, P: ca.SX, f: ca.SX, A: ca.SX, W: ca.SX, dt: ca.SX, order: str, noise: str,
            halvings: int) -> tuple[ca.SX, ca.SX, ca.SX]:
    """State (n,), covariance (n, n) and transition (n, n) one step ``dt``, s, later; ``f`` and ``A`` are taken at X,
    ``W`` is a PSD.

    ``halvings`` (at least 2) of the step make it exact.
    """
    flows, increment = exact_step(A, f, dt, halvings)
    if order == 'exact':
        F = flows[-1]
    else:
        F, G = transition(A, dt, order)
        increment = G @ f
    sigma = integrated_noise(flows, W, dt) if noise == 'van_loan' else paper_noise(A, W, dt)
    return X + increment, symmetric(ca.densify(F @ P @ F.T + sigma)), F


def correct(X: ca.SX, P: ca.SX, index: int, measured: ca.SX, variance: ca.SX,
            weight: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX, ca.SX]:
    """State and covariance after one measurement of the state's entry ``index``; weight 0: it is missing.

    Also returns its innovation, the innovation's variance and the gain (n,).
    """
    spread = P[index, index] + variance
    innovation = weight * (measured - X[index])
    gain = P[:, index] * (weight / spread)
    return X + gain * innovation, symmetric(ca.densify(P - gain @ P[index, :])), innovation, spread, gain


def correct_by(X: ca.SX, P: ca.SX, H: ca.SX, error: ca.SX, variance: ca.SX,
               weight: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX, ca.SX]:
    """As ``correct`` for a measurement with the row ``H`` (1, n) and the ``error`` to its prediction at X."""
    column = P @ H.T
    spread = H @ column + variance
    innovation = weight * error
    gain = column * (weight / spread)
    return X + gain * innovation, symmetric(ca.densify(P - gain @ column.T)), innovation, spread, gain
