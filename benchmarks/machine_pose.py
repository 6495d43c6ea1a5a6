# SPDX-License-Identifier: Apache-2.0
"""Poses and static balance of a machine file, by themselves: joint angles through the tree, loops by Gauss-Newton.

The forces at rest follow from virtual work: the force along a cylinder is the slope of the potential energy over its
length, everything else held. Cylinders are uniform slender rods: the barrel of ``closed`` length from the pin of the
base, the rod of the same length back from its eye.
"""

from __future__ import annotations

import numpy as np
from machine_reader import GROUND, Machine

STEP = 1e-3     # m, of the slope; five points, so its error is of the fourth order


def turn(axis: np.ndarray, angle: float) -> np.ndarray:
    """Rotation matrix (3, 3) about a unit vector, rad."""
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K


def from_rpy(rpy: np.ndarray) -> np.ndarray:
    """Rz(yaw) Ry(pitch) Rx(roll)."""
    E = np.eye(3)
    return turn(E[2], rpy[2]) @ turn(E[1], rpy[1]) @ turn(E[0], rpy[0])


def tree(machine: Machine) -> list[str]:
    """Joints with a coordinate, in the order of the file."""
    return [name for name, joint in machine.joints.items() if not joint.loop and joint.kind != 'fixed']


def frames(machine: Machine, q: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Rotation (3, 3) and origin (3,), m, of each body at joint angles q (n,), rad, ordered as in ``tree``."""
    out = {GROUND: (np.eye(3), np.zeros(3))}
    angles = dict(zip(tree(machine), q))
    for name, joint in machine.joints.items():
        if joint.loop:
            continue
        R0, r0 = out[joint.parent[0]]
        R = R0 @ turn(joint.axis, angles.get(name, 0.0)) @ from_rpy(joint.rpy)
        out[joint.child[0]] = R, r0 + R0 @ machine.point(joint.parent) - R @ machine.point(joint.child)
    return out


def place(machine: Machine, pose: dict, point: tuple[str, str]) -> np.ndarray:
    """Position (3,), m, of a point (body, name)."""
    R, r = pose[point[0]]
    return r + R @ machine.point(point)


def lengths(machine: Machine, q: np.ndarray) -> np.ndarray:
    """Pin to pin, m, of each cylinder."""
    pose = frames(machine, q)
    return np.array([np.linalg.norm(place(machine, pose, c.eye) - place(machine, pose, c.base))
                     for c in machine.cylinders.values()])


def assemble(machine: Machine, targets: dict[str, float], q: np.ndarray | None = None) -> np.ndarray:
    """Joint angles at which the loops close and the targets hold: piston positions, m, or joint angles, rad.

    Gauss-Newton from ``q``, or from the starts of the file, with a derivative by differences.
    """
    names = tree(machine)

    def residual(q: np.ndarray) -> np.ndarray:
        pose, angle, length = frames(machine, q), dict(zip(names, q)), lengths(machine, q)
        gaps = [place(machine, pose, j.child) - place(machine, pose, j.parent)
                for j in machine.joints.values() if j.loop]
        pistons = {name: length[i] - c.closed for i, (name, c) in enumerate(machine.cylinders.items())}
        wanted = [(pistons[name] if name in pistons else angle[name]) - value for name, value in targets.items()]
        return np.concatenate([*gaps, wanted])

    q = np.array([machine.joints[name].start for name in names]) if q is None else np.array(q, float)
    for _ in range(50):
        r = residual(q)
        J = np.array([(residual(q + 1e-6 * e) - residual(q - 1e-6 * e)) / 2e-6 for e in np.eye(len(q))]).T
        step = np.linalg.lstsq(J, -r, rcond=1e-9)[0]
        q = q + step * min(1.0, 0.3 / max(np.abs(step).max(), 1e-12))
        if np.abs(step).max() < 1e-13:
            break
    if np.abs(residual(q)).max() > 1e-9:
        raise ValueError(f'{machine.name}: no pose with {targets}; gap {np.abs(residual(q)).max():.3g}')
    return q


def masses(machine: Machine, q: np.ndarray, payload: float = 0.0) -> list[tuple[float, np.ndarray]]:
    """Every mass, kg, with the position of its centre (3,), m: bodies, load, barrels, rods."""
    pose = frames(machine, q)
    out = [(body.mass, pose[name][1] + pose[name][0] @ body.center) for name, body in machine.bodies.items()]
    R, r = pose[machine.payload[0]]
    out.append((payload, r + R @ machine.payload[1]))
    for c in machine.cylinders.values():
        base, eye = place(machine, pose, c.base), place(machine, pose, c.eye)
        half = (eye - base) / np.linalg.norm(eye - base) * c.closed / 2.0
        out += [(c.count * c.barrel_mass, base + half), (c.count * c.rod_mass, eye - half)]
    return out


def potential(machine: Machine, q: np.ndarray, payload: float = 0.0) -> float:
    """Potential energy of gravity, J."""
    return -float(sum(m * machine.gravity @ r for m, r in masses(machine, q, payload)))


def holding_forces(machine: Machine, targets: dict[str, float], payload: float = 0.0) -> dict[str, float]:
    """Force, N, with which each cylinder pushes at rest, by virtual work."""
    q0, forces = assemble(machine, targets), {}
    for name in machine.cylinders:
        energy = [potential(machine, assemble(machine, {**targets, name: targets[name] + k * STEP}, q0), payload)
                  for k in (-2, -1, 1, 2)]
        forces[name] = float(np.dot([1.0, -8.0, 8.0, -1.0], energy)) / (12.0 * STEP)
    return forces
