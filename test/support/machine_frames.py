# SPDX-License-Identifier: Apache-2.0
"""Poses and frames of machines, through their parents."""

from __future__ import annotations

from functools import cache

import numpy as np
from machine_variants import variant
from transforms3d.quaternions import quat2mat

from mbse_ros.description.load import known_machines
from mbse_ros.description.model import GROUND
from mbse_ros.machine import load_machine
from mbse_ros.machine.frames import MachineFrames

EXACT = 1e-9        # m, and entries of rotations
MACHINES = sorted(known_machines())
ROLL, PITCH = 0.1, -0.2
LEVEL_SENSORS = {'base': {'roll': '0 deg', 'pitch': '0 deg'},
                 'sensors/base_roll': {'kind': 'inclination', 'axis': 'roll', 'stddev': '0.1 deg'},
                 'sensors/base_pitch': {'kind': 'inclination', 'axis': 'pitch', 'stddev': '0.1 deg'}}
HUNG = 'hanging'
SUPPORT = {'corners': [['2 m', '-1.5 m'], ['2 m', '1.5 m'], ['-2 m', '1.5 m'], ['-2 m', '-1.5 m'], [0, 0]],
           'height': '-1.2 m', 'mass': '5 t', 'center_of_mass': ['0.2 m', '0 m', '-0.5 m']}


@cache
def frames_of(name):
    """Frames of a machine; ``hanging``: the simple crane with its load 2 m below the tip."""
    return MachineFrames(variant('patu655_lift', payload__hanging='2 m') if name == HUNG else load_machine(name))


def poses(machine, count=5):
    """Coordinates (n,) of the start and of poses round it, each beginning at the one before."""
    rng, q = np.random.default_rng(4), machine.model.start.q
    yield q
    z, (low, high) = q[machine.model.z], machine.range.T
    for _ in range(count):
        z = np.clip(z + 0.1 * rng.uniform(-1, 1, len(z)) * (high - low), low + 0.05 * (high - low),
                    high - 0.05 * (high - low))
        q = machine.position(z, q)
        yield q


def chained(transforms):
    """Origin (3,) and rotation (3, 3) in the machine's frame of all frames, through their parents."""
    found = {GROUND: (np.zeros(3), np.eye(3))}
    for parent, child, translation, quaternion in transforms:
        origin, rotation = found[parent]
        found[child] = origin + rotation @ translation, rotation @ quat2mat(quaternion)
    return found
