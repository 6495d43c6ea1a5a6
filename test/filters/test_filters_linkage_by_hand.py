# SPDX-License-Identifier: Apache-2.0
"""DEKF, SCKF, DIEKFpm and the errorEKFs against those written from the print of Naya et al., review, in plain NumPy."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from naya_by_hand import (
    DT,
    FORCE_WALK,
    P0,
    Q_C,
    SIGMA,
    SIGMA_FE,
    acceleration,
    all_constraints,
    dekf,
    dependent_ekf,
    diekfpm,
    error_ekf,
    error_ekf_ej,
    error_ekf_fe,
    observed,
    position_problem,
    sckf,
    trapezoid,
)
from scipy.optimize import newton

from mbse_ros.dynamics.model import load_model
from mbse_ros.filters.observer import LinkageObserver
from mbse_ros.simulation.three_simulations import wrong_model, wrong_start

pytestmark = pytest.mark.usefixtures('vm')

STEPS, START, ERROR, GRAVITY = 400, np.pi / 3, np.pi / 16, 9.81
BY_HAND = {'DEKF': dekf, 'errorEKF': error_ekf, 'errorEKF_EJ': error_ekf_ej}


@lru_cache
def log(names: tuple[str, ...]) -> np.ndarray:
    """Samples (k, s) of the true linkage, with noise."""
    rng, theta, zd, samples = np.random.default_rng(5), START, 0.0, []
    for _ in range(STEPS):
        theta, zd = trapezoid(theta, zd, GRAVITY)
        samples.append(observed(names, position_problem(theta), zd)[0])
    return np.array(samples) + rng.normal(size=(STEPS, len(names))) * [SIGMA[name] for name in names]


def observed_by(estimator: str, names: tuple[str, ...], error: float) -> tuple[np.ndarray, np.ndarray]:
    """Differences (k, 2) of the means by hand, over their sizes, and of the last covariance (2, 2) over the deviations,
    since its small part beside the diagonal is rounding; the model has a wrong gravity, its start an error in rad."""
    means, covariances = BY_HAND[estimator](log(names), names, START + error, GRAVITY - 1.0)
    model = wrong_model(load_model('four_bar'))
    observer = LinkageObserver(model, estimator, names, {'acceleration': Q_C})
    observer.start(wrong_start(model, error), stddev=np.sqrt(P0))
    found = observer.run(DT * np.arange(1, STEPS + 1), log(names))
    means = np.abs(found.mean - means) / np.abs(means).max(axis=0)
    stddev = np.sqrt(np.diag(covariances[-1]))
    return means, np.abs(found.covariance - covariances[-1]) / np.outer(stddev, stddev)


@pytest.mark.parametrize('names', [('crank_gyro',), ('encoder', 'coupler_gyro')])
@pytest.mark.parametrize('estimator', BY_HAND)
def test_the_printed_filter(estimator: str, names: tuple[str, ...]) -> None:
    """The same means and covariances, to 1e-9 of their sizes; with an encoder alone from a far start, below."""
    means, covariance = observed_by(estimator, names, 0.02)
    assert max(means.max(), covariance.max()) < 1e-9


@lru_cache
def with_a_walk(names: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Means and covariances by hand, the force a random walk."""
    return error_ekf_fe(log(names), names, START + 0.02, GRAVITY - 1.0, FORCE_WALK)


@pytest.mark.parametrize('names, share', [(('encoder',), 1e-9), (('encoder', 'coupler_gyro'), 1e-9),
                                          (('crank_gyro',), 1e-7)])
def test_the_printed_filter_with_a_force(names: tuple[str, ...], share: float) -> None:
    """Positions, velocities, forces and covariances, with the identity of Eq. 79 and the noise of a random walk. The
    crank's gyro sees the position through the dynamics alone, so that what iterations leave lasts."""
    means, covariances = with_a_walk(names)
    model = wrong_model(load_model('four_bar'))
    observer = LinkageObserver(model, 'errorEKF_FE', names, {'acceleration': SIGMA_FE / DT}, held='acceleration')
    observer.start(wrong_start(model, 0.02), stddev=np.sqrt(P0))
    found = observer.run(DT * np.arange(1, STEPS + 1), log(names))
    difference = np.abs(np.column_stack([found.mean[:, :2], found.force]) - means) / np.abs(means).max(axis=0)
    assert max(difference.max(), np.abs(found.covariance / covariances[-1] - 1).max()) < share


@pytest.mark.parametrize('names, window, share', [(('encoder',), 50, 1e-9), (('encoder', 'coupler_gyro'), 50, 1e-7),
                                                  (('encoder',), 10, 1e-9)])
def test_the_printed_adaptive_filter(names: tuple[str, ...], window: int, share: float) -> None:
    """Eq. 91 with 50 samples, from the paper's start of the noise; with 10 its mean is negative in every sixth step."""
    means, covariances = error_ekf_fe(log(names), names, START + 0.02, GRAVITY - 1.0, np.diag([0.0, 0.0, Q_C]), window)
    model = wrong_model(load_model('four_bar'))
    observer = LinkageObserver(model, 'AerrorEKF_FE', names, {'acceleration': Q_C / DT}, law='printed', window=window)
    observer.start(wrong_start(model, 0.02), stddev=np.sqrt(P0))
    found = observer.run(DT * np.arange(1, STEPS + 1), log(names))
    difference = np.abs(np.column_stack([found.mean[:, :2], found.force]) - means) / np.abs(means).max(axis=0)
    assert max(difference.max(), np.abs(found.covariance / covariances[-1] - 1).max()) < share


def test_the_printed_noise_of_the_force() -> None:
    """Eq. 105 has the noise of the acceleration alone; a random walk reaches position and velocity within the step.
    With an encoder that moves the estimate by less than 1e-6 rad, with the crank's gyro by some 1e-4 rad in the second
    after the start."""
    for names, least, most in ((('encoder',), 0.0, 1e-6), (('crank_gyro',), 1e-5, 1e-3)):
        ours = with_a_walk(names)[0][200:, 0]
        printed = error_ekf_fe(log(names), names, START + 0.02, GRAVITY - 1.0)[0][200:, 0]
        assert least <= np.sqrt(np.mean((ours - printed) ** 2)) < most


@pytest.mark.parametrize('estimator', BY_HAND)
def test_the_printed_filter_from_a_far_start(estimator: str) -> None:
    """The start of section 12: two iterations of Newton's method leave some 1e-8 of the first, large correction."""
    means, covariance = observed_by(estimator, ('encoder',), np.pi / 16)
    assert means.max() < 1e-6 and max(means[200:].max(), covariance.max()) < 1e-9


def test_cekf_with_positions_as_the_only_unknowns() -> None:
    """End of section 3: with a sensor of positions, Eq. 24a and the trapezoidal rule give the velocity as a function of
    the position, and what is left of Eq. 25 is one equation a degree of freedom, with the same solution."""
    names, gravity = ('encoder',), GRAVITY - 1.0
    model = wrong_model(load_model('four_bar'))
    observer = LinkageObserver(model, 'CEKF_published', names, {'acceleration': 0.73303}, history=True)
    observer.start(wrong_start(model, 0.02), stddev=np.sqrt(P0))
    found, (z, w), P = observer.run(DT * np.arange(1, 101), log(names)[:100]), (START + 0.02, 0.0), P0 * np.eye(2)
    for o, mean, after in zip(log(names)[:, 0], found.mean, found.covariances):
        K, a = P[:, 0] / SIGMA['encoder'] ** 2, acceleration(position_problem(z), w, gravity)

        def velocity(new: float) -> float:
            return 2 / DT * (new - z) - w + K[0] * (new - o)

        def left(new: float) -> float:
            ahead = acceleration(position_problem(new), velocity(new), gravity)
            return velocity(new) - w - DT / 2 * (a + ahead - K[1] * (new - o))
        new = newton(left, mean[0] + 1e-4, tol=1e-15)
        z, w, P = new, velocity(new), after
        assert [z, w] == pytest.approx(mean, abs=1e-9)


def test_the_acceleration_by_hand() -> None:
    """At its start the four-bar accelerates as the authors' toolbox says."""
    assert acceleration(position_problem(START), 0.0, GRAVITY) == pytest.approx(-0.9948351599, abs=1e-10)


def test_linearised_correction() -> None:
    """Eq. 76 instead of the position problem moves the angle by some 1e-6 rad after the first correction, of 0.2 rad,
    and by less than 1e-7 rad later."""
    full, linear = (error_ekf(log(('encoder',)), ('encoder',), START + ERROR, GRAVITY - 1.0, linearised=way)[0][:, 0]
                    for way in (False, True))
    difference = np.abs(full - linear)
    assert 1e-7 < difference[:100].max() < 1e-5 and difference[200:].max() < 1e-7


@pytest.mark.parametrize('names, error', [
    (('encoder',), ERROR), (('coupler_gyro',), 0.02), (('encoder', 'coupler_gyro'), ERROR)])
@pytest.mark.parametrize('estimator, options', [('SCKF', {'beta': 10.0, 'passes': 5}), ('DIEKFpm', {'iterations': 12})])
def test_the_printed_filters_of_all_coordinates(estimator: str, options: dict[str, float], names: tuple[str, ...],
                                                error: float) -> None:
    """Means and covariances of all coordinates and velocities, with the noise of Eqs. 108 to 112 and the papers'
    loops, until the constraints hold to 1e-3. SCKF keeps those that rounding alone makes differ apart by 1e-12 of their
    spread."""
    way = {'SCKF': sckf, 'DIEKFpm': diekfpm}[estimator]
    means, covariances = dependent_ekf(log(names), names, START + error, GRAVITY - 1.0, way)
    model = wrong_model(load_model('four_bar'))
    observer = LinkageObserver(model, estimator, names, {'acceleration': Q_C}, tolerance=1e-3, noise='printed',
                               **options)
    observer.start(wrong_start(model, error), stddev=np.sqrt(P0))
    found = observer.run(DT * np.arange(1, STEPS + 1), log(names))
    assert (np.abs(found.mean - means) / np.abs(means).max(axis=0)).max() < 1e-7
    assert np.abs(found.covariance - covariances[-1]).max() < 1e-6 * np.abs(covariances[-1]).max()
    violations = [np.linalg.norm(all_constraints(x)[0]) for x in found.mean]
    assert 1e-6 < max(violations) < 1e-3
