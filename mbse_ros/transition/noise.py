# SPDX-License-Identifier: Apache-2.0
"""Discrete process noise ``Sigma = int_0^dt F(t) W F(t)' dt`` of a continuous noise with spectral density W."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np


def van_loan(A: np.ndarray, W: np.ndarray, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """``(F, Sigma)`` (n, n) from one matrix exponential of size 2 n (Van Loan's method)."""
    from scipy.linalg import expm  # here: slow to import
    n = len(A)
    E = expm(dt * np.block([[-A, W], [np.zeros((n, n)), A.T]]))
    F = E[n:, n:].T
    return F, F @ E[:n, n:]


def integrated_noise(flows: Sequence[Any], W: Any, dt: Any) -> Any:
    """The same ``Sigma`` (n, n) by Boole's rule over ``F(t) W F(t)'``, for CasADi expressions.

    ``flows`` = F(h), F(2h), F(4h) ... F(dt), at least three, as exact_step gives them: the rule is used over 4 h, then
    ``Sigma(2h) = Sigma(h) + F(h) Sigma(h) F(h)'``. All weights are positive, so ``Sigma`` cannot leave the positive
    cone. With the fastest rate ``a`` of A the relative error is below ``5.2e-7 (8 a h)^6``: 1e-8 at 4 a h = 0.25,
    2e-4 at 1.3.
    """
    quarter, half, whole, *longer = flows
    sigma = 7 * W
    for weight, F in ((32, quarter), (12, half), (32, quarter @ half), (7, whole)):
        sigma = sigma + symmetric(F @ (weight * W) @ F.T)
    sigma = sigma * (dt * (0.5 ** len(longer) / 90.0))
    for F in (whole, *longer)[:len(longer)]:
        sigma = sigma + symmetric(F @ sigma @ F.T)
    return sigma


def paper_noise(A: Any, W: Any, dt: Any) -> Any:
    """The closed form of Pyrhönen et al., mass estimation, Eqs. 45-49, generalised: ``F(t)`` to first order,
    integrated.

    ``W dt + (A W + W A') dt^2/2 + A W A' dt^3/3``; the papers leave out some of its small blocks.
    """
    AW = A @ W
    return W * dt + (AW + AW.T) * (dt ** 2 / 2) + AW @ A.T * (dt ** 3 / 3)


def symmetric(M: Any) -> Any:
    """One triangle, mirrored: symmetric by construction, and half the work in an expression."""
    if isinstance(M, ca.SX):
        return ca.tril2symm(ca.tril(M))
    return np.tril(M) + np.tril(M, -1).T
