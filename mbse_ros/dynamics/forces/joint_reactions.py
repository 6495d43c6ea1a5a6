# SPDX-License-Identifier: Apache-2.0
"""Forces of actuators and joints from the balance of each body, the same whatever coordinates gave the motion.

The motion is carried over to reference-point coordinates, where every joint has rows of its own (natural coordinates
merge the points of revolute joints, relative ones have no rows for the joints of the tree): ``J' lam = Q - M qdd``
there is the balance of Newton and Euler, body by body.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from ...compiled import Kernel
from ...description.basics import GROUND
from ...description.model import Coordinate, Joint
from ...errors import SettingError
from ...mechanism.assembly import MechanismSystem, build_mechanism
from ...mechanism.inertia import center_of_mass
from ..formulations.decomposition import Decomposition, decompose
from ..model import Model

UNDETERMINED = 1e-6     # share of a free set of multipliers in a component from which it is not determined
COMPONENTS = {2: ('fx', 'fy', 'mz'), 3: ('fx', 'fy', 'fz', 'mx', 'my', 'mz')}


@dataclass(frozen=True)
class BodyForces:
    """Forces at one instant: ``forces`` (a,) of the actuators, ``wrenches`` (j, 3 | 6) of the joints; NaN where the
    constraints are redundant and the balance leaves a component open."""

    forces: np.ndarray
    wrenches: np.ndarray


class BodyBalance:
    """Solver of the balances for a model.

    ``actuators`` (a,): the drivers, then the independent coordinates, whose motion is prescribed from outside.
    Raises SettingError for an independent coordinate that the description does not name.
    """

    def __init__(self, model: Model, backend: str = 'vm') -> None:
        self._model, own = model, model.system
        self._system = _reference_system(model)
        self._bodies = list(own.description.bodies)
        self.joints = tuple(own.description.joints.values())
        self.actuators = (*own.description.drivers, *model.independent)
        self._driver_rows = [self._system.rows.index(f'drivers.{name}') for name in own.description.drivers]
        self._joint_rows = [self._rows_of(joint) for joint in self.joints]
        self._order = [self._system.values.names.index(name) for name in own.values.names]
        self._motion = Kernel(_body_motion(own), backend)
        self._terms = Kernel(_balance_terms(self._system, model.independent), backend)

    def solve(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, u: np.ndarray, t: float) -> BodyForces:
        """Forces for a motion (n,) of the model's coordinates, inputs (k,), time, s."""
        p = np.zeros(len(self._order))
        p[self._order] = self._model.parameters
        bodies, ends = self._motion(q, qd, qdd, self._model.parameters)
        size = len(self._bodies)
        bodies = bodies.reshape(size, -1)
        states = self._carry(bodies, q, qd, qdd)
        M, Q, J = self._terms(states[0], states[1], u, [t], p)
        n = len(states[0])
        J, load = J.reshape(-1, n), Q - M.reshape(n, n) @ states[2]
        parts = decompose(J)
        lam = parts.solve_transposed(load)
        actuated = [*self._driver_rows, *range(len(J) - len(self._model.independent), len(J))]
        joints = zip(self.joints, self._joint_rows, ends.reshape(len(self.joints), -1))
        maps = [-np.eye(len(J))[actuated], *(self._wrench_map(J, states[0], *of_joint) for of_joint in joints)]
        found = [_determined(item, lam, parts) for item in maps]
        return BodyForces(found[0], np.array(found[1:]).reshape(len(self.joints), -1))

    def _rows_of(self, joint: Joint) -> list[int]:
        """Rows of a joint; a body or a named coordinate may have the same name."""
        system, ends = self._system, (joint.parent.body, joint.child.body)
        return [i for i, row in enumerate(system.rows)
                if system.owners[i] == joint.name and system.row_bodies[i] == ends and '.' in row]

    def _carry(self, bodies: np.ndarray, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> list[np.ndarray]:
        """Reference-point coordinates, their velocities and accelerations."""
        planar = self._system.description.dimension == 2
        carried = np.array([(_planar if planar else _spatial)(body) for body in bodies])
        states = []
        for k, own in enumerate((q, qd, qdd)):
            full = np.zeros(self._system.n)
            full[:carried[:, k].size] = carried[:, k].ravel()
            for i, name in enumerate(self._system.names):
                if name in self._system.description.coordinates:
                    full[i] = own[self._model.names.index(name)]
            states.append(full)
        return states

    def _wrench_map(self, J: np.ndarray, q: np.ndarray, joint: Joint, rows: Sequence[int],
                    place: np.ndarray) -> np.ndarray:
        """Wrench (3 | 6) on the joint's child about its point, at ``place``, as a map of the multipliers."""
        child, sign = (joint.child.body, -1.0) if joint.child.body != GROUND else (joint.parent.body, 1.0)
        width = 3 if len(place) == 2 else 7
        first = self._bodies.index(child) * width
        own = slice(first, first + width)
        full = np.zeros((3 if width == 3 else 6, len(J)))
        if rows:
            full[:, rows] = sign * _wrench(J[rows, own].T, q[own], place)
        return full


def _determined(wrench: np.ndarray, lam: np.ndarray, parts: Decomposition) -> np.ndarray:
    """Values of a map of the multipliers, NaN where multipliers that balance to nothing change them."""
    scaled = wrench / parts.sizes
    open_ = np.linalg.norm(scaled @ parts.left_null, axis=1) > UNDETERMINED * np.maximum(
        1.0, np.linalg.norm(scaled, axis=1))
    return np.where(open_, np.nan, wrench @ lam)


def _wrench(forces: np.ndarray, q: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Force and moment about a place from generalised forces (3 | 7, k) on a body's reference-point coordinates."""
    from transforms3d.quaternions import quat2mat  # here: slow to import
    if len(place) == 2:
        arm = q[:2] - place
        return np.vstack([forces[:2], forces[2] + arm[0] * forces[1] - arm[1] * forces[0]])
    force, moment = forces[:3], quat2mat(q[3:]) @ (_euler_map(q[3:]) @ forces[3:]) / 2
    return np.vstack([force, moment + np.cross(q[:3] - place, force, axisb=0, axisc=0)])


def _planar(body: np.ndarray) -> np.ndarray:
    """``(x, y, angle)`` and rates (3, 3) from centre, velocity, acceleration, spin, its rate, rotation."""
    centre, velocity, acceleration, (spin, rate), rotation = np.split(body, [2, 4, 6, 8])
    return np.array([[*centre, np.arctan2(rotation[2], rotation[0])], [*velocity, spin], [*acceleration, rate]])


def _spatial(body: np.ndarray) -> np.ndarray:
    """``(x, y, z, e)`` and rates (3, 7); omega along the body's axes, ``ed = G' omega / 2``."""
    from transforms3d.quaternions import mat2quat  # here: slow to import
    centre, velocity, acceleration, omega, rate, rotation = np.split(body, [3, 6, 9, 12, 15])
    e = mat2quat(rotation.reshape(3, 3))
    G = _euler_map(e)
    return np.array([[*centre, *e], [*velocity, *(G.T @ omega / 2)],
                     [*acceleration, *(G.T @ rate / 2)]])       # except for a share along e, which has no inertia


def _euler_map(e: np.ndarray) -> np.ndarray:
    """``G`` (3, 4) of Euler parameters: ``omega = 2 G ed`` along the body's axes."""
    e0, x, y, z = e
    return np.array([[-x, e0, z, -y], [-y, -z, e0, x], [-z, y, -x, e0]])


def _reference_system(model: Model) -> MechanismSystem:
    """The same mechanism in reference-point coordinates, with names for joint coordinates that are independent."""
    description = model.description
    coordinates = dict(description.coordinates)
    for name in model.independent:
        if name in coordinates:
            continue
        if name not in description.joints:
            raise SettingError('independent', name, 'a coordinate that the file names (named: ...), so that it is '
                               'known on which body the actuator acts')
        coordinates[name] = Coordinate(name, 'joint', joint=name)
    return build_mechanism(replace(description, coordinates=coordinates), 'reference_point', (),
                           model.system.values.names)


def _body_motion(system: MechanismSystem) -> ca.Function:
    """Function ``(q, qd, qdd, p)`` -> centre, velocity, acceleration, spin, its rate and rotation of each body, row by
    row, and the place of each joint's child."""
    q, qd, qdd = system.q, system.qd, ca.SX.sym('qdd', system.n)

    def rate(expression: ca.SX) -> ca.SX:
        return ca.jtimes(expression, q, qd) + ca.jtimes(expression, qd, qdd)

    rows = []
    for name, body in system.description.bodies.items():
        frame = system.frames[name]
        centre = frame.at(center_of_mass(body, system.values))
        velocity = ca.jtimes(centre, q, qd)
        rows.append(ca.vertcat(centre, velocity, rate(velocity), frame.omega, rate(frame.omega),
                               ca.vec(frame.rotation.T)).T)
    places = [system.points[str(joint.child)].T for joint in system.description.joints.values()]
    return ca.Function('mbse_bodies', [q, qd, qdd, system.values.symbol],
                       [ca.densify(ca.vertcat(*rows)), ca.densify(ca.vertcat(*places))], {'cse': True})


def _balance_terms(system: MechanismSystem, prescribed: Sequence[str]) -> ca.Function:
    """Function ``(q, qd, u, t, p) -> (M, Q, J)`` with a row for each coordinate that is prescribed from outside."""
    J = ca.jacobian(system.Phi, system.q)
    if prescribed:
        J = ca.vertcat(J, ca.SX.eye(system.n)[system.indices(prescribed), :])
    return ca.Function('mbse_balance', [system.q, system.qd, system.u, system.t, system.values.symbol],
                       [system.M, system.Q, ca.densify(J)], {'cse': True})
