# SPDX-License-Identifier: Apache-2.0
"""Torques about joints that do the same work as the forces of the cylinders."""

from __future__ import annotations

import casadi as ca
import numpy as np

from .machine import Machine
from .tree import chain

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
