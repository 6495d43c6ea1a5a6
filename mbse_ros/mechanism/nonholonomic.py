# SPDX-License-Identifier: Apache-2.0
"""Rows of non-holonomic constraints: what does not slip (Orsino, modular modelling, Eq. 2.2, ``A(t, q) qd = b``)."""

from __future__ import annotations

import casadi as ca

from ..description.basics import GROUND, Scalar
from ..description.model import NonHolonomic
from ..errors import DescriptionError
from .coordinates.kinematics import BodyFrame, ConstraintRow, Kinematics

AXES = 'xyz'
FLAT = 1e-6     # rad between a disc and the level below which it has no lowest point


def nonholonomic_rows(kinematics: Kinematics) -> None:
    """Add the rows of all non-holonomic constraints: those of velocities, and of wheels the one that they touch."""
    for item in kinematics.description.nonholonomic.values():
        frame, place = kinematics.frames[item.point.body], kinematics.point(item.point)
        bodies, velocity = (GROUND, item.point.body), kinematics.velocity_of(place)
        if item.radius is None:
            slips = {'slip': ca.dot(frame.rotation @ ca.SX(list(item.along)), velocity)}
        else:
            slips = _rolling(kinematics, item, item.radius, frame, place, velocity)
        kinematics.rates += [ConstraintRow(f'{item.name}.{name}', item.name, row, bodies)
                             for name, row in slips.items()]


def quasi_velocities(kinematics: Kinematics) -> dict[str, ca.SX]:
    """By name, linear in qd (Orsino, modular modelling, section 2)."""
    found = {}
    for name, item in kinematics.description.quasi_velocities.items():
        frame, along = kinematics.frames[item.body], ca.SX(list(item.along))
        if item.point is not None:
            velocity = kinematics.velocity_of(kinematics.point(item.point))
            found[name] = ca.dot(frame.rotation @ along, velocity)
        else:
            found[name] = ca.dot(along, frame.omega) if item.along else frame.omega
    return found


def _rolling(kinematics: Kinematics, item: NonHolonomic, size: Scalar, frame: BodyFrame, centre: ca.SX,
             velocity: ca.SX) -> dict[str, ca.SX]:
    """Level components of the velocity of the wheel's lowest point."""
    radius, up = kinematics.values(size), kinematics.description.dimension - 1
    floor = kinematics.point(item.on)[up] if item.on is not None else ca.SX(0)
    lean, arm = ca.SX(1), ca.vertcat(ca.SX.zeros(up), -radius)       # from the centre to where it touches
    if item.axis:
        axis = frame.rotation @ ca.SX(list(item.axis))
        lean = ca.sqrt(ca.sumsqr(axis[:up]))
        if kinematics.at_start(lean)[0].item() < FLAT:
            raise DescriptionError(kinematics.description.file, f'nonholonomic.{item.name}.axis', list(item.axis),
                                   'an axis that is not upright at the start, where the disc lies flat')
        arm = radius / lean * ca.vertcat(axis[2] * axis[:up], axis[2] ** 2 - 1)
    kinematics.row(f'{item.name}.touch', item.name, centre[up] - floor - radius * lean, (GROUND, item.point.body))
    turning = frame.omega * ca.vertcat(-arm[1], arm[0]) if up == 1 else ca.cross(frame.rotation @ frame.omega, arm)
    return {AXES[k]: (velocity + turning)[k] for k in range(up)}
