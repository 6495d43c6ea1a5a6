# SPDX-License-Identifier: Apache-2.0
"""A crane with one cylinder at rest, by hand, and its force at the tip of the boom."""

from __future__ import annotations

import numpy as np

from mbse_ros.machine import Machine
from mbse_ros.payload.mass import Mass, PayloadSettings
from mbse_ros.payload.tool_force import ToolForce, ToolForces

STEP = 10_000_000       # ns
SETTINGS = PayloadSettings()
AREA = np.pi / 4 * 0.1 ** 2     # m2, of the lift's piston


def known(mass: float, stddev: float = 0.0) -> Mass:
    return Mass(mass, stddev, 2 * stddev, mass, mass, 9, 'open', stddev)


def held_still(machine: Machine, samples: dict[str, float], mass: Mass | None, forces: ToolForces | None = None,
               steps: int = 120) -> ToolForce:
    """After so many segments with the same samples."""
    forces = forces or ToolForces(machine, SETTINGS, 'vm')
    values, mean = np.array([samples[name] for name in machine.channels]), np.zeros(60)
    for k in range(1, steps + 1):
        found = forces.process(k * STEP, (mean, values, 0 * values), k == 1, False, mass)
    return found


def lifted(angle: float, force: float) -> tuple[dict[str, float], float, np.ndarray]:
    """Samples of the lift at rest at an angle of its boom, rad, with a force of its cylinder, N; the lever of that
    about the pivot, m; the tip (x, z), m."""
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    base, eye = np.array([0.26, -1.039986751]), turn @ [0.3025, -0.105]
    length = np.linalg.norm(eye - base)
    along = (eye - base) / length
    area, rod = np.pi / 4 * 0.1 ** 2, np.pi / 4 * (0.1 ** 2 - 0.056 ** 2)
    samples = {'position/lift': length - 0.820, 'pressure/lift_piston': (force + 1e6 * rod) / area,
               'pressure/lift_rod': 1e6}
    return samples, eye[0] * along[1] - eye[1] * along[0], turn @ [2.89, 0.0246]


def followed(machine: Machine, rows: list[dict]) -> list[ToolForce]:
    """Of segments that differ in what is said of the load."""
    forces, samples = ToolForces(machine, SETTINGS, 'vm'), lifted(0.1, 50e3)[0]
    values = np.array([samples[name] for name in machine.channels])
    return [forces.process(k * STEP, (np.zeros(60), values, 0 * values), k == 1, False, **row)
            for k, row in enumerate(rows, 1)]
