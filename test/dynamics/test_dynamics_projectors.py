# SPDX-License-Identifier: Apache-2.0
"""The operators of Orsino, modular modelling, onto the kernel, level by level."""

from __future__ import annotations

import numpy as np
import pytest
from dynamics_arrays import assert_multipliers, assert_same, parallelogram, random_terms
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import null_space

from mbse_ros.dynamics.formulations.kkt import kkt
from mbse_ros.dynamics.formulations.projectors import WAYS, enforce
from mbse_ros.dynamics.formulations.terms_arrays import Terms

LEVELS = [[4, 1], [0, 6, 2], [5], [3, 7]]


@pytest.mark.parametrize('way', WAYS)
@settings(max_examples=25)
@given(st.integers(0, 2 ** 32 - 1), st.integers(0, 2))
def test_levels_give_the_model_of_all_constraints(way: str, seed: int, massless: int) -> None:
    """Accelerations of the full equations; S spans the kernel; the ranks add up although two rows are redundant."""
    terms = random_terms(seed, redundant=2, massless=massless)
    found, expected = enforce(terms, LEVELS, way), kkt(terms, redundant=True)
    assert_same(found.accelerations.qdd, expected.qdd, 1e-9)
    assert_multipliers(terms, found.accelerations.multipliers, expected.multipliers, 1e-9)
    assert_same(enforce(terms, [range(8)], way).accelerations.qdd, expected.qdd, 1e-9)
    size = np.linalg.norm(terms.J, axis=1)
    np.testing.assert_allclose(terms.J @ found.S / size[:, None], 0, atol=1e-10)
    assert np.linalg.matrix_rank(found.S, tol=1e-8) == 4
    assert found.ranks[:2] == (2, 3) and sum(found.ranks) == 6


@pytest.mark.parametrize('way', WAYS)
def test_operators_are_those_of_the_theorems(way: str) -> None:
    """The complement has orthonormal columns; with a {1}-inverse the projector is oblique; the others are the
    orthogonal one, whatever the levels."""
    terms = random_terms(9, redundant=2)
    S, N = enforce(terms, LEVELS, way).S, null_space(terms.J / np.linalg.norm(terms.J, axis=1)[:, None], rcond=1e-10)
    if way == 'complement':
        np.testing.assert_allclose(S.T @ S, np.eye(4), rtol=0, atol=1e-13)
        S = S @ S.T
    np.testing.assert_allclose(S @ S, S, rtol=0, atol=1e-12 if way == 'one_inverse' else 1e-13)
    if way == 'one_inverse':
        assert np.abs(S - S.T).max() > 0.1
        S = S @ np.linalg.pinv(S, rcond=1e-9)
    np.testing.assert_allclose(S, N @ N.T, rtol=0, atol=1e-12)


@pytest.mark.parametrize('way, tolerance', [('complement', 1e-14), ('inverse', 1e-9), ('orthonormalization', 1e-14)])
def test_almost_dependent_levels(way: str, tolerance: float) -> None:
    """A row that differs from the level below by a millionth counts, and S stays a projector."""
    J = random_terms(4).J
    J[5] = J[0] / np.linalg.norm(J[0]) + 1e-6 * J[5] / np.linalg.norm(J[5])
    terms = Terms(np.eye(10), np.ones(10), J, J @ np.ones(10))
    found = enforce(terms, [[0, 1, 2], [3, 4, 5]], way)
    S = found.S @ found.S.T if way == 'complement' else found.S
    assert found.ranks == (3, 3)
    np.testing.assert_allclose(S @ S, S, rtol=0, atol=tolerance)


@pytest.mark.parametrize('way', WAYS)
def test_rank_drops_at_a_singular_position(way: str) -> None:
    """Three cranks on a coupler: the third says nothing new; in line they allow a second motion."""
    M, levels = np.diag([1.0, 2, 1, 1, 3, 1]), [[0, 1, 2], [3, 4, 5]]
    assert enforce(Terms(M, np.ones(6), parallelogram(0.7), np.zeros(6)), levels, way).ranks == (3, 2)
    assert enforce(Terms(M, np.ones(6), parallelogram(0.0), np.zeros(6)), levels, way).ranks == (3, 1)


def test_unknown_way() -> None:
    with pytest.raises(ValueError, match='complement, inverse, one_inverse, orthonormalization'):
        enforce(random_terms(1), [range(6)], 'guess')
