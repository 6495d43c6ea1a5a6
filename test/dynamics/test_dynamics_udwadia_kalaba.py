# SPDX-License-Identifier: Apache-2.0
"""The recursion of Orsino, modular modelling: groups in any order, redundant ones, clearance as the noise of a Kalman
filter."""

from __future__ import annotations

import numpy as np
import pytest
from dynamics_arrays import assert_multipliers, assert_same, random_terms
from hypothesis import given, settings
from hypothesis import strategies as st

from mbse_ros.dynamics.formulations.kkt import penalty
from mbse_ros.dynamics.formulations.redundancy import with_definite_mass
from mbse_ros.dynamics.formulations.terms_arrays import Terms
from mbse_ros.dynamics.formulations.udwadia_kalaba import batch, inverse_root, recursive
from mbse_ros.errors import SingularEquationsError

SEEDS = st.integers(0, 2 ** 32 - 1)


def split(rows: list[int], rng: np.random.Generator) -> list[list[int]]:
    """Rows shuffled and cut into groups, some of them empty."""
    rows = list(rng.permutation(rows))
    cuts = sorted(rng.integers(0, len(rows) + 1, 3))
    return [rows[a:b] for a, b in zip([0, *cuts], [*cuts, len(rows)])]


@settings(max_examples=60)
@given(SEEDS, st.integers(0, 3), st.integers(0, 2))
def test_recursive_is_batch_in_any_order(seed: int, redundant: int, massless: int) -> None:
    """Any grouping of the rows, redundant ones and a group given twice included; P is the projector of J M^-1/2."""
    terms, rng = random_terms(seed, redundant=redundant, massless=massless), np.random.default_rng(seed)
    groups = split(list(range(terms.m)), rng)
    groups.insert(int(rng.integers(len(groups) + 1)), groups[0])
    expected, (found, P) = batch(terms), recursive(terms, groups)
    assert_same(found.qdd, expected.qdd, 1e-10)
    assert_multipliers(terms, found.multipliers, expected.multipliers, 1e-10)
    H = terms.J @ inverse_root(with_definite_mass(terms).M)
    np.testing.assert_allclose(H @ P / np.linalg.norm(H, axis=1)[:, None], 0, atol=1e-11)
    np.testing.assert_allclose(P, P.T, rtol=0, atol=1e-15)
    np.testing.assert_allclose(P @ P, P, rtol=0, atol=1e-13)
    assert np.trace(P) == pytest.approx(terms.n - 6)


@settings(max_examples=30)
@given(SEEDS, st.integers(0, 2))
def test_equivalent_system_without_massless_coordinates(seed: int, massless: int) -> None:
    """The added mass changes neither motion nor multipliers and makes M well conditioned; 1e-9 kg is treated alike."""
    terms = random_terms(seed, massless=massless)
    rest = terms.M[massless:, massless:]
    regular = with_definite_mass(terms)
    assert (regular is terms) == (massless == 0)
    K = np.block([[regular.M, terms.J.T], [terms.J, np.zeros((6, 6))]])
    whole = np.linalg.solve(K, np.concatenate([regular.Q, terms.c]))
    expected = batch(terms)
    assert_same(expected.qdd, whole[:10], 1e-9)
    assert_multipliers(terms, expected.multipliers, whole[10:], 1e-8)
    assert np.linalg.cond(regular.M) < 1e3 * np.linalg.cond(rest)


def test_massless_direction_that_is_no_coordinate() -> None:
    """A point mass on a bar away from its ends: M has no zero row but is singular."""
    share = np.kron([[0.7, 0.3]], np.eye(2))
    bar = np.array([0.6, 0.8])
    fixed = np.hstack([np.eye(2), np.zeros((2, 2))])
    J = np.vstack([fixed, np.concatenate([-bar, bar])])
    terms = Terms(5 * share.T @ share, share.T @ [0.0, -50.0], J, np.zeros(3))
    across = np.array([-0.8, 0.6])
    pull = -50.0 * 0.6 / (5 * 0.3)                  # along the circle: gravity's component over the mass and its share
    np.testing.assert_allclose(batch(terms).qdd, np.concatenate([[0, 0], pull * across]), rtol=0, atol=1e-12)


def kalman(x: np.ndarray, P: np.ndarray, H: np.ndarray, z: np.ndarray, R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The textbook's measurement update."""
    K = P @ H.T @ np.linalg.inv(H @ P @ H.T + R)
    return x + K @ (z - H @ x), (np.eye(len(x)) - K @ H) @ P


@settings(max_examples=30)
@given(SEEDS)
def test_clearance_is_the_noise_of_a_kalman_filter(seed: int) -> None:
    """State: free accelerations, covariance M^-1; measurements: the constraints; Eqs. 4.17, 4.18."""
    terms, rng = random_terms(seed), np.random.default_rng(seed)
    groups = [[2, 0], [5, 1, 3], [4]]
    size = np.linalg.norm(terms.J, axis=1)
    root = 0.3 * rng.normal(size=(3, 3)) * size[[5, 1, 3], None]
    clearance = [size[[2, 0]] ** 2, root @ root.T, None]
    full = [np.diag(clearance[0]), clearance[1], np.zeros((1, 1))]
    x, P = np.linalg.solve(terms.M, terms.Q), np.linalg.inv(terms.M)
    for group, R in zip(groups, full):
        x, P = kalman(x, P, terms.J[group], terms.c[group], R)
    found, covariance = recursive(terms, groups, clearance)
    assert_same(found.qdd, x, 1e-8)
    M_root = inverse_root(terms.M)
    assert_same(M_root @ covariance @ M_root, P, 1e-8)
    for group, R in zip(groups, full):              # the constraint gives way by R lam
        gap = terms.J[group] @ found.qdd - terms.c[group] - R @ found.multipliers[group]
        np.testing.assert_allclose(gap / size[group], 0, atol=1e-8)
    assert_same(terms.M @ found.qdd + terms.J.T @ found.multipliers, terms.Q, 1e-8)


@settings(max_examples=20)
@given(SEEDS, st.integers(0, 2))
def test_clearance_goes_to_the_rigid_constraint(seed: int, redundant: int) -> None:
    """The difference shrinks with R, to a tenth with a tenth of it."""
    terms = random_terms(seed, redundant=redundant)
    size = np.linalg.norm(terms.J, axis=1)
    groups, expected = [[i] for i in range(terms.m)], batch(terms)
    gaps = [np.abs(recursive(terms, groups, list(R * size ** 2))[0].qdd - expected.qdd).max() for R in (1e-4, 1e-5)]
    assert 8 < gaps[0] / gaps[1] < 12


def test_clearance_is_a_penalty() -> None:
    """R = 1 / alpha for all rows: Naya et al., review, Eq. 28."""
    terms = random_terms(4, redundant=1)
    groups = [[0, 3], [1, 2, 6], [4, 5]]
    found, expected = recursive(terms, groups, [1e-2, 1e-2, [1e-2, 1e-2]])[0], penalty(terms, alpha=100.0)
    assert_same(found.qdd, expected.qdd, 1e-9)
    assert_multipliers(terms, found.multipliers, expected.multipliers, 1e-9)


def test_massless_coordinate_is_not_held_by_clearance() -> None:
    """It would have to take the force of a soft constraint without mass."""
    terms = random_terms(6, massless=1)
    groups = [[i] for i in range(terms.m)]
    held, _ = recursive(terms, groups, [1e-30] + [None] * 5)
    assert_same(held.qdd, batch(terms).qdd, 1e-9)
    with pytest.raises(SingularEquationsError, match=r'q\[0\]'):
        recursive(terms, groups, [1e-30] * 6)


@pytest.mark.parametrize('clearance, text', [
    ([1.0], 'expected one for each of 2 groups'), ([[1.0, 2.0], None], r'expected \(\), \(5,\) or \(5, 5\)'),
    ([None, -1.0], 'without negative'), ([None, [[np.nan]]], 'finite'),
    ([[[1, 0, 0, 0, 0]] * 5, None], 'symmetric')])
def test_bad_clearance(clearance: list, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        recursive(random_terms(2), [[0, 1, 2, 3, 4], [5]], clearance)


def test_light_bodies_keep_their_digits() -> None:
    """Masses over twelve decades, coupled: M^-1/2 squared is M^-1."""
    mass = 10 ** np.linspace(-6, 6, 6)
    M = np.sqrt(np.outer(mass, mass)) * (0.8 * np.eye(6) + 0.2)
    root = inverse_root(M)
    scale = np.sqrt(np.outer(mass, mass))
    np.testing.assert_allclose(root @ root * scale, np.linalg.inv(M / scale), rtol=0, atol=1e-8)


@pytest.mark.parametrize('mass', [1e-18, 1e-15, 1e-9])
def test_slight_mass(mass: float) -> None:
    """A rotor much lighter than all else, held by a constraint or free to turn, is neither lost nor refused."""
    M, Q = np.diag([mass, 3.0, 2.0, mass]), np.array([0.0, 5.0, 1.0, 2 * mass])
    found = batch(Terms(M, Q, [[1.0, -4.0, 0.0, 0.0]], [0.5]))
    first = 5.0 / 3.0                               # the rotor's own mass does not count
    np.testing.assert_allclose(found.qdd, [4 * first + 0.5, first, 0.5, 2.0], rtol=1e-7)
