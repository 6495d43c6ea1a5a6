# SPDX-License-Identifier: Apache-2.0
"""Relative joint coordinates of a tree of bodies; the joints that close its loops are cut and become constraints.

Pyrhönen et al., mass estimation, section 2.1. A body that no joint reaches keeps its reference-point coordinates.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from ...description.basics import GROUND
from ...description.model import Joint, MechanismDescription
from ..rotation import axis_rotation
from ..values import Values
from .joint_rows import joint_rows, rpy_of
from .kinematics import BodyFrame, Kinematics, ground_frame, wrapped
from .reference_point import free_body, quaternion

# Cheap joints first: a spherical joint in the tree costs four coordinates and a constraint, a cut one three rows.
_TREE = {'fixed': 0, 'revolute': 1, 'prismatic': 1, 'slot': 2, 'cylindrical': 2, 'universal': 2, 'spherical': 3}


def relative(description: MechanismDescription, values: Values) -> Kinematics:
    """Kinematics of the tree that is grown from the ground in the order of the file."""
    kinematics = Kinematics(description, values)
    kinematics.frames[GROUND] = ground_frame(description.dimension)
    waiting = dict(description.joints)
    while len(kinematics.frames) <= len(description.bodies):
        joint = _next(kinematics, waiting)
        if joint is None:
            body = next(b for name, b in description.bodies.items() if name not in kinematics.frames)
            free_body(kinematics, body)
        else:
            waiting.pop(joint.name)
            _grow(kinematics, joint)
    for joint in waiting.values():
        joint_rows(kinematics, joint)
    return kinematics


def _next(kinematics: Kinematics, waiting: dict[str, Joint]) -> Joint | None:
    """The cheapest joint, the first in the file among equals, between a body with a frame and one without."""
    reached = kinematics.frames
    reach = [joint for joint in waiting.values() if joint.type in _TREE
             and (joint.parent.body in reached) != (joint.child.body in reached)]
    return min(reach, key=lambda joint: _TREE[joint.type], default=None)


def _grow(kinematics: Kinematics, joint: Joint) -> None:
    """Frame of the body behind a joint."""
    outward = joint.parent.body in kinematics.frames
    planar = kinematics.description.dimension == 2
    turn, omega, slide, angle = (_planar_motion if planar else _spatial_motion)(kinematics, joint)
    known = kinematics.frames[(joint.parent if outward else joint.child).body]
    near, far = (joint.parent, joint.child) if outward else (joint.child, joint.parent)
    if outward:
        rotation = known.rotation @ turn
        anchor = kinematics.point(near) + known.rotation @ slide
        spin = known.omega + omega if planar else turn.T @ known.omega + omega
    else:
        rotation = known.rotation @ turn.T
        anchor = kinematics.point(near) - rotation @ slide
        spin = known.omega - omega if planar else turn @ (known.omega - omega)
    absolute = None
    if planar and known.angle is not None:
        absolute = known.angle + angle if outward else known.angle - angle
    kinematics.frames[far.body] = BodyFrame(anchor - rotation @ kinematics.local(far), rotation, spin, absolute)
    if near.body == GROUND or near.body in kinematics.tree:
        inner = turn if outward else turn.T
        origin = kinematics.local(near) + (slide if outward else -inner @ slide) - inner @ kinematics.local(far)
        kinematics.tree[far.body] = near.body, inner, origin


def _planar_motion(kinematics: Kinematics, joint: Joint) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
    """Rotation and angular velocity of the child in the parent, slide in the parent's frame, relative angle."""
    parent, child = (_pose(kinematics, point.body) for point in (joint.parent, joint.child))
    turned = parent[1].T @ child[1]
    offset = kinematics.values(joint.rpy[0]) if joint.rpy else 0.0
    angle, rate, slide = ca.SX(offset), ca.SX(0), ca.SX.zeros(2)
    if joint.type in ('prismatic', 'slot'):
        slide = ca.SX(list(joint.axis)) * _slide(kinematics, joint, joint.type == 'slot')
    if joint.type in ('revolute', 'slot'):
        coordinate = kinematics.coordinate(f'{joint.name}.angle' if joint.type == 'slot' else joint.name,
                                           wrapped(np.arctan2(turned[1, 0], turned[0, 0]) - _nominal(joint)))
        kinematics.joints.setdefault(joint.name, coordinate)
        angle, rate = coordinate + offset, kinematics.qd[-1]
    turn = ca.horzcat(ca.vertcat(ca.cos(angle), ca.sin(angle)), ca.vertcat(-ca.sin(angle), ca.cos(angle)))
    return turn, rate, slide, angle


def _spatial_motion(kinematics: Kinematics, joint: Joint) -> tuple[ca.SX, ca.SX, ca.SX, None]:
    """Rotation of the child's frame in the parent's, angular velocity along the child's axes, slide."""
    parent, child = (_pose(kinematics, point.body) for point in (joint.parent, joint.child))
    fixed = rpy_of(kinematics, joint)
    at_zero = kinematics.at_start(ca.SX(fixed))[0]
    turned = parent[1].T @ child[1]
    slide = ca.SX.zeros(3)
    if joint.type in ('prismatic', 'cylindrical'):
        slide = ca.SX(list(joint.axis)) * _slide(kinematics, joint, joint.type == 'cylindrical')
    if joint.type in ('fixed', 'prismatic'):
        return ca.SX(fixed), ca.SX.zeros(3), slide, None
    if joint.type == 'spherical':
        return *quaternion(kinematics, joint.name, turned, (joint.parent.body, joint.child.body)), slide, None
    if joint.type == 'universal':
        return *_universal(kinematics, joint, turned, at_zero), slide, None
    name = f'{joint.name}.angle' if joint.type == 'cylindrical' else joint.name
    angle = kinematics.coordinate(name, _angle_about(joint.axis, turned @ at_zero.T))
    kinematics.joints.setdefault(joint.name, angle)
    axis = ca.SX(list(joint.axis))
    return axis_rotation(joint.axis, angle) @ fixed, fixed.T @ axis * kinematics.qd[-1], slide, None


def _universal(kinematics: Kinematics, joint: Joint, turned: np.ndarray,
               at_zero: np.ndarray) -> tuple[ca.SX, ca.SX]:
    """Turn about ``axis`` in the parent, then about ``axis2`` in the child."""
    zero = _squared(joint, at_zero)
    first = kinematics.coordinate(f'{joint.name}.first', _angle_about(joint.axis, turned @ zero.T))
    first_rate = kinematics.qd[-1]
    second = kinematics.coordinate(f'{joint.name}.second', _angle_about(joint.axis2, zero.T @ turned))
    inner = ca.SX(zero) @ axis_rotation(joint.axis2, second)
    rate = inner.T @ ca.SX(list(joint.axis)) * first_rate + ca.SX(list(joint.axis2)) * kinematics.qd[-1]
    return axis_rotation(joint.axis, first) @ inner, rate


def _squared(joint: Joint, at_zero: np.ndarray) -> np.ndarray:
    """The rotation R(rpy), turned on until the arms of the cross are perpendicular."""
    from transforms3d.axangles import axangle2mat  # here: slow to import
    arm, other = np.array(joint.axis), at_zero @ np.array(joint.axis2)
    normal = np.cross(arm, other)
    short = np.pi / 2 - np.arctan2(np.linalg.norm(normal), np.dot(arm, other))
    return axangle2mat(normal, short) @ at_zero


def _slide(kinematics: Kinematics, joint: Joint, suffix: bool) -> ca.SX:
    """Displacement of a sliding joint, started from the guess."""
    parent = _pose(kinematics, joint.parent.body)
    places = [pose[0] + pose[1] @ kinematics.at_start(kinematics.local(point))[0].ravel()
              for point, pose in ((joint.parent, parent), (joint.child, _pose(kinematics, joint.child.body)))]
    start = (places[1] - places[0]) @ (parent[1] @ np.array(joint.axis))
    coordinate = kinematics.coordinate(f'{joint.name}.slide' if suffix else joint.name, start)
    kinematics.joints[joint.name] = coordinate
    return coordinate


def _pose(kinematics: Kinematics, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Guess of a body's position and rotation."""
    dimension = kinematics.description.dimension
    if name == GROUND:
        return np.zeros(dimension), np.eye(dimension)
    body = kinematics.description.bodies[name]
    return np.array(body.position), np.array(body.rotation)


def _nominal(joint: Joint) -> float:
    return joint.rpy[0].value if joint.rpy else 0.0


def _angle_about(axis: tuple[float, ...], rotation: np.ndarray) -> float:
    """Angle of the part of a rotation that turns about the axis; the rest turns about axes across it."""
    from transforms3d.quaternions import mat2quat  # here: slow to import
    w, *vector = mat2quat(rotation)
    return wrapped(2 * np.arctan2(np.dot(vector, axis), w))
