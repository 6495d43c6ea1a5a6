# SPDX-License-Identifier: Apache-2.0
"""Work of the constraint forces: Coulomb friction by the forces of the joints themselves (Orsino, modular modelling,
``phi`` of Eqs. 2.4 and 3.3)."""

from __future__ import annotations

import casadi as ca

from ..description.model import Joint, JointFriction
from ..errors import DescriptionError
from .coordinates.kinematics import Kinematics


def joint_friction(kinematics: Kinematics, multipliers: ca.SX) -> ca.SX:
    """Generalised forces (n,) by the multipliers (m + k,) of the rows; raises DescriptionError where coordinates have
    no rows for a joint with friction."""
    return sum((_friction(kinematics, item, multipliers) for item in kinematics.description.friction.values()),
               ca.SX.zeros(len(kinematics.q)))


def _friction(kinematics: Kinematics, item: JointFriction, multipliers: ca.SX) -> ca.SX:
    joint, values = kinematics.description.joints[item.joint], kinematics.values
    sliding, axis = _sliding(kinematics, joint)
    force = _force(kinematics, item, multipliers)
    if item.radius is not None:
        sliding = values(item.radius) * sliding
        force = force if axis is None else force - axis * ca.dot(axis, force)
    push = values(item.coefficient) * ca.norm_2(force) * ca.tanh(sliding / values(item.speed))
    return -ca.jacobian(sliding, ca.vertcat(*kinematics.qd)).T * push


def _force(kinematics: Kinematics, item: JointFriction, multipliers: ca.SX) -> ca.SX:
    """Force (d,) of the joint on its child, N: what the rows do along the place of the child."""
    joint = kinematics.description.joints[item.joint]
    symbols = {symbol.name(): symbol for symbol in kinematics.q}
    places = [f'{joint.child.body}.{"xyz"[k]}' for k in range(kinematics.description.dimension)]
    ends = (joint.parent.body, joint.child.body)
    rows = [i for i, row in enumerate(kinematics.rows)
            if row.owner == joint.name and row.bodies == ends and '.' in row.name]
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
