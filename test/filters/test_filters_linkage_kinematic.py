# SPDX-License-Identifier: Apache-2.0
"""Kinematic estimator: Kalman's filter where that is exact, motion without dynamics, forces in a second stage."""

from __future__ import annotations

from functools import lru_cache

import linkage_linear as linear
import numpy as np
import pytest

from mbse_ros.dynamics.model import Model, load_model
from mbse_ros.errors import SettingError
from mbse_ros.filters.observer import LinkageEstimates, LinkageObserver
from mbse_ros.simulation.three_simulations import TrueMotion, noisy, true_motion, wrong_model, wrong_start

pytestmark = pytest.mark.usefixtures('vm')

DT = 5e-3
NOISES = {'acceleration': 1e-3, 'force_walk': 1000.0}
FOUR = ('encoder', 'crank_tip')
FIVE = ('encoder_1', 'encoder_2', 'tip_1', 'tip_2')


@lru_cache(maxsize=2)
def world(mechanism: str) -> tuple[TrueMotion, Model]:
    model = load_model(mechanism)
    return true_motion(model, 6.0, DT), wrong_model(model)


@lru_cache(maxsize=8)
def estimates(mechanism: str, sensors: tuple[str, ...], missing: float = 0.0) -> LinkageEstimates:
    truth, model = world(mechanism)
    observer = LinkageObserver(model, 'kinematic', sensors, NOISES)
    measured = noisy(truth.sensors(sensors), observer.stddev, 3)
    measured[np.random.default_rng(7).random(measured.shape) < missing] = np.nan
    observer.start(wrong_start(model))
    return observer.run(truth.motion.t[1:], measured)


def errors(mechanism: str, found: LinkageEstimates) -> np.ndarray:
    """Mean over z of the RMS errors of position, velocity and acceleration after the first second."""
    truth, _ = world(mechanism)
    pairs = ((found.q, truth.motion.q), (found.qd, truth.motion.qd), (found.qdd, truth.motion.qdd))
    return np.array([np.sqrt(np.mean((one - other[1:])[200:, truth.z] ** 2)) for one, other in pairs])


def missing_forces(mechanism: str) -> np.ndarray:
    """Forces (k, g) along z that the wrong model lacks at the true motion."""
    truth, model = world(mechanism)
    partition, of = model.partition(), LinkageObserver(model, 'errorEKF', (), {'acceleration': 1.0}).problem
    forces = []
    for q, qd, qdd in zip(truth.motion.q[1:], truth.motion.qd[1:], truth.motion.qdd[1:]):
        zdd = partition.rates(q, qd[truth.z]).zdd
        B = np.array(of.rates(q, qd[truth.z], np.zeros(of.system.u.numel()), 0.0, model.parameters)[2])
        forces.append(np.linalg.solve(B[of.g:, -of.g:], qdd[truth.z] - zdd))
    return np.array(forces)


def test_is_kalmans_filter_on_a_linear_mechanism(tmp_path):
    text = linear.TEXT + '  ax: {kind: accelerometer, point: first.S, axes: [[1, 0]], stddev: 0.2}\n'
    path = tmp_path / 'masses.yaml'
    path.write_text(text)
    model, sensors = load_model(str(path)), ('ex', 'ry', 'gap', 'ax', 'ay')
    observer = LinkageObserver(model, 'kinematic', sensors, {'acceleration': 0.1, 'force_walk': 1.0}, silent=1e8)
    log, random = linear.Log(), np.random.default_rng(3)
    measured = np.column_stack([log.measured[:, :3], random.normal(size=(log.steps, 2))])
    observer.start(*linear.coordinates(model, linear.START), linear.START_STDDEV)
    found = observer.run(log.t, measured, log.u[:, None])
    dt, eye, zero = linear.DT, np.eye(2), np.zeros((2, 2))
    F, enter = np.block([[eye, eye * dt], [zero, eye]]), np.vstack([eye * dt ** 2 / 2, eye * dt])
    Sigma = linear.double_integrator_noise(np.full(2, 0.1)) + enter @ np.diag([0.2 ** 2, 0.3 ** 2]) @ enter.T
    x, P, last = linear.START - linear.REST, np.diag(linear.START_STDDEV ** 2), measured[0, 3:]
    for k, sample in enumerate(measured):
        a = sample[3:]
        x = F @ x + np.concatenate([dt ** 2 * (last / 3 + a / 6), dt / 2 * (last + a)])
        x, P, _ = linear.update(x, F @ P @ F.T + Sigma, linear.H[:3],
                                sample[:3] - linear.outputs(x + linear.REST)[:3], linear.STDDEV[:3] ** 2)
        last = a
        np.testing.assert_allclose(found.mean[k], x + linear.REST, atol=1e-9)
    np.testing.assert_allclose(found.covariance, P, atol=1e-9)


@pytest.mark.parametrize('mechanism, sensors, bounds', [
    ('four_bar', FOUR, (0.004, 0.014, 0.05)), ('four_bar', ('coupler_gyro', 'crank_tip'), (0.001, 0.004, 0.08)),
    ('five_bar', FIVE, (0.004, 0.015, 0.2))])
def test_motion_without_dynamics(mechanism, sensors, bounds):
    found = estimates(mechanism, sensors)
    figures = errors(mechanism, found)
    assert np.all(figures < bounds), figures
    counted = found.used.sum(axis=1).mean()
    assert 0.8 * counted < found.nis[200:].mean() < 1.2 * counted
    assert np.linalg.eigvalsh(found.covariance)[0] > 0


@pytest.mark.parametrize('mechanism, sensors, share', [('four_bar', FOUR, 0.2), ('five_bar', FIVE, 0.15)])
def test_second_stage_finds_the_forces_that_the_model_lacks(mechanism, sensors, share):
    expected = missing_forces(mechanism)
    error = (estimates(mechanism, sensors).force - expected)[200:]
    assert np.sqrt(np.mean(error ** 2)) < share * np.sqrt(np.mean(expected ** 2))


def test_missing_samples_of_inputs_and_of_corrections():
    figures = errors('four_bar', estimates('four_bar', FOUR, 0.2))
    assert np.all(figures < (0.03, 0.6, 4.0)), figures


def test_gap_of_all_sensors_is_reported_and_recovered_from():
    truth, model = world('four_bar')
    observer = LinkageObserver(model, 'kinematic', FOUR, NOISES)
    measured, t = truth.sensors(FOUR), truth.motion.t[1:]
    measured[400:500] = np.nan
    observer.start()
    observer.run(t[:500], measured[:500])
    blind = observer.run(t[500:501], np.full((1, 3), np.nan)).covariance
    assert np.sqrt(blind[0, 0]) > 1.0
    measured[:] = truth.sensors(FOUR)
    found = observer.run(t[501:], measured[501:])
    assert abs(found.q[-1, model.z] - truth.motion.q[-1, model.z])[0] % (2 * np.pi) < 0.01


@pytest.mark.parametrize('sensors, expected', [
    (('encoder',), 'accelerometers'), (('crank_tip',), 'positions of theta'),
    (('crank_gyro', 'crank_tip'), 'positions')])
def test_sensors_that_do_not_suffice_are_refused(sensors, expected):
    with pytest.raises(SettingError, match=expected):
        LinkageObserver(world('four_bar')[1], 'kinematic', sensors, NOISES)


def test_chosen_inputs():
    model = world('four_bar')[1]
    observer = LinkageObserver(model, 'kinematic', FOUR, NOISES, inputs=('crank_tip.x',))
    observer.start()
    found = observer.run(np.array([DT, 2 * DT]), world('four_bar')[0].sensors(FOUR)[:2])
    np.testing.assert_array_equal(found.used, [[1, 0, 1]] * 2)      # the other axis corrects
    with pytest.raises(SettingError, match='crank_tip.x'):
        LinkageObserver(model, 'kinematic', FOUR, NOISES, inputs=('encoder',))
