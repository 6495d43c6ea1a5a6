# SPDX-License-Identifier: Apache-2.0
"""The observer's honesty on data drawn from its own model, and its errors on the simulated work cycle."""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np
import pytest
from core_support import VALVES, Run, crane, cycle_run, estimate, exact_crane, kinematic, work_cycle
from scipy.stats import chi2

from mbse_ros.compiled import Scan
from mbse_ros.filters.hydraulic_model import NOISES, hydraulic_model
from mbse_ros.filters.hydraulic_observer import HydraulicObserver

RUNS, STEPS, SUB = 300, 40, 40
SETTINGS = kinematic(acceleration_psd=1.0, start_velocity=0.005, start_acceleration=0.05)
START, COMMAND = np.array([0.25, 4e6, 3e6]), 2.0     # pressures stay above the tank's: below, it allows for more
SENSORS = np.array([4e-4, 12e3, 8e3])


def nees(error: np.ndarray, P: np.ndarray) -> float:
    """Normalised squared error, with units scaled away."""
    spread = np.sqrt(np.diag(P))
    return float((error / spread) @ np.linalg.solve(P / np.outer(spread, spread), error / spread))


def stochastic_step(valve: str) -> Scan:
    """The model as a stochastic differential equation: Heun's method with additive noise, 25 us."""
    machine = crane(valve)
    model = hydraulic_model(machine)
    n, h = len(model.names), 1e-3 / SUB
    noise, U = ca.SX.sym('noise', n), ca.SX.sym('U', model.U.numel())
    psd, p = np.array([getattr(SETTINGS, name) for name in NOISES]), machine.parameters.mean
    f, W = ca.substitute([model.f, model.W], [model.psd, machine.parameters.symbol], [ca.SX(psd), ca.SX(p)])
    rates = ca.Function('f', [model.X, model.U], [f])
    kick = ca.sqrt(ca.diag(W) * h) * noise
    k1 = rates(model.X, U)
    after = model.X + h / 2 * (k1 + rates(model.X + h * k1 + kick, U)) + kick
    return Scan(ca.Function('sde', [model.X, ca.vertcat(noise, U), ca.SX(0, 1)], [after, after]))


@cache
def honesty(valve: str) -> tuple[np.ndarray, np.ndarray, int]:
    """NEES of the whole state and NIS of the last samples, of each run."""
    machine, rng = crane(valve), np.random.default_rng(20)
    observer, truth = HydraulicObserver(machine, SETTINGS), stochastic_step(valve)
    names, scale = observer.names, hydraulic_model(machine).scale
    stddev = {'velocity': 0.005, 'acceleration': 0.05, 'spool': 0.5, 'flow': 1e-4}
    spread = np.array([stddev.get(name.split('/')[0], 0.0) for name in names])
    measured = [names.index(channel) for channel in machine.channels]
    commands = np.full((STEPS, len(machine.commands)), COMMAND)
    found = []
    for _ in range(RUNS):
        X = rng.standard_normal(len(names)) * spread + [COMMAND * n.startswith('spool') for n in names]
        X[measured] = START
        y = START + rng.standard_normal(3) * SENSORS
        observer.start(y, commands[0])
        inputs = np.hstack([rng.standard_normal((STEPS * SUB, len(names))), np.repeat(commands, SUB, axis=0)])
        _, path = truth(X / scale, inputs, np.zeros(0))
        states = path[SUB - 1::SUB] * scale
        values = states[:, measured] + rng.standard_normal((STEPS, 3)) * SENSORS
        result = observer.process(values, commands, np.ones(3), 1e-3)
        found.append((nees(result.mean[-1] - states[-1], result.covariance),
                      np.sum(result.innovation ** 2 / result.innovation_variance)))
    return np.array([f[0] for f in found]), np.array([f[1] for f in found]), len(names)


@pytest.mark.parametrize('valve', VALVES)
def test_errors_are_as_large_as_the_covariance_says(valve: str) -> None:
    """Mean NEES of 300 runs drawn from the model itself inside its 99 % bounds; so is each run in its share."""
    found, _, size = honesty(valve)
    low, high = chi2.ppf([0.005, 0.995], RUNS * size) / RUNS
    assert low < found.mean() < high
    assert 0.85 < np.mean(found < chi2.ppf(0.9, size)) < 0.95


@pytest.mark.parametrize('valve', VALVES)
def test_innovations_are_as_large_as_their_variance_says(valve: str) -> None:
    _, found, _ = honesty(valve)
    low, high = chi2.ppf([0.005, 0.995], RUNS * 3) / RUNS
    assert low < found.mean() < high


def rmse(run: Run) -> np.ndarray:
    """RMSE at the stamps of position, velocity and both pressures."""
    mean = np.array([o.state.mean[-1] for o in run.outputs])
    truth = np.hstack([run.truth('position'), run.truth('velocity'), run.truth('pressure')])
    return np.sqrt(np.mean((mean[:, [0, 1, 3, 4]] - truth) ** 2, axis=0))


LIMITS = {('orifice', 0.2): (5e-5, 1e-3, 13e3, 13e3), ('orifice', 0.02): (3e-4, 4e-3, 22e3, 22e3),
          ('unknown', 0.2): (3e-4, 6.5e-3, 18e3, 18e3), ('unknown', 0.02): (3e-4, 9e-3, 22e3, 22e3)}


@pytest.mark.parametrize('valve, ramp', LIMITS)
def test_errors_on_the_work_cycle(valve: str, ramp: float) -> None:
    """On 0.2 s ramps and on 20 ms steps, by the default settings."""
    np.testing.assert_array_less(rmse(cycle_run(valve, ramp=ramp)), LIMITS[valve, ramp])


@pytest.mark.parametrize('valve', VALVES)
def test_covariance_is_honest_on_ramps(valve: str) -> None:
    """Mean NEES of position, velocity, acceleration and pressures between 0.3 and 2 times its dimension, of sensors
    without errors of zeros and gains."""
    run, part = estimate(valve, work_cycle(), machine=exact_crane(valve)), [0, 1, 2, 3, 4]
    truth = np.hstack([run.truth(name) for name in ('position', 'velocity', 'acceleration', 'pressure')])
    found = [nees(o.state.mean[-1, part] - x, o.state.covariance[np.ix_(part, part)])
             for o, x in zip(run.outputs, truth)]
    assert 0.3 * 5 < np.mean(found) < 2 * 5


@pytest.mark.parametrize('valve', VALVES)
def test_innovations_are_honest_on_ramps(valve: str) -> None:
    """Over whole sample periods: the position's fill their bounds, the pressures' lie within (the tuning expects
    accelerations as of a braking machine, and fluid is stiff); none has a bias, and they do not grow in motion."""
    run = cycle_run(valve)
    ratios = np.array([o.state.innovation / o.state.innovation_stddev for o in run.outputs])[20:]
    moving = np.abs(run.truth('velocity')[20:, 0]) > 0.01
    assert (np.abs(ratios.mean(axis=0)) < 0.05).all()
    assert 0.9 < ratios[:, 0].std() < 1.15 and (ratios.std(axis=0) < 1.15).all()
    nis = np.array([o.state.nis for o in run.outputs])[20:]
    np.testing.assert_allclose(nis, np.sum(ratios ** 2, axis=1), rtol=1e-12)
    assert nis[moving].mean() == pytest.approx(nis[~moving].mean(), rel=0.2) and 0.9 < nis.mean() < 3.0
    assert {o.state.nis_dof for o in run.outputs} == {3}
