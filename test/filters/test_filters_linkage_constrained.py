# SPDX-License-Identifier: Apache-2.0
"""SCKF and DIEKFpm: on a linear mechanism Kalman's filter, on the constraints, positive, the papers' figures."""

from __future__ import annotations

from functools import lru_cache

import casadi as ca
import linkage_linear as linear
import numpy as np
import pytest
from motion_examples import PLATFORM

from mbse_ros.description.load import parse_mechanism
from mbse_ros.dynamics.model import Model, load_model
from mbse_ros.errors import SettingError
from mbse_ros.filters.constrained import imposed
from mbse_ros.filters.dependent import constraints, independent, sensed
from mbse_ros.filters.observer import LinkageEstimates, LinkageObserver
from mbse_ros.filters.parts.problem import problem
from mbse_ros.simulation.three_simulations import TrueMotion, noisy, true_motion, wrong_model, wrong_start

pytestmark = pytest.mark.usefixtures('vm')

BOTH = pytest.mark.parametrize('estimator', ['SCKF', 'DIEKFpm'])
DENSITY = np.array([0.8, 0.3])
LOG = linear.Log()
DT = 5e-3


@lru_cache(maxsize=2)
def world(mechanism: str) -> tuple[TrueMotion, Model]:
    model = load_model(mechanism)
    return true_motion(model, 10.0, DT), wrong_model(model)


def estimates(mechanism: str, estimator: str, sensors: tuple[str, ...], density: float,
              missing: float = 0.0) -> tuple[LinkageEstimates, np.ndarray]:
    """Estimates and the errors (k, g) of the independent coordinates."""
    truth, model = world(mechanism)
    observer = LinkageObserver(model, estimator, sensors, {'acceleration': density})
    measured = noisy(truth.sensors(sensors), observer.stddev, 1)
    measured[np.random.default_rng(2).random(measured.shape) < missing] = np.nan
    observer.start(wrong_start(model))
    found = observer.run(truth.motion.t[1:], measured)
    return found, found.q[:, truth.z] - truth.motion.q[1:, truth.z]


def rms(error: np.ndarray) -> float:
    return float(np.mean(np.sqrt(np.mean(error ** 2, axis=0))))


def violation(model: Model, found: LinkageEstimates, every: int = 50) -> float:
    terms = [model.terms(q, qd) for q, qd in zip(found.q[::every], found.qd[::every])]
    return max(float(np.abs(np.concatenate([of.Phi, of.Phidot])).max()) for of in terms)


@pytest.mark.parametrize('estimator, times', [('SCKF', 2), ('SCKF', 4), ('DIEKFpm', 6), ('DIEKFpm', 9)])
def test_is_kalmans_filter_on_a_linear_mechanism(tmp_path, estimator, times):
    model = linear.model(str(tmp_path))
    option = {'SCKF': 'passes', 'DIEKFpm': 'iterations'}[estimator]
    observer = LinkageObserver(model, estimator, linear.SENSORS, {'acceleration': DENSITY}, **{option: times})
    places = independent(observer.problem)
    stddev = np.zeros(2 * observer.problem.n)
    stddev[places] = linear.START_STDDEV
    observer.start(*linear.coordinates(model, linear.START), stddev)
    found = observer.run(LOG.t, LOG.measured, LOG.u[:, None])
    dt, eye, zero = linear.DT, np.eye(2), np.zeros((2, 2))
    mean = np.eye(4) + linear.A * dt, linear.B * dt
    spread = np.block([[eye, eye * dt], [zero, eye]]), np.diag([*DENSITY * dt ** 3 / 3, *DENSITY * dt])
    exact = linear.kalman(LOG, mean, spread)
    np.testing.assert_allclose(found.mean[:, places], exact.mean, atol=1e-9)
    np.testing.assert_allclose(found.covariance[np.ix_(places, places)], exact.covariance, atol=1e-9)


@BOTH
@pytest.mark.parametrize('mechanism, sensors, density, bounds', [
    ('four_bar', ('encoder',), 0.0916298, (0.0057, 0.060, 0.42)),
    ('four_bar', ('coupler_gyro',), 0.0916298, (0.047, 0.068, 0.50)),
    ('five_bar', ('encoder_1', 'encoder_2'), 0.549779, (0.0095, 0.33, 2.3))])
def test_benchmark_of_paper_001(estimator, mechanism, sensors, density, bounds):
    found, error = estimates(mechanism, estimator, sensors, density)
    truth, model = world(mechanism)
    figures = (rms(error), rms(found.qd[:, truth.z] - truth.motion.qd[1:, truth.z]),
               rms(found.qdd[:, truth.z] - truth.motion.qdd[1:, truth.z]))
    assert all(figure < bound for figure, bound in zip(figures, bounds)), figures
    assert violation(model, found) < 1e-12


@BOTH
def test_crank_gyro_alone_keeps_the_initial_error(estimator):
    _, error = estimates('four_bar', estimator, ('crank_gyro',), 0.0916298)
    assert 0.17 < rms(error) < 0.22


@BOTH
def test_missing_samples(estimator):
    found, error = estimates('four_bar', estimator, ('encoder',), 0.0916298, missing=0.5)
    assert rms(error) < 0.01
    assert 0.4 < found.used.mean() < 0.6


@BOTH
def test_redundant_rows_do_no_harm(estimator):
    sensors = 'sensors: {encoder: {kind: encoder, coordinate: theta, stddev: 0.01}}'
    model = load_model(parse_mechanism(PLATFORM + sensors))
    assert model.redundant
    truth = true_motion(model, 0.5, DT)
    observer = LinkageObserver(model, estimator, ('encoder',), {'acceleration': 0.1})
    observer.start()
    found = observer.run(truth.motion.t[1:], truth.sensors(('encoder',)))
    assert rms(found.q[:, truth.z] - truth.motion.q[1:, truth.z]) < 5e-3
    assert violation(model, found) < 1e-10


def test_derivatives_agree_with_differences():
    truth, model = world('five_bar')
    of = problem(model, ('encoder_1', 'coupler_gyro_2', 'tip_1'))
    x = np.concatenate([truth.motion.q[300], truth.motion.qd[300]])
    u, p, n = np.zeros(len(model.inputs)), model.parameters, of.n
    steps, places = 1e-6 * np.eye(2 * n), independent(of)
    C = np.array(constraints(of)(x, 0.0, p)[1])
    numbers = [np.array(constraints(of)(x + s, 0.0, p)[0] - constraints(of)(x - s, 0.0, p)[0]) for s in steps]
    np.testing.assert_allclose(C, np.hstack(numbers) / 2e-6, atol=1e-6)
    H = np.array(sensed(of)(x, u, 0.0, p)[1])
    numbers = [np.array(sensed(of)(x + s, u, 0.0, p)[0] - sensed(of)(x - s, u, 0.0, p)[0]) for s in steps]
    numbers = np.hstack(numbers) / 2e-6
    np.testing.assert_allclose(H[:2], numbers[:2], atol=1e-6)

    def along(z, zd):
        q = model.position(z, x[:n])
        return np.array(sensed(of)(np.concatenate([q, model.partition().velocity(q, zd)]), u, 0.0, p)[0]).ravel()
    z, zd = x[places[:2]], x[places[2:]]
    slopes = [(along(z + s, zd) - along(z - s, zd)) / 2e-6 for s in 1e-6 * np.eye(2)]
    slopes += [(along(z, zd + s) - along(z, zd - s)) / 2e-6 for s in 1e-6 * np.eye(2)]
    np.testing.assert_allclose(H[2:, places], np.array(slopes).T[2:], rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize('first, last', [(True, False), (False, False), (False, True)])
def test_constraints_imposed_by_matrices_and_by_scalars(monkeypatch, first, last):
    random = np.random.default_rng(0)
    C, root, half = random.normal(size=(3, 6)), random.normal(size=(6, 6)), random.normal(size=(3, 3))
    x, c, P, S = random.normal(size=6), random.normal(size=3), root @ root.T, half @ half.T
    own = C @ P @ C.T
    gain = P @ C.T @ np.linalg.inv(own + 0.1 * (own if first else S))
    expected = x - gain @ c, P if last else P - gain @ C @ P, own
    for scalar in (5000, 0):
        monkeypatch.setattr('mbse_ros.filters.constrained.SCALAR', scalar)
        found = imposed(6, ca.Sparsity.dense(3, 6), 0.1, first, last)(x, P, c, C, S)
        assert len(found) == 2 + first
        for one, other in zip(found, expected):
            np.testing.assert_allclose(np.array(one).squeeze(), other, atol=1e-8)


@BOTH
def test_constraints_are_no_measurement_of_z(estimator):
    """Without samples the variance of z is that of its noise, however the constraints turn."""
    _, model = world('four_bar')
    density, steps = 0.0916298, 6000
    observer = LinkageObserver(model, estimator, ('encoder',), {'acceleration': density})
    observer.start(stddev=0.0)
    found = observer.run(DT * np.arange(1, steps + 1), np.full((steps, 1), np.nan))
    places = independent(observer.problem)
    expected = density * (steps * DT) ** 3 / 3
    assert found.covariance[places[0], places[0]] == pytest.approx(expected, rel=1e-3)


@BOTH
def test_spread_of_innovations_is_that_along_the_constraints(estimator):
    """With sensors of dependent coordinates too: as the DEKF's, the slack takes no part in it."""
    found, plain = (estimates('four_bar', name, ('coupler_gyro',), 0.0916298)[0] for name in (estimator, 'DEKF'))
    assert 0.9 < np.median(found.innovation_variance[400:] / plain.innovation_variance[400:]) < 1.1
    assert 0.1 < found.nis[400:].mean() < 1.5


@BOTH
def test_bad_options_are_named(estimator):
    with pytest.raises(SettingError, match='slack'):
        LinkageObserver(world('four_bar')[1], estimator, ('encoder',), {'acceleration': 1.0}, slack=0.0)


@BOTH
@pytest.mark.parametrize('options', [{'tolerance': -1.0}, {'tolerance': np.nan}, {'noise': 'van_loan'}])
def test_bad_options_of_the_printed_form_are_named(estimator, options):
    with pytest.raises(SettingError, match=next(iter(options))):
        LinkageObserver(world('four_bar')[1], estimator, ('encoder',), {'acceleration': 1.0}, **options)


def test_a_tolerance_without_noise_on_the_constraints_is_refused():
    with pytest.raises(SettingError, match='tolerance'):
        LinkageObserver(world('four_bar')[1], 'DIEKFpm', ('encoder',), {'acceleration': 1.0}, tolerance=1e-3)


@pytest.mark.parametrize('estimator, options', [('SCKF', {'beta': 10.0, 'passes': 5}), ('DIEKFpm', {'iterations': 12})])
def test_the_printed_form_with_missing_samples_and_redundant_rows(estimator, options):
    options = {**options, 'noise': 'printed', 'tolerance': 1e-3}
    truth, model = world('four_bar')
    observer = LinkageObserver(model, estimator, ('encoder',), {'acceleration': 0.0916298}, **options)
    observer.start(wrong_start(model))
    measured = noisy(truth.sensors(('encoder',)), observer.stddev, 1)
    measured[1::2] = np.nan
    found = observer.run(truth.motion.t[1:], measured)
    assert rms(found.q[:, truth.z] - truth.motion.q[1:, truth.z]) < 0.012 and found.used.mean() == 0.5
    sensors = 'sensors: {encoder: {kind: encoder, coordinate: theta, stddev: 0.01}}'
    model = load_model(parse_mechanism(PLATFORM + sensors))
    truth = true_motion(model, 0.5, DT)
    observer = LinkageObserver(model, estimator, ('encoder',), {'acceleration': 0.1}, **options)
    observer.start()
    found = observer.run(truth.motion.t[1:], truth.sensors(('encoder',)))
    assert rms(found.q[:, truth.z] - truth.motion.q[1:, truth.z]) < 5e-3 and violation(model, found) < 1e-3
