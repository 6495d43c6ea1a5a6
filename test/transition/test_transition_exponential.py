# SPDX-License-Identifier: Apache-2.0
"""Exponential transition: against scipy's expm and the papers' series, for numbers and expressions alike."""

from __future__ import annotations

from math import factorial

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad_vec
from scipy.linalg import expm

from mbse_ros.transition.exponential import ORDERS, exact_step, exact_transition, halvings_for, psi_series, transition

SEEDS, SIZES = st.integers(0, 2 ** 32), st.integers(1, 8)


def error(found: np.ndarray, expected: np.ndarray, least: float = 0.0) -> float:
    """Largest difference relative to the largest element (or to ``least``: F starts from the identity)."""
    return float(np.max(np.abs(found - expected)) / max(least, np.max(np.abs(expected))))


def reference(A: np.ndarray, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """F and G from one exponential of a block matrix."""
    n = len(A)
    E = expm(dt * np.block([[A, np.eye(n)], [np.zeros((n, 2 * n))]]))
    return E[:n, :n], E[:n, n:]


def evaluated(A: np.ndarray, dt: float, order: str, halvings: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """The same functions, on CasADi expressions."""
    symbol, h = ca.SX.sym('A', *A.shape), ca.SX.sym('dt')
    f = ca.Function('f', [symbol, h], list(transition(symbol, h, order, halvings)))
    F, G = f(A, dt)
    return F.full(), G.full()


def random_matrix(rng: np.random.Generator, n: int, kind: str, norm: float) -> np.ndarray:
    """Matrix with a given 1-norm: dense, stiff and stable, nilpotent, or far from normal."""
    A = rng.normal(size=(n, n))
    if kind == 'stiff':
        Q, _ = np.linalg.qr(A)
        A = -(Q * 10.0 ** rng.uniform(-4, 0, n)) @ Q.T
    elif kind == 'nilpotent':
        A = np.triu(A, 1)
    elif kind == 'non-normal':
        A = np.diag(rng.uniform(-1, 0, n)) + np.triu(A, 1) * 5
    size = np.linalg.norm(A, 1)
    return A * (norm / size) if size > 0 else A


@pytest.mark.parametrize('kind', ['dense', 'stiff', 'nilpotent', 'non-normal'])
@settings(max_examples=40)
@given(seed=SEEDS, n=SIZES, exponent=st.floats(-6, 1.3))
def test_exact_is_the_matrix_exponential(kind: str, seed: int, n: int, exponent: float) -> None:
    dt, norm = 1e-3, 10.0 ** (exponent if kind == 'stiff' else min(exponent, 0.7))      # e^20 is not known to 1e-12
    A = random_matrix(np.random.default_rng(seed), n, kind, norm / dt)
    F, G = exact_transition(A, dt)
    F_reference, G_reference = reference(A, dt)
    assert error(F, F_reference, 1.0) < 1e-12
    assert error(G, G_reference) < 1e-12


@settings(max_examples=40)
@given(seed=SEEDS, n=st.integers(1, 6), norm=st.floats(0.01, 1.0))
def test_expressions_agree_within_the_domain_of_their_halvings(seed: int, n: int, norm: float) -> None:
    A = random_matrix(np.random.default_rng(seed), n, 'dense', norm / 2e-3)
    assert halvings_for(norm) <= 2
    for found, expected in zip(evaluated(A, 2e-3, 'exact'), reference(A, 2e-3)):
        assert error(found, expected) < 1e-12


def test_expressions_need_their_halvings_said() -> None:
    with pytest.raises(ValueError):
        transition(ca.SX.sym('A', 2, 2), 0.1, 'exact')


@pytest.mark.parametrize('norm, halvings', [(0.0, 0), (0.1, 0), (0.25, 0), (0.26, 1), (1.0, 2), (1.01, 3), (250.0, 10)])
def test_halvings(norm: float, halvings: int) -> None:
    assert halvings_for(norm) == halvings


@pytest.mark.parametrize('symbolic', [False, True])
@pytest.mark.parametrize('order', range(5))
def test_series_is_the_papers(order: int, symbolic: bool) -> None:
    """Pyrhönen et al., mass estimation, Eqs. 35-37 written out, on a matrix where every term counts."""
    A, dt = np.array([[-3.0, 2.0, 0.5], [1.0, -40.0, 7.0], [0.0, 0.3, -1.0]]), 0.03
    psi = sum(np.linalg.matrix_power(A * dt, n) / factorial(n + 1) for n in range(order + 1))
    F, G = evaluated(A, dt, str(order)) if symbolic else transition(A, dt, str(order))
    np.testing.assert_allclose(F, np.eye(3) + A @ psi * dt, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(G, dt * psi, rtol=1e-13, atol=1e-16)
    np.testing.assert_allclose(psi_series(A, dt, order), psi, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize('symbolic', [False, True])
@settings(max_examples=40)
@given(seed=SEEDS, n=st.integers(1, 6), norm=st.floats(0.01, 4.0))
def test_exact_step_gives_all_flows_and_the_increment(symbolic: bool, seed: int, n: int, norm: float) -> None:
    """F(h), F(2h), ... F(dt) and G f, without G."""
    rng, dt = np.random.default_rng(seed), 2e-3
    A, f = random_matrix(rng, n, 'dense', norm / dt), rng.normal(size=n)
    if symbolic:
        a, b, h = ca.SX.sym('A', n, n), ca.SX.sym('f', n), ca.SX.sym('dt')
        flows, increment = exact_step(a, b, h, 4)
        *flows, increment = (item.full() for item in ca.Function('f', [a, b, h], [*flows, increment])(A, f, dt))
        increment = increment[:, 0]
    else:
        flows, increment = exact_step(A, f, dt, 4)
    assert len(flows) == 5
    for k, F in enumerate(flows):
        assert error(F, expm(A * dt / 2 ** (4 - k)), 1.0) < 1e-12
    assert error(increment, reference(A, dt)[1] @ f, float(np.abs(f).max()) * dt) < 1e-12


def test_G_is_the_integral_of_the_exponential() -> None:
    A, dt = np.random.default_rng(5).normal(size=(5, 5)) * 60, 0.02
    integral, _ = quad_vec(lambda t: expm(A * t), 0, dt, epsabs=1e-15, epsrel=1e-13)
    assert error(exact_transition(A, dt)[1], integral) < 1e-12


def test_a_singular_matrix_needs_no_inverse() -> None:
    """A chain of integrators: z, zd, zdd."""
    A, dt = np.diag([1.0, 1.0], 1), 0.1
    F, G = exact_transition(A, dt)
    np.testing.assert_allclose(F, [[1, dt, dt ** 2 / 2], [0, 1, dt], [0, 0, 1]], rtol=1e-15)
    np.testing.assert_allclose(G, [[dt, dt ** 2 / 2, dt ** 3 / 6], [0, dt, dt ** 2 / 2], [0, 0, dt]], rtol=1e-15)


@pytest.mark.parametrize('order', range(5))
def test_a_series_converges_with_its_order(order: int) -> None:
    """Local error of F and G: the first term left out, dt^(order + 2)."""
    A = np.array([[0.0, 1.0], [-9.0, -0.4]])
    errors = [np.abs(np.subtract(transition(A, dt, str(order)), reference(A, dt))).max() for dt in (0.04, 0.02)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order + 2, abs=0.15)


def test_stiffness_is_where_the_series_fails() -> None:
    """At |lambda dt| = 2 the series of order 4 is still half the true F off; two halvings make it right."""
    A = np.array([[-2.0]])
    assert abs(transition(A, 1.0, '4')[0][0, 0] / np.exp(-2.0) - 1) > 0.4
    assert exact_transition(A, 1.0)[0][0, 0] == pytest.approx(np.exp(-2.0), rel=1e-13)


def test_a_step_is_the_solution_of_the_linearised_system() -> None:
    """``X + G f`` of a linear system with a constant input is its exact solution, whatever the step."""
    rng = np.random.default_rng(7)
    A, b, X = rng.normal(size=(4, 4)) * 30, rng.normal(size=4), rng.normal(size=4)
    for dt in (1e-3, 1e-2, 0.1):
        _, G = exact_transition(A, dt)
        fixed = np.linalg.solve(A, b)
        np.testing.assert_allclose(X + G @ (A @ X + b), expm(A * dt) @ (X + fixed) - fixed, rtol=1e-11, atol=1e-11)


def test_orders_are_those_of_the_paper_and_exact() -> None:
    assert ORDERS == ('0', '1', '2', '3', '4', 'exact')
