# SPDX-License-Identifier: Apache-2.0
"""Lumped fluid: stiffness of a control volume. The functions take numbers or CasADi expressions alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def effective_compressibility(oil_modulus: Any, parts: Sequence[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Total volume, m3, and effective compressibility 1/Be, 1/Pa, of parts (volume, wall modulus).

    Pyrhönen et al., mass estimation, Eq. 10.
    """
    total = sum(volume for volume, _ in parts)
    return total, 1 / oil_modulus + sum(volume / modulus for volume, modulus in parts) / total


def pressure_rate(oil_modulus: Any, parts: Sequence[tuple[Any, Any]], inflow: Any, expansion: Any) -> Any:
    """Pressure rate of a control volume, Pa/s, from its inflow and expansion, m3/s (Pyrhönen et al., mass estimation,
    Eq. 9).

    ``V / Be`` of Eqs. 9 and 10 is ``sum(V_k) / B_oil + sum(V_k / B_k)``: no quotient of volumes is left.
    """
    capacity = sum(volume for volume, _ in parts) / oil_modulus + sum(volume / modulus for volume, modulus in parts)
    return (inflow - expansion) / capacity
