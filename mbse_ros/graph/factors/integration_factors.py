# SPDX-License-Identifier: Apache-2.0
"""Linear factors: prior, soft equality, and the integrators between two instants (Blanco-Claraco et al., factor graphs,
5.2 and 6.1 to 6.3)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import casadi as ca

from .kinds import FactorKind


@lru_cache
def prior(size: int, places: Sequence[int] | None = None) -> FactorKind:
    """``x - x0`` (Eq. 21), of all components or of those at ``places``: roles x; constants x0."""
    x = ca.SX.sym('x', size)
    seen = x if places is None else x[list(places)]
    x0 = ca.SX.sym('x0', seen.numel())
    return FactorKind('prior', {'x': x}, {'x0': x0}, seen - x0, backend='vm')


@lru_cache
def equality(size: int) -> FactorKind:
    """``x1 - x0``, soft (5.2); also the random walk of a force, a parameter or a bias: roles x0, x1."""
    x0, x1 = (ca.SX.sym(name, size) for name in ('x0', 'x1'))
    return FactorKind('equality', {'x0': x0, 'x1': x1}, {}, x1 - x0, backend='vm')


@lru_cache
def euler(size: int) -> FactorKind:
    """``x1 - x0 - dt xd0`` (Eq. 22): roles x0, x1, xd0; constants dt, s."""
    x0, x1, xd0, dt = *(ca.SX.sym(name, size) for name in ('x0', 'x1', 'xd0')), ca.SX.sym('dt')
    return FactorKind('euler', {'x0': x0, 'x1': x1, 'xd0': xd0}, {'dt': dt}, x1 - x0 - dt * xd0, backend='vm')


@lru_cache
def trapezoid(size: int, places: Sequence[int] | None = None) -> FactorKind:
    """``x1 - x0 - dt/2 (xd0 + xd1)`` (Eq. 23), of all components or of those at ``places``: roles x0, x1, xd0, xd1;
    constants dt, s."""
    x0, x1, xd0, xd1 = (ca.SX.sym(name, size) for name in ('x0', 'x1', 'xd0', 'xd1'))
    dt = ca.SX.sym('dt')
    e = x1 - x0 - dt / 2 * (xd0 + xd1)
    return FactorKind('trapezoid', {'x0': x0, 'x1': x1, 'xd0': xd0, 'xd1': xd1}, {'dt': dt},
                      e if places is None else e[list(places)], backend='vm')
