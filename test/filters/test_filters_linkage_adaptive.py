# SPDX-License-Identifier: Apache-2.0
"""AerrorEKF_FE: noises that are wrong at the start are found, and the figures of the four-bar linkage."""

from functools import cache

import numpy as np
import pytest

from mbse_ros.dynamics.model import load_model
from mbse_ros.errors import SettingError
from mbse_ros.filters.observer import LinkageObserver
from mbse_ros.simulation.three_simulations import noisy, true_motion, wrong_model, wrong_start

DT = 0.005
TRUTH = true_motion(load_model('four_bar'), 4.0, DT)


@cache
def observer_of(sensor, stddev, density, **options):
    """Built once for all seeds; a start leaves nothing of the run before."""
    return LinkageObserver(wrong_model(TRUTH.model), 'AerrorEKF_FE', (sensor,), {'acceleration': density}, stddev,
                           **options)


def run(sensor, stddev=None, seed=0, density=0.0916298 / DT, **options):
    observer = observer_of(sensor, stddev, density, **options)
    observer.start(wrong_start(observer.model))
    true = np.array([TRUTH.model.description.sensors[sensor].stddev])
    found = observer.run(TRUTH.motion.t[1:], noisy(TRUTH.sensors((sensor,)), true, seed))
    away = (found.q - TRUTH.motion.q[1:])[:, TRUTH.z]
    return found, float(np.sqrt(np.mean(away ** 2))), observer


def test_the_start_of_the_noise_is_forgotten():
    densities = []
    for start in (20.0, 1.0):
        found, _, observer = run('crank_gyro', density=start)
        densities.append(observer.filter.state.arrays(observer.state)['density'][0])
        assert 0.7 < found.nis[100:].mean() < 1.4
    assert 0.3 < densities[0] / densities[1] < 3 and run('encoder')[1] < 0.0075


def test_the_start_rules_the_first_step_alone():
    """With a start 40 times too large no run with a coupler's gyro is lost, and the crank's sees its position."""
    after = [run('coupler_gyro', seed=seed)[1] for seed in range(20)]
    assert max(after) < 0.1, after
    assert np.mean([run('crank_gyro', seed=seed)[1] for seed in range(5)]) < 0.0226 * np.sqrt(10 / 4)


def test_a_start_leaves_nothing_of_the_run_before():
    fresh, again = (run('crank_gyro', density=7.0)[0] for _ in range(2))
    np.testing.assert_array_equal(fresh.mean, again.mean)
    np.testing.assert_array_equal(fresh.covariance, again.covariance)


def test_sensor_noise_is_found():
    true = TRUTH.model.description.sensors['encoder'].stddev
    found, _, observer = run('encoder', (5 * true,), density=0.46, adapt='sensors', window=100)
    state = observer.filter.state.arrays(observer.state)
    assert np.sqrt(np.mean(state['terms'])) == pytest.approx(true, rel=0.35)
    assert 0.6 < found.nis[200:].mean() < 1.6


def test_unknown_noise_is_refused():
    with pytest.raises(SettingError, match='adapt'):
        run('encoder', adapt='all')


def test_unknown_or_impossible_law_is_refused():
    for options in ({'law': 'mean'}, {'law': 'printed', 'actuators': ('motor',)}):
        with pytest.raises(SettingError, match='law'):
            run('encoder', **options)
