# SPDX-License-Identifier: Apache-2.0
"""All formulations give the same accelerations and multipliers; what has no solution is refused by name."""

from __future__ import annotations

import numpy as np
import pytest
from dynamics_arrays import assert_multipliers, assert_same, random_terms, slider_crank, whole_solution
from hypothesis import given, settings
from hypothesis import strategies as st

from mbse_ros.dynamics.formulations.by_name import FORMULATIONS, accelerations
from mbse_ros.dynamics.formulations.kkt import penalty, solve_symmetric
from mbse_ros.dynamics.formulations.matrix_r import matrix_r, s_and_r
from mbse_ros.dynamics.formulations.terms_arrays import Terms
from mbse_ros.errors import SettingError, SingularConfigurationError, SingularEquationsError

SEEDS = st.integers(0, 2 ** 32 - 1)
EXACT = [name for name in FORMULATIONS if name != 'penalty']


def options(name: str, redundant: bool) -> dict:
    return {'redundant': True} if redundant and name.startswith('kkt') else {}


@pytest.mark.parametrize('name', EXACT)
@settings(max_examples=20)
@given(SEEDS, st.integers(0, 6), st.integers(0, 2), st.integers(0, 2))
def test_all_formulations_agree(name: str, seed: int, m: int, redundant: int, massless: int) -> None:
    """qdd and multipliers (least norm) of the full equations, with redundant rows and coordinates without mass."""
    terms = random_terms(seed, m=m, redundant=redundant if m else 0, massless=min(massless, m))
    whole = whole_solution(terms)
    found = accelerations(name, terms, **options(name, redundant > 0))
    assert_same(found.qdd, whole[:terms.n], 1e-9)
    assert_multipliers(terms, found.multipliers, whole[terms.n:], 1e-9)


@pytest.mark.parametrize('name', EXACT)
def test_a_motion_that_is_prescribed_entirely(name: str) -> None:
    """As many rows as coordinates: the accelerations follow from the constraints alone."""
    terms = random_terms(3, n=6, m=6)
    assert_same(accelerations(name, terms).qdd, np.linalg.solve(terms.J, terms.c), 1e-10)


@settings(max_examples=10)
@given(SEEDS, st.integers(0, 2))
def test_penalty_converges_as_one_over_alpha(seed: int, redundant: int) -> None:
    """A tenth of the difference to the exact solution for ten times alpha, in accelerations and in multipliers."""
    terms = random_terms(seed, redundant=redundant)
    unit = np.linalg.norm(terms.J, axis=1)
    terms = Terms(terms.M, terms.Q, terms.J / unit[:, None], terms.c / unit)
    whole = whole_solution(terms)
    ends = [np.concatenate([a.qdd, a.multipliers]) for a in (penalty(terms, alpha) for alpha in (1e5, 1e6))]
    assert_same(10 * (ends[1] - whole), ends[0] - whole, 1e-2)
    assert_same(penalty(terms, 1e13).qdd, whole[:terms.n], 1e-9)


def test_penalty_is_the_published_equation() -> None:
    """Naya et al., review, Eq. 28, with violated constraints and their rates."""
    plain, rng = random_terms(1), np.random.default_rng(1)
    terms = Terms(plain.M, plain.Q, plain.J, plain.c, rng.normal(size=plain.m), rng.normal(size=plain.m))
    alpha, zeta, omega = 100.0, 0.7, 3.0
    violation = -terms.c + 2 * zeta * omega * terms.Phidot + omega ** 2 * terms.Phi
    M = terms.M + alpha * terms.J.T @ terms.J
    expected = np.linalg.solve(M, terms.Q - alpha * terms.J.T @ violation)
    found = penalty(terms, alpha, zeta, omega)
    assert_same(found.qdd, expected, 1e-10)
    assert_same(found.multipliers, alpha * (terms.J @ expected + violation), 1e-10)
    assert_same(accelerations('kkt', terms.stabilized(zeta, omega)).qdd, penalty(terms, 1e12, zeta, omega).qdd, 1e-7)


@pytest.mark.parametrize('use_sparse', [False, True])
def test_full_equations_over_ten_decades(use_sparse: bool) -> None:
    """Scaling keeps light bodies beside heavy ones, and rows in any unit, at full accuracy."""
    rng = np.random.default_rng(5)
    size, x = 10 ** np.linspace(-5, 5, 8), rng.normal(size=8)
    K = rng.normal(size=(8, 8))
    K = size[:, None] * (K + K.T) * size
    np.testing.assert_allclose(solve_symmetric(K, K @ (x / size), use_sparse) * size, x, rtol=1e-10)


@settings(max_examples=20)
@given(SEEDS, st.integers(0, 1))
def test_S_and_R_are_the_inverse(seed: int, redundant: int) -> None:
    """``[S R] = inv([J; B])``; with a row given twice S still maps consistent c."""
    terms = random_terms(seed)
    terms = terms.take([0, 0, *range(1, 6)]) if redundant else terms
    independent = [0, 3, 7, 9]
    S, R = s_and_r(terms.J, independent)
    B = np.eye(terms.n)[independent]
    size = np.linalg.norm(terms.J, axis=1)
    np.testing.assert_allclose(terms.J @ R / size[:, None], 0, atol=1e-9)
    np.testing.assert_allclose(B @ np.hstack([S * size, R]), np.eye(4, terms.m + 4, terms.m), rtol=0, atol=1e-9)
    np.testing.assert_allclose((terms.J @ S @ terms.c - terms.c) / size, 0, atol=1e-8)


def test_dead_point_names_what_would_do() -> None:
    """A slider cannot drive its crank from the dead centre; the crank's angle or height can."""
    J, names = slider_crank(0.0), ('x1', 'y1', 'x2', 'theta')
    with pytest.raises(SingularConfigurationError, match='y1 instead of x2|theta instead of x2') as caught:
        matrix_r(Terms(np.eye(4), np.ones(4), J, np.zeros(3), coordinates=names), independent=[2])
    assert caught.value.coordinates == ('x2',) and set(caught.value.alternatives) == {('y1',), ('theta',)}


@pytest.mark.parametrize('name', EXACT)
def test_redundant_rows(name: str) -> None:
    """Refused by the full equations unless asked for; rows that contradict each other are always refused."""
    terms = random_terms(7, redundant=2)
    wrong = Terms(terms.M, terms.Q, terms.J, terms.c + np.eye(terms.m)[-1] * 0.1 * abs(terms.c[-1]))
    if name.startswith('kkt'):
        with pytest.raises(SingularEquationsError, match='redundant constraints, or a singular position: row 6, row 7'):
            accelerations(name, terms)
    with pytest.raises(SingularEquationsError, match='contradict each other.*row 7'):
        accelerations(name, wrong, **options(name, True))


@pytest.mark.parametrize('mass', [0.0, 1e-34])
@pytest.mark.parametrize('name', FORMULATIONS)
def test_missing_mass_is_named(name: str, mass: float) -> None:
    """A coordinate with neither mass (up to rounding) nor constraint has no acceleration."""
    M = np.diag([1.0, 2.0, mass, 1.0])
    terms = Terms(M, np.ones(4), [[1.0, 1.0, 0.0, 0.0]], [0.0], coordinates=['a', 'b', 'loose', 'd'])
    with pytest.raises(SingularEquationsError, match='neither mass nor constraints determine') as caught:
        accelerations(name, terms)
    assert 'loose' in caught.value.names
    if name != 'matrix_r':
        assert caught.value.names == ('loose',)


def test_bad_input() -> None:
    """Unknown names, wrong shapes, numbers that are none."""
    terms = random_terms(2)
    with pytest.raises(SettingError, match='matrix_r, kkt'):
        accelerations('lagrange', terms)
    with pytest.raises(ValueError, match='J: shape'):
        Terms(terms.M, terms.Q, terms.J.T, terms.c)
    with pytest.raises(ValueError, match='Q: not all values are finite'):
        Terms(terms.M, terms.Q * np.nan, terms.J, terms.c)
    with pytest.raises(ValueError, match='alpha'):
        penalty(terms, alpha=-1.0)
    for name, key in (('udwadia_kalaba_recursive', 'groups'), ('projection_inverse', 'levels')):
        with pytest.raises(ValueError, match=r'rows \[5\]'):
            accelerations(name, terms, **{key: [[0, 1], [2, 3, 4]]})
