# SPDX-License-Identifier: Apache-2.0
"""Masses that a machine adds to its mechanism: barrels and rods of the cylinders, and the payload."""

from __future__ import annotations

from collections.abc import Iterator

import casadi as ca

from ..description.machine_parts import Base, Cylinder
from .coordinates.kinematics import Kinematics
from .inertia import point_terms, rod_terms
from .rotation import axis_rotation

Terms = tuple[ca.SX, ca.SX, ca.SX]


def machine_terms(kinematics: Kinematics, gravity: ca.SX) -> Iterator[Terms]:
    """Mass matrix (n, n), forces (n,) and potential energy, J, of each mass that belongs to no body."""
    description = kinematics.description
    for cylinder in description.cylinders.values():
        yield from _cylinder_terms(kinematics, cylinder, gravity)
    payload = description.payload
    if payload is not None:
        place = kinematics.frames[payload.body].at(kinematics.values.vector(payload.center))
        yield point_terms(kinematics, kinematics.values(payload.mass), place, gravity)


def inclined(gravity: ca.SX, base: Base | None, kinematics: Kinematics) -> ca.SX:
    """Gravity (d,) in the frame of a machine whose base is rolled and pitched."""
    if base is None:
        return gravity
    roll, pitch = (kinematics.values(angle) for angle in (base.roll, base.pitch))
    return axis_rotation((1, 0, 0), roll).T @ (axis_rotation((0, 1, 0), pitch).T @ gravity)


def _cylinder_terms(kinematics: Kinematics, cylinder: Cylinder, gravity: ca.SX) -> Iterator[Terms]:
    """Barrels and rods as uniform rods of the closed length, along the line of the pins."""
    if cylinder.barrel_mass is None and cylinder.rod_mass is None:
        return
    values = kinematics.values
    base, eye = kinematics.point(cylinder.base), kinematics.point(cylinder.rod_eye)
    closed = values(cylinder.closed_length)
    along = (eye - base) * (closed / (closed + kinematics.q[kinematics.names.index(cylinder.name)]))
    for mass, start, end in ((cylinder.barrel_mass, base, base + along), (cylinder.rod_mass, eye - along, eye)):
        if mass is not None:
            yield rod_terms(kinematics, cylinder.count * values(mass), start, end, gravity)
