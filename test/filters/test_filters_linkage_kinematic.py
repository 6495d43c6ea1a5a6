# SPDX-License-Identifier: Apache-2.0
"""Kinematic estimator: Kalman's filter where that is exact, motion without dynamics, forces in a second stage."""

from __future__ import annotations

import math
from functools import lru_cache

import linkage_linear as linear
import numpy as np
import pytest

from mbse_ros.dynamics.model import Model, load_model
from mbse_ros.errors import SettingError
from mbse_ros.filters.kinematic import MODELS
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

GRAVITY, LENGTH = 9.81, 2.0
TABLE = {'forward_euler': ([1.0], [[0.0]]), 'midpoint': ([0.0, 1.0], [[0.0, 0.0], [0.5, 0.0]]),
         'heun': ([0.5, 0.5], [[0.0, 0.0], [1.0, 0.0]]), 'trapezoid': ([0.5, 0.5], [[0.0, 0.0], [0.5, 0.5]]),
         'rk4': ([1 / 6, 1 / 3, 1 / 3, 1 / 6], [[0, 0, 0, 0], [0.5, 0, 0, 0], [0, 0.5, 0, 0], [0, 0, 1.0, 0]])}
SIGMA = 17.453e-3, 5.637583e-2          # encoder, and both axes of the accelerometer at the crank's tip


def eq_86(x, u):
    """``[zd; (R'R)^-1 R' (u - Rdot zd)]``: both axes of the crank's tip, across and along it, and its slopes."""
    z, zd = x[:2]
    R = np.array([LENGTH, 0.0])
    rest = np.array([GRAVITY * np.cos(z), -LENGTH * zd ** 2 + GRAVITY * np.sin(z)])
    return np.array([zd, R @ (u - rest) / (R @ R)]), np.array([[0.0, 1.0], [GRAVITY * np.sin(z) / LENGTH, 0.0]])


def eq_87(x, u, beta, shares):
    """State after the step, its derivative by the state and by an error of the measured acceleration."""
    kappa, K, E = [np.zeros(2)] * len(beta), [np.zeros((2, 2))] * len(beta), [np.zeros(2)] * len(beta)
    for _ in range(30 if np.diag(shares).any() else len(beta)):     # exact at once where the method is explicit
        for i, row in enumerate(shares):
            kappa[i], A = eq_86(x + DT * sum(c * k for c, k in zip(row, kappa)), u)
            K[i] = A @ (np.eye(2) + DT * sum(c * k for c, k in zip(row, K)))
            E[i] = np.array([0.0, 1.0]) + A @ (DT * sum(c * k for c, k in zip(row, E)))
    step = [DT * sum(b * part for b, part in zip(beta, parts)) for parts in (kappa, K, E)]
    return x + step[0], np.eye(2) + step[1], step[2]


def walk(q, blocks):
    """Noise of a density q on the last of a chain of integrators, and its transition."""
    powers = [DT ** k / math.factorial(k) for k in range(blocks)]
    F = sum(p * np.eye(blocks, k=k) for k, p in enumerate(powers))
    last = range(blocks - 1, -1, -1)
    return F, q * np.array([[DT ** (i + j + 1) / ((i + j + 1) * math.factorial(i) * math.factorial(j)) for j in last]
                            for i in last])


def by_hand(samples, theta, motion, acceleration, q, jerk, silent=1e3):
    """Means and covariances of section 8 on the four-bar, from rest at theta: samples (k, 3) of the encoder and of both
    axes at the crank's tip, which also correct where the acceleration is in the state."""
    size = 2 if acceleration == 'input' else 3
    x, P, found, before = np.append([theta, 0.0], np.zeros(size - 2)), 0.0076 * np.eye(size), [], None
    C = SIGMA[1] ** 2 / LENGTH ** 2
    for o in samples:
        u = o[1:]
        if acceleration in ('random_walk', 'derivative'):
            F, Q = walk(jerk, 3)
            x = F @ x
            if acceleration == 'derivative':
                after = eq_86(x, u)[0][1]
                enter = np.array([DT ** 2 / 6, DT / 2, 1.0])
                x = x + enter * (0.0 if before is None else after - before)
                Q, before = Q + 2 * C * np.outer(enter, enter), after
        else:
            end, F, enter = eq_87(x[:2], u, *TABLE[motion])
            Q = walk(q, 2)[1] + C * np.outer(enter, enter)
            if acceleration == 'differences':
                onto = np.vstack([np.eye(2), [0.0, 1 / DT]])
                F = np.column_stack([onto @ F - [[0, 0], [0, 0], [0, 1 / DT]], np.zeros(3)])
                Q = onto @ Q @ onto.T + np.diag([0, 0, jerk * DT])
                end = np.append(end, (end[1] - x[1]) / DT)
            x = end
        if size == 3 and not found:
            Q = Q + np.diag([0.0, 0.0, silent ** 2])
        P = F @ P @ F.T + Q
        z, zd, *zdd = x
        h, H, R = np.array([z]), np.eye(size)[:1], np.array([SIGMA[0] ** 2])
        if size == 3:
            h = np.append(h, [LENGTH * zdd[0] + GRAVITY * np.cos(z), GRAVITY * np.sin(z) - LENGTH * zd ** 2])
            H = np.vstack([H, [-GRAVITY * np.sin(z), 0.0, LENGTH], [GRAVITY * np.cos(z), -2 * LENGTH * zd, 0.0]])
            R = np.array([SIGMA[0] ** 2, *[SIGMA[1] ** 2] * 2])
        K = P @ H.T @ np.linalg.inv(H @ P @ H.T + np.diag(R))
        x, P = x + K @ (o[:len(h)] - h), (np.eye(size) - K @ H) @ P
        found.append(x)
    return np.array(found), P


@pytest.mark.parametrize('motion, acceleration', [
    *((motion, 'input') for motion in TABLE), ('linear', 'random_walk'), ('linear', 'derivative'),
    ('forward_euler', 'differences'), ('rk4', 'differences')])
def test_section_8_as_printed(motion, acceleration):
    """Eqs. 85 to 87 and the three models of the acceleration, each in plain NumPy, with both accelerometer axes."""
    truth, _ = world('four_bar')
    model, noises = load_model('four_bar'), {'acceleration': 1e-3, 'jerk': 20.0, 'force_walk': 1e3}
    measured = noisy(truth.sensors(FOUR), np.array([SIGMA[0], *[SIGMA[1]] * 2]), 3)[:300]
    means, P = by_hand(measured, truth.motion.q[0, model.z][0] + 0.02, motion, acceleration, 1e-3, 20.0)
    for given in (motion, TABLE[motion]) if motion == 'rk4' and acceleration == 'input' else (motion,):
        observer = LinkageObserver(model, 'kinematic', FOUR, None, silent=1e8 if acceleration == 'input' else 1e3,
                                   motion=given, acceleration=acceleration)
        observer.tune({name: noises[name] for name in observer.filter.noises})
        q = model.position(model.start.q[model.z] + 0.02, model.start.q)
        observer.start(q, 0 * q, np.sqrt(0.0076))
        found = observer.run(truth.motion.t[1:301], measured)
        assert (np.abs(found.mean - means) / np.abs(means).max(axis=0)).max() < 1e-7
        assert np.abs(found.covariance / P - 1).max() < 1e-6


def test_accelerations_in_the_state_use_the_accelerometers_twice():
    """The axis along the crank shows its speed, which Eq. 86 cannot take as an input: two thirds of the velocity's
    error are gone, and a velocity is lost that holds the sample over the step."""
    truth, model = world('four_bar')
    velocities = {}
    for options in ({}, {'motion': 'rk4'}, *({'acceleration': name} for name in MODELS[1:])):
        observer = LinkageObserver(model, 'kinematic', FOUR, None, history=True, **options)
        observer.start(wrong_start(model))
        found = observer.run(truth.motion.t[1:], noisy(truth.sensors(FOUR), observer.stddev, 3))
        position, velocities[tuple(options.values())], acceleration = errors('four_bar', found)
        assert position < 0.004 and acceleration < 0.05
        if 'acceleration' in options:
            assert observer.names == ('position/theta', 'velocity/theta', 'acceleration/theta')
    assert velocities['rk4',] > 1.5 * velocities[()]
    assert all(velocities[name,] < 0.6 * velocities[()] for name in MODELS[1:])


@pytest.mark.parametrize('options, named', [
    ({'motion': 'rk5'}, 'rk4'), ({'motion': ((1.0,), ((0.0, 0.0),))}, 'beta'), ({'motion': ((0.7,), ((0.0,),))}, 'sum'),
    ({'motion': 3.0}, 'beta'), ({'acceleration': 'random'}, 'random_walk'),
    ({'motion': 'rk4', 'acceleration': 'derivative'}, 'motion')])
def test_options_that_do_not_fit_are_refused(options, named):
    with pytest.raises(SettingError, match=named):
        LinkageObserver(world('four_bar')[1], 'kinematic', FOUR, None, **options)
