# SPDX-License-Identifier: Apache-2.0
"""A crane that differs from its file, and its logs: slow motion up and down, empty and with a known load."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from mbse_ros.calibration.balance import WINDOW, CalibrationBalance, Samples, windows_of
from mbse_ros.calibration.fit import CalibrationFit, CalibrationLog, CalibrationProblem, KnownLoad, fit
from mbse_ros.machine import Machine
from mbse_ros.offline.calibration.calibrated_file import prior_machine
from mbse_ros.simulation.crane import SimulatedCrane, plant_of
from mbse_ros.simulation.cycle import Move, WorkCycle
from mbse_ros.simulation.plant import Plant

WRONG = ('cylinders.*.friction.scale=30 %', 'bodies.*.mass=5 %', 'sensors.*.offset=50 kPa', 'base.*=1 deg')
OFF = {'cylinders.lift.friction.scale': 1.3, 'bodies.boom.mass': 1.05 * 143.66, 'sensors.lift_piston.offset': 50e3,
       'sensors.lift_rod.offset': -50e3, 'base.pitch': np.radians(1.0)}
LOAD, TRUE = KnownLoad('known', 500.0, 2.5), 502.0
MOVES = (Move(0.0, 0.5), Move(8.0, 8.0), Move(0.0, 0.5), Move(-8.0, 7.0, until=0.1), Move(0.0, 0.5))


class Crane(NamedTuple):
    """Text and machine of the prior, plant, and the plant's numbers (k,)."""

    text: str
    machine: Machine
    plant: Plant
    true: np.ndarray
    balance: CalibrationBalance


@cache
def crane() -> Crane:
    """patu655_lift with friction 30 %, masses 5 %, offsets 50 kPa and the base 1 deg off."""
    text, machine = prior_machine('patu655_lift', WRONG)
    true = machine.parameters.mean
    for key, value in OFF.items():
        true[machine.parameters.names.index(key)] = value
    return Crane(text, machine, plant_of(machine), true, CalibrationBalance(machine))


@cache
def series(load: float, seed: int = 1) -> dict[str, Samples]:
    """Samples of one log by channel."""
    c = crane()
    frames = SimulatedCrane(c.machine, load, seed, WorkCycle(0.1, MOVES), parameters=c.true, plant=c.plant).run()
    t = np.array([frame.stamp_ns for frame in frames]) * 1e-9
    return {name: (t, np.array([frame.samples[name] for frame in frames])) for name in c.machine.channels}


@cache
def logs() -> tuple[CalibrationLog, CalibrationLog]:
    """One empty, one with the load."""
    c = crane()
    return tuple(CalibrationLog(name, c.balance.moments(windows_of(c.machine, series(mass)), WINDOW / 2, load.mass),
                                load)
                 for name, mass, load in (('empty', 0.0, KnownLoad()), ('load', TRUE, LOAD)))


@cache
def both() -> tuple[CalibrationFit, CalibrationProblem]:
    """By both logs."""
    found = fit(crane().balance, logs())
    return found, CalibrationProblem(crane().balance, logs())


def numbers_of(found: CalibrationFit, problem: CalibrationProblem) -> tuple[np.ndarray, np.ndarray]:
    """Numbers (k,) and their covariance (k, k)."""
    k = len(problem.prior)
    return problem.numbers(found.u), problem.factor @ found.covariance[:k, :k] @ problem.factor.T
