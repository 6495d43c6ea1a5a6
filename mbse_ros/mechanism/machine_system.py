# SPDX-License-Identifier: Apache-2.0
"""The ``System`` of a hydraulic machine: a tree of bodies in relative joint coordinates, closed by its cylinders.

Coordinates ``q`` = moving joints, then piston positions (paper 003, section 2.1, with the piston positions as
the independent ones). Everything else, all derivatives included, is derived from what stands here.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..errors import DescriptionError
from .description.model import Body, Joint, MachineDescription, PointRef
from .parameters import ParameterSet
from .rotation import axis_rotation, rpy_rotation
from .system import System


@dataclass(frozen=True)
class Frame:
    """Pose and angular velocity of a body in the machine frame."""

    origin: ca.SX
    rotation: ca.SX
    omega: ca.SX


@dataclass(frozen=True, kw_only=True)
class MachineSystem(System):
    """``System`` whose independent coordinates are the piston positions, m.

    ``payload`` is the symbol of the payload's mass, kg; the coordinates are the ``joints``, then the ``cylinders``.
    """

    payload: ca.SX
    joints: tuple[str, ...]
    cylinders: tuple[str, ...]


def build_system(description: MachineDescription, parameters: ParameterSet) -> MachineSystem:
    """Symbolic system of a described machine; symbols of its uncertain numbers go into ``parameters``.

    Raises DescriptionError when the cylinders do not determine the motion of the joints by their number.
    """
    joints = tuple(name for name, joint in description.joints.items() if joint.type != 'fixed')
    cylinders = tuple(description.cylinders)
    if len(joints) != len(cylinders):
        raise DescriptionError(description.file, 'cylinders', len(cylinders),
                               f'one cylinder for each moving joint ({len(joints)}: {", ".join(joints)})')
    q, qd = (ca.SX.sym(s, len(joints) + len(cylinders)) for s in ('q', 'qd'))
    frames = _frames(description, parameters, joints, q, qd)
    points = _points(description, parameters, frames)
    payload = ca.SX.sym('payload')
    gravity = parameters.vector('gravity', description.gravity)
    M, Q = ca.SX.zeros(q.numel(), q.numel()), ca.SX.zeros(q.numel())
    for name, body in description.bodies.items():
        M_b, Q_b = _body_terms(name, body, frames[name], parameters, gravity, q, qd)
        M, Q = M + M_b, Q + Q_b
    M_p, Q_p = _point_mass_terms(payload, points[str(description.payload.point)], gravity, q, qd)
    closure = [_cylinder_closure(description, parameters, points, name, q[len(joints) + i])
               for i, name in enumerate(cylinders)]
    start = np.array([description.joints[name].start for name in joints])
    return MachineSystem(
        q=q, qd=qd, M=ca.densify(M + M_p), Q=ca.densify(Q + Q_p), Phi=ca.vertcat(*closure), names=joints + cylinders,
        rows=cylinders, independent=list(range(len(joints), q.numel())), start=start, points=points, payload=payload,
        joints=joints, cylinders=cylinders)


def _frames(description: MachineDescription, parameters: ParameterSet, joints: tuple[str, ...], q: ca.SX,
            qd: ca.SX) -> dict[str, Frame]:
    """Frames of all bodies, from the ground outwards."""
    frames = {'ground': Frame(ca.SX.zeros(3), ca.SX.eye(3), ca.SX.zeros(3))}
    waiting = dict(description.joints)
    while waiting:
        name = next(n for n, joint in waiting.items() if joint.parent.body in frames)
        joint = waiting.pop(name)
        k = joints.index(name) if name in joints else None
        frames[joint.child.body] = _child_frame(
            description, parameters, name, joint, frames[joint.parent.body],
            0.0 if k is None else q[k], 0.0 if k is None else qd[k])
    return frames


def _child_frame(description: MachineDescription, parameters: ParameterSet, name: str, joint: Joint, parent: Frame,
                 position: ca.SX | float, velocity: ca.SX | float) -> Frame:
    """Frame behind a joint: revolute turns about, prismatic slides along its axis (in the parent's frame)."""
    local = _local_point(description, parameters, joint.parent)
    anchor = parent.origin + parent.rotation @ local
    axis = ca.SX(list(joint.axis))
    turn = axis_rotation(joint.axis, position) if joint.type == 'revolute' else ca.SX.eye(3)
    fixed = rpy_rotation([parameters.value(f'joints.{name}.rpy.{i}', angle) for i, angle in enumerate(joint.rpy)])
    rotation = parent.rotation @ turn @ fixed
    omega = parent.omega + (parent.rotation @ axis * velocity if joint.type == 'revolute' else 0)
    slide = parent.rotation @ axis * position if joint.type == 'prismatic' else 0
    child = _local_point(description, parameters, joint.child)
    return Frame(anchor + slide - rotation @ child, rotation, omega)


def _local_point(description: MachineDescription, parameters: ParameterSet, point: PointRef) -> ca.SX:
    """Coordinates of a point in the frame of its body."""
    if point.body == 'ground':
        return parameters.vector(f'ground.points.{point.point}', description.ground_points[point.point])
    return parameters.vector(f'bodies.{point.body}.points.{point.point}',
                             description.bodies[point.body].points[point.point])


def _points(description: MachineDescription, parameters: ParameterSet, frames: dict[str, Frame]) -> dict[str, ca.SX]:
    """Positions of all named points in the machine frame."""
    owners = {'ground': description.ground_points} | {n: b.points for n, b in description.bodies.items()}
    return {f'{body}.{point}': frames[body].origin
            + frames[body].rotation @ _local_point(description, parameters, PointRef(body, point))
            for body, points in owners.items() for point in points}


def _body_terms(name: str, body: Body, frame: Frame, parameters: ParameterSet, gravity: ca.SX, q: ca.SX,
                qd: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Mass matrix and force vector of one rigid body (Newton-Euler projected on the coordinates)."""
    mass = parameters.value(f'bodies.{name}.mass', body.mass)
    centre = frame.origin + frame.rotation @ parameters.vector(f'bodies.{name}.center_of_mass', body.center_of_mass)
    M, Q = _point_mass_terms(mass, centre, gravity, q, qd)
    xx, yy, zz, xy, xz, yz = (parameters.value(f'bodies.{name}.inertia.{key}', item)
                              for key, item in zip(('xx', 'yy', 'zz', 'xy', 'xz', 'yz'), body.inertia))
    local = ca.vertcat(ca.horzcat(xx, xy, xz), ca.horzcat(xy, yy, yz), ca.horzcat(xz, yz, zz))
    inertia = frame.rotation @ local @ frame.rotation.T
    J_w = ca.jacobian(frame.omega, qd)
    bias = inertia @ ca.jtimes(frame.omega, q, qd) + ca.cross(frame.omega, inertia @ frame.omega)
    return M + J_w.T @ inertia @ J_w, Q - J_w.T @ bias


def _point_mass_terms(mass: ca.SX | float, position: ca.SX, gravity: ca.SX, q: ca.SX,
                      qd: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Mass matrix and force vector of a point mass under gravity."""
    J_v = ca.jacobian(position, q)
    bias = ca.jtimes(ca.jtimes(position, q, qd), q, qd)
    return mass * J_v.T @ J_v, mass * J_v.T @ (gravity - bias)


def _cylinder_closure(description: MachineDescription, parameters: ParameterSet, points: dict[str, ca.SX], name: str,
                      piston: ca.SX) -> ca.SX:
    """Loop closure of a cylinder: half the difference of the squared pin distance and length, m2."""
    cylinder = description.cylinders[name]
    between = points[str(cylinder.rod_eye)] - points[str(cylinder.base)]
    length = parameters.value(f'cylinders.{name}.closed_length', cylinder.closed_length) + piston
    return (ca.sumsqr(between) - length ** 2) / 2
