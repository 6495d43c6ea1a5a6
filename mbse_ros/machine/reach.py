# SPDX-License-Identifier: Apache-2.0
"""How far the cylinders of a machine move it: one after the other over its stroke, the rest as at the start."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import DescriptionError, PositionProblemError, SingularConfigurationError
from .machine import Machine

__all__ = ['Reach', 'reach_of']

STEPS = 16          # from the start to each end of a stroke
MOVED = 1e-9        # m or rad: a coordinate that changes less is not moved by the cylinder


@dataclass(frozen=True)
class Reach:
    """What the whole stroke of one cylinder does: ``moved`` gives by joint its (lowest, highest) coordinate, SI."""

    cylinder: str
    moved: dict[str, tuple[float, float]]


def reach_of(machine: Machine) -> list[Reach]:
    """Reach of each cylinder; raises DescriptionError, whose key is that of a cylinder that cannot make its stroke."""
    found = []
    for i, name in enumerate(machine.cylinders):
        poses = np.array([q for end in machine.stroke[i] for q in _moved_to(machine, i, float(end))])
        low, high = poses.min(axis=0), poses.max(axis=0)
        joints = [k for k, coordinate in enumerate(machine.system.names) if coordinate in machine.description.joints]
        found.append(Reach(name, {machine.system.names[k]: (float(low[k]), float(high[k])) for k in joints
                                  if high[k] - low[k] > MOVED}))
    return found


def _moved_to(machine: Machine, cylinder: int, end: float) -> list[np.ndarray]:
    """Coordinates (n,) on the way of one piston from the start to an end of its stroke, m."""
    q = machine.model.start.q
    chosen = _free_coordinates(machine, cylinder)
    partition, poses = machine.model.partition(tuple(chosen)), [q]
    for position in np.linspace(q[chosen[0]], end, STEPS + 1)[1:]:
        try:
            q = partition.position(np.concatenate([[position], q[chosen[1:]]]), q)
        except (PositionProblemError, SingularConfigurationError):
            raise DescriptionError(
                machine.description.file, f'cylinders.{machine.cylinders[cylinder]}', f'a piston at {position:.4g} m',
                'closed_length, stroke and points with which the mechanism reaches it, the other cylinders as at the '
                'start') from None
        poses.append(q)
    return poses


def _free_coordinates(machine: Machine, cylinder: int) -> list[int]:
    """Places in q of a piston, and of others with which it determines the motion: pistons first."""
    start, g = machine.model.start.q, len(machine.coordinates)
    rates = np.column_stack([machine.model.partition().velocity(start, unit) for unit in np.eye(g)])
    rates = rates / np.maximum(np.abs(rates).max(axis=1, keepdims=True), 1e-12)
    chosen = [machine.pistons[cylinder]]
    for place in dict.fromkeys([*machine.pistons, *machine.model.z]):
        if np.linalg.matrix_rank(rates[[*chosen, place]], tol=1e-6) > len(chosen):
            chosen.append(place)
    return chosen
