# SPDX-License-Identifier: Apache-2.0
"""Inertia of bodies, cylinders and payload, and their share of the equations of motion."""

from __future__ import annotations

from collections.abc import Iterator

import casadi as ca

from ..description.basics import Scalar
from ..description.machine_parts import Base, Cylinder, Payload
from ..description.model import Body
from .coordinates.kinematics import Kinematics
from .rotation import axis_rotation
from .values import Values, acceleration_keys

Mass = tuple[ca.SX, ca.SX]      # of a point, kg, and its place (d,), m


def rod(body: Body, values: Values) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Middle (d,), direction times length (d,) and squared length of a uniform rod."""
    first, second = (values.vector(point) for point in list(body.points.values())[:2])
    along = second - first
    return (first + second) / 2, along, ca.sumsqr(along)


def center_of_mass(body: Body, values: Values) -> ca.SX:
    """Centre of mass (d,) in the body's frame, m."""
    return rod(body, values)[0] if body.uniform else values.vector(body.center_of_mass)


def inertia(body: Body, values: Values) -> ca.SX:
    """Inertia about the centre of mass in the body's frame, kg m2: scalar in a plane, (3, 3) in space."""
    planar = len(next(iter(body.points.values()))) == 2
    if body.uniform:
        _, along, squared = rod(body, values)
        mass = values(body.mass)
        return mass * squared / 12 if planar else mass / 12 * (squared * ca.SX.eye(3) - along @ along.T)
    if planar:
        return ca.SX(values(body.inertia[0]))
    xx, yy, zz, xy, xz, yz = (values(item) for item in body.inertia)
    return ca.vertcat(ca.horzcat(xx, xy, xz), ca.horzcat(xy, yy, yz), ca.horzcat(xz, yz, zz))


def point_terms(kinematics: Kinematics, mass: ca.SX | float, place: ca.SX,
                gravity: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Mass matrix (n, n), gravity and velocity forces (n,), and potential energy, J, of a point mass."""
    q, qd = ca.vertcat(*kinematics.q), ca.vertcat(*kinematics.qd)
    J = ca.jacobian(place, q)
    bias = ca.jtimes(J @ qd, q, qd)
    return mass * J.T @ J, mass * J.T @ (gravity - bias), -mass * ca.dot(gravity, place)


def body_terms(kinematics: Kinematics, body: Body, gravity: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Mass matrix (n, n), gravity and velocity forces (n,), and potential energy, J, of one body."""
    q, qd, frame = ca.vertcat(*kinematics.q), ca.vertcat(*kinematics.qd), kinematics.frames[body.name]
    centre = frame.at(center_of_mass(body, kinematics.values))
    mass = kinematics.values(body.mass)
    M, Q, potential = point_terms(kinematics, mass, centre, gravity)
    M_w, Q_w = _rotation_terms(kinematics, body.name, inertia(body, kinematics.values), q, qd)
    return M + M_w, Q + Q_w, potential


def payload_spin(kinematics: Kinematics, payload: Payload) -> ca.SX | None:
    """Inertia of the load about its centre, kg m2, scalar in a plane, (3, 3) in space; None of a point."""
    if payload.gyration_radius is None:
        return None
    tensor = ca.SX(kinematics.values(payload.mass) * kinematics.values(payload.gyration_radius) ** 2)
    return tensor if kinematics.description.dimension == 2 else tensor * ca.SX.eye(3)


def spin_terms(kinematics: Kinematics, body: str, tensor: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Mass matrix (n, n) and velocity forces (n,) of what turns with a body."""
    return _rotation_terms(kinematics, body, tensor, ca.vertcat(*kinematics.q), ca.vertcat(*kinematics.qd))


def _rotation_terms(kinematics: Kinematics, name: str, tensor: ca.SX, q: ca.SX, qd: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Rotational part. In natural coordinates the turning unit vector has the constant mass matrix of that choice."""
    frame = kinematics.frames[name]
    if name in kinematics.natural:
        J_n = ca.jacobian(kinematics.natural[name], q)
        return tensor * J_n.T @ J_n, ca.SX.zeros(q.numel())
    J_w = ca.jacobian(frame.omega, qd)
    bias = tensor @ ca.jtimes(frame.omega, q, qd)
    if frame.omega.numel() == 3:
        bias = bias + ca.cross(frame.omega, tensor @ frame.omega)
    return J_w.T @ tensor @ J_w, -J_w.T @ bias


def point_masses(kinematics: Kinematics) -> Iterator[Mass]:
    """Masses of a machine that belong to no body."""
    description = kinematics.description
    for cylinder in description.cylinders.values():
        yield from _cylinder_masses(kinematics, cylinder)
    for payload in description.every_payload.values():
        place = kinematics.frames[payload.body].at(kinematics.values.vector(payload.center))
        if payload.hanging is not None:
            kinematics.values(payload.hanging)      # its symbol: the load's swing is no part of the mechanism
        yield ca.SX(kinematics.values(payload.mass)), place


def rotors(kinematics: Kinematics) -> Iterator[tuple[int, ca.SX | float]]:
    """Places in q of coordinates that drives move, and the inertia that their rotors have there, kg m2 or kg.

    A rotor turns so much faster than its joint that its spin about other axes does not count.
    """
    for drive in kinematics.description.drives.values():
        if drive.rotor_inertia is not None:
            geared = kinematics.values(drive.rotor_inertia) * drive.gear_ratio ** 2
            yield kinematics.names.index(drive.coordinate), geared


def inclined(gravity: ca.SX, base: Base | None, kinematics: Kinematics) -> ca.SX:
    """Gravity (d,) in the frame of a machine whose base is rolled and pitched."""
    if base is None:
        return gravity
    roll, pitch = (kinematics.values(angle) for angle in (base.roll, base.pitch))
    return axis_rotation((1, 0, 0), roll).T @ (axis_rotation((0, 1, 0), pitch).T @ gravity)


def accelerated(gravity: ca.SX, kinematics: Kinematics) -> ca.SX:
    """Gravity (d,) in the frame of a base whose measured accelerations, along the axes of their sensor, are those
    beyond the ``gravity`` that the file describes: the frame is not inertial."""
    sensor = kinematics.description.base_accelerometer
    for key, axis in zip(acceleration_keys(kinematics.description), sensor.axes if sensor is not None else ()):
        gravity = gravity - kinematics.values(Scalar(0.0, key=key)) * ca.SX(list(axis))
    return gravity


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
