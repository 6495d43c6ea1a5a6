# SPDX-License-Identifier: Apache-2.0
"""Choice of independent coordinates: conditions, preferences, dead points."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from dynamics_arrays import random_terms, slider_crank
from hypothesis import given, settings
from hypothesis import strategies as st

from mbse_ros.dynamics.formulations.matrix_r import s_and_r
from mbse_ros.dynamics.partition import alternatives, choose_independent, condition
from mbse_ros.errors import SingularConfigurationError

X1, Y1, X2, THETA = range(4)


@settings(max_examples=12)
@given(st.integers(0, 2 ** 32 - 1), st.integers(0, 2))
def test_choice_is_well_conditioned(seed: int, redundant: int) -> None:
    """Among all 210 choices of four of ten coordinates few are better, and none by much."""
    J = random_terms(seed, redundant=redundant).J
    chosen = choose_independent(J)
    every = sorted(condition(J, choice) for choice in combinations(range(10), 4))
    assert len(chosen) == 4 and chosen == sorted(chosen)
    assert condition(J, chosen) < 3 * every[0] and condition(J, chosen) < every[40]


@settings(max_examples=30)
@given(st.integers(0, 2 ** 32 - 1))
def test_condition_is_the_norm_of_R(seed: int) -> None:
    """The fastest motion for a unit of the independent velocities; also the dependent block's smallest value."""
    J = random_terms(seed).J
    independent = [1, 2, 5, 8]
    assert condition(J, independent) == pytest.approx(np.linalg.norm(s_and_r(J, independent)[1], 2), rel=1e-8)
    rows, dependent = np.linalg.qr(J.T)[0].T, [0, 3, 4, 6, 7, 9]
    smallest = np.linalg.svd(rows[:, dependent], compute_uv=False)[-1]
    assert condition(J, independent) == pytest.approx(1 / smallest, rel=1e-8)


def test_preferred_coordinates_come_first() -> None:
    """As long as they determine the motion; more of them than needed are thinned out."""
    J = random_terms(5).J
    assert set(choose_independent(J, prefer=[9, 0])) >= {0, 9}
    assert set(choose_independent(J, prefer=range(5, 10))) < set(range(5, 10))
    assert choose_independent(slider_crank(0.6), prefer=[X2]) == [X2]
    two = np.kron(np.diag([1.0, 0.0]), slider_crank(0.6)) + np.kron(np.diag([0.0, 1.0]), slider_crank(1.0))
    for prefer in (X2, 4 + X2):                         # the second must come from the other crank
        first, second = choose_independent(two, prefer=[prefer])
        assert first < 4 <= second and prefer in (first, second)
    assert choose_independent(slider_crank(0.0), prefer=[X2]) in ([Y1], [THETA])


def test_candidates_are_the_only_choice() -> None:
    J = random_terms(5).J
    assert set(choose_independent(J, candidates=[1, 2, 3, 5, 8])) < {1, 2, 3, 5, 8}
    with pytest.raises(SingularConfigurationError, match='x1, x2 do not determine'):
        choose_independent(slider_crank(0.0), candidates=[X1, X2], names=('x1', 'y1', 'x2', 'theta'))


def test_dead_point() -> None:
    """Dead centre of a slider-crank: the slider's condition goes to infinity, height and angle stay good."""
    assert condition(slider_crank(1e-4), [X2]) > 1e3
    assert condition(slider_crank(0.0), [X2]) > 1e12
    assert alternatives(slider_crank(0.0), [X2]) in ([[Y1], [THETA]], [[THETA], [Y1]])
    assert alternatives(slider_crank(0.0), [X2], candidates=[X1, X2, THETA]) == [[THETA]]
    assert condition(slider_crank(0.0), [Y1]) == pytest.approx(np.sqrt(2))
    assert condition(slider_crank(0.5), [X1, X2]) == np.inf


def test_alternatives_with_several_degrees_of_freedom() -> None:
    """Two slider-cranks, one of them at its dead centre: only its slider is exchanged."""
    J = np.zeros((6, 8))
    J[:3, :4], J[3:, 4:] = slider_crank(0.8), slider_crank(np.pi)
    found = alternatives(J, [X2, 4 + X2])
    assert {tuple(choice) for choice in found} == {(X2, 4 + Y1), (X2, 4 + THETA)}
    assert [condition(J, choice) for choice in found] == sorted(condition(J, choice) for choice in found)
    assert max(condition(J, choice) for choice in found) < 10
