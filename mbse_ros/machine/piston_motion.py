# SPDX-License-Identifier: Apache-2.0
"""Motions of pistons, or of the joints that they move, as motions of the independent coordinates and of all pistons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import casadi as ca
import numpy as np

from ..compiled import Kernel
from ..errors import PositionProblemError, SettingError
from .equations import check_single
from .feed_forward import joint_forces
from .machine import Machine

STEPS = 20          # of Newton's method along the way of one instant
CLOSE = 1e-9        # m or rad


class FullMotion(NamedTuple):
    """``q`` (n,) of all coordinates, velocities and accelerations ``zd``, ``zdd`` (g,) of the independent ones, and
    ``positions``, ``speeds`` (c,) of the pistons, m and s."""

    q: np.ndarray
    zd: np.ndarray
    zdd: np.ndarray
    positions: np.ndarray
    speeds: np.ndarray


def moved_joints(machine: Machine) -> tuple[str, ...]:
    """Joints between the ground and the load that cylinders move."""
    return joint_forces(machine, ca.SX.zeros(len(machine.cylinders)))[0]


class PistonMotion:
    """Of a machine, for coordinates ``names`` (k,): some of its cylinders, or all joints that they move.

    Cylinders that are not named rest. ``places``: of the names in q; ``moving`` (c,): which cylinders may move. Raises
    SettingError for names that are neither, and where the rest cannot follow from them.
    """

    def __init__(self, machine: Machine, names: Sequence[str]) -> None:
        check_single(machine)
        cylinders, joints = machine.cylinders, moved_joints(machine)
        of_joints = set(names) == set(joints) and not set(names) <= set(cylinders)
        if not of_joints and not (names and set(names) <= set(cylinders)):
            raise SettingError('trajectory.joint_names', list(names), f'cylinders, of {", ".join(cylinders)}'
                               + (f'; or joints, all of {", ".join(joints)}' if joints else ''))
        self.machine, self.names = machine, tuple(names)
        self.moving = np.array([of_joints or name in names for name in cylinders])
        self.places = (machine.system.indices(self.names) if of_joints else
                       [machine.pistons[cylinders.index(name)] for name in names])
        self._rest = [] if of_joints else [k for name, k in zip(cylinders, machine.pistons) if name not in names]
        rows, actuated = [*self.places, *self._rest], machine.actuated
        if len(rows) != len(actuated):
            raise SettingError('trajectory.joint_names', list(names), f'{len(actuated)} coordinates that determine the '
                               'position of the machine: its cylinders move as many')
        reduced, numbers = machine.reduced, machine.parameters.symbol
        bias = reduced.S @ reduced.c
        self._shape = len(rows), len(actuated)
        self._kernel = Kernel(ca.Function('mbse_piston_motion', [machine.system.q, reduced.zd, numbers], [
            reduced.R[rows, actuated], bias[rows], machine.piston_rates[:, actuated]], {'cse': True}), 'vm')

    def _rows(self, q: np.ndarray, zd: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Derivatives of the names, then of cylinders that rest, by the actuated coordinates; accelerations without
        those of the coordinates; derivatives of all pistons."""
        levers, bias, pistons = self._kernel(q, zd, self.machine.parameters.mean)
        return levers.reshape(self._shape), bias, pistons.reshape(-1, self._shape[1])

    def read(self, q: np.ndarray, zd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities (k,) of the names at all coordinates and velocities of the independent ones."""
        levers, _, _ = self._rows(q, zd)
        return q[self.places], (levers @ zd[self.machine.actuated])[:len(self.places)]

    def __call__(self, position: np.ndarray, velocity: np.ndarray, acceleration: np.ndarray, near: np.ndarray
                 ) -> FullMotion:
        """The motion in which the names have these values (k,), on the branch of coordinates ``near`` (n,), where
        cylinders that are not named are. Raises PositionProblemError where the machine cannot be so."""
        machine, actuated, rest = self.machine, self.machine.actuated, near[self._rest]
        still = np.zeros(len(machine.coordinates))
        wanted, q = np.concatenate([position, rest]), near
        for _ in range(STEPS):
            error = wanted - q[[*self.places, *self._rest]]
            if np.abs(error).max() < CLOSE:
                break
            levers, _, _ = self._rows(q, still)
            z = q[machine.model.z]
            z[actuated] += np.linalg.solve(levers, error)
            q = machine.position(z, q)
        else:
            raise PositionProblemError(float(np.abs(error).max()), STEPS, position,
                                       f'{machine.name} does not reach {", ".join(self.names)}')
        zd, zdd, none = still.copy(), still.copy(), np.zeros(len(rest))
        levers, _, _ = self._rows(q, still)
        zd[actuated] = np.linalg.solve(levers, np.concatenate([velocity, none]))
        _, bias, pistons = self._rows(q, zd)
        zdd[actuated] = np.linalg.solve(levers, np.concatenate([acceleration, none]) - bias)
        return FullMotion(q, zd, zdd, q[machine.pistons], pistons @ zd[actuated])
