# SPDX-License-Identifier: Apache-2.0
"""Poses to look at a machine from: its start, one coordinate moved over its range, all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ...errors import PositionProblemError, SingularConfigurationError
from ...machine import Machine

SHARES = np.linspace(0.05, 0.95, 9)     # of the range of a coordinate
COUNT = 40                              # poses of all coordinates
SPEED, ACCELERATION = 0.3, 0.5          # of coordinates in motion, SI: 1 sigma


@dataclass(frozen=True)
class Poses:
    """States to look from: coordinates ``q`` (k, n), velocities ``zd`` and accelerations ``zdd`` (k, g) of the
    independent ones, SI; ``dt``: s between them where they are a motion, 0 where each is for itself."""

    q: np.ndarray
    zd: np.ndarray
    zdd: np.ndarray
    dt: float = 0.0


def start_pose(machine: Machine) -> Poses:
    """The file's start, at rest."""
    return _at_rest(machine, [machine.model.start.q])


def sweep(machine: Machine, name: str) -> Poses:
    """One independent coordinate over its range, the others at the start; as far as the mechanism reaches."""
    k, (low, high) = machine.coordinates.index(name), machine.range[machine.coordinates.index(name)]
    z = np.tile(machine.model.start.q[machine.model.z], (len(SHARES), 1))
    z[:, k] = low + SHARES * (high - low)
    return _at_rest(machine, _reached(machine, z))


def all_poses(machine: Machine, count: int = COUNT) -> Poses:
    """All independent coordinates over their ranges, the same poses each time."""
    low, high = machine.range.T
    shares = np.random.default_rng(0).uniform(SHARES[0], SHARES[-1], (count, len(low)))
    return _at_rest(machine, _reached(machine, low + shares * (high - low)))


def in_motion(poses: Poses) -> Poses:
    """The same poses with velocities and accelerations, the same each time."""
    zd, zdd = np.random.default_rng(1).normal(size=(2, *poses.zd.shape))
    return Poses(poses.q, SPEED * zd, ACCELERATION * zdd)


def motion_poses(machine: Machine, q: np.ndarray, qd: np.ndarray, dt: float) -> Poses:
    """A motion (k, n) with its velocities (k, n), every ``dt``, s; accelerations by differences."""
    zd = qd[:, machine.model.z]
    return Poses(q, zd, np.gradient(zd, dt, axis=0), dt)


def _reached(machine: Machine, rows: Iterable[np.ndarray]) -> list[np.ndarray]:
    found = []
    for z in rows:
        try:
            found.append(machine.position(z))
        except (PositionProblemError, SingularConfigurationError):
            continue
    return found or [machine.model.start.q]


def _at_rest(machine: Machine, q: list[np.ndarray]) -> Poses:
    still = np.zeros((len(q), len(machine.coordinates)))
    return Poses(np.array(q), still, still)
