# SPDX-License-Identifier: Apache-2.0
"""Short simulated logs of machines for the tests of the factor graph, each made once per process."""

from __future__ import annotations

from functools import cache

import numpy as np

from mbse_ros.graph.factors.machine_factors import MachineKinds, machine_kinds
from mbse_ros.graph.machines.machine_log import MachineLog
from mbse_ros.machine import Machine, load_machine
from mbse_ros.simulation.crane import CraneSettings, SensorFrame, SimulatedCrane, plant_of
from mbse_ros.simulation.cycle import Move, WorkCycle

LOAD = 800.0        # kg
UP_DOWN = (Move(0.0, 0.3), Move(6.0, 1.2, 0.3), Move(0.0, 0.2), Move(-5.0, 1.2, 0.3), Move(0.0, 0.1))
IN_OUT = (Move(0.0, 0.6), Move(6.0, 1.0, 0.3), Move(-6.0, 1.0, 0.3))


@cache
def machine_of(name: str) -> Machine:
    """A machine of the repository."""
    return load_machine(name)


@cache
def kinds_of(name: str) -> MachineKinds:
    """Its factors."""
    return machine_kinds(machine_of(name), 'vm')


@cache
def excavated(name: str) -> tuple[SensorFrame, ...]:
    """Boom and arm of an excavator that move with a load, 50 Hz; the bucket holds still, the swing turns a little."""
    machine = machine_of(name)
    cycle = WorkCycle({'boom': 0.35, 'arm': 0.4, 'bucket': 0.4}, UP_DOWN,
                      {'arm_valve': IN_OUT, 'swing_joint': (Move(0.0, 0.5), Move(0.1, 2.0, 0.5))})
    return tuple(SimulatedCrane(machine, LOAD, 1, cycle, CraneSettings(rate=50.0),
                                plant=plant_of(machine)).run())


def log_of(machine: Machine, frames: tuple[SensorFrame, ...]) -> MachineLog:
    """Their samples."""
    return MachineLog(np.array([f.stamp_ns for f in frames]) * 1e-9,
                      np.array([[f.samples[c] for c in machine.channels] for f in frames]))


def differences(kind, x: np.ndarray, c: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Jacobian of a kind of factor by central differences, (rows, width)."""
    columns = []
    for k in range(len(x)):
        shift = h[k] * (np.arange(len(x)) == k)
        up, down = kind.evaluate(np.array([x + shift, x - shift]), np.array([c, c]))[0]
        columns.append((up - down) / (2 * h[k]))
    return np.array(columns).T
