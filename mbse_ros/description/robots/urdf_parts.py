# SPDX-License-Identifier: Apache-2.0
"""Links and joints of a URDF file.

Links that fixed joints tie to another one are one rigid body with it, in the frame of that body. Of a joint: what
moves, about which axis, within which limits, and where it starts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ..basics import PointRef, Scalar, Vector
from ..model import Coordinate, Joint, Spring
from .tag import Tag

ORIGIN = 'origin'
Pose = tuple[np.ndarray, np.ndarray]        # position (3,), m, and rotation (3, 3)
STILL: Pose = (np.zeros(3), np.eye(3))
_TYPES = {'revolute': 'revolute', 'continuous': 'revolute', 'prismatic': 'prismatic', 'fixed': 'fixed'}
_PARTS = ('origin', 'axis', 'limit', 'dynamics', 'mimic')
_IGNORED = ('calibration', 'safety_controller')
_LIMIT = ('lower', 'upper', 'effort', 'velocity', 'acceleration', 'deceleration', 'jerk')
_QUATERNION, _QUATERNIONS = 'quat_xyzw', ('1.1', '1.2')     # and the versions that know it
_UNBOUNDED = '1.2'                                          # a limit that is left out is none, and 0 before
_LENGTH, _ANGLE, _DAMPING = 1e3, 20.0, 1e12                 # what is larger is not in SI
_ANY, _FAR = 1e17, 1e3                                      # for limits: some write 1e16 for none
_ROUNDED = 1e-3                                             # of the square of a quaternion's length


@dataclass(frozen=True)
class Inertial:
    """Mass, kg, centre of mass (3,), m, and tensor about it (3, 3), kg m2, along the axes of one frame."""

    mass: float = 0.0
    centre: np.ndarray = field(default_factory=lambda: np.zeros(3))
    tensor: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))

    def moved(self, pose: Pose) -> Inertial:
        """The same in a frame in which the old one is at ``pose``."""
        place, turned = pose
        return Inertial(self.mass, place + turned @ self.centre, turned @ self.tensor @ turned.T)


@dataclass(frozen=True)
class Motor:
    """What a joint says of what moves it: its name as it is ``written``, largest ``effort``, N m or N, ``damping``, N m
    s/rad or N s/m, dry ``friction``, N m or N; 0 where it says nothing."""

    written: str
    effort: float
    damping: float
    friction: float


@dataclass(frozen=True)
class Seat:
    """Where a link is: ``pose`` of its frame in that of body ``owner`` (its own name, or the ground)."""

    owner: str
    pose: Pose = STILL
    hung: str = ''      # the fixed joint by which it is part of the owner


def chained(first: Pose, second: Pose) -> Pose:
    """Pose of a frame that has pose ``second`` in the frame at ``first``."""
    return first[0] + first[1] @ second[0], first[1] @ second[1]


def total(parts: Iterable[Inertial]) -> Inertial:
    """Mass properties of bodies in one frame that are one: the tensor about the common centre of mass (Steiner)."""
    parts = list(parts)
    if len(parts) == 1:
        return parts[0]
    mass = math.fsum(part.mass for part in parts)
    if mass == 0.0:
        return Inertial(0.0, parts[0].centre, sum((part.tensor for part in parts), np.zeros((3, 3))))
    centre = sum((part.mass * part.centre for part in parts), np.zeros(3)) / mass
    tensor = np.zeros((3, 3))
    for part in parts:
        off = part.centre - centre
        tensor += part.tensor + part.mass * (off @ off * np.eye(3) - np.outer(off, off))
    return Inertial(mass, centre, tensor)


def aliases(seats: Mapping[str, Seat], ends: Mapping[str, tuple[str, str]]) -> dict[str, dict[str, PointRef]]:
    """Points of the links that are part of another body, by link: where they are now."""
    found = {link: {ORIGIN: PointRef(seat.owner, seat.hung)} for link, seat in seats.items() if seat.hung}
    for name, (parent, _) in ends.items():
        if parent in found:
            found[parent][name] = PointRef(seats[parent].owner, name)
    return found


def rpy_of(rotation: np.ndarray) -> tuple[float, float, float]:
    """Roll, pitch, yaw, rad, of Rz(yaw) Ry(pitch) Rx(roll); exact to rounding also where the pitch is near 90 deg."""
    roll = math.atan2(rotation[2, 1], rotation[2, 2])
    sine, cosine = math.sin(roll), math.cos(roll)
    # Of rotation Rx(-roll) = Rz Ry, so that yaw makes up for an error of the roll.
    yaw = math.atan2(rotation[0, 2] * sine - rotation[0, 1] * cosine, rotation[1, 1] * cosine - rotation[1, 2] * sine)
    pitch = math.atan2(-rotation[2, 0], rotation[0, 0] * math.cos(yaw) + rotation[1, 0] * math.sin(yaw))
    return roll, pitch, yaw


def joint_parts(tag: Tag, strict: bool = True) -> dict[str, Tag]:
    """Tags of a joint of a type that serves; ``strict``: that no other one drives."""
    tag.attributes(['name', 'type'])
    if tag.text('type') not in _TYPES:
        raise tag.error('revolute, continuous, prismatic or fixed', tag.text('type'), 'type')
    parts = tag.children(['parent', 'child'], _PARTS, _IGNORED)
    if strict and 'mimic' in parts:
        raise parts['mimic'].error('no mimic joint: take it out; a hydraulic cylinder is written under `cylinders` of '
                                   'the mechanism file, other couplings as a loop of joints there',
                                   parts['mimic'].text('joint'))
    return parts


def joint_of(name: str, tag: Tag, parts: dict[str, Tag], ends: tuple[str, str], turned: np.ndarray,
             angles: tuple[float, ...], guess: Callable[[str, str], float | None]) -> tuple[Joint, Pose]:
    """The joint, and the child's pose relative to the joint's point in the parent's frame; ``turned`` (3, 3) is that
    of the joint at 0, ``angles`` its roll, pitch, yaw, rad; ``guess``: as in ``read_urdf``."""
    from transforms3d.axangles import axangle2mat  # here: slow to import
    kind = _TYPES[tag.text('type')]
    rpy = number_vector(angles)
    refs = (PointRef(ends[0], name), PointRef(ends[1], ORIGIN))
    limits = _limits(tag, parts.get('limit'))
    if kind == 'fixed':
        return Joint(name, kind, *refs, rpy=rpy), (np.zeros(3), turned)
    start = guess(name, 'm' if kind == 'prismatic' else 'rad')
    if start is None:
        start = 0.0 if limits is None or limits[0] <= 0.0 <= limits[1] else sum(limits) / 2.0
    axis = turned @ _axis(parts.get('axis'))     # URDF gives it in the child's frame
    joint = Joint(name, kind, *refs, axis=tuple(axis.tolist()), rpy=rpy,
                  limits=None if limits is None or limits[0] == limits[1] else limits)
    if kind == 'prismatic':
        return joint, (axis * start, turned)
    return joint, (np.zeros(3), axangle2mat(axis, start, is_normalized=True) @ turned)


def _axis(tag: Tag | None) -> np.ndarray:
    """Unit vector (3,) of the axis in the joint's frame; URDF's default is x."""
    if tag is None:
        return np.array([1.0, 0.0, 0.0])
    tag.leaf(['xyz'])
    axis = np.array(tag.numbers('xyz', 3, -_LENGTH, _LENGTH, ''))
    length = np.linalg.norm(axis)
    if length < 1e-6:
        raise tag.error('a direction, not a zero vector', tag.text('xyz'), 'xyz')
    return axis / length


def _limits(tag: Tag, limit: Tag | None) -> tuple[float, float] | None:
    """Range of the coordinate, rad or m; None of a joint that turns freely, and where the file gives none."""
    if limit is None:
        return None
    limit.leaf([], _LIMIT)
    given = [end in limit.element.attrib for end in _LIMIT[:2]]
    lower, upper = (limit.number(end, -_ANY, _ANY, 'rad or m') for end in _LIMIT[:2])    # 0 by default, as in urdfdom
    if all(given) and lower > upper or any(given) and lower > upper and tag.reading.version != _UNBOUNDED:
        raise limit.error(f'a lower limit up to the upper one, {upper:g}', limit.text('lower'), 'lower')
    whole = all(given) or any(given) and tag.reading.version != _UNBOUNDED
    bounded = whole and tag.text('type') in ('revolute', 'prismatic') and max(-lower, upper) < _FAR
    return (lower, upper) if bounded else None


def rpy_angles(tag: Tag | None) -> tuple[float, ...]:
    """Roll, pitch, yaw of an origin, rad."""
    if tag is not None and _QUATERNION in tag.element.attrib:
        from transforms3d.quaternions import quat2mat  # here: slow to import
        x, y, z, w = tag.numbers(_QUATERNION, 4, -1.0, 1.0, '')
        if abs(x * x + y * y + z * z + w * w - 1.0) > _ROUNDED:
            raise tag.error('a quaternion x y z w of length 1', tag.text(_QUATERNION), _QUATERNION)
        return rpy_of(quat2mat([w, x, y, z]))
    return tag.numbers('rpy', 3, -_ANGLE, _ANGLE, 'rad') if tag and 'rpy' in tag.element.attrib else (0.0, 0.0, 0.0)


def origin_of(tag: Tag | None) -> Pose:
    """Pose of an origin tag; the identity where it is left out."""
    from transforms3d.euler import euler2mat  # here: slow to import
    if tag is None:
        return np.zeros(3), np.eye(3)
    quaternions = tag.reading.version in _QUATERNIONS
    if _QUATERNION in tag.element.attrib and ('rpy' in tag.element.attrib or not quaternions):
        raise tag.error('xyz and rpy; quat_xyzw in the place of rpy is of version 1.1, which `robot` has to state',
                        _QUATERNION)
    tag.leaf([], ['xyz', 'rpy', *([_QUATERNION] if quaternions else [])])
    xyz = tag.numbers('xyz', 3, -_LENGTH, _LENGTH, 'm') if 'xyz' in tag.element.attrib else (0.0, 0.0, 0.0)
    return np.array(xyz), euler2mat(*rpy_angles(tag), 'sxyz')


def dampers(parts: dict[str, dict[str, Tag]]) -> tuple[dict[str, Coordinate], dict[str, Spring]]:
    """Viscous friction of the joints."""
    damping: dict[str, float] = {}
    for name, joint in parts.items():
        if 'dynamics' in joint:
            tag = joint['dynamics']
            tag.leaf([], ['damping', 'friction'])
            if tag.number('friction', 0.0, _DAMPING, ''):
                raise tag.error('0: a mechanism has no dry friction', tag.text('friction'), 'friction')
            damping[name] = tag.number('damping', 0.0, _DAMPING, 'N m s/rad or N s/m')
    springs = {name: Spring(name, None, name, Scalar(0.0), Scalar(0.0), Scalar(value, key=f'springs.{name}.damping'))
               for name, value in damping.items() if value > 0.0}
    return {name: Coordinate(name, 'joint', joint=name) for name in springs}, springs


def motor_of(tag: Tag, parts: Mapping[str, Tag]) -> Motor:
    """Effort, damping and friction of a joint."""
    limit, dynamics = parts.get('limit'), parts.get('dynamics')
    effort = max(limit.number('effort', -_ANY, _ANY, 'N m or N'), 0.0) if limit else 0.0     # some write -1 for none
    damping, friction = (dynamics.number(key, 0.0, _DAMPING, '') if dynamics else 0.0
                         for key in ('damping', 'friction'))
    return Motor(tag.text('name'), effort, damping, friction)


def number_vector(values: tuple[float, ...] | np.ndarray, key: str = '') -> Vector:
    """Numbers with the keys by which they can be made free parameters; '' for those that must stay."""
    return tuple(Scalar(float(value), key=f'{key}[{index}]' if key else '') for index, value in enumerate(values))
