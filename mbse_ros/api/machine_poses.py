# SPDX-License-Identifier: Apache-2.0
"""Sets of poses of a machine from which its payload is looked at."""

from __future__ import annotations

from collections.abc import Sequence

from ..estimators.sight.machine_poses import Poses, all_poses, in_motion, start_pose, sweep
from ..estimators.sight.payload_observability import PayloadSight, payload_sight
from ..machine import Machine
from ..machine.equations import measured_equations

FEW = 12        # poses at which the motion is looked at
START, ALL, MOVING = 'the start', 'all coordinates', 'all coordinates, accelerating'


def pose_sets(machine: Machine, trajectory: str) -> dict[str, Poses]:
    """Poses by what they are: of 'rest' the start, else the start, each coordinate alone, all."""
    if trajectory == 'rest':
        return {START: start_pose(machine)}
    every = all_poses(machine)
    return {START: start_pose(machine), **{f'{name} alone': sweep(machine, name) for name in machine.coordinates},
            ALL: every, MOVING: in_motion(every)}


def few_of(poses: Poses) -> Poses:
    """The first ``FEW`` of poses; a motion as it is."""
    return poses if poses.dt else Poses(poses.q[:FEW], poses.zd[:FEW], poses.zdd[:FEW])


def payload_sights(machine: Machine, sensors: Sequence[str], sets: dict[str, Poses]) -> dict[str, PayloadSight]:
    """What the pressures say of the payload over each set of poses; nothing where no equation has its pressures."""
    volumes = [c.sensor.volume for c in machine.all_channels if c.sensor.name in sensors and c.kind == 'pressure']
    if machine.description.payload is None or not measured_equations(machine, volumes):
        return {}
    return {label: payload_sight(machine, sensors, poses) for label, poses in sets.items()}
