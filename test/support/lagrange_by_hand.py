# SPDX-License-Identifier: Apache-2.0
"""Frames, energies and equations of motion of a tree of joints by Lagrange, in NumPy, apart from the package's code."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import numpy as np
import yaml
from complex_step import derivative
from scipy.linalg import expm
from transforms3d.euler import euler2mat

from mbse_ros.description.load import parse_mechanism
from mbse_ros.description.model import GROUND, MechanismDescription

KINDS = {'base': 'revolute', 'mount': 'fixed', 'slide': 'prismatic', 'wrist': 'revolute'}
FRICTION = dict.fromkeys(('coulomb', 'static', 'viscous'), 0.0) | {'transition_velocity': 0.005}


def spatial_tree(seed: int = 0) -> MechanismDescription:
    """Four bodies in a chain: revolute, fixed, prismatic, revolute joints about random axes, gravity aslant."""
    return parse_mechanism(yaml.safe_dump(_tree(np.random.default_rng(seed))), 'tree')


def spatial_machine(seed: int = 0) -> MechanismDescription:
    """The same with a cylinder for each joint that moves, and a payload."""
    tree = _tree(np.random.default_rng(seed))
    moving = [name for name in KINDS if KINDS[name] != 'fixed']
    tree['points']['eye'] = {'fixed': [0.1, -2.0, 0.3]}
    tree['cylinders'] = {name: {'base': 'ground.eye', 'rod_eye': f'{name}.eye', 'bore': 0.1, 'rod': 0.05,
                                'closed_length': 0.01, 'stroke': 9.0, 'friction': FRICTION} for name in moving}
    volumes = {f'{name}_{side}': {'chambers': [f'{name}.{side}'], 'cylinder_bulk_modulus': 2e11,
                                  'hoses': [{'volume': 1e-4, 'bulk_modulus': 7e8}]}
               for name in moving for side in ('piston', 'rod')}
    valves = {name: {'kind': 'unknown', 'ports': {'a': f'{name}_piston', 'b': f'{name}_rod'}} for name in moving}
    tree |= {'hydraulics': {'oil_bulk_modulus': 1.5e9, 'volumes': volumes, 'valves': valves},
             'payload': {'point': 'wrist.outer', 'limits': [0, 100]}, 'independent': moving,
             'sensors': {name: {'kind': 'stroke', 'cylinder': name, 'stddev': 1e-3} for name in moving}}
    tree['joints'] = {f'{name}_joint': joint for name, joint in tree['joints'].items()}
    return parse_mechanism(yaml.safe_dump(tree), 'machine')


def _tree(rng: np.random.Generator) -> dict:
    number = lambda n: [float(v) for v in rng.uniform(-0.6, 0.6, n)]     # noqa: E731
    parents = ['ground', *list(KINDS)[:-1]]
    bodies = {}
    for name in KINDS:
        root = rng.normal(size=(3, 3))
        tensor = np.trace(root @ root.T) * np.eye(3) - root @ root.T      # of a real body
        bodies[name] = {
            'mass': float(rng.uniform(1, 20)), 'center_of_mass': number(3),
            'inertia': {k: float(tensor[i]) for k, i in {'xx': (0, 0), 'yy': (1, 1), 'zz': (2, 2), 'xy': (0, 1),
                                                         'xz': (0, 2), 'yz': (1, 2)}.items()},
            'points': {'inner': number(3), 'outer': number(3), 'eye': number(3)}}
    joints = {name: {'type': kind, 'parent': f'{parent}.outer', 'child': f'{name}.inner', 'rpy': number(3),
                     **({} if kind == 'fixed' else {'axis': number(3), 'start': float(rng.uniform(-0.3, 0.3))})}
              for (name, kind), parent in zip(KINDS.items(), parents)}
    return {'format': 'mbse/machine/2', 'name': 'tree', 'dimension': 3, 'gravity': [0.7, -1.3, -9.5],
            'coordinates': 'relative', 'points': {'outer': {'fixed': number(3)}}, 'bodies': bodies, 'joints': joints}


def numbers(vector: tuple) -> np.ndarray:
    """The numbers of a vector of quantities."""
    return np.array([item.value for item in vector])


def cross(a: np.ndarray) -> np.ndarray:
    """Matrix of the cross product by ``a``."""
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


class Lagrange:
    """Kinetic and potential energy of a spatial tree from its frames and geometric Jacobians; complex coordinates
    allowed. Joints are written from the near body; one that closes a loop is left out of the frames."""

    def __init__(self, description: MechanismDescription, payload: float = 0.0) -> None:
        self.d, self.payload = description, payload
        self.moving = [name for name, joint in description.joints.items() if joint.type != 'fixed']

    def at(self, joints: Mapping[str, float]) -> dict:
        """Frames at joint coordinates by name."""
        return self.frames(np.array([joints.get(name, 0.0) for name in self.moving]))

    def point(self, frames: dict, name: str) -> np.ndarray:
        """Position of 'body.point'."""
        return self.place(*name.split('.'), frames)

    def place(self, name: str, point: str, frames: dict) -> np.ndarray:
        """Position of a point of a body (or of the ground)."""
        points = self.d.ground if name == GROUND else self.d.bodies[name].points
        rotation, origin = frames[name][:2]
        return origin + rotation @ numbers(points[point])

    def piston(self, frames: dict, name: str) -> float:
        """Position of a cylinder's piston, m."""
        cylinder = self.d.cylinders[name]
        ends = [self.point(frames, str(ref)) for ref in (cylinder.base, cylinder.rod_eye)]
        return float(np.linalg.norm(np.real(ends[1] - ends[0]))) - cylinder.closed_length.value

    def frames(self, q: np.ndarray) -> dict:
        """By body: rotation, origin, and its moving joints as (index, type, axis, anchor) in the machine frame."""
        found = {GROUND: (np.eye(3), np.zeros(3), [])}
        waiting = list(self.d.joints.items())
        while waiting:
            name, joint = waiting.pop(0)
            if joint.parent.body not in found:
                waiting.append((name, joint))
                continue
            if joint.child.body in found:
                continue
            rotation, _, chain = found[joint.parent.body]
            anchor = self.place(joint.parent.body, joint.parent.point, found)
            turned = euler2mat(*(numbers(joint.rpy) if joint.rpy else np.zeros(3)), 'sxyz')
            if joint.type != 'fixed':
                k, axis = self.moving.index(name), np.array(joint.axis)
                chain = [*chain, (k, joint.type, rotation @ axis, anchor)]
                if joint.type == 'revolute':
                    turned = expm(cross(axis) * q[k]) @ turned
                else:
                    anchor = anchor + rotation @ axis * q[k]
            rotation = rotation @ turned
            inner = numbers(self.d.bodies[joint.child.body].points[joint.child.point])
            found[joint.child.body] = (rotation, anchor - rotation @ inner, chain)
        return found

    def jacobians(self, place: np.ndarray, chain: list) -> tuple[np.ndarray, np.ndarray]:
        """Velocity of a place and angular velocity of its body, per joint rate (3, joints)."""
        J_v, J_w = np.zeros((3, len(self.moving)), dtype=complex), np.zeros((3, len(self.moving)), dtype=complex)
        for k, kind, axis, anchor in chain:
            J_v[:, k] = np.cross(axis, place - anchor) if kind == 'revolute' else axis
            J_w[:, k] = axis if kind == 'revolute' else 0
        return J_v, J_w

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        """M (joints, joints)."""
        frames, M = self.frames(q), 0
        for name, body in self.d.bodies.items():
            rotation, origin, chain = frames[name]
            J_v, J_w = self.jacobians(origin + rotation @ numbers(body.center_of_mass), chain)
            xx, yy, zz, xy, xz, yz = numbers(body.inertia)
            tensor = rotation @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ rotation.T
            M = M + body.mass.value * J_v.T @ J_v + J_w.T @ tensor @ J_w
        for mass, place, chain in self._loads(frames):
            J_v, _ = self.jacobians(place, chain)
            M = M + mass * J_v.T @ J_v
        return M

    def potential(self, q: np.ndarray) -> complex:
        """Potential energy of gravity, J."""
        frames, g = self.frames(q), numbers(self.d.gravity)
        moments = [body.mass.value * (frames[name][1] + frames[name][0] @ numbers(body.center_of_mass))
                   for name, body in self.d.bodies.items()]
        moments += [mass * place for mass, place, _ in self._loads(frames)]
        return -g @ reduce(np.add, moments)

    def _loads(self, frames: dict) -> list[tuple[float, np.ndarray, list]]:
        """The payload as mass, place and joints."""
        if self.d.payload is None:
            return []
        rotation, origin, chain = frames[self.d.payload.body]
        return [(self.payload, origin + rotation @ numbers(self.d.payload.center), chain)]

    def forces(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Q of ``M qdd = Q``: gravity and velocity forces by Lagrange's equations."""
        dM = derivative(self.mass_matrix, q)                                      # (joints, joints, joints)
        gravity = -derivative(lambda x: np.atleast_1d(self.potential(x)), q)[0]
        return gravity - np.einsum('ijk,k,j->i', dM, qd, qd) + 0.5 * np.einsum('ijk,i,j->k', dM, qd, qd)
