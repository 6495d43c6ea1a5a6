# SPDX-License-Identifier: Apache-2.0
"""The guess of the start: where the bodies' frames are, given by the file or found by walking the joints."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ..errors import DescriptionError
from .basics import GROUND, PointRef, Vector
from .language.references import References, nominal
from .model import Body, Joint

Pose = tuple[np.ndarray, np.ndarray]   # rotation (d, d), position (d,) m


@dataclass(frozen=True)
class FrameGuess:
    """What the file itself says of a body's frame: ``anchor`` is a point in the frame and its place outside, m."""

    position: np.ndarray | None = None
    rotation: np.ndarray | None = None
    anchor: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def placed(self) -> bool:
        """Whether the body needs no joint to be found."""
        return self.position is not None or self.anchor is not None


def axis_rotation(axis: tuple[float, ...], angle: float) -> np.ndarray:
    """(3, 3) about a unit axis, rad."""
    from transforms3d.axangles import axangle2mat  # here: slow to import
    return axangle2mat(axis, angle, is_normalized=True)


def planar_rotation(angle: float) -> np.ndarray:
    """(2, 2), counter-clockwise, rad."""
    return np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])


def rpy_rotation(rpy: tuple[float, ...]) -> np.ndarray:
    """(2, 2) of one angle, (3, 3) Rz(yaw) Ry(pitch) Rx(roll) of three, rad."""
    if len(rpy) < 3:
        return planar_rotation(sum(rpy))
    roll, pitch, yaw = rpy
    return (axis_rotation((0.0, 0.0, 1.0), yaw) @ axis_rotation((0.0, 1.0, 0.0), pitch)
            @ axis_rotation((1.0, 0.0, 0.0), roll))


def place_bodies(file: str, references: References, guesses: Mapping[str, FrameGuess],
                 starts: Mapping[str, float]) -> dict[str, Body]:
    """The bodies with position and rotation; ``starts`` are the joints' own (rad or m).

    Raises DescriptionError for a body that neither the file places nor a joint leads to.
    """
    size = references.dimension
    level, origin = np.eye(size), (np.zeros(size), np.zeros(size))      # for what the file leaves out
    poses: dict[str, Pose] = {GROUND: (level, origin[1])}
    waiting = [name for name in references.bodies if name in guesses]
    poses.update((name, (np.array(body.rotation), np.array(body.position)))
                 for name, body in references.bodies.items() if name not in guesses)
    while waiting:
        name = next((name for name in waiting if guesses[name].placed and guesses[name].rotation is not None), '')
        pose = _settled(guesses[name], origin, level) if name else None
        if not name:
            name, pose = _walked(references, guesses, starts, poses, waiting)
        if not name:
            name = next((name for name in waiting if guesses[name].placed), '')
            pose = _settled(guesses[name], origin, level) if name else None
        if pose is None:
            raise DescriptionError(file, f'bodies.{waiting[0]}', 'a body that no joint leads to',
                                   '`position` (a guess of its start; a body that nothing ties to the ground moves'
                                   ' freely), or a joint that leads to it')
        poses[name] = pose
        waiting.remove(name)
    return {name: replace(body, position=_floats(poses[name][1]), rotation=tuple(map(_floats, poses[name][0])))
            for name, body in references.bodies.items()}


def _walked(references: References, guesses: Mapping[str, FrameGuess], starts: Mapping[str, float],
            poses: Mapping[str, Pose], waiting: list[str]) -> tuple[str, Pose | None]:
    """The first waiting body that a joint ties to a placed one."""
    for joint in references.joints.values():
        ends = joint.parent.body, joint.child.body
        undetermined = joint.type == 'distance' or references.same_place(joint.parent, joint.child)
        if undetermined or sum(end in poses for end in ends) != 1:
            continue
        forward = ends[0] in poses
        name = ends[forward]
        if name in waiting:
            return name, _across(references, joint, guesses[name], starts.get(joint.name, 0.0), poses, forward)
    return '', None


def _across(references: References, joint: Joint, guess: FrameGuess, start: float, poses: Mapping[str, Pose],
            forward: bool) -> Pose:
    """Pose of the body at the other end of a joint."""
    turned, moved = _joint_motion(joint, start, references.planar)
    here, there = (joint.parent, joint.child) if forward else (joint.child, joint.parent)
    rotation, position = poses[here.body]
    other = guess.rotation if guess.rotation is not None else rotation @ (turned if forward else turned.T)
    across = (rotation if forward else other) @ moved
    place = position + rotation @ _local(references, here) + (across if forward else -across)
    return _settled(guess, (_local(references, there), place), other)


def _joint_motion(joint: Joint, start: float, planar: bool) -> tuple[np.ndarray, np.ndarray]:
    """Rotation of the child in the parent and displacement (in the parent's frame), at the start."""
    fixed = rpy_rotation(nominal(joint.rpy)) if joint.rpy else np.eye(2 if planar else 3)
    if joint.type == 'revolute':
        return (planar_rotation(start) if planar else axis_rotation(joint.axis, start)) @ fixed, np.zeros(len(fixed))
    slides = joint.type in ('prismatic', 'slot', 'cylindrical')
    return fixed, start * np.array(joint.axis) if slides else np.zeros(len(fixed))


def _settled(guess: FrameGuess, anchor: tuple[np.ndarray, np.ndarray], rotation: np.ndarray) -> Pose:
    """Pose by what the file says first, by the joint's point second."""
    rotation = rotation if guess.rotation is None else guess.rotation
    if guess.position is not None:
        return rotation, guess.position
    local, place = guess.anchor or anchor
    return rotation, place - rotation @ local


def _local(references: References, ref: PointRef) -> np.ndarray:
    points: dict[str, Vector] = references.ground if ref.body == GROUND else references.bodies[ref.body].points
    return np.array(nominal(points[ref.point]))


def _floats(vector: np.ndarray) -> tuple[float, ...]:
    return tuple(float(item) + 0.0 for item in vector)
