# SPDX-License-Identifier: Apache-2.0
"""The benchmark of the estimators: rows, figures of a run that is known, serial and parallel alike."""

from types import SimpleNamespace

import numpy as np
import pytest

from mbse_ros.errors import SettingError
from mbse_ros.simulation import estimator_benchmark as benchmark
from mbse_ros.simulation.estimator_benchmark import (
    SENSOR_SETS,
    BenchmarkCase,
    benchmark_cases,
    missing_force,
    nees,
    run_case,
    scene_of,
)
from mbse_ros.studies.many import many

TIMINGS = ('cpu_per_s', 'step_us')
SHORT = {'seeds': 2, 'duration': 2.5, 'backend': 'vm'}


def of_row(row):
    """A row but for its timings."""
    return {key: value for key, value in row.items() if key not in TIMINGS}


def test_parallel_is_serial():
    cases = benchmark_cases(['four_bar'], ['DEKF', 'errorEKF_FE'], ['encoder'], 2, 2.5, 'vm')
    serial = {result.case: of_row(result.row) for result in map(run_case, cases)}
    assert {result.case: of_row(result.row) for result in many(run_case, cases, 2)} == serial
    assert list(serial) == cases
    row = serial[cases[1]]
    assert (row['mechanism'], row['estimator'], row['sensor'], row['seeds'], row['diverged']) == (
        'four_bar', 'errorEKF_FE', 'encoder', 2, 0)
    assert 0 < row['rmse_pos'] < 0.02 and row['force_rmse'] > 0 and 0 < row['nees'] and 0 < row['nis'] < 4


def test_what_does_not_stay_finite_is_a_row():
    row = run_case(BenchmarkCase('four_bar', 'CEKF_published', 'gyro_crank', **SHORT)).row
    assert row['diverged'] == 2 and row['rmse_pos'] is None and 'not finite at step' in row['note']


def test_a_refused_filter_is_a_row(monkeypatch):
    def refuse(*_):
        raise SettingError('estimator', 'DEKF', 'another one')
    monkeypatch.setattr(benchmark, 'default_noises', refuse)
    row = run_case(BenchmarkCase('four_bar', 'DEKF', 'encoder', **SHORT)).row
    assert row['diverged'] == 2 and row['step_us'] is None and 'another one' in row['note']


def test_the_observability_pattern_of_the_paper():
    """A gyro on the crank leaves the wrong start where the transition is simple, and corrects it where it is not."""
    after = {name: run_case(BenchmarkCase('four_bar', name, 'gyro_crank', 1, 4.0, 'vm')).row['rmse_pos_after_2s']
             for name in ('DEKF', 'errorEKF', 'errorEKF_EJ', 'errorEKF_FE')}
    assert min(after['DEKF'], after['errorEKF']) > 0.15
    assert max(after['errorEKF_EJ'], after['errorEKF_FE']) < 0.01


def test_the_missing_force_moves_the_wrong_model_as_the_true_one():
    scene = scene_of('five_bar', 2.5, 'vm')
    motion, part = scene.truth.motion, scene.wrong.partition()
    for k in (10, 300):
        q, zd, z = motion.q[k + 1], motion.qd[k + 1, scene.wrong.z], scene.wrong.z
        by_inputs = part.rates(q, zd, scene.force[k]).zdd        # the five-bar's motors act along the same coordinates
        np.testing.assert_allclose(by_inputs, motion.qdd[k + 1, z], atol=1e-8)
    assert np.allclose(missing_force(scene.truth, scene.truth.model), 0.0, atol=1e-8)


def test_nees_of_drawn_errors_has_the_mean_of_its_dimension():
    rng = np.random.default_rng(0)
    P = np.array([[4.0, 1.0, 0.5], [1.0, 2.0, 0.0], [0.5, 0.0, 1.0]])
    errors = rng.multivariate_normal(np.zeros(3), P, 20000)
    of = SimpleNamespace(problem=SimpleNamespace(g=1, n=5, z=[0]), filter=SimpleNamespace(held=[0]))
    run = SimpleNamespace(covariances=np.tile(P, (20000, 1, 1)))
    assert nees(of, run, [errors[:, :1], errors[:, 1:2]], 0) == pytest.approx(2.0, abs=0.06)
    small = SimpleNamespace(covariances=np.ones((20000, 1, 1)))
    assert np.isnan(nees(of, small, [errors[:, :1], errors[:, 1:2]], 0))


def test_names_are_checked():
    assert len(benchmark_cases([], ['DEKF'], [], 1, 3.0)) == 2 * len(SENSOR_SETS)
    for names in (['six_bar'], [], []), ([], ['KF'], []), ([], [], ['radar']):
        with pytest.raises(SettingError, match='one of'):
            benchmark_cases(*names, 1, 3.0)
