# SPDX-License-Identifier: Apache-2.0
"""What sensors of a machine see of the positions and velocities of its coordinates."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from ...machine import Machine
from ..analysis.observability import ACCELERATION, POSITION, VELOCITY, StateObservability, least_information
from ..hydraulic_sensors import measurements
from ..hydraulic_state import state_names
from .information import InformationWindow, observability
from .machine_poses import Poses

STEP = 0.01     # s between two samples of a sensor at a pose


def machine_observability(machine: Machine, sensors: Sequence[str], poses: Poses, window: float) -> StateObservability:
    """Observability of positions, velocities and accelerations, the last as constant over ``window``, s: around each
    pose, or along a motion. Pressures see none of them."""
    g, dt = len(machine.coordinates), poses.dt or STEP
    length = max(2, int(round(window / dt)))
    H, stddev = sensor_slopes(machine, poses)
    if not poses.dt:
        H = np.repeat(H, length, axis=0)
    eye = np.eye(g)
    F = np.block([[eye, dt * eye, dt ** 2 / 2 * eye], [0 * eye, eye, dt * eye], [0 * eye, 0 * eye, eye]])
    prior = np.repeat([POSITION, VELOCITY, ACCELERATION], g)
    owners = [channel.sensor.name for channel in machine.all_channels]
    moves = {owner for owner, rows in zip(owners, np.moveaxis(H, 1, 0)) if rows.any()}

    def windows(names: Sequence[str]) -> list[InformationWindow]:
        rows = [i for i, owner in enumerate(owners) if owner in names]
        return observability(np.tile(F, (len(H), 1, 1)), H[:, rows], stddev[rows], prior, length)

    others = {name: least_information(windows([*sensors, name])) for name in sorted(moves - set(sensors))}
    names = tuple(f'{kind}{name}' for kind in ('', 'velocity of ', 'acceleration of ') for name in machine.coordinates)
    return StateObservability('motion', names, prior, windows(sensors),
                              dict(sorted(others.items(), key=lambda item: -item[1])))


def sensor_slopes(machine: Machine, poses: Poses) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives (k, channels, 3g) of the channels by position, velocity and acceleration of the coordinates, along
    the loops, and their standard deviations (channels,), SI."""
    names, _ = state_names(machine)
    X, g = ca.SX.sym('X', len(names)), len(machine.coordinates)
    items, rows = measurements(machine, names, X), []
    for item in items:
        unit = ca.SX.zeros(1, len(names))
        if item.index is not None:
            unit[item.index] = item.gain
        rows.append((item.H if item.index is None else unit)[:, :3 * g])
    function = ca.Function('slopes', [machine.system.q, X, machine.parameters.symbol], [ca.densify(ca.vertcat(*rows))])
    states = np.zeros((len(poses.q), len(names)))
    states[:, g:2 * g], states[:, 2 * g:3 * g] = poses.zd, poses.zdd
    found = [function(q, state, machine.parameters.mean).full() for q, state in zip(poses.q, states)]
    return np.array(found), np.sqrt([item.variance for item in items])
