# SPDX-License-Identifier: Apache-2.0
"""Frames of a machine's bodies and of its load in numbers: what TF, poses and wrenches are made of.

``joint_tree``: the bodies as a tree of joints from the ground outwards, as robot models have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import casadi as ca
import numpy as np

from ..compiled import Kernel
from ..description.basics import GROUND
from ..description.model import MechanismDescription
from .hanging import down, hook
from .machine import Machine

LOAD = ''       # stands for the load where bodies are named: no body is called so


def joint_tree(description: MechanismDescription) -> dict[str, tuple[str, str]]:
    """Of each body the body before it and the joint between them, from the ground outwards.

    Grown in the order of the file; a joint that closes a loop is not in it. A body that no joint reaches, except for a
    rod of constant length, hangs on the ground, its joint is ''.
    """
    found: dict[str, tuple[str, str]] = {}
    waiting = [joint for joint in description.joints.values() if joint.type != 'distance']
    while len(found) < len(description.bodies):
        known = {GROUND, *found}
        joint = next((j for j in waiting if (j.parent.body in known) != (j.child.body in known)), None)
        if joint is None:
            body = next(name for name in description.bodies if name not in found)
            found[body] = GROUND, ''
            continue
        near, far = joint.parent.body, joint.child.body
        if far in known:
            near, far = far, near
        found[far] = near, joint.name
    return found


def chain(description: MechanismDescription, body: str) -> tuple[str, ...]:
    """Joints between the ground and a body, from the ground outwards; '' stands for none."""
    tree, joints = joint_tree(description), []
    while body != GROUND:
        body, joint = tree[body]
        joints.append(joint)
    return tuple(reversed(joints))


class Transform(NamedTuple):
    """Pose of the frame ``child`` in the frame ``parent``: ``translation`` (3,), m, unit ``quaternion`` (4,) w, x, y,
    z with w >= 0."""

    parent: str
    child: str
    translation: np.ndarray
    quaternion: np.ndarray


class LoadPose(NamedTuple):
    """Frame of the load in the machine's frame: ``place`` (3,), m, ``rotation`` (3, 3); ``gravity`` (3,), m/s^2, along
    the axes of the load's frame. ``jacobian`` (6, g + s): derivatives of the place, m, and of small turns about the
    machine's axes, rad, by the g independent coordinates and the s components of a swing."""

    place: np.ndarray
    rotation: np.ndarray
    gravity: np.ndarray
    jacobian: np.ndarray


class MachineFrames:
    """Frames of a machine, at the nominal numbers of its file.

    ``bodies`` (b,) their names; ``parents`` (b,) the bodies before them in the tree of joints, 'ground' for the
    machine's frame. A rigid load has the axes of its body, and its origin at the centre that the file gives; one that
    hangs has the axes of the machine's frame, as nothing is known of its attitude. A mechanism in a plane lies in x and
    y.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine, tree = machine, joint_tree(machine.description)
        self.bodies = tuple(machine.description.bodies)
        self.parents = tuple(tree[body][0] for body in self.bodies)
        payload = machine.description.payload
        self.load_parent = None if payload is None else GROUND if payload.hanging is not None else payload.body
        self._before = [len(self.bodies) if name == GROUND else self.bodies.index(name) for name in self.parents]
        system, frames = machine.system, [machine.system.frames[name] for name in self.bodies]
        self._all = Kernel(ca.Function('mbse_frames', [system.q, system.values.symbol], [
            ca.horzcat(*(_space(frame.origin) for frame in frames)).T,
            ca.vertcat(*(turned(frame.rotation) for frame in frames))], {'cse': True}), 'vm')
        self._load = None if payload is None else _load_kernel(machine)

    def transforms(self, q: np.ndarray) -> tuple[Transform, ...]:
        """All bodies, each in the frame of its parent, at coordinates q (n,) that satisfy the constraints."""
        from transforms3d.quaternions import mat2quat  # here: slow to import
        places, rotations = self.poses(q)
        places, rotations = np.vstack([places, np.zeros(3)]), np.concatenate([rotations, np.eye(3)[None]])
        into = rotations[self._before].transpose(0, 2, 1)
        offsets = np.einsum('bij,bj->bi', into, places[:-1] - places[self._before])
        return tuple(Transform(parent, body, offset, mat2quat(turn)) for parent, body, offset, turn in zip(
            self.parents, self.bodies, offsets, into @ rotations[:-1]))

    def poses(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Origins (b, 3), m, and rotations (b, 3, 3) of the bodies' frames in the machine's frame."""
        places, rotations = self._all(q, self._numbers({}))
        return places, rotations.reshape(-1, 3, 3)

    def load(self, q: np.ndarray, base: Mapping[str, float] | None = None, swing: np.ndarray | None = None) -> LoadPose:
        """Where the load is; raises DescriptionError where the machine carries none.

        ``base``: measured 'roll' and 'pitch' of the machine's frame, rad; what is not measured is the file's.
        ``swing`` (s,): components of the unit vector from the hook to a load that hangs, along ``machine.swings``; by
        default it hangs still.
        """
        kernel = _load_kernel(self.machine) if self._load is None else self._load       # raises without a load
        numbers = self._numbers({f'base.{axis}': angle for axis, angle in (base or {}).items()})
        count = len(self.machine.swings)
        place, rotation, gravity, jacobian = kernel(q, np.zeros(count) if swing is None else swing, numbers)
        return LoadPose(place, rotation, gravity, jacobian.reshape(6, -1))

    def load_transform(self, load: LoadPose, q: np.ndarray, parent: str | None = None) -> Transform:
        """The load's frame, ``child`` '', in that of a body or 'ground', by default of ``load_parent``."""
        from transforms3d.quaternions import mat2quat  # here: slow to import
        parent = (self.load_parent or GROUND) if parent is None else parent
        place, rotation = np.zeros(3), np.eye(3)
        if parent != GROUND:
            places, rotations = self.poses(q)
            place, rotation = places[self.bodies.index(parent)], rotations[self.bodies.index(parent)]
        return Transform(parent, LOAD, rotation.T @ (load.place - place), mat2quat(rotation.T @ load.rotation))

    def _numbers(self, states: Mapping[str, float]) -> np.ndarray:
        return self.machine.parameters.numbers(self.machine.parameters.mean, states)


def _load_kernel(machine: Machine) -> Kernel:
    """Of coordinates, components of the swing and all numbers: the entries of a LoadPose."""
    system, payload = machine.system, machine.payload_data
    swing, frame = ca.SX.sym('swing', len(machine.swings)), system.frames[payload.body]
    place, rotation = _space(hook(payload, system)), turned(frame.rotation)
    turning = ca.jacobian(frame.omega, system.qd) @ machine.reduced.R
    turns = rotation @ turning if machine.description.dimension == 3 else ca.vertcat(
        ca.SX.zeros(2, turning.shape[1]), turning)
    if payload.hanging is not None:
        axes = ca.DM(np.eye(machine.description.dimension)[['xyz'.index(axis) for axis in machine.swings]])
        upright = ca.sqrt(ca.fmax(1 - ca.sumsqr(swing), 0))
        rod = axes.T @ swing + upright * ca.DM(down(machine.description))
        place = place + _space(system.values(payload.hanging) * rod)
        rotation, turns = ca.SX.eye(3), ca.SX.zeros(turns.shape)
    moves = ca.horzcat(ca.jacobian(place, system.q) @ machine.reduced.R, ca.jacobian(place, swing))
    jacobian = ca.vertcat(moves, ca.horzcat(turns, ca.SX.zeros(3, swing.numel())))
    return Kernel(ca.Function('mbse_load_frame', [system.q, swing, system.values.symbol], [
        place, rotation, rotation.T @ _space(system.gravity), jacobian], {'cse': True}), 'vm')


def _space(vector: ca.SX) -> ca.SX:
    """A vector (3,) of one (2,) or (3,)."""
    return ca.vertcat(vector, ca.SX.zeros(3 - vector.numel()))


def turned(rotation: ca.SX) -> ca.SX:
    """A rotation (3, 3) of one (2, 2), about z, or (3, 3)."""
    return ca.diagcat(rotation, ca.SX.eye(3 - rotation.shape[0])) if rotation.shape[0] < 3 else rotation
