# SPDX-License-Identifier: Apache-2.0
"""Rotation matrices of symbolic angles (for numbers: transforms3d, which the tests compare with)."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca


def axis_rotation(axis: Sequence[float], angle: ca.SX | float) -> ca.SX:
    """Rotation (3, 3) by ``angle``, rad, about the unit vector ``axis`` (Rodrigues)."""
    k = ca.skew(ca.SX(list(axis)))
    return ca.SX.eye(3) + ca.sin(angle) * k + (1 - ca.cos(angle)) * (k @ k)


def rpy_rotation(rpy: Sequence[ca.SX | float]) -> ca.SX:
    """Rotation (3, 3) by roll, pitch, yaw, rad, about the fixed axes x, y, z in this order (REP-103, URDF)."""
    roll, pitch, yaw = rpy
    return axis_rotation((0, 0, 1), yaw) @ axis_rotation((0, 1, 0), pitch) @ axis_rotation((1, 0, 0), roll)
