# SPDX-License-Identifier: Apache-2.0
"""Rows that depend on others are found and named; a singular position is not taken for redundancy."""

from __future__ import annotations

import numpy as np
import pytest
from dynamics_arrays import PARALLELOGRAM, parallelogram, random_terms
from hypothesis import given, settings
from hypothesis import strategies as st

from mbse_ros.dynamics.formulations.redundancy import independent_rows, redundant_rows


@settings(max_examples=40)
@given(st.integers(0, 2 ** 32 - 1), st.integers(0, 3))
def test_earlier_rows_are_kept(seed: int, redundant: int) -> None:
    """Mixtures of the rows before them are dropped, in whatever unit; in another order others go, as many."""
    J = random_terms(seed, redundant=redundant).J
    assert independent_rows(J) == list(range(6))
    order = np.random.default_rng(seed).permutation(len(J))
    kept = independent_rows(J[order])
    rows = J[order][kept]
    assert len(kept) == np.linalg.matrix_rank(rows / np.linalg.norm(rows, axis=1)[:, None]) == 6


def test_row_is_named_with_those_it_depends_on() -> None:
    """Only with those: rows that take no part are not named."""
    J = random_terms(3).J
    J = np.vstack([J, 3 * J[1] - 1e-3 * J[4], np.zeros(10), J[2]])
    found = redundant_rows(J, list('abcdefghi'))
    assert [(item.row, item.name, item.depends_on) for item in found] == [
        (6, 'g', ('b', 'e')), (7, 'h', ()), (8, 'i', ('c',))]
    assert str(found[0]) == 'g depends on b, e' and str(found[1]) == 'h is always true'


def test_singular_position_is_not_redundancy() -> None:
    """In line the parallelogram's rows have rank 4; over several positions one of them is redundant."""
    flat, bent = parallelogram(0.0), [parallelogram(angle) for angle in (0.3, 1.2, 2.0)]
    assert len(independent_rows(flat)) == 4
    for samples in (np.array(bent), np.array([flat, *bent])):
        assert independent_rows(samples) == [0, 1, 2, 3, 4]
        (found,) = redundant_rows(samples, PARALLELOGRAM)
        assert found.name == 'middle.y' and found.depends_on == ('first', 'second', 'third', 'middle.x')


def test_only_rows_that_are_involved_are_named() -> None:
    """Where two kept rows fall together, either could replace the other; the other positions decide which."""
    J = random_terms(3, m=4).J
    J[3] = J[0] + J[1] / 2
    singular = J.copy()
    singular[2] = 5 * J[0]
    for samples in ([J, singular], [singular, J]):
        (found,) = redundant_rows(np.array(samples), list('abcd'))
        assert found.name == 'd' and found.depends_on == ('a', 'b')


def test_mixture_of_almost_parallel_rows() -> None:
    """Directions that differ by 1e-8 are orthogonalized to the last digit, so their mixture leaves nothing."""
    first, second = np.eye(3)[0], np.array([0.6, 0.8, 0.0])
    near = first + 1e-8 * second
    assert independent_rows(np.array([first, near, first + 0.7 * near])) == [0, 1]
    base = np.linalg.qr(np.random.default_rng(0).normal(size=(9, 9)))[0]
    rows = np.vstack([base[0], base[0] + 1e-8 * base[1], base[2], base[0] + base[2] + 1e-8 * base[1]])
    assert independent_rows(rows) == [0, 1, 2]


@pytest.mark.parametrize('gap, kept', [(1e-12, 5), (1e-6, 6)])
def test_nearly_dependent(gap: float, kept: int) -> None:
    """Rounding does not make a row independent, a millionth of its size does."""
    J = random_terms(8, m=6).J
    J[5] = J[0] + 2 * J[1] + gap * np.linalg.norm(J[0]) * J[5] / np.linalg.norm(J[5])
    assert len(independent_rows(J)) == kept


def test_no_rows() -> None:
    assert independent_rows(np.zeros((0, 4))) == [] and redundant_rows(np.zeros((0, 4))) == []
