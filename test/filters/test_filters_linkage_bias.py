# SPDX-License-Identifier: Apache-2.0
"""Sensors that are off by a bias, and encoders that do not count their turns."""

from pathlib import Path

import numpy as np
import pytest
from linear_mechanism import STDDEV, A, H, linear_model
from scipy.linalg import block_diag, expm

from mbse_ros.description.load import known_mechanisms, parse_mechanism
from mbse_ros.dynamics.model import load_model
from mbse_ros.errors import DescriptionError, SettingError
from mbse_ros.filters.observer import LinkageObserver
from mbse_ros.simulation.three_simulations import noisy, true_motion, wrong_model, wrong_start

DT = 0.005
BIAS, WALK = 0.02, 1e-10        # rad/s; rad2/s3
FOUR_BAR = Path(known_mechanisms()['four_bar']).read_text()


@pytest.fixture(scope='module')
def truth():
    return true_motion(load_model('four_bar', backend='vm'), 10.0, DT)


def test_is_kalmans_filter_with_one_more_state():
    rng, (dt, k) = np.random.default_rng(5), (0.005, 300)
    measured = rng.normal(size=(k, 2)) * 0.2
    measured[rng.random((k, 2)) < 0.3] = np.nan
    observer = LinkageObserver(linear_model(), 'DEKF', ('place', 'speed'), {'acceleration': 0.3, 'bias_walk': 0.01},
                               transition='exact', biases=['speed'])
    observer.start(stddev=0.2)
    run = observer.run(np.arange(1, k + 1) * dt, measured)
    F = block_diag(expm(A * dt), 1.0)
    Sigma = block_diag(0.3 * np.array([[dt ** 3 / 3, dt ** 2 / 2], [dt ** 2 / 2, dt]]), 0.01 * dt)
    rows = {'place': np.append(H['place'][0], 0.0), 'speed': np.append(H['speed'][0], 1.0)}
    mean, P = np.array([0.3, 0.1, 0.0]), 0.04 * np.eye(3)
    for i, sample in enumerate(measured):
        mean, P = F @ mean, F @ P @ F.T + Sigma
        for value, (name, row) in zip(sample, rows.items()):
            if np.isfinite(value):
                spread = row @ P @ row + STDDEV[name] ** 2
                gain = P @ row / spread
                mean, P = mean + gain * (value - row @ mean), P - np.outer(gain, gain) * spread
        assert run.mean[i] == pytest.approx(mean, abs=1e-9)
    assert run.covariance == pytest.approx(P, abs=1e-9)


@pytest.mark.parametrize('estimator, density', [('errorEKF_EJ', 9.162e-2), ('errorEKF_FE', 20.0), ('DEKF', 9.162e-2)])
def test_a_gyro_that_is_off_is_found(truth, estimator, density):
    model = wrong_model(truth.model)
    observer = LinkageObserver(model, estimator, ['encoder', 'crank_gyro'],
                               {'acceleration': density, 'bias_walk': WALK}, backend='vm', biases=['crank_gyro'])
    size = observer.filter.state.parts['x'][0]
    observer.start(wrong_start(model), stddev=np.r_[np.full(size - 1, np.radians(5.0)), 0.05])
    samples = noisy(truth.sensors(('encoder', 'crank_gyro')), observer.stddev, 1) + [0.0, BIAS]
    run = observer.run(truth.motion.t[1:], samples)
    off, stddev = run.mean[-1, -1] - BIAS, np.sqrt(run.covariance[-1, -1])
    assert stddev < BIAS / 10 and abs(off) < 3 * stddev
    assert np.sqrt(np.mean((run.mean[400:, 1] - truth.motion.qd[401:, truth.z[0]]) ** 2)) < BIAS / 5


def test_joint_finds_the_bias_of_the_file(truth):
    text = FOUR_BAR.replace('body: crank, stddev: 983.943e-6 rad/s', 'body: crank, stddev: 1e-3 rad/s, bias: 0 deg/s')
    model = load_model(parse_mechanism(text), free=('sensors.crank_gyro.bias',), backend='vm')
    observer = LinkageObserver(model, 'joint', ['encoder', 'crank_gyro'],
                               {'acceleration': 1e-4, 'parameter_walk': 0.0}, backend='vm')
    observer.start(stddev=np.array([0.1, 0.1, 0.1]))
    samples = noisy(truth.sensors(('encoder', 'crank_gyro')), observer.stddev, 2) + [0.0, BIAS]
    run = observer.run(truth.motion.t[1:], samples)
    found = observer.filter.parameters.values(run.mean[-1, 2:])[0]
    assert abs(found - BIAS) < 3 * np.sqrt(run.covariance[2, 2]) < BIAS / 10


def test_a_known_bias_is_taken_off(truth):
    text = FOUR_BAR.replace('body: crank, stddev: 983.943e-6 rad/s', 'body: crank, stddev: 1e-3 rad/s, bias: 0.02')
    from mbse_ros.filters.parts.problem import problem
    plain, off = (problem(made, ('crank_gyro',)) for made in (truth.model, load_model(parse_mechanism(text),
                                                                                     backend='vm')))
    at = (truth.motion.q[3], truth.motion.qd[3, truth.z], [0.0], [0.0, 0.0], 0.0, [])
    assert float(off.sensors(*at)[0] - plain.sensors(*at)[0]) == pytest.approx(BIAS, abs=1e-15)


def test_an_encoder_that_does_not_count_its_turns(truth):
    wrapping = parse_mechanism(FOUR_BAR.replace('stddev: 17.453e-3 rad', 'stddev: 17.453e-3 rad, wraps: true'))
    runs, samples = [], noisy(truth.sensors(('encoder',)), np.array([0.017]), 3)
    assert np.ptp(samples) > 4 and samples.min() < -np.pi
    for description, o in (('four_bar', samples), (wrapping, (samples + np.pi) % (2 * np.pi) - np.pi)):
        observer = LinkageObserver(load_model(description, backend='vm'), 'errorEKF_EJ', ['encoder'],
                                   {'acceleration': 0.1}, backend='vm')
        observer.start(stddev=0.1)
        runs.append(observer.run(truth.motion.t[1:], o))
    assert runs[0].mean == pytest.approx(runs[1].mean, abs=1e-9)


@pytest.mark.parametrize('sensor, key', [
    ('a: {kind: encoder, coordinate: theta, bias: [1, 2]}', 'sensors.a.bias'),
    ('a: {kind: encoder, coordinate: theta, bias: 1 m}', 'sensors.a.bias'),
    ('a: {kind: accelerometer, body: crank, point: P1, bias: 1}', 'sensors.a.bias'),
    ('a: {kind: gyro, body: crank, wraps: true}', 'sensors.a.wraps'),
    ('a: {kind: encoder, coordinate: theta, wraps: maybe}', 'sensors.a.wraps')])
def test_bad_entries_are_refused(sensor, key):
    with pytest.raises(DescriptionError) as error:
        parse_mechanism(FOUR_BAR + f'  {sensor}\n')
    assert error.value.key == key


def test_unknown_biases_are_refused(truth):
    with pytest.raises(SettingError, match='biases'):
        LinkageObserver(truth.model, 'DEKF', ['encoder'], {'acceleration': 1.0}, biases=['crank_gyro'])
