# SPDX-License-Identifier: Apache-2.0
"""Constraint rows of a joint between two frames, whatever the coordinates of the frames are."""

from __future__ import annotations

import casadi as ca
import numpy as np

from ...description.basics import Scalar
from ...description.model import Joint
from ..rotation import rpy_rotation
from .kinematics import Kinematics, cross2


def joint_rows(kinematics: Kinematics, joint: Joint) -> None:
    """Add the rows of one joint to the constraints."""
    if joint.length is not None:
        rows = {'length': _distance(kinematics, joint, joint.length)}
    else:
        rows = (_planar if kinematics.description.dimension == 2 else _spatial)(kinematics, joint)
    bodies = (joint.parent.body, joint.child.body)
    for name, expression in rows.items():
        kinematics.row(f'{joint.name}.{name}', joint.name, expression, bodies)


def _distance(kinematics: Kinematics, joint: Joint, length: Scalar) -> ca.SX:
    """Constant distance (Blanco-Claraco et al., factor graphs, Eq. 43)."""
    between = kinematics.between(joint.parent, joint.child)
    return ca.sumsqr(between) - kinematics.values(length) ** 2


def _planar(kinematics: Kinematics, joint: Joint) -> dict[str, ca.SX]:
    """Revolute 2, prismatic 2, slot 1, fixed 3 rows; the sliders are Eqs. 44 and 45 of Blanco-Claraco et al., factor
    graphs."""
    between = kinematics.between(joint.parent, joint.child)
    rows: dict[str, ca.SX] = {}
    if joint.type in ('revolute', 'fixed'):
        rows |= {'x': between[0], 'y': between[1]}
    if joint.type in ('prismatic', 'slot'):
        axis = kinematics.poses(joint.parent.body, joint.child.body)[0][0] @ ca.SX(list(joint.axis))
        rows['side'] = cross2(axis, between)
    if joint.type in ('prismatic', 'fixed'):
        rows['angle'] = _planar_angle(kinematics, joint)
    return rows


def _planar_angle(kinematics: Kinematics, joint: Joint) -> ca.SX:
    """The child keeps its angle in the parent: linear where the coordinates know absolute angles, else a product of
    directions, with a second solution that is turned by 180 degrees."""
    parent, child = (kinematics.frames[point.body] for point in (joint.parent, joint.child))
    offset = kinematics.values(joint.rpy[0]) if joint.rpy else 0.0
    if parent.angle is not None and child.angle is not None:
        row = child.angle - parent.angle - offset
        return row - 2 * np.pi * np.round(float(kinematics.at_start(ca.SX(row))[0].item()) / (2 * np.pi))
    direction = parent.rotation @ ca.vertcat(ca.cos(offset), ca.sin(offset))
    kinematics.side(ca.dot(direction, child.rotation[:, 0]))
    return cross2(direction, child.rotation[:, 0])


def _spatial(kinematics: Kinematics, joint: Joint) -> dict[str, ca.SX]:
    """Revolute 5, prismatic 5, cylindrical 4, spherical 3, universal 4, fixed 6 rows."""
    (parent, _), (child, _) = kinematics.poses(joint.parent.body, joint.child.body)
    between = kinematics.between(joint.parent, joint.child)
    rows: dict[str, ca.SX] = {}
    if joint.type in ('revolute', 'spherical', 'universal', 'fixed'):
        rows |= {'xyz'[k]: between[k] for k in range(3)}
    if joint.type in ('prismatic', 'cylindrical'):
        side, other = (parent @ ca.SX(vector.tolist()) for vector in across(joint.axis))
        rows |= {'side': ca.dot(side, between), 'other_side': ca.dot(other, between)}
    if joint.type == 'universal':
        rows['cross'] = ca.dot(parent @ ca.SX(list(joint.axis)), child @ ca.SX(list(joint.axis2)))
    elif joint.type in ('prismatic', 'fixed'):
        aligned = parent @ rpy_of(kinematics, joint)
        for k in range(2):
            kinematics.side(ca.dot(aligned[:, k], child[:, k]))
        rows |= {f'turn_{"xyz"[k]}': ca.dot(aligned[:, (k + 1) % 3], child[:, (k + 2) % 3]) for k in range(3)}
    elif joint.type in ('revolute', 'cylindrical'):
        axis, zero = ca.SX(list(joint.axis)), child @ rpy_of(kinematics, joint).T
        rows |= {name: ca.dot(parent @ axis, zero @ ca.SX(vector.tolist()))
                 for name, vector in zip(('tilt', 'other_tilt'), across(joint.axis))}
        kinematics.side(ca.dot(parent @ axis, zero @ axis))
    return rows


def rpy_of(kinematics: Kinematics, joint: Joint) -> ca.SX:
    """Rotation (3, 3) of the child's frame in the parent's at the joint's zero."""
    return rpy_rotation([kinematics.values(angle) for angle in joint.rpy]) if joint.rpy else ca.SX.eye(3)


def across(axis: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Two unit vectors (3,) that make a right-handed frame with the unit vector ``axis``."""
    a = np.array(axis)
    side = np.cross(a, np.eye(3)[int(np.argmin(np.abs(a)))])
    side = side / np.linalg.norm(side)
    return side, np.cross(a, side)
