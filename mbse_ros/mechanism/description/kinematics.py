# SPDX-License-Identifier: Apache-2.0
"""Where the bodies are at given joint coordinates: numbers for the checks and the explanation, no model."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .model import GROUND, Joint, MachineDescription, PointRef, Vector

Frames = dict[str, tuple[np.ndarray, np.ndarray]]   # by body: rotation (3, 3) and origin (3,) m in the machine frame


def values(vector: Vector) -> np.ndarray:
    """A vector's numbers, (3,)."""
    return np.array([item.value for item in vector])


def axis_rotation(axis: tuple[float, float, float], angle: float) -> np.ndarray:
    """Rotation matrix (3, 3) about a unit axis (Rodrigues), angle in rad."""
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * cross @ cross


def rpy_rotation(rpy: Vector) -> np.ndarray:
    """Rotation matrix (3, 3) Rz(yaw) Ry(pitch) Rx(roll)."""
    roll, pitch, yaw = (axis_rotation(axis, item.value)
                        for axis, item in zip(((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)), rpy))
    return yaw @ pitch @ roll


def frames(machine: MachineDescription, coordinates: Mapping[str, float] | None = None) -> Frames:
    """Frames of all bodies; joints that `coordinates` (rad, m) leaves out stand at their start."""
    found: Frames = {GROUND: (np.eye(3), np.zeros(3))}
    waiting = list(machine.joints.values())
    while waiting:
        joint = next(item for item in waiting if item.parent.body in found)
        waiting.remove(joint)
        found[joint.child.body] = _child(machine, joint, found, (coordinates or {}).get(joint.name, joint.start))
    return found


def _child(machine: MachineDescription, joint: Joint, found: Frames,
           coordinate: float) -> tuple[np.ndarray, np.ndarray]:
    """Frame of the joint's child."""
    rotation, _ = found[joint.parent.body]
    place = point_position(machine, found, joint.parent)
    turned = rpy_rotation(joint.rpy)
    if joint.type == 'revolute':
        turned = axis_rotation(joint.axis, coordinate) @ turned
    elif joint.type == 'prismatic':
        place = place + rotation @ (coordinate * np.array(joint.axis))
    attitude = rotation @ turned
    return attitude, place - attitude @ values(machine.bodies[joint.child.body].points[joint.child.point])


def point_position(machine: MachineDescription, found: Frames, ref: PointRef) -> np.ndarray:
    """Position (3,) m of a point in the machine frame."""
    points = machine.ground_points if ref.body == GROUND else machine.bodies[ref.body].points
    rotation, origin = found[ref.body]
    return origin + rotation @ values(points[ref.point])


def cylinder_length(machine: MachineDescription, found: Frames, name: str) -> float:
    """Distance between the pins of a cylinder, m."""
    cylinder = machine.cylinders[name]
    return float(np.linalg.norm(point_position(machine, found, cylinder.rod_eye)
                                - point_position(machine, found, cylinder.base)))
