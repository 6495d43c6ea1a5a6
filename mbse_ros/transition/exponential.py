# SPDX-License-Identifier: Apache-2.0
"""Exponential integration of a linearised system: ``X+ = X + G f(X, U)``, ``F = I + A dt Psi``, ``G = dt Psi``.

Pyrhönen et al., mass estimation, Eqs. 34-38, Pyrhönen et al., state transition, section 3.2. Every function takes NumPy
arrays or CasADi expressions.
"""

from __future__ import annotations

from math import ceil, log2
from typing import Any

import casadi as ca
import numpy as np

ORDERS = ('0', '1', '2', '3', '4', 'exact')
SERIES_ORDER = 9
SMALL_STEP = 0.25      # |A h| up to which the series' next term is below 3e-14


def identity_like(A: Any) -> Any:
    """Identity of the size and kind (NumPy or CasADi) of A."""
    return ca.SX.eye(A.shape[0]) if isinstance(A, ca.SX) else np.eye(A.shape[0])


def psi_series(A: Any, dt: Any, order: int) -> Any:
    """``Psi = sum_{k=0}^{order} (A dt)^k / (k + 1)!`` (Pyrhönen et al., mass estimation, Eq. 37, truncated).

    Term by term: the chains of integrators in A end after a few, which Horner's rule would not see.
    """
    term = identity_like(A)
    psi = term
    for k in range(1, order + 1):
        term = (A * (dt * (1.0 / (k + 1)))) @ term
        psi = psi + term
    return psi


def halvings_for(norm: float) -> int:
    """How often dt must be halved for the exact transition of ``norm = |A dt|``."""
    return max(0, ceil(log2(norm / SMALL_STEP))) if norm > 0 else 0


def exact_transition(A: Any, dt: Any, halvings: int | None = None) -> tuple[Any, Any]:
    """Exact ``F = expm(A dt)`` and ``G = int_0^dt expm(A t) dt`` (n, n), by a short step and doublings.

    ``halvings`` is chosen by the norm for numbers; expressions need it given (ValueError).
    """
    if halvings is None:
        if isinstance(A, ca.SX):
            raise ValueError('halvings: an expression has no norm, they must be given')
        halvings = halvings_for(float(np.linalg.norm(A, 1)) * abs(dt))
    h = dt * 0.5 ** halvings
    G = psi_series(A, h, SERIES_ORDER) * h
    with np.errstate(over='ignore', invalid='ignore'):      # of what grows without bounds, which the caller refuses
        for _ in range(halvings):
            G = 2 * G + G @ (A @ G)    # G(2h) = G(h) + F(h) G(h)
        return identity_like(A) + A @ G, G


def exact_step(A: Any, f: Any, dt: Any, halvings: int) -> tuple[list[Any], Any]:
    """Exact transitions ``[F(h), F(2h), F(4h) ... F(dt)]`` from ``h = dt / 2^halvings``, and the increment ``G f``.

    The cheap form where G itself is not needed: ``G(2h) f = G(h) f + F(h) G(h) f``.
    """
    h = dt * 0.5 ** halvings
    psi = psi_series(A, h, SERIES_ORDER)
    flows, increment = [identity_like(A) + (A * h) @ psi], psi @ (f * h)
    for _ in range(halvings):
        increment = increment + flows[-1] @ increment
        flows.append(flows[-1] @ flows[-1])
    return flows, increment


def transition(A: Any, dt: Any, order: str = 'exact', halvings: int | None = None) -> tuple[Any, Any]:
    """``(F, G)`` (n, n) of a step ``dt``, s, with the series of an order '0'..'4' or 'exact'.

    A stiff system, ``|A dt| > 1``, needs 'exact'.
    """
    if order == 'exact':
        return exact_transition(A, dt, halvings)
    G = psi_series(A, dt, int(order)) * dt
    return identity_like(A) + A @ G, G
