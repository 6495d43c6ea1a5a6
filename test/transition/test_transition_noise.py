# SPDX-License-Identifier: Apache-2.0
"""Process noise: Van Loan against quadrature, the quadrature of expressions and the paper's form against Van Loan."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad_vec
from scipy.linalg import expm

from mbse_ros.transition.exponential import exact_step
from mbse_ros.transition.noise import integrated_noise, paper_noise, symmetric, van_loan


def model(rng: np.random.Generator, n: int = 5, size: float = 100.0) -> tuple[np.ndarray, np.ndarray]:
    """Random A and a spectral density W of less than full rank."""
    B = rng.normal(size=(n, max(1, n - 2)))
    return rng.normal(size=(n, n)) * size, B @ B.T


def crane_like(rate: float) -> tuple[np.ndarray, np.ndarray]:
    """The structure of Pyrhönen et al., mass estimation, Eq. 23: z, zd, zdd, p, U."""
    A = np.zeros((5, 5))
    A[0, 1] = A[1, 2] = 1.0
    A[3, 0], A[3, 1], A[3, 3], A[3, 4] = -20.0, -8000.0, -rate, 300.0
    A[4, 4] = -220.0
    return A, np.diag([0.0, 0.0, 10.0, 0.2, 1e-6])


def evaluated(A: np.ndarray, W: np.ndarray, dt: float, doublings: int = 0) -> np.ndarray:
    """``integrated_noise`` on expressions, ``doublings`` after the four steps of the rule."""
    n = len(A)
    a, w, h = ca.SX.sym('A', n, n), ca.SX.sym('W', n, n), ca.SX.sym('dt')
    flows, _ = exact_step(a, a, h, 2 + doublings)
    return ca.Function('f', [a, w, h], [integrated_noise(flows, w, h)])(A, W, dt).full()


def relative(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


@pytest.mark.parametrize('seed', range(4))
def test_van_loan_is_the_integral(seed: int) -> None:
    A, W = model(np.random.default_rng(seed))
    dt = 0.01
    integral, _ = quad_vec(lambda t: expm(A * t) @ W @ expm(A * t).T, 0, dt, epsabs=0, epsrel=1e-12)
    F, Sigma = van_loan(A, W, dt)
    np.testing.assert_allclose(F, expm(A * dt), rtol=1e-11, atol=1e-12)
    assert relative(Sigma, integral) < 1e-10


def test_van_loan_of_a_random_walk_acceleration() -> None:
    """mathematics.md 2: dt^5/20, dt^4/8, dt^3/6 in the rows of the position, dt^3/3, dt^2/2, dt below."""
    dt, q = 0.1, 3.0
    _, Sigma = van_loan(np.diag([1.0, 1.0], 1), np.diag([0.0, 0.0, q]), dt)
    expected = q * np.array([[dt ** 5 / 20, dt ** 4 / 8, dt ** 3 / 6], [dt ** 4 / 8, dt ** 3 / 3, dt ** 2 / 2],
                             [dt ** 3 / 6, dt ** 2 / 2, dt]])
    np.testing.assert_allclose(Sigma, expected, rtol=1e-12)


@pytest.mark.parametrize('a_dt', [0.05, 0.25, 0.6, 1.3])
def test_integrated_noise_keeps_its_error_bound(a_dt: float) -> None:
    """5.2e-7 (8 a h)^6 with four steps h = dt / 4, on modes with the rate ``a``: a real one, and an undamped pair."""
    for A in (np.array([[-a_dt]]), np.array([[0.0, a_dt], [-a_dt, 0.0]]), np.array([[a_dt]])):
        W = np.diag([1.0, 0.0])[:len(A), :len(A)]
        _, exact = van_loan(A, W, 1.0)
        assert relative(evaluated(A, W, 1.0), exact) < 5.2e-7 * (2 * a_dt) ** 6 + 1e-14


@pytest.mark.parametrize('doublings', [0, 1, 2, 3])
def test_doublings_take_the_bound_of_the_short_step(doublings: int) -> None:
    A, W = crane_like(1300.0)
    dt = 1e-3
    bound = 5.2e-7 * (2 * 1300.0 * dt / 2 ** doublings) ** 6
    assert relative(evaluated(A, W, dt, doublings), van_loan(A, W, dt)[1]) < bound


@settings(max_examples=40)
@given(seed=st.integers(0, 2 ** 32), n=st.integers(1, 5), size=st.floats(1e-3, 1e4), doublings=st.integers(0, 2))
def test_integrated_noise_is_symmetric_and_never_negative(seed: int, n: int, size: float, doublings: int) -> None:
    """However long the step: all weights are positive."""
    A, W = model(np.random.default_rng(seed), n, 1.0)
    Sigma = evaluated(A * size / np.linalg.norm(A, 2), W, 1e-3, doublings)
    assert np.array_equal(Sigma, Sigma.T)
    eigenvalues = np.linalg.eigvalsh(Sigma)
    assert eigenvalues[0] >= -1e-14 * eigenvalues[-1]


def test_numbers_and_expressions_agree() -> None:
    A, W = crane_like(900.0)
    flows, _ = exact_step(A, W, 1e-3, 2)
    np.testing.assert_allclose(evaluated(A, W, 1e-3), integrated_noise(flows, W, 1e-3), rtol=1e-12, atol=1e-25)


def test_paper_noise_has_the_blocks_of_the_paper() -> None:
    """Pyrhönen et al., mass estimation, Eqs. 45-49, each block written as it stands there (diagonal pressure
    density)."""
    A, W = crane_like(900.0)
    dt, (A44, A45, A55), (qa, qp, qU) = 1e-3, A[[3, 3, 4], [3, 4, 4]], np.diag(W)[2:]
    Sigma = paper_noise(A, W, dt)
    motion = qa * np.array([[dt ** 3 / 3, dt ** 2 / 2], [dt ** 2 / 2, dt]])
    np.testing.assert_allclose(Sigma[1:3, 1:3], motion, rtol=1e-13)
    assert Sigma[3, 3] == pytest.approx(dt ** 3 / 3 * (A45 * qU * A45 + A44 * qp * A44)
                                        + dt ** 2 / 2 * (A44 * qp + qp * A44) + qp * dt, rel=1e-13)
    assert Sigma[3, 4] == pytest.approx(dt ** 3 / 3 * A45 * qU * A55 + dt ** 2 / 2 * A45 * qU, rel=1e-13)
    assert Sigma[4, 3] == pytest.approx(Sigma[3, 4], rel=1e-15)
    assert Sigma[4, 4] == pytest.approx(dt ** 3 / 3 * A55 * qU * A55 + dt ** 2 * qU * A55 + qU * dt, rel=1e-13)
    assert not Sigma[0].any() and not Sigma[:, 0].any()


def test_paper_noise_is_the_integral_of_the_first_order_transition() -> None:
    A, W = model(np.random.default_rng(3))
    integral, _ = quad_vec(lambda t: (np.eye(5) + A * t) @ W @ (np.eye(5) + A * t).T, 0, 0.01, epsrel=1e-12)
    assert relative(paper_noise(A, W, 0.01), integral) < 1e-12


def test_paper_noise_approaches_van_loan_in_third_order() -> None:
    A, W = model(np.random.default_rng(9))
    errors = [np.linalg.norm(paper_noise(A, W, dt) - van_loan(A, W, dt)[1]) for dt in (2e-4, 1e-4)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(3.0, abs=0.1)


def test_symmetric_mirrors_the_lower_triangle() -> None:
    M = np.array([[1.0, 7.0], [2.0, 3.0]])
    np.testing.assert_array_equal(symmetric(M), [[1.0, 2.0], [2.0, 3.0]])
    np.testing.assert_array_equal(ca.DM(ca.evalf(symmetric(ca.SX(M)))).full(), symmetric(M))
