# SPDX-License-Identifier: Apache-2.0
"""Feed-forward: the joint torques and cylinder forces that hold a machine with its load in a pose, or move it.

``joint_forces``: torques about joints that do the same work as the forces of the cylinders.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import casadi as ca
import numpy as np

from ..compiled import Kernel
from ..description.sections.load_payload import MASS
from ..dynamics.forces.inertial_forces import inertial_forces
from ..errors import DescriptionError, SettingError, SingularConfigurationError
from .equations import check_single
from .frames import chain
from .machine import Machine

STILL = 1e-9        # derivative of pistons by a joint: no cylinder moves one that has less


def carrying_joints(machine: Machine) -> tuple[str, ...]:
    """Coordinates of the joints between the ground and the load, where these alone determine the position; else ().

    An excavator's swing, boom, arm and bucket joints, not those of its bucket linkage.
    """
    payload = machine.description.payload
    if payload is None:
        return ()
    fixed = [name for name, joint in machine.description.joints.items() if joint.type == 'fixed']
    names = [_coordinate(machine, name) for name in chain(machine.description, payload.body) if name not in fixed]
    return tuple(names) if '' not in names and len(names) == len(machine.coordinates) else ()


def joint_forces(machine: Machine, forces: ca.SX) -> tuple[tuple[str, ...], ca.SX]:
    """Names (k,) of the carrying joints that cylinders move, and the torques about them, N m, or forces along them, N
    (k,), that do the work of the cylinders' ``forces`` (cylinders,), N, in any motion: ``tau' dq = F' ds``.

    An expression of the mechanism's coordinates; not finite where the joints stop to determine the position. A joint
    that no cylinder moves is left out: its motor is not measured.
    """
    names = carrying_joints(machine)
    if not names:
        return (), ca.SX(0, 1)
    by_independent = machine.reduced.R[machine.system.indices(names), :]
    levers = ca.solve(by_independent.T, machine.piston_rates.T)      # (g, cylinders): ds/dq along the loops
    moved = _moved(machine, levers)
    return tuple(names[k] for k in moved), (levers @ forces)[moved]


def _coordinate(machine: Machine, joint: str) -> str:
    """Name of the coordinate of a joint; '' where it has none of its own."""
    own = [name for name, item in machine.description.coordinates.items()
           if item.kind == 'joint' and item.joint == joint and name in machine.model.names]
    return own[0] if own else joint if joint in machine.model.names else ''


def _moved(machine: Machine, levers: ca.SX) -> list[int]:
    """Rows in which a cylinder has a lever, in one of some poses."""
    find = ca.Function('levers', [machine.system.q, machine.parameters.symbol], [levers])
    start, size = machine.model.start.q, np.zeros(levers.shape[0])
    for shift in (0.0, 0.05, -0.05):
        near = find(start + shift * (1.0 + np.arange(len(start)) % 3), machine.parameters.mean).full()
        size = np.fmax(size, np.abs(near).max(axis=1))
    return [int(k) for k in np.flatnonzero(size > STILL)]


class Efforts(NamedTuple):
    """What a motion takes: ``torques`` (k,) about the joints, N m, or along prismatic ones, N; ``forces`` (c,) of the
    cylinders' oil on the rods without friction, N, positive where they extend, also against what works beside them;
    ``load_pressures`` (c,), Pa: by how much the pressure on the piston is above that on the rod side times the ratio of
    areas. Each ``..._stddev`` is one standard deviation, of the load's mass alone.
    """

    torques: np.ndarray
    torques_stddev: np.ndarray
    forces: np.ndarray
    forces_stddev: np.ndarray
    load_pressures: np.ndarray
    load_pressures_stddev: np.ndarray


class FeedForward:
    """Inverse dynamics of one machine, at the nominal numbers of its file.

    ``joints`` (k,) are those between the ground and the load, by the names of the file, a swing included; the
    independent coordinates where these joints do not determine the position. ``cylinders`` (c,). Where several
    cylinders work on one coordinate, the squares of their load pressures have the least sum. A load that hangs counts
    as a point at its hook. Raises DescriptionError where there are fewer cylinders than coordinates that they move.
    """

    def __init__(self, machine: Machine) -> None:
        check_single(machine)
        self.machine, system, reduced = machine, machine.system, machine.reduced
        self.joints = carrying_joints(machine) or machine.coordinates
        self.cylinders = machine.cylinders
        if len(self.cylinders) < len(machine.actuated):
            raise DescriptionError(machine.description.file, 'cylinders', list(self.cylinders),
                                   f'at least {len(machine.actuated)}, as many as the coordinates that they move')
        zdd = ca.SX.sym('zdd', len(machine.coordinates))
        motion = reduced.R @ zdd + reduced.S @ reduced.c
        along = reduced.R.T @ ca.substitute(inertial_forces(system, motion), system.qd, reduced.qd)     # (g,)
        torques = ca.solve(reduced.R[system.indices(self.joints), :].T, along)
        levers, area = machine.piston_rates[:, machine.actuated], self._areas
        shared, rates = ca.diag(ca.DM(area ** 2)) @ levers, machine.piston_rates @ reduced.zd
        beside = machine.circuit.parallel_forces(system.q[machine.pistons], rates)
        pushed = along + machine.piston_rates.T @ beside
        forces = shared @ ca.solve(levers.T @ shared, pushed[machine.actuated])
        efforts = ca.vertcat(torques, forces)
        mass = machine.parameters.states.get(MASS)
        by_mass = ca.SX.zeros(efforts.numel()) if mass is None else ca.densify(ca.jacobian(efforts, mass))
        self._kernel = Kernel(ca.Function('mbse_feed_forward', [system.q, reduced.zd, zdd, system.values.symbol],
                                          [efforts, by_mass], {'cse': True}), 'vm')

    @property
    def _areas(self) -> np.ndarray:
        return np.array([item.piston_area for item in self.machine.description.cylinders.values()])

    def __call__(self, q: np.ndarray, mass: float = 0.0, stddev: float = 0.0, zd: np.ndarray | None = None,
                 zdd: np.ndarray | None = None, base: Mapping[str, float] | None = None) -> Efforts:
        """Efforts at coordinates q (n,) that satisfy the constraints, with velocities ``zd`` and accelerations ``zdd``
        (g,) of the independent ones, by default at rest, m or rad and s.

        ``mass``, ``stddev``: of the load, kg; ``base``: measured 'roll' and 'pitch' of the machine's frame, rad; what
        is not measured is the file's. Raises SettingError for a mass or deviation that is not known, and
        SingularConfigurationError at a dead point, where no force holds the machine.
        """
        for name, value in (('mass', mass), ('stddev', stddev)):
            if not (np.isfinite(value) and value >= 0.0):
                raise SettingError(name, value, 'a finite number from 0 kg on')
        still, k = np.zeros(len(self.machine.coordinates)), len(self.joints)
        states = {f'base.{axis}': angle for axis, angle in (base or {}).items()}
        if self.machine.description.payload is not None:
            states[MASS] = mass
        numbers = self.machine.parameters.numbers(self.machine.parameters.mean, states)
        efforts, by_mass = self._kernel(q, still if zd is None else zd, still if zdd is None else zdd, numbers)
        if not np.isfinite(efforts).all():
            raise SingularConfigurationError(self.machine.coordinates, float('inf'))
        spread = np.abs(by_mass) * stddev
        return Efforts(efforts[:k], spread[:k], efforts[k:], spread[k:], efforts[k:] / self._areas,
                       spread[k:] / self._areas)
