# SPDX-License-Identifier: Apache-2.0
"""Predict and correct: on a linear model they are the textbook's Kalman filter; a missing sample changes nothing."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import expm

from mbse_ros.filters.observer_step import correct, predict
from mbse_ros.transition.noise import van_loan

N, MEASURED, DT = 5, (0, 3), 2e-3
RNG = np.random.default_rng(1)
A = RNG.normal(size=(N, N)) * 60
ROOT = RNG.normal(size=(N, 3))
W, B = ROOT @ ROOT.T, RNG.normal(size=N)
VARIANCE = np.array([0.04, 0.3])
F, SIGMA = expm(A * DT), van_loan(A, W, DT)[1]
G = np.linalg.solve(A, F - np.eye(N))


@pytest.fixture(scope='module')
def step() -> ca.Function:
    """One step of the filter on ``Xd = A X + B u``."""
    X, P, u = ca.SX.sym('X', N), ca.SX.sym('P', N, N), ca.SX.sym('u')
    y, r = ca.SX.sym('y', 2), ca.SX.sym('r', 2)
    X1, P1, _ = predict(X, P, ca.SX(A) @ X + ca.SX(B) * u, ca.SX(A), ca.SX(W), ca.SX(DT), 'exact', 'van_loan', 4)
    innovations, variances = [], []
    for k, index in enumerate(MEASURED):
        X1, P1, innovation, variance, _ = correct(X1, P1, index, ca.fmax(y[k], -1e300), r[k], y[k] > -1e300)
        innovations.append(innovation)
        variances.append(variance)
    return ca.Function('step', [X, P, u, y, r], [X1, P1, ca.vertcat(*innovations), ca.vertcat(*variances)])


def kalman(X: np.ndarray, P: np.ndarray, u: float, y: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Textbook step: block update in Joseph form with the rows that are not missing; zero-order hold of the input."""
    X, P = F @ X + G @ B * u, F @ P @ F.T + SIGMA
    there = np.isfinite(y)
    H, R = np.eye(N)[list(MEASURED)][there], np.diag(r[there])
    if there.any():
        K = P @ H.T @ np.linalg.inv(H @ P @ H.T + R)
        X, P = X + K @ (y[there] - H @ X), (np.eye(N) - K @ H) @ P @ (np.eye(N) - K @ H).T + K @ R @ K.T
    return X, P


def test_equals_the_kalman_filter(step: ca.Function) -> None:
    """1e-10 over 150 steps, one measurement after the other against both at once, some missing."""
    rng, X, P = np.random.default_rng(2), np.zeros(N), np.eye(N)
    Xk, Pk = X.copy(), P.copy()
    for k in range(150):
        u, y = float(np.sin(0.1 * k)), rng.normal(size=2)
        y[[k % 7 == 0, k % 5 == 0]] = np.nan
        X, P, *_ = (item.full() for item in step(X, P, u, y, VARIANCE))
        Xk, Pk = kalman(Xk, Pk, u, y, VARIANCE)
        assert np.abs(X[:, 0] - Xk).max() <= 1e-10 * np.abs(Xk).max()
        assert np.abs(P - Pk).max() <= 1e-10 * np.abs(Pk).max()


def test_joint_innovation_likelihood_is_that_of_the_block(step: ca.Function) -> None:
    """Sequential innovations over their variances sum to the NIS of the block."""
    rng = np.random.default_rng(3)
    X, root = rng.normal(size=N), rng.normal(size=(N, N))
    P, y = root @ root.T, rng.normal(size=2)
    *_, innovation, variance = (item.full()[:, 0] for item in step(X, P, 0.0, y, VARIANCE))
    predicted, H = F @ X, np.eye(N)[list(MEASURED)]
    S = H @ (F @ P @ F.T + SIGMA) @ H.T + np.diag(VARIANCE)
    e = y - H @ predicted
    assert np.sum(innovation ** 2 / variance) == pytest.approx(e @ np.linalg.solve(S, e), rel=1e-9)
    assert innovation[0] == pytest.approx(e[0], rel=1e-9) and variance[0] == pytest.approx(S[0, 0], rel=1e-9)


def test_missing_is_the_same_to_the_bit_as_no_such_row() -> None:
    X, P = ca.SX.sym('X', N), ca.SX.sym('P', N, N)
    y = ca.SX.sym('y')
    X1, P1, *_ = correct(X, P, 3, ca.fmax(y, -1e300), ca.SX(0.3), y > -1e300)
    f = ca.Function('f', [X, P, y], [X1, P1])
    root = np.random.default_rng(4).normal(size=(N, N))
    state, covariance = np.arange(N) + 0.5, root @ root.T
    covariance = np.tril(covariance) + np.tril(covariance, -1).T
    found = [item.full() for item in f(state, covariance, np.nan)]
    np.testing.assert_array_equal(found[0][:, 0], state)
    np.testing.assert_array_equal(found[1], covariance)


def test_an_exact_measurement_leaves_no_variance_and_no_negative_one() -> None:
    X, P = ca.SX.sym('X', 3), ca.SX.sym('P', 3, 3)
    X1, P1, *_ = correct(X, P, 1, ca.SX(2.0), ca.SX(0.0), ca.SX(1.0))
    X1, P1 = (item.full() for item in ca.Function('f', [X, P], [X1, P1])(
        np.zeros(3), np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]])))
    assert X1[1] == 2.0 and P1[1, 1] == 0.0 and np.linalg.eigvalsh(P1)[0] > -1e-15
