# SPDX-License-Identifier: Apache-2.0
"""How far the cylinders of a machine move it: one after the other over its stroke, the rest as at the start."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..errors import DescriptionError, PositionProblemError, SingularConfigurationError
from .machine import Machine

__all__ = ['Misfit', 'Reach', 'misfits', 'reach_of']

STEPS = 16          # from the start to each end of a stroke
BEYOND = 0.1        # share of a joint's way that may lie beyond its limits, or be gone back: hardly one of numbers
MOVED = 1e-9        # m or rad: a coordinate that changes less is not moved by the cylinder


@dataclass(frozen=True)
class Reach:
    """What the whole stroke of one cylinder does: ``moved`` gives by joint its (lowest, highest) coordinate, SI, and
    ``way`` the coordinate (k,) from the closed cylinder to the extended one."""

    cylinder: str
    moved: dict[str, tuple[float, float]]
    way: dict[str, np.ndarray]


def reach_of(machine: Machine) -> list[Reach]:
    """Reach of each cylinder; raises DescriptionError, whose key is that of a cylinder that cannot make its stroke."""
    found = []
    for i, name in enumerate(machine.cylinders):
        closed, extended = (_moved_to(machine, i, float(end)) for end in machine.stroke[i])
        poses = np.array([*closed[::-1], *extended[1:]])
        low, high = poses.min(axis=0), poses.max(axis=0)
        joints = [k for k, coordinate in enumerate(machine.system.names) if coordinate in machine.description.joints]
        moved = {machine.system.names[k]: k for k in joints if high[k] - low[k] > MOVED}
        found.append(Reach(name, {joint: (float(low[k]), float(high[k])) for joint, k in moved.items()},
                           {joint: poses[:, k] for joint, k in moved.items()}))
    return found


@dataclass(frozen=True)
class Misfit:
    """A joint with ``limits``, rad or m, that a cylinder moves otherwise: ``way`` as in ``Reach``; ``inside``: the
    share of its range within the limits; ``back``: the share that it goes back."""

    cylinder: str
    joint: str
    way: np.ndarray
    limits: tuple[float, float]
    inside: float
    back: float


def misfits(machine: Machine, reach: Iterable[Reach]) -> list[Misfit]:
    """Joints that leave their limits over a stroke, or turn back within one: signs of a loop that is closed on its
    other branch, of a wrong zero or sense of a joint, or of a wrong stroke."""
    found = []
    for item in reach:
        for joint, way in item.way.items():
            (low, high), limits = item.moved[joint], machine.description.joints[joint].limits
            if limits is not None:
                inside = max(0.0, min(high, limits[1]) - max(low, limits[0])) / (high - low)
                back = 1.0 - abs(way[-1] - way[0]) / (high - low)
                if min(inside, 1.0 - back) < 1.0 - BEYOND:
                    found.append(Misfit(item.cylinder, joint, way, limits, inside, float(back)))
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
