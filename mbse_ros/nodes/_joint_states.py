# SPDX-License-Identifier: Apache-2.0
"""Joints and pistons of a machine out of its independent coordinates."""

from __future__ import annotations

import casadi as ca
import numpy as np

from ..compiled import Kernel
from ..errors import MbseError
from ..machine import Machine
from ..streams.records import StateEstimate


class JointStates:
    """Positions, velocities and forces of ``names``: the independent coordinates, then the other joints and pistons."""

    def __init__(self, machine: Machine) -> None:
        self.machine, model = machine, machine.model
        own = (*machine.cylinders, *machine.description.joints, *machine.description.coordinates)
        others = [name for name in model.names if name in own and name not in machine.coordinates]
        self.names = (*machine.coordinates, *others)
        self._force, self._rows = force_matrix(machine), [self.names.index(name) for name in machine.cylinders]
        self._others = _others(machine, [model.names.index(name) for name in others]) if others else None
        self._q: np.ndarray | None = None

    def __call__(self, state: StateEstimate) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """At the last step: positions, m or rad, velocities, and of pistons the hydraulic forces, N, else NaN."""
        last, g = state.mean[-1], len(self.machine.coordinates)
        z, zd, pressure = last[:g], last[g:2 * g], last[3 * g:3 * g + len(self.machine.volumes)]
        effort = np.full(len(self.names), np.nan)
        effort[self._rows] = self._force @ pressure
        if self._others is None:
            return z, zd, effort
        position, velocity = self._solved(z, zd, state.restart)
        return np.concatenate([z, position]), np.concatenate([zd, velocity]), effort

    def _solved(self, z: np.ndarray, zd: np.ndarray, restart: bool) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities of the others along the loops, from the last solution; NaN where there is none."""
        missing = np.full(len(self.names) - len(z), np.nan)
        try:
            if self._q is None or restart:
                self._q = self.machine.position(z)
        except MbseError:
            return missing, missing
        self._q, position, velocity = self._others(self._q, z, zd, self.machine.parameters.mean)
        if not np.isfinite(self._q).all():
            self._q = None
            return missing, missing
        return position, velocity


def _others(machine: Machine, places: list[int]) -> Kernel:
    """``(q nearby, z, zd, parameters) -> (q, its entries at places, their rates)``."""
    near, z, zd = (ca.SX.sym(name, size) for name, size in (
        ('q', machine.system.n), ('z', len(machine.coordinates)), ('zd', len(machine.coordinates))))
    q = machine.closed(near[machine.system.dependent], z)
    (rates,) = ca.substitute([machine.reduced.R[places, :]], [machine.system.q], [q])
    return Kernel(ca.Function('mbse_joints', [near, z, zd, machine.parameters.symbol], [q, q[places], rates @ zd],
                              {'cse': True}), 'vm')


def force_matrix(machine: Machine) -> np.ndarray:
    """Hydraulic forces of the cylinders per pressure of the volumes (cylinders, volumes), N/Pa (paper 003 Eq. 50)."""
    p = ca.SX.sym('p', len(machine.volumes))
    force = ca.Function('mbse_force', [p, machine.parameters.symbol], [machine.circuit.hydraulic_forces(p)])
    return np.column_stack([force(unit, machine.parameters.mean).full().ravel() for unit in np.eye(p.numel())])
