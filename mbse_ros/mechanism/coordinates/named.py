# SPDX-License-Identifier: Apache-2.0
"""Named coordinates: angles, distances, displacements and components that join ``q`` with a constraint each.

Where the coordinates already hold the quantity, the name is given to that coordinate and nothing is added.
"""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np

from ...description.basics import GROUND
from ...description.model import Coordinate, Joint
from .joint_rows import across, rpy_of
from .kinematics import BodyFrame, Kinematics, wrapped


def add_named(kinematics: Kinematics) -> None:
    """Add all named coordinates of the description."""
    taken: set[int] = set()
    for coordinate in kinematics.description.coordinates.values():
        bodies, expression = _known(kinematics, coordinate)
        native = None if expression is None else _index(kinematics, expression)
        if native is not None and native not in taken:
            taken.add(native)
            if kinematics.names[native] != coordinate.name:
                kinematics.release(coordinate.name)
                kinematics.names[native] = coordinate.name
            if _angular(kinematics, coordinate):
                kinematics.start[native] = _nearest(kinematics, coordinate, kinematics.start[native])
        else:
            _KINDS[coordinate.kind](kinematics, coordinate, bodies, expression)


def _known(kinematics: Kinematics, coordinate: Coordinate) -> tuple[tuple[str, ...], ca.SX | None]:
    """Bodies that the coordinate ties together, and the quantity as an expression where it is single-valued."""
    if coordinate.kind == 'angle':
        ends = (GROUND, *coordinate.bodies)[-2:]
        zero, angle = (kinematics.frames[name].angle for name in ends)
        return ends, None if zero is None or angle is None else angle - zero
    if coordinate.kind == 'joint':
        joint = kinematics.description.joints[coordinate.joint]
        return (joint.parent.body, joint.child.body), kinematics.joints.get(coordinate.joint)
    bodies = tuple(point.body for point in coordinate.points)
    if coordinate.kind == 'component':
        return bodies, kinematics.point(coordinate.points[0])[coordinate.component]
    return bodies, None


def _index(kinematics: Kinematics, expression: ca.SX) -> int | None:
    """Place in q of an expression that is a coordinate."""
    for i, symbol in enumerate(kinematics.q):
        if ca.is_equal(ca.simplify(expression), symbol, 2):
            return i
    return None


def _angular(kinematics: Kinematics, coordinate: Coordinate) -> bool:
    """Whether full turns of the coordinate are the same position."""
    joints = kinematics.description.joints
    return coordinate.kind == 'angle' or coordinate.kind == 'joint' and joints[coordinate.joint].type == 'revolute'


def _nearest(kinematics: Kinematics, coordinate: Coordinate, guess: float) -> float:
    """The angle of the guess with the full turns of the start that the file gives; without one within half a turn, so
    that it is the same in all coordinates."""
    given = kinematics.description.initial.position.get(coordinate.name)
    near = wrapped(guess) if given is None else given.value
    return guess + 2 * np.pi * round((near - guess) / (2 * np.pi))


def _linear(kinematics: Kinematics, coordinate: Coordinate, bodies: tuple[str, ...], expression: ca.SX,
            angular: bool = False) -> None:
    """A coordinate that equals an expression, up to full turns where it is an angle."""
    guess = float(kinematics.at_start(ca.SX(expression))[0].item())
    start = _nearest(kinematics, coordinate, guess) if angular else guess
    symbol = kinematics.coordinate(coordinate.name, start)
    kinematics.row(coordinate.name, coordinate.name, symbol - expression - (start - guess), bodies)


def _angle(kinematics: Kinematics, coordinate: Coordinate, bodies: tuple[str, ...], expression: ca.SX | None) -> None:
    """Absolute or relative angle of a body's x axis."""
    if expression is not None:
        return _linear(kinematics, coordinate, bodies, expression, True)
    parent, child = (kinematics.frames[name] for name in bodies)
    _turn(kinematics, coordinate, bodies, parent.rotation[:, 0], parent.rotation[:, 1], child.rotation[:, 0])


def _turn(kinematics: Kinematics, coordinate: Coordinate, bodies: tuple[str, ...], zero: ca.SX, quarter: ca.SX,
          turned: ca.SX) -> None:
    """Angle of ``turned`` from ``zero`` towards ``quarter``, all perpendicular to one axis.

    ``sin(angle) x - cos(angle) y = 0`` has a slope of one in the angle everywhere; the paper's two branches, by
    the cosine where ``|sin| > 1/sqrt(2)`` and by the sine elsewhere, are used where the file asks for them.
    """
    x, y = ca.dot(zero, turned), ca.dot(quarter, turned)
    guess = [float(item.item()) for item in kinematics.at_start(ca.SX(x), ca.SX(y))]
    start = _nearest(kinematics, coordinate, float(np.arctan2(guess[1], guess[0])))
    angle = kinematics.coordinate(coordinate.name, start)
    if coordinate.branches:
        steep = ca.fabs(ca.sin(angle)) > np.sqrt(0.5)
        row = ca.if_else(steep, x - ca.cos(angle), y - ca.sin(angle))
    else:
        row = ca.sin(angle) * x - ca.cos(angle) * y
    kinematics.row(coordinate.name, coordinate.name, row, bodies)
    kinematics.side(ca.cos(angle) * x + ca.sin(angle) * y)


def _joint(kinematics: Kinematics, coordinate: Coordinate, bodies: tuple[str, ...], expression: ca.SX | None) -> None:
    """Angle or displacement of a joint."""
    if expression is not None:
        return _linear(kinematics, coordinate, bodies, expression)
    joint = kinematics.description.joints[coordinate.joint]
    parent, child = (kinematics.frames[name] for name in bodies)
    if joint.type in ('prismatic', 'slot', 'cylindrical'):
        axis = parent.rotation @ ca.SX(list(joint.axis))
        between = kinematics.point(joint.child) - kinematics.point(joint.parent)
        return _linear(kinematics, coordinate, bodies, ca.dot(axis, between))
    if kinematics.description.dimension == 2:
        return _planar_joint(kinematics, coordinate, bodies, joint, parent, child)
    side, other = (vector.tolist() for vector in across(joint.axis))
    _turn(kinematics, coordinate, bodies, parent.rotation @ ca.SX(side), parent.rotation @ ca.SX(other),
          child.rotation @ rpy_of(kinematics, joint).T @ ca.SX(side))


def _planar_joint(kinematics: Kinematics, coordinate: Coordinate, bodies: tuple[str, ...], joint: Joint,
                  parent: BodyFrame, child: BodyFrame) -> None:
    """Angle of a planar revolute joint, counted from the joint's zero."""
    offset = kinematics.values(joint.rpy[0]) if joint.rpy else 0.0
    if parent.angle is not None and child.angle is not None:
        return _linear(kinematics, coordinate, bodies, child.angle - parent.angle - offset, True)
    zero = parent.rotation @ ca.vertcat(ca.cos(offset), ca.sin(offset))
    _turn(kinematics, coordinate, bodies, zero, ca.vertcat(-zero[1], zero[0]), child.rotation[:, 0])


def _distance(kinematics: Kinematics, coordinate: Coordinate, bodies: tuple[str, ...], _: ca.SX | None) -> None:
    """Distance of two points, or position of a piston between them: half the difference of the squares."""
    between = kinematics.between(*coordinate.points)
    closed = 0.0 if coordinate.closed_length is None else kinematics.values(coordinate.closed_length)
    nominal = 0.0 if coordinate.closed_length is None else coordinate.closed_length.value
    guess = float(np.sqrt(kinematics.at_start(ca.sumsqr(between))[0].item()))
    symbol = kinematics.coordinate(coordinate.name, guess - nominal)
    length = closed + symbol
    kinematics.row(coordinate.name, coordinate.name, (ca.sumsqr(between) - length ** 2) / 2, bodies)
    kinematics.side(length)


_KINDS: dict[str, Callable[[Kinematics, Coordinate, tuple[str, ...], ca.SX], None]] = {
    'angle': _angle, 'joint': _joint, 'distance': _distance, 'piston': _distance, 'component': _linear}
