# SPDX-License-Identifier: Apache-2.0
"""A mechanism as other multibody programs want it: rigid bodies where they start, joints, springs, torques; numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from mbse_ros.description.basics import GROUND, PointRef
from mbse_ros.description.model import Coordinate, Force, Joint, MechanismDescription, Spring
from mbse_ros.dynamics.model import Model
from mbse_ros.errors import MbseError
from mbse_ros.mechanism.inertia import center_of_mass, inertia

Z = np.array([0.0, 0.0, 1.0])


class NoPeerError(MbseError):
    """A program cannot do a mechanism; the text says why."""


@dataclass(frozen=True)
class Pose:
    """Place (3,), m, and rotation (3, 3) of a body's frame."""

    place: np.ndarray
    rotation: np.ndarray

    def at(self, local: np.ndarray) -> np.ndarray:
        """Place (3,) of a point of the body."""
        point: np.ndarray = self.place + self.rotation @ local
        return point


@dataclass(frozen=True)
class Rigid:
    """A body at its start: kg; centre of mass (3,), m, and inertia about it (3, 3), kg m2, in its frame; its velocity
    (3,), m/s, at the frame's origin, and angular velocity (3,), rad/s."""

    mass: float
    centre: np.ndarray
    inertia: np.ndarray
    pose: Pose
    velocity: np.ndarray
    spin: np.ndarray

    @property
    def centre_velocity(self) -> np.ndarray:
        """Velocity (3,) of the centre of mass, m/s."""
        return self.velocity + np.cross(self.spin, self.pose.rotation @ self.centre)


@dataclass(frozen=True)
class Link:
    """A joint at a point of the parent and one of the child, (3,) in their frames; unit axes ``axis`` (3,) in the
    parent's, ``axis2`` in the child's frame."""

    name: str
    type: str
    parent: str
    child: str
    near: np.ndarray
    far: np.ndarray
    axis: np.ndarray
    axis2: np.ndarray


@dataclass(frozen=True)
class Coil:
    """A spring and damper between two points, ``ends`` (body, (3,)), or of the angle of a revolute ``link``.

    ``free``: length, m, or the angle, rad, counted from that of the start.
    """

    stiffness: float
    free: float
    damping: float
    ends: tuple[tuple[str, np.ndarray], tuple[str, np.ndarray]] | None = None
    link: str = ''


@dataclass(frozen=True)
class PeerModel:
    """All that a program is given; ``gravity`` (3,), m/s2; ``torques`` about z, N m, by body; ``watched``: the
    coordinate that is compared."""

    description: MechanismDescription
    gravity: np.ndarray
    bodies: dict[str, Rigid]
    links: dict[str, Link]
    coils: tuple[Coil, ...]
    torques: dict[str, float]
    watched: Coordinate

    @property
    def planar(self) -> bool:
        """Whether all moves in the plane x y."""
        return self.description.dimension == 2

    @property
    def start(self) -> dict[str, Pose]:
        """Poses at the start, that of the ground too."""
        return {GROUND: Pose(np.zeros(3), np.eye(3)), **{name: body.pose for name, body in self.bodies.items()}}

    def value(self, poses: dict[str, Pose]) -> float:
        """The watched coordinate at some poses, m or rad; of an angle up to full turns."""
        return _value(self, self.watched, {**poses, GROUND: self.start[GROUND]})


def peer_model(model: Model) -> PeerModel:
    """Of a model where it starts; its inputs are zero, its first independent coordinate is watched. NoPeerError."""
    description = model.description
    if description.drivers or description.cylinders:
        raise NoPeerError('drivers or cylinders')
    name = model.independent[0]
    if name not in description.coordinates:
        raise NoPeerError(f'its coordinate {name} has no meaning in other programs')
    found = PeerModel(description, _spatial([scalar.value for scalar in description.gravity]), _bodies(model),
                      {joint.name: _link(description, joint) for joint in description.joints.values()}, (), {},
                      description.coordinates[name])
    return replace(found, coils=tuple(_coil(found, spring) for spring in description.springs.values()),
                   torques={body: value for force in description.forces.values() if not force.input
                            for body, value in [_torque(description, force)]})


def _bodies(model: Model) -> dict[str, Rigid]:
    """Numbers of all bodies at the model's start."""
    system, values, start = model.system, model.system.values, model.start
    out: list[ca.SX] = []
    for body in model.description.bodies.values():
        frame = system.frames[body.name]
        speed = ca.jtimes(frame.origin, system.q, system.qd)
        out += [ca.SX(values(body.mass)), center_of_mass(body, values), inertia(body, values), frame.origin,
                frame.rotation, speed, frame.omega]
    numbers = ca.Function('bodies', [system.q, system.qd, values.symbol], [ca.densify(ca.SX(x)) for x in out])
    found = [x.full() for x in numbers.call([start.q, start.qd, model.parameters])]
    return {name: _rigid(*found[7 * k:7 * k + 7]) for k, name in enumerate(model.description.bodies)}


def _rigid(mass: np.ndarray, centre: np.ndarray, tensor: np.ndarray, origin: np.ndarray, rotation: np.ndarray,
           speed: np.ndarray, omega: np.ndarray) -> Rigid:
    """A body in space; one of a plane is the same about all axes, of which only z counts."""
    if len(rotation) == 2:
        tensor, omega = tensor.item() * np.eye(3), omega.item() * Z
        rotation = np.block([[rotation, np.zeros((2, 1))], [np.zeros((1, 2)), np.ones((1, 1))]])
    else:
        omega = rotation @ omega.ravel()
    return Rigid(mass.item(), _spatial(centre.ravel()), tensor, Pose(_spatial(origin.ravel()), rotation),
                 _spatial(speed.ravel()), omega)


def _spatial(vector: object) -> np.ndarray:
    """A vector (3,) of one (2,) or (3,)."""
    given = np.array(vector, dtype=float)
    return np.concatenate([given, np.zeros(3 - len(given))])


def _local(description: MechanismDescription, point: PointRef) -> np.ndarray:
    owner = description.ground if point.body == GROUND else description.bodies[point.body].points
    return _spatial([scalar.value for scalar in owner[point.point]])


def _link(description: MechanismDescription, joint: Joint) -> Link:
    if joint.rpy and any(angle.value for angle in joint.rpy) or joint.length is not None:
        raise NoPeerError(f'the joint {joint.name} is turned, or a rod without mass')
    axis = Z if joint.type == 'revolute' and description.dimension == 2 else _spatial(joint.axis)
    return Link(joint.name, joint.type, joint.parent.body, joint.child.body, _local(description, joint.parent),
                _local(description, joint.child), axis, _spatial(joint.axis2))


def _coil(peer: PeerModel, spring: Spring) -> Coil:
    numbers = spring.stiffness.value, spring.free.value, spring.damping.value
    if spring.points is not None:
        one, other = ((point.body, _local(peer.description, point)) for point in spring.points)
        return Coil(*numbers, ends=(one, other))
    coordinate = peer.description.coordinates[spring.coordinate]
    bodies = {*coordinate.bodies}
    links = [link for link in peer.links.values() if link.type == 'revolute'
             and (link.name == coordinate.joint or {link.parent, link.child} == bodies)]
    if len(links) != 1:
        raise NoPeerError(f'the spring {spring.name} acts on no revolute joint')
    forwards = coordinate.kind == 'joint' or coordinate.bodies[-1] == links[0].child
    at_start = _wrapped(_value(peer, coordinate, peer.start))
    return Coil(numbers[0], (1.0 if forwards else -1.0) * (numbers[1] - at_start), numbers[2], link=links[0].name)


def _torque(description: MechanismDescription, force: Force) -> tuple[str, float]:
    """Body and torque of a constant force on a body's angle."""
    coordinate = description.coordinates.get(force.coordinate)
    if coordinate is None or coordinate.kind != 'angle' or len(coordinate.bodies) != 1:
        raise NoPeerError(f'the force {force.name} is not the torque of a body')
    return coordinate.bodies[0], force.value[0].value


def _value(peer: PeerModel, coordinate: Coordinate, poses: dict[str, Pose]) -> float:
    """A named coordinate at some poses."""
    if coordinate.kind == 'angle':
        angles = [np.arctan2(*poses[body].rotation[1::-1, 0]) for body in coordinate.bodies]
        return float(angles[-1] - (angles[0] if len(angles) == 2 else 0.0))
    if coordinate.kind == 'joint' and peer.links[coordinate.joint].type == 'revolute':
        link = peer.links[coordinate.joint]
        turn = poses[link.parent].rotation.T @ poses[link.child].rotation
        off = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]])
        return float(np.arctan2(link.axis @ off, np.trace(turn) - 1.0))
    if coordinate.kind in ('distance', 'component'):
        places = [poses[point.body].at(_local(peer.description, point)) for point in coordinate.points]
        return float(np.linalg.norm(places[1] - places[0]) if len(places) == 2 else places[0][coordinate.component])
    raise NoPeerError(f'the coordinate {coordinate.name} has no meaning in other programs')


def deviation(peer: PeerModel, one: float, other: float) -> float:
    """How far two values of the watched coordinate are apart, m or rad."""
    turns = peer.watched.kind in ('angle', 'joint')
    return abs(_wrapped(one - other) if turns else one - other)


def _wrapped(angle: float) -> float:
    return float(np.arctan2(np.sin(angle), np.cos(angle)))
