# SPDX-License-Identifier: Apache-2.0
"""Springs, dampers, constant and input forces as generalised forces."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from ..description.basics import PointRef
from ..description.model import Force, Spring
from .coordinates.kinematics import Kinematics


@dataclass(frozen=True)
class Applied:
    """Generalised forces (n,): ``conservative`` springs with their ``potential``, J; ``other``: dampers, loads, inputs.

    ``other`` changes the energy: its power is ``qd' other``.
    """

    conservative: ca.SX
    other: ca.SX
    potential: ca.SX
    inputs: tuple[str, ...]
    u: ca.SX


def applied_forces(kinematics: Kinematics) -> Applied:
    """All springs and forces of the description."""
    description = kinematics.description
    n = len(kinematics.q)
    inputs = tuple(dict.fromkeys(force.input for force in description.forces.values() if force.input))
    u = ca.SX.sym('u', len(inputs)) if inputs else ca.SX(0, 1)
    elastic, other, potential = ca.SX.zeros(n), ca.SX.zeros(n), ca.SX(0)
    for spring in description.springs.values():
        spring_force, damper_force, energy = _spring(kinematics, spring)
        elastic, other, potential = elastic + spring_force, other + damper_force, potential + energy
    for force in description.forces.values():
        other = other + _force(kinematics, force, u[inputs.index(force.input)] if force.input else None)
    return Applied(elastic, other, potential, inputs, u)


def _spring(kinematics: Kinematics, spring: Spring) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Elastic and damping forces (n,), and the energy stored, J."""
    q, values = ca.vertcat(*kinematics.q), kinematics.values
    stiffness, free, damping = values(spring.stiffness), values(spring.free), values(spring.damping)
    if spring.points is not None:
        return _coil(kinematics, spring.points, stiffness, free, damping)
    length = q[kinematics.names.index(spring.coordinate)]
    along = ca.jacobian(length, q).T
    stretch, rate = length - free, kinematics.velocity_of(length)
    return -along * stiffness * stretch, -along * damping * rate, stiffness * stretch ** 2 / 2


def _coil(kinematics: Kinematics, points: tuple[PointRef, PointRef], stiffness: ca.SX | float, free: ca.SX | float,
          damping: ca.SX | float) -> tuple[ca.SX, ca.SX, ca.SX]:
    """As ``_spring`` between two points, by half the square of their distance: without a free length and a damper the
    points may meet."""
    between = kinematics.point(points[1]) - kinematics.point(points[0])
    half = ca.sumsqr(between) / 2
    length = ca.sqrt(2 * half)
    along = ca.jacobian(half, ca.vertcat(*kinematics.q)).T
    rate = kinematics.velocity_of(half)
    return (-along * stiffness * (1 - free / length), -along * damping * rate / (2 * half),
            stiffness * (length - free) ** 2 / 2)


def _force(kinematics: Kinematics, force: Force, symbol: ca.SX | None) -> ca.SX:
    """Generalised force (n,) of one load."""
    q, qd = ca.vertcat(*kinematics.q), ca.vertcat(*kinematics.qd)
    value = kinematics.values.vector(force.value) if symbol is None else symbol
    if force.coordinate:
        return ca.jacobian(q[kinematics.names.index(force.coordinate)], q).T * value
    if force.point is not None:
        vector = value if symbol is None else value * ca.SX(list(force.direction))
        return ca.jacobian(kinematics.point(force.point), q).T @ vector
    frame = kinematics.frames[force.body]
    turning = ca.jacobian(frame.omega, qd).T
    if frame.omega.numel() == 1:
        return turning * value
    vector = value * ca.SX(list(force.direction)) if force.direction else value
    return turning @ (frame.rotation.T @ vector)      # omega is along the body's axes, the torque the machine's
