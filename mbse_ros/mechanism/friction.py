# SPDX-License-Identifier: Apache-2.0
"""Work of the constraint forces: Coulomb friction by the forces of the joints themselves (Orsino, modular modelling,
``phi`` of Eqs. 2.4 and 3.3)."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from ..description.model import Joint, JointFriction
from ..errors import DescriptionError
from .coordinates.kinematics import Kinematics


@dataclass(frozen=True)
class JointForces:
    """Friction of k joints with d entries of a force, by the multipliers (m + k,) of the rows.

    ``directions`` (n, k): generalised forces of 1 N against the sliding of each; ``forces`` (k d, m + k): times the
    multipliers, the force of each across its motion, N; ``sliding``, ``speeds`` (k,), m/s; ``coefficients`` (k,).
    """

    directions: ca.SX
    forces: ca.SX
    sliding: ca.SX
    speeds: ca.SX
    coefficients: ca.SX

    def phi(self, multipliers: ca.SX) -> ca.SX:
        """Generalised forces (n,)."""
        k = self.sliding.numel()
        if not k:
            return ca.SX.zeros(self.directions.shape[0])
        force = ca.reshape(self.forces @ multipliers, -1, k)
        size = ca.vertcat(*(ca.norm_2(force[:, i]) for i in range(k)))
        return self.directions @ (self.coefficients * ca.tanh(self.sliding / self.speeds) * size)


def joint_friction(kinematics: Kinematics, multipliers: ca.SX) -> JointForces:
    """Of all joints with friction; raises DescriptionError where coordinates have no rows for one."""
    found = [_friction(kinematics, item, multipliers) for item in kinematics.description.friction.values()]
    items = kinematics.description.friction.values()
    sliding = ca.vertcat(ca.SX(0, 1), *(one for one, _ in found))
    forces = ca.vertcat(ca.SX(0, 1), *(force for _, force in found))
    speeds, coefficients = (ca.vertcat(ca.SX(0, 1), *(kinematics.values(getattr(item, name)) for item in items))
                            for name in ('speed', 'coefficient'))
    return JointForces(ca.densify(-ca.jacobian(sliding, ca.vertcat(*kinematics.qd)).T),
                       ca.densify(ca.jacobian(forces, multipliers)), sliding, speeds, coefficients)


def _friction(kinematics: Kinematics, item: JointFriction, multipliers: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Sliding, m/s, and the force (d,) across it."""
    joint, values = kinematics.description.joints[item.joint], kinematics.values
    sliding, axis = _sliding(kinematics, joint)
    force = _force(kinematics, item, multipliers)
    if item.radius is not None:
        sliding = values(item.radius) * sliding
        force = force if axis is None else force - axis * ca.dot(axis, force)
    return sliding, force


def _force(kinematics: Kinematics, item: JointFriction, multipliers: ca.SX) -> ca.SX:
    """Force (d,) of the joint on its child, N: what the rows do along the place of the child."""
    joint = kinematics.description.joints[item.joint]
    symbols = {symbol.name(): symbol for symbol in kinematics.q}
    places = [f'{joint.child.body}.{"xyz"[k]}' for k in range(kinematics.description.dimension)]
    ends = (joint.parent.body, joint.child.body)
    rows = [i for i, row in enumerate(kinematics.rows)
            if row.owner == joint.name != row.name and row.bodies == ends]
    if not rows or not symbols.keys() >= set(places):
        raise DescriptionError(kinematics.description.file, f'friction.{item.name}', joint.name,
                               'the coordinates reference_point, in which each joint has rows for its force')
    J = ca.jacobian(ca.vertcat(*(kinematics.rows[i].expression for i in rows)), ca.vertcat(*map(symbols.get, places)))
    return -J.T @ multipliers[rows]


def _sliding(kinematics: Kinematics, joint: Joint) -> tuple[ca.SX, ca.SX | None]:
    """Velocity of the joint's own motion, m/s or rad/s, and in space its axis."""
    parent, child = (kinematics.frames[point.body] for point in (joint.parent, joint.child))
    axis = parent.rotation @ ca.SX(list(joint.axis)) if joint.axis else None
    if joint.type == 'revolute':
        if axis is None:
            return child.omega - parent.omega, None
        return ca.dot(axis, child.rotation @ child.omega - parent.rotation @ parent.omega), axis
    between = kinematics.point(joint.child) - kinematics.point(joint.parent)
    return kinematics.velocity_of(ca.dot(axis, between)), axis
