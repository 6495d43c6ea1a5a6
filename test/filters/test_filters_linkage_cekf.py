# SPDX-License-Identifier: Apache-2.0
"""Continuous filters: on a linear mechanism Kalman's filter; positive; the published variant as published."""

from __future__ import annotations

from functools import lru_cache

import linkage_linear as linear
import numpy as np
import pytest

from mbse_ros.dynamics.model import load_model
from mbse_ros.errors import DivergenceError, SettingError
from mbse_ros.filters.cekf import published_jacobian
from mbse_ros.filters.cekf_penalty import penalty_rates, tangents
from mbse_ros.filters.observer import LinkageEstimates, LinkageObserver
from mbse_ros.filters.parts.problem import problem
from mbse_ros.filters.parts.update import conditioning, correction, factor
from mbse_ros.simulation.three_simulations import TrueMotion, noisy, true_motion, wrong_model, wrong_start
from mbse_ros.transition.noise import van_loan

pytestmark = pytest.mark.usefixtures('vm')

DENSITY = np.array([0.8, 0.3])
LOG = linear.Log()


@pytest.fixture(scope='module')
def masses(tmp_path_factory):
    return linear.model(str(tmp_path_factory.mktemp('linear')))


def run_linear(model, estimator: str, start: np.ndarray = linear.START_STDDEV, **options) -> LinkageEstimates:
    observer = LinkageObserver(model, estimator, linear.SENSORS, {'acceleration': DENSITY}, **options)
    observer.start(*linear.coordinates(model, linear.START), start)
    return observer.run(LOG.t, LOG.measured, LOG.u[:, None])


def test_cekf_is_kalmans_filter_on_a_linear_mechanism(masses):
    found = run_linear(masses, 'CEKF')
    W = np.diag([0, 0, *DENSITY])
    exact = linear.kalman(LOG, linear.cayley(linear.A), van_loan(linear.A, W, linear.DT))
    np.testing.assert_allclose(found.mean, exact.mean, atol=1e-9)
    np.testing.assert_allclose(found.covariance, exact.covariance, atol=1e-9 * np.max(exact.covariance))
    np.testing.assert_allclose(found.nis, exact.nis, rtol=1e-9, atol=1e-9)


def test_penalty_is_kalmans_filter_on_a_linear_mechanism(masses):
    n, places = len(masses.names), [*masses.z, *(len(masses.names) + i for i in masses.z)]
    stddev = np.zeros(2 * n)
    stddev[places] = linear.START_STDDEV
    found = run_linear(masses, 'CEKF_penalty', stddev, alpha=1e14)
    mean = linear.cayley(linear.A)
    exact = linear.kalman(LOG, mean, (mean[0], linear.double_integrator_noise(DENSITY)))
    np.testing.assert_allclose(found.mean[:, places], exact.mean, atol=1e-9)
    np.testing.assert_allclose(found.covariance[np.ix_(places, places)], exact.covariance, atol=1e-9)
    np.testing.assert_allclose(found.nis, exact.nis, rtol=1e-7, atol=1e-7)


def test_published_takes_euler_steps_of_the_riccati_equation(masses):
    stddev = 20 * linear.STDDEV                 # with less noise Euler's steps are not stable
    found = run_linear(masses, 'CEKF_published', stddev=stddev)
    A, dt, variance = linear.A, linear.DT, stddev ** 2
    W, x, P = np.diag([0, 0, *DENSITY]), linear.START - linear.REST, np.diag(linear.START_STDDEV ** 2)
    H = linear.H.copy()
    H[3] = 0                                    # the accelerations' derivative is left out
    for k, (o, u) in enumerate(zip(LOG.measured, LOG.u)):
        there = np.isfinite(o)
        C, K = H[there], P @ H[there].T / variance[there]
        offset = (o - linear.outputs(np.zeros(4) + linear.REST))[there]
        rate, seen = A @ x + linear.B * u, linear.H[there]
        x = np.linalg.solve(np.eye(4) - dt / 2 * (A - K @ seen),
                            x + dt / 2 * (rate + linear.B * u + K @ offset))
        P = P + dt * (A @ P + P @ A.T + W - K @ C @ P)
        np.testing.assert_allclose(found.mean[k], x + linear.REST, atol=1e-9)
    np.testing.assert_allclose(found.covariance, P, atol=1e-9)


def test_published_jacobian_is_the_papers_not_the_exact_one():
    model = load_model('four_bar')
    of = problem(model, ['encoder'])
    q = model.position(np.array([0.9]), model.start.q)
    published = np.array(published_jacobian(of)(q, [1.3], [0.0], 0.0, model.parameters))
    exact = np.array(of.rates(q, [1.3], [0.0, 0.0], 0.0, model.parameters)[1])
    assert published[1, 0] == pytest.approx(4.46, abs=0.005) and exact[1, 0] == pytest.approx(9.46, abs=0.005)
    assert published[1, 1] == pytest.approx(exact[1, 1] / 2, rel=1e-9)


@pytest.mark.parametrize('rows', [1, 3, 7])
def test_factor_of_a_semidefinite_matrix(rows):
    random = np.random.default_rng(rows)
    for _ in range(50):
        half = random.normal(size=(6, rows)) * 10.0 ** random.uniform(-8, 3, size=(6, 1))
        P = half @ half.T
        S = np.array(factor(6)(P))
        scale = np.sqrt(np.outer(np.diag(P), np.diag(P)))
        assert np.all(np.abs(S @ S.T - P) <= 1e-6 * scale) and np.all(np.triu(S, 1) == 0)


def test_factor_never_exceeds_the_standard_deviations():
    random = np.random.default_rng(0)
    for _ in range(200):
        P = random.normal(size=(5, 5)) * 10.0 ** random.uniform(-9, 2)
        P = P + P.T                                       # not even semidefinite
        P[np.diag_indices(5)] = np.abs(P[np.diag_indices(5)]) * random.integers(0, 2, 5)
        S = np.array(factor(5)(P))
        assert np.isfinite(S).all()
        assert np.all(np.sum(S ** 2, axis=1) <= np.diag(P) * (1 + 1e-12) + 1e-300)


def test_square_root_correction_is_the_correction():
    random = np.random.default_rng(1)
    half, H = random.normal(size=(4, 4)), random.normal(size=(3, 4))
    P, x, o, h = half @ half.T, random.normal(size=4), np.array([0.3, np.nan, 40.0]), np.array([0.1, 0.2, 0.3])
    variance, angular = np.array([0.1, 0.2, 1e-3]), (False, False, True)
    for gate in (1e300, 0.5):
        first = correction(4, angular)(x, P, o, h, H, variance, gate)
        second = conditioning(4, 4, angular)(x, half, o, h, H @ half, variance, gate)
        for one, other in zip(first, second):
            np.testing.assert_allclose(np.array(one), np.array(other), atol=1e-12)


def test_penalty_rates_and_their_jacobian():
    model = load_model('five_bar')
    of, alpha, zeta, omega = problem(model, ['encoder_1']), 1e7, 1.0, 10.0
    function = penalty_rates(of, alpha, zeta, omega)
    random = np.random.default_rng(0)
    x = np.concatenate([model.start.q, random.normal(size=8)]) + 1e-3 * random.normal(size=16)

    def rates(x: np.ndarray) -> np.ndarray:
        return np.concatenate([np.array(part).ravel()
                               for part in function(x[:8], x[8:], np.zeros(4), 0.0, model.parameters)[:2]])

    expected = model.accelerations(x[:8], x[8:], formulation='penalty', alpha=alpha, zeta=zeta, omega=omega)
    np.testing.assert_allclose(rates(x)[:8], expected, rtol=1e-8)
    steps = 1e-6 * np.eye(16)
    slope = np.array([(rates(x + step) - rates(x - step)) / 2e-6 for step in steps]).T
    _, _, A, dlam = function(x[:8], x[8:], np.zeros(4), 0.0, model.parameters)
    np.testing.assert_allclose(np.array(A)[8:], slope[:8], atol=1e-6 * np.max(np.abs(slope[:8])))
    np.testing.assert_allclose(np.array(dlam), slope[8:], atol=1e-6 * np.max(np.abs(slope[8:])))


def test_tangents_keep_the_constraints():
    model = load_model('five_bar')
    of, partition = problem(model, ['encoder_1']), model.partition()
    z, zd, step = model.start.q[model.z], np.array([0.7, -0.4]), 1e-6
    T = np.array(tangents(of)(model.start.q, zd, 0.0, model.parameters))

    def moved(by: np.ndarray) -> np.ndarray:
        q = partition.position(z + by, model.start.q)
        return np.concatenate([q, partition.velocity(q, zd)])

    slope = np.array([(moved(by) - moved(-by)) / (2 * step) for by in step * np.eye(2)]).T
    np.testing.assert_allclose(T[:, :2], slope, atol=1e-8)


@pytest.mark.parametrize('name', ['alpha', 'zeta', 'omega'])
def test_penalty_refuses_numbers_that_are_not_positive(name):
    with pytest.raises(SettingError, match=name):
        LinkageObserver(load_model('four_bar'), 'CEKF_penalty', ['encoder'], {'acceleration': 1.0}, **{name: 0.0})


# The four-bar of Naya et al., review, section 12: 10 s at 200 Hz, gravity 1 m/s2 and the crank pi/16 wrong.

@lru_cache(maxsize=1)
def benchmark() -> TrueMotion:
    return true_motion(load_model('four_bar'), 10.0, 0.005)


@lru_cache(maxsize=16)
def errors(estimator: str, sensor: str, seed: int = 1, density: float = 0.0916298) -> tuple[float, float]:
    """RMSE of the crank angle over 10 s and after 2 s, rad."""
    truth, wrong = benchmark(), wrong_model(benchmark().model)
    observer = LinkageObserver(wrong, estimator, [sensor], {'acceleration': density})
    observer.start(wrong_start(wrong), np.zeros(len(wrong.names)))
    found = observer.run(truth.motion.t[1:], noisy(truth.sensors((sensor,)), observer.stddev, seed))
    away = found.q[:, wrong.z] - truth.motion.q[1:, truth.z]
    assert np.all(np.linalg.eigvalsh(found.covariance) > -1e-12)
    return float(np.sqrt(np.mean(away ** 2))), float(np.sqrt(np.mean(away[400:] ** 2)))


@pytest.mark.parametrize('estimator', ['CEKF', 'CEKF_penalty'])
@pytest.mark.parametrize('sensor, whole, later', [
    ('encoder', 0.0057, 0.0057), ('crank_gyro', 0.0305, 0.0029), ('coupler_gyro', 0.0285, 0.0013)])
def test_four_bar_figures(estimator, sensor, whole, later):
    found = errors(estimator, sensor)
    assert found[0] <= whole and found[1] <= later


def test_published_four_bar_figures():
    """Those of the authors' toolbox: 0.0246 rad, 0.0162 rad after 2 s."""
    whole, later = errors('CEKF_published', 'encoder', density=0.733038)
    assert whole == pytest.approx(0.0246, rel=0.1) and later == pytest.approx(0.0162, rel=0.15)


def test_published_does_not_survive_the_crank_gyro():
    with pytest.raises(DivergenceError):
        errors('CEKF_published', 'crank_gyro', density=0.733038)


def test_penalty_keeps_the_constraints():
    truth, wrong = benchmark(), wrong_model(benchmark().model)
    observer = LinkageObserver(wrong, 'CEKF_penalty', ['encoder'], {'acceleration': 0.0916298})
    observer.start(wrong_start(wrong), np.zeros(len(wrong.names)))
    found = observer.run(truth.motion.t[1:401], noisy(truth.sensors(('encoder',))[:400], observer.stddev, 1))
    assert max(np.max(np.abs(wrong.residual(q)[0])) for q in found.q) < 1e-9


@pytest.mark.parametrize('seed', [5, 8])
def test_penalty_turns_its_covariance_with_the_constraints(seed):
    """Gyros on the couplers of the five-bar see almost nothing at the start, then large corrections follow."""
    model, sensors = load_model('five_bar'), ('coupler_gyro_1', 'coupler_gyro_2')
    truth, wrong = true_motion(model, 0.6, 0.005), wrong_model(model)
    observer = LinkageObserver(wrong, 'CEKF_penalty', sensors, {'acceleration': 0.549779})
    observer.start(wrong_start(wrong), np.zeros(len(wrong.names)))
    found = observer.run(truth.motion.t[1:], noisy(truth.sensors(sensors), observer.stddev, seed))
    assert np.abs(found.q[-1, wrong.z] - truth.motion.q[-1, truth.z]).max() < 0.02
