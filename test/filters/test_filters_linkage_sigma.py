# SPDX-License-Identifier: Apache-2.0
"""Sigma-point filters: on a linear mechanism Kalman's filter; moments, missing samples, gate, angles, figures."""

from __future__ import annotations

from functools import lru_cache

import casadi as ca
import linkage_linear as linear
import numpy as np
import pytest

from mbse_ros.dynamics.model import load_model
from mbse_ros.dynamics.motion import simulate
from mbse_ros.errors import SettingError
from mbse_ros.filters.filters import default_noises
from mbse_ros.filters.observer import LinkageEstimates, LinkageObserver
from mbse_ros.filters.sigma_filter import SigmaPoints, simplex_points, symmetric_points
from mbse_ros.simulation.three_simulations import TrueMotion, noisy, true_motion, wrong_model, wrong_start

pytestmark = pytest.mark.usefixtures('vm')

DENSITY = np.array([0.8, 0.3])
LOG = linear.Log()
SETS = [('UKF', {}), ('UKF', {'alpha': 1.0, 'beta': 0.0}), ('UKF', {'alpha': 0.5, 'kappa': 1.0}), ('SSUKF', {}),
        ('SSUKF', {'w0': 0.6})]


@pytest.fixture(scope='module')
def masses(tmp_path_factory):
    return linear.model(str(tmp_path_factory.mktemp('linear')))


def run_linear(model, estimator: str, measured: np.ndarray, gate: float = 1.0, start: object = linear.START_STDDEV,
               **options) -> LinkageEstimates:
    observer = LinkageObserver(model, estimator, linear.SENSORS, {'acceleration': DENSITY}, gate=gate, **options)
    observer.start(*linear.coordinates(model, linear.START), start)
    return observer.run(LOG.t, measured, LOG.u[:, None])


def exact() -> linear.Result:
    mean = linear.cayley(linear.A)
    return linear.kalman(LOG, mean, (mean[0], linear.double_integrator_noise(DENSITY)))


@pytest.mark.parametrize('estimator, options', SETS)
def test_is_kalmans_filter_on_a_linear_mechanism(masses, estimator, options):
    found, expected = run_linear(masses, estimator, LOG.measured, **options), exact()
    np.testing.assert_allclose(found.mean, expected.mean, atol=1e-9)
    np.testing.assert_allclose(found.covariance, expected.covariance, atol=1e-9)
    np.testing.assert_allclose(found.nis, expected.nis, rtol=1e-7, atol=1e-7)


def test_the_usual_small_alpha_costs_digits_only(masses):
    """Its mean is the model's rounding divided by alpha^2."""
    found, expected = run_linear(masses, 'UKF', LOG.measured, alpha=1e-3), exact()
    np.testing.assert_allclose(found.mean, expected.mean, atol=1e-6)
    np.testing.assert_allclose(found.covariance, expected.covariance, atol=1e-11)


def test_reused_points_do_not_see_the_noise_of_the_step(masses):
    """Naya et al., review, end of 4.1: as Kalman's filter, but for the noise that the measurements' covariances
    lack."""
    found = run_linear(masses, 'UKF', LOG.measured, reuse=True)
    (F, G), Sigma, H = linear.cayley(linear.A), linear.double_integrator_noise(DENSITY), linear.H
    x, P = linear.START - linear.REST, np.diag(linear.START_STDDEV ** 2)
    for k, (o, u) in enumerate(zip(LOG.measured, LOG.u)):
        x, M = F @ x + G * u, F @ P @ F.T
        there = np.isfinite(o)
        C, S = H[there], H[there] @ M @ H[there].T + np.diag(linear.STDDEV[there] ** 2)
        K = M @ C.T @ np.linalg.inv(S)
        x, P = x + K @ (o - linear.outputs(x + linear.REST))[there], M + Sigma - K @ S @ K.T
        np.testing.assert_allclose(found.mean[k], x + linear.REST, atol=1e-9)
    np.testing.assert_allclose(found.covariance, P, atol=1e-9)


@pytest.mark.parametrize('estimator', ['UKF_acceleration', 'SSUKF_acceleration'])
def test_acceleration_state_on_a_linear_mechanism(masses, estimator):
    """Kalman's filter of the accelerations; positions and velocities by the trapezoidal rule from the step before."""
    found = run_linear(masses, estimator, LOG.measured, start=0.4, alone=True)
    dt, b = linear.DT, linear.B[2:]
    z, zd = (linear.START - linear.REST)[:2], linear.START[2:]
    a, P = linear.A21 @ z + linear.A22 @ zd, 0.16 * np.eye(2)
    stiffness = linear.A21 * dt ** 2 / 4 + linear.A22 * dt / 2
    F = np.linalg.solve(np.eye(2) - stiffness, stiffness)
    H = linear.H.copy()
    H[3] = 0
    H = H[:, :2] * dt ** 2 / 4 + H[:, 2:] * dt / 2 + np.array([[0, 0], [0, 0], [0, 0], [0, 1]])
    for k, (o, u) in enumerate(zip(LOG.measured, LOG.u)):
        z0, zd0 = z + dt * zd + dt ** 2 / 4 * a, zd + dt / 2 * a
        a = np.linalg.solve(np.eye(2) - stiffness, linear.A21 @ z0 + linear.A22 @ zd0 + b * u)
        P = F @ P @ F.T + np.diag(DENSITY) * dt
        state = np.concatenate([z0 + dt ** 2 / 4 * a, zd0 + dt / 2 * a])
        seen = linear.outputs(state + linear.REST)
        seen[3] = a[1]
        a, P, nis = linear.update(a, P, H, o - seen, linear.STDDEV ** 2)
        z, zd = z0 + dt ** 2 / 4 * a, zd0 + dt / 2 * a
        np.testing.assert_allclose(found.mean[k], a, atol=1e-8)
        np.testing.assert_allclose(found.q[k, masses.z], z + linear.REST[:2], atol=1e-9)
        np.testing.assert_allclose(found.qd[k, masses.z], zd, atol=1e-9)
        np.testing.assert_allclose(found.qdd[k, masses.z], a, atol=1e-8)
        assert found.nis[k] == pytest.approx(nis, rel=1e-6, abs=1e-6)
    np.testing.assert_allclose(found.covariance, P, rtol=1e-6)


@pytest.mark.parametrize('estimator', ['UKF_acceleration', 'SSUKF_acceleration'])
def test_state_with_accelerations_on_a_linear_mechanism(masses, estimator):
    """Kalman's filter of ``[z, zd, zdd]`` by the trapezoidal rule, its noise that of the accelerations."""
    start = np.append(linear.START_STDDEV, [0.4, 0.2])
    found = run_linear(masses, estimator, LOG.measured, start=start)
    half, eye, zero = linear.DT / 2 * np.eye(2), np.eye(2), np.zeros((2, 2))
    left = np.block([[eye, -half, zero], [zero, eye, -half], [-linear.A21, -linear.A22, eye]])
    right = np.block([[eye, half, zero], [zero, eye, half], [zero, zero, zero]])
    F, G = np.linalg.solve(left, right), np.linalg.solve(left, np.append(np.zeros(4), linear.B[2:]))
    Sigma = np.diag([0, 0, 0, 0, *4 * DENSITY / linear.DT])
    H = np.hstack([linear.H, np.zeros((4, 2))])
    H[3] = [0, 0, 0, 0, 0, 1]
    x, P = np.append(linear.START - linear.REST, linear.A[2:] @ (linear.START - linear.REST)), np.diag(start ** 2)
    for k, (o, u) in enumerate(zip(LOG.measured, LOG.u)):
        x, P = F @ x + G * u, F @ P @ F.T + Sigma
        seen = linear.outputs(x[:4] + linear.REST)
        seen[3] = x[5]
        x, P, nis = linear.update(x, P, H, o - seen, linear.STDDEV ** 2)
        np.testing.assert_allclose(found.mean[k, :4], x[:4] + linear.REST, atol=1e-9)
        np.testing.assert_allclose(found.qdd[k, masses.z], x[4:], atol=1e-7)
        assert found.nis[k] == pytest.approx(nis, rel=1e-6, abs=1e-6)
    np.testing.assert_allclose(found.covariance, P, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize('points', [symmetric_points(3), symmetric_points(3, 1.0, 0.0, 0.0), symmetric_points(1, 0.3),
                                    simplex_points(4), simplex_points(1, 0.3), simplex_points(5, 0.0)])
def test_points_have_the_mean_and_covariance(points):
    D, w = points.directions, points.weights
    np.testing.assert_allclose(D @ w, 0, atol=1e-9)
    np.testing.assert_allclose((D * w) @ D.T, np.eye(points.size), atol=1e-9)


@pytest.mark.parametrize('points', [symmetric_points(3, 0.1, 2.0), symmetric_points(3, 1.0, 0.0, 1.0),
                                    simplex_points(3, 0.4)])
def test_moments_are_those_of_the_weighted_sums(points):
    """Naya et al., review, Eqs. 38 and 39 as printed."""
    values = np.random.default_rng(0).normal(size=(2, points.number + 1))
    mean_weights = np.append(1 - np.sum(points.weights), points.weights)
    weights = np.append(points.centre, points.weights)
    mean = values @ mean_weights
    away = values - mean[:, None]
    shift, root = points.moments(ca.SX(values[:, 1:] - values[:, :1]))
    shift, root = np.array(ca.DM(shift)), np.array(ca.DM(root))
    np.testing.assert_allclose(values[:, 0] + shift.ravel(), mean, atol=1e-10)
    np.testing.assert_allclose(root @ root.T, (away * weights) @ away.T, rtol=1e-9)


def test_weights_of_the_ukf():
    points = symmetric_points(4, 0.5, 2.0, 1.0)
    lam = 0.25 * 5 - 4
    assert points.centre == pytest.approx(lam / (4 + lam) + 1 - 0.25 + 2)
    assert points.weights == pytest.approx(0.5 / (4 + lam))


@pytest.mark.parametrize('made, name', [
    (lambda: symmetric_points(2, 0.0), 'alpha'), (lambda: symmetric_points(2, 1.5), 'alpha'),
    (lambda: symmetric_points(2, 0.5, 2.0, -2.0), 'kappa'), (lambda: symmetric_points(4, 0.5, 0.0), 'beta'),
    (lambda: simplex_points(2, 1.0), 'w0'), (lambda: simplex_points(2, -0.1), 'w0'),
    (lambda: SigmaPoints(np.eye(2), np.ones(2), -1.0).check(), 'beta')])
def test_refuses_points_without_a_covariance(made, name):
    with pytest.raises(SettingError, match=name):
        made()


def test_samples_that_the_gate_leaves_out_are_as_missing(masses):
    wild, missing = LOG.measured.copy(), LOG.measured.copy()
    wild[50:60, 1] += 1e6 * linear.STDDEV[1]
    wild[100, 2] = np.inf
    missing[50:60, 1] = missing[100, 2] = np.nan
    found = run_linear(masses, 'UKF', wild, gate=1 - 1e-12)
    expected = run_linear(masses, 'UKF', missing, gate=1 - 1e-12)
    np.testing.assert_array_equal(found.mean, expected.mean)
    assert not found.used[50:60, 1].any() and found.used[61:, 1].any()
    assert np.all(np.abs(found.innovation[50:60, 1][np.isfinite(LOG.measured[50:60, 1])]) > 1e4)


def test_without_measurements_the_model_runs_by_itself():
    model = load_model('four_bar')
    observer = LinkageObserver(model, 'UKF', ['encoder'], {'acceleration': 1e-12})
    observer.start(stddev=1e-9)
    t = 0.005 * np.arange(1, 401)
    found = observer.run(t, np.full((400, 1), np.nan))
    motion = simulate(model, 2.0, 0.005, 'trapezoid')
    np.testing.assert_allclose(found.q, motion.q[1:], atol=1e-7)
    assert not found.used.any() and not found.innovation.any()


def test_ukf_and_ekf_agree_as_noise_goes_to_zero():
    """The difference goes with the square of the noise; the DEKF has the exact Jacobian of the same rule."""
    model = load_model('four_bar')
    motion = simulate(model, 2.0, 0.005, 'trapezoid')
    noise = np.random.default_rng(3).normal(size=(400, 1))

    def difference(size: float) -> float:
        means = []
        for estimator, options in (('UKF', {}), ('DEKF', {'transition': 'trapezoid'})):
            observer = LinkageObserver(model, estimator, ['encoder'], {'acceleration': 10.0 * size ** 2},
                                       [0.02 * size], **options)
            observer.start(stddev=0.05 * size)
            means.append(observer.run(motion.t[1:], motion.q[1:, model.z] + 0.02 * size * noise).mean)
        return float(np.max(np.abs(means[0] - means[1])))

    large, small = difference(1.0), difference(0.1)
    assert large > 1e-5 and small < 0.02 * large


def test_inclinometer_wraps(tmp_path):
    """A pendulum that turns over: an angle from -180 to 180 deg says as much as a shaft's that counts turns."""
    path = tmp_path / 'turning.yaml'
    path.write_text("""
format: mbse/mechanism/1
name: turning
gravity: 9.81
points: {O: {fixed: [0, 0]}, P: [1, 0]}
bodies: {rod: {points: [O, P], mass: 1 kg, uniform: true}}
named: {theta: {angle: rod}}
independent: [theta]
initial: {position: {theta: 3.0}, velocity: {theta: 8.0}}
sensors:
  shaft: {kind: encoder, coordinate: theta, stddev: 0.02}
  level: {kind: inclinometer, body: rod, stddev: 0.02}
""")
    model = load_model(str(path))
    motion = simulate(model, 2.0, 0.005, 'trapezoid')
    angle = motion.of('theta')[1:] + 0.02 * np.random.default_rng(0).normal(size=400)
    assert np.max(angle) > 3 * np.pi
    wrapped = (angle + np.pi) % (2 * np.pi) - np.pi
    for estimator in ('UKF', 'SSUKF'):
        means = []
        for sensor, measured in (('shaft', angle), ('level', wrapped)):
            observer = LinkageObserver(model, estimator, [sensor], {'acceleration': 0.5})
            observer.start(stddev=0.3)
            means.append(observer.run(motion.t[1:], measured[:, None]).mean)
        np.testing.assert_allclose(means[0], means[1], atol=1e-7)


@pytest.mark.parametrize('estimator', ['UKF', 'SSUKF'])
def test_points_stay_where_the_mechanism_closes(estimator):
    """A gap of 30 s: the covariance grows beyond all angles, the filter lives on and finds back."""
    truth, wrong = benchmark(), wrong_model(benchmark().model)
    observer = LinkageObserver(wrong, estimator, ['encoder'], {'acceleration': 10.0})
    observer.start()
    gap = observer.run(0.005 * np.arange(1, 6001), np.full((6000, 1), np.nan))
    assert np.sqrt(gap.covariance[0, 0]) > 10
    found = observer.run(truth.motion.t[1:], truth.sensors(('encoder',)))
    assert np.max(np.abs(found.q[-400:, wrong.z] - truth.motion.q[-400:, truth.z])) < 0.02


@pytest.mark.parametrize('estimator', ['UKF', 'SSUKF', 'CEKF'])
def test_covariance_stays_positive_over_many_steps(estimator, monkeypatch):
    """10^5 steps; the log is repeated, so that the crank jumps every ten seconds, and the noises are far too small."""
    monkeypatch.delenv('MBSE_BACKEND')      # for so many it pays to compile
    truth, wrong = benchmark(), wrong_model(benchmark().model)
    observer = LinkageObserver(wrong, estimator, ['crank_gyro', 'encoder'], {'acceleration': 1e-6}, [1e-6, 1e-3])
    observer.start(wrong_start(wrong), np.zeros(len(wrong.names)))
    measured = noisy(truth.sensors(('crank_gyro', 'encoder')), observer.stddev, 1)
    for _ in range(50):
        found = observer.run(truth.motion.t[1:], measured)
        deviation = np.sqrt(np.diag(found.covariance))
        assert np.all(np.linalg.eigvalsh(found.covariance / np.outer(deviation, deviation)) > 0)
        assert np.all(found.innovation_variance > 0)


# The four-bar of Naya et al., review, section 12: 10 s at 200 Hz, gravity 1 m/s2 and the crank pi/16 wrong.

@lru_cache(maxsize=1)
def benchmark() -> TrueMotion:
    return true_motion(load_model('four_bar'), 10.0, 0.005)


def errors(estimator: str, sensor: str, seed: int = 1, density: float = 0.0916298, **options) -> tuple[float, float]:
    """RMSE of the crank angle over 10 s and after 2 s, rad."""
    truth, wrong = benchmark(), wrong_model(benchmark().model)
    observer = LinkageObserver(wrong, estimator, [sensor], {'acceleration': density}, **options)
    observer.start(wrong_start(wrong), np.zeros(len(wrong.names)))
    found = observer.run(truth.motion.t[1:], noisy(truth.sensors((sensor,)), observer.stddev, seed))
    away = found.q[:, wrong.z] - truth.motion.q[1:, truth.z]
    return float(np.sqrt(np.mean(away ** 2))), float(np.sqrt(np.mean(away[400:] ** 2)))


@pytest.mark.parametrize('estimator, options', [
    ('UKF', {}), ('UKF', {'reuse': True}), ('SSUKF', {}), ('UKF_acceleration', {}), ('SSUKF_acceleration', {})])
@pytest.mark.parametrize('sensor, whole, later', [
    ('encoder', 0.0057, 0.0057), ('crank_gyro', 0.0306, 0.00275), ('coupler_gyro', 0.0290, 0.0024)])
def test_four_bar_figures(estimator, options, sensor, whole, later):
    """At least those of the authors' toolbox, which reuses its points: after 2 s with the gyros 0.0027 and 0.0024."""
    found = errors(estimator, sensor, **options)
    assert found[0] <= whole and found[1] <= later


def test_accelerations_alone_see_the_encoder_but_not_the_offset_by_the_crank_gyro():
    assert errors('UKF_acceleration', 'encoder', density=1e6, alone=True)[0] < 0.3
    later = errors('UKF_acceleration', 'crank_gyro', density=1e6, alone=True)[1]
    assert later == pytest.approx(np.pi / 16, rel=0.01)


@pytest.mark.parametrize('every', [3, 10])
def test_samples_rarer_than_steps(every):
    """Naya et al., review, section 4.3, Table 1, on the four-bar with an encoder: the published CEKF is then many times
    less accurate than sigma points, which are as good with an explicit Runge-Kutta method as with the trapezoidal
    rule."""
    model = load_model('four_bar')
    truth, wrong, later = true_motion(model, 4.0, 0.005), wrong_model(model), []
    for estimator, options in (('SSUKF', {}), ('SSUKF', {'transition': 'heun'}), ('CEKF_published', {})):
        observer = LinkageObserver(wrong, estimator, ('encoder',), default_noises(estimator, 'four_bar'), **options)
        observer.start(wrong_start(wrong), stddev=np.radians(5))
        samples = noisy(truth.sensors(('encoder',)), observer.stddev, 1)
        samples[np.arange(len(samples)) % every != every - 1] = np.nan
        found = observer.run(truth.motion.t[1:], samples)
        later.append(np.sqrt(np.mean((found.q - truth.motion.q[1:])[400:, truth.z] ** 2)))
    assert later[1] == pytest.approx(later[0], rel=0.01) and later[2] > 2 * later[0]
