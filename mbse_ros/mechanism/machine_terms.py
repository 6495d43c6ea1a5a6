# SPDX-License-Identifier: Apache-2.0
"""Masses that a machine adds to its mechanism: barrels and rods of the cylinders, and the payload."""

from __future__ import annotations

from collections.abc import Iterator

import casadi as ca

from ..description.machine_parts import Base, Cylinder
from .coordinates.kinematics import Kinematics
from .rotation import axis_rotation

Mass = tuple[ca.SX, ca.SX]      # of a point, kg, and its place (d,), m


def point_masses(kinematics: Kinematics) -> Iterator[Mass]:
    """Masses of a machine that belong to no body."""
    description = kinematics.description
    for cylinder in description.cylinders.values():
        yield from _cylinder_masses(kinematics, cylinder)
    payload = description.payload
    if payload is not None:
        place = kinematics.frames[payload.body].at(kinematics.values.vector(payload.center))
        yield ca.SX(kinematics.values(payload.mass)), place


def inclined(gravity: ca.SX, base: Base | None, kinematics: Kinematics) -> ca.SX:
    """Gravity (d,) in the frame of a machine whose base is rolled and pitched."""
    if base is None:
        return gravity
    roll, pitch = (kinematics.values(angle) for angle in (base.roll, base.pitch))
    return axis_rotation((1, 0, 0), roll).T @ (axis_rotation((0, 1, 0), pitch).T @ gravity)


def _cylinder_masses(kinematics: Kinematics, cylinder: Cylinder) -> Iterator[Mass]:
    """Barrels and rods as uniform rods of the closed length, along the line of the pins.

    A uniform rod moves as a sixth of its mass at each end and two thirds in the middle.
    """
    if cylinder.barrel_mass is None and cylinder.rod_mass is None:
        return
    values = kinematics.values
    base, eye = kinematics.point(cylinder.base), kinematics.point(cylinder.rod_eye)
    closed = values(cylinder.closed_length)
    along = (eye - base) * (closed / (closed + kinematics.q[kinematics.names.index(cylinder.name)]))
    for mass, start, end in ((cylinder.barrel_mass, base, base + along), (cylinder.rod_mass, eye - along, eye)):
        if mass is not None:
            whole = ca.SX(cylinder.count * values(mass))
            yield from ((whole / 6, start), (whole / 6, end), (2 * whole / 3, (start + end) / 2))
