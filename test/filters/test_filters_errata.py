# SPDX-License-Identifier: Apache-2.0
"""Equations that are printed wrongly in the papers, and what the pages in docs/papers say of their size."""

from __future__ import annotations

import numpy as np
import pytest

from mbse_ros.dynamics.model import load_model
from mbse_ros.dynamics.motion import simulate
from mbse_ros.filters.observer import LinkageObserver
from mbse_ros.filters.parts.problem import problem
from mbse_ros.filters.sigma_filter import simplex_points
from mbse_ros.simulation.three_simulations import noisy, true_motion, wrong_model, wrong_start
from mbse_ros.transition.noise import paper_noise, van_loan

DT = 0.005      # s


def test_noise_of_the_state_transition() -> None:
    """Pyrhönen et al., state transition, Eqs. 49 to 52: with two transposes more than printed they are the integral
    of Eq. 47; without them the covariance is not symmetric."""
    rng = np.random.default_rng(1)
    A22, R = rng.normal(size=(2, 2)), np.diag([2.0, 0.5])
    A = np.block([[np.zeros((2, 2)), np.eye(2)], [np.zeros((2, 2)), A22]])
    half, third = DT ** 2 / 2, DT ** 3 / 3

    def noise(A22_t: np.ndarray) -> np.ndarray:
        corner = R * DT + (R @ A22_t + A22 @ R) * half + A22 @ R @ A22_t * third             # Eq. 52
        return np.block([[R * third, R * half + R @ A22_t * third], [R * half + A22 @ R * third, corner]])
    W = np.diag([0, 0, 2.0, 0.5])
    assert noise(A22.T) == pytest.approx(paper_noise(A, W, DT), rel=1e-12)
    printed = noise(A22)
    assert np.abs(printed - printed.T).max() > 1e-7


def test_what_the_terms_with_the_velocities_add_to_the_noise() -> None:
    """Along the four-bar's free motion: the largest share of an entry that Eqs. 50 to 52 add to that of a double
    integrator, and by which they are away from the exact integral."""
    model = load_model('four_bar', backend='vm')
    motion, rates, p = simulate(model, 4.0, DT, 'trapezoid'), problem(model, ('encoder',)).rates, model.parameters
    plain, added, missing = np.array([[DT ** 3 / 3, DT ** 2 / 2], [DT ** 2 / 2, DT]]), 0.0, 0.0
    for q, qd in zip(motion.q[::4], motion.qd[::4]):
        A, W = np.array(rates(q, qd[model.z], np.zeros(2), 0.0, p)[1]), np.diag([0.0, 1.0])
        first = paper_noise(A, W, DT)
        added = max(added, np.abs(first / plain - 1).max())
        missing = max(missing, np.abs((first - van_loan(A, W, DT)[1]) / plain).max())
    assert 0.03 < added < 0.04 and 0.02 < missing < 0.03


@pytest.mark.parametrize('size', [2, 3, 6])
def test_last_point_of_the_simplex(size: int) -> None:
    """Naya et al., review, Eq. 45: with 1 instead of j in the last point the points do not have the mean zero."""
    points = simplex_points(size, 0.2)
    assert points.directions @ points.weights == pytest.approx(np.zeros(size), abs=1e-14)
    assert points.directions * points.weights @ points.directions.T == pytest.approx(np.eye(size), abs=1e-13)
    printed = points.directions.copy()
    printed[-1, -1] /= size
    assert np.abs(printed @ points.weights).max() > 0.1


def test_sckf_with_the_weakening_of_the_paper(vm: None) -> None:
    """Naya et al., review, Eq. 66 with beta 10, four passes, instead of our 30 and two: a coupler's gyro corrects the
    start about as fast, and is then the same."""
    true = load_model('four_bar')
    truth, wrong = true_motion(true, 4.0, DT), wrong_model(true)
    later, whole = [], []
    for options in ({}, {'beta': 10.0, 'passes': 4}):
        observer = LinkageObserver(wrong, 'SCKF', ['coupler_gyro'], {'acceleration': 0.0916}, **options)
        observer.start(wrong_start(wrong), stddev=np.radians(5))
        samples = noisy(truth.sensors(('coupler_gyro',)), observer.stddev, 1)
        error = (observer.run(truth.motion.t[1:], samples).q - truth.motion.q[1:])[:, true.z[0]]
        whole.append(np.sqrt(np.mean(error ** 2)))
        later.append(np.sqrt(np.mean(error[400:] ** 2)))
    assert later[1] == pytest.approx(later[0], rel=0.005) and 1.0 < whole[1] / whole[0] < 1.3
