# SPDX-License-Identifier: Apache-2.0
"""Errors that all masses have in common, found from masses of many poses: the closed solution, and statistics."""

from __future__ import annotations

from math import inf, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mbse_ros.payload import common_errors
from mbse_ros.payload.common_errors import BLOCK, DELAY, CommonErrors

NAMES = ['bodies.boom.mass', 'sensors.lift_piston.offset', 'sensors.lift_rod.offset']
VARYING = np.array([common_errors.STEADY, common_errors.VARYING, common_errors.VARYING])     # of these
UNKNOWN = 1e4


@pytest.fixture()
def constant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors that stay the same for ever, so that there is a closed solution."""
    for name, value in (('MEMORY', inf), ('VARYING', 0.0), ('STEADY', 0.0)):
        monkeypatch.setattr(common_errors, name, value)


def weigh(errors: CommonErrors, mass: float, slopes: np.ndarray, deviation: float, kept: float = 0.0) -> None:
    """One block of a mass with derivatives by the errors, as one step."""
    row = deviation ** -2 * np.array([1.0, mass, *slopes])
    errors.take(row[None, :], np.array([True]), np.array([kept]), BLOCK)


def settle(errors: CommonErrors) -> None:
    """Nothing for as long as blocks wait."""
    count = round(2 * DELAY / BLOCK)
    errors.take(np.zeros((count, 2 + len(errors.mean))), np.zeros(count, bool), np.zeros(count), BLOCK)


def poses(rng: np.random.Generator, count: int, size: int = 3) -> np.ndarray:
    return 5.0 * rng.standard_normal((count, size))


def least_squares(S: np.ndarray, y: np.ndarray, deviation: float, size: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Errors and their covariance by one weighted least squares of the mass and the errors."""
    A = np.hstack([np.ones((len(S), 1)), S]) / deviation
    prior = np.hstack([np.zeros((size, 1)), np.eye(size)])
    A, b = np.vstack([A, prior, np.eye(1, 1 + size) / UNKNOWN]), np.append(y / deviation, np.zeros(size + 1))
    P = np.linalg.inv(A.T @ A)
    return (P @ A.T @ b)[1:], P[1:, 1:]


def test_as_one_least_squares_of_all_masses(constant: None) -> None:
    """The recursion finds what one solution of all equations finds."""
    rng = np.random.default_rng(1)
    truth, S = np.array([1.0, -0.5, 0.7]), poses(rng, 12)
    y = 800.0 + S @ truth + 0.3 * rng.standard_normal(12)
    errors = CommonErrors(NAMES, UNKNOWN)
    for mass, slopes in zip(y, S):
        weigh(errors, mass, slopes, 0.3)
    settle(errors)
    mean, covariance = least_squares(S, y, 0.3)
    np.testing.assert_allclose(errors.mean, mean, atol=1e-6)
    np.testing.assert_allclose(errors.covariance, covariance, atol=1e-8)
    assert errors.incredible == '' and np.abs(errors.mean - truth).max() < 0.3


def test_loads_that_change_share_the_errors(constant: None) -> None:
    """Two loads: as one solution with a mass of its own for each."""
    rng = np.random.default_rng(2)
    truth, S = np.array([0.4, 1.2, -1.0]), poses(rng, 16)
    loads = np.repeat([300.0, 1500.0], 8)
    y = loads + S @ truth + 0.5 * rng.standard_normal(16)
    errors = CommonErrors(NAMES, UNKNOWN)
    for k in range(16):
        if k == 8:
            settle(errors)
        weigh(errors, y[k], S[k], 0.5, kept=log(1e-12) if k == 8 else 0.0)
        if k == 8:      # that block is of the change: left out
            settle(errors)
    settle(errors)
    used = np.arange(16) != 8
    own = np.stack([loads == 300.0, loads == 1500.0], axis=1)[used].astype(float)
    A = np.vstack([np.hstack([own, S[used]]) / 0.5, np.hstack([np.zeros((3, 2)), np.eye(3)]),
                   np.hstack([np.eye(2) / UNKNOWN, np.zeros((2, 3))])])
    P = np.linalg.inv(A.T @ A)
    mean = (P @ A.T @ np.append(y[used] / 0.5, np.zeros(5)))[2:]
    np.testing.assert_allclose(errors.mean, mean, atol=1e-6)
    np.testing.assert_allclose(errors.covariance, P[2:, 2:], atol=1e-8)


def test_one_pose_tells_nothing(constant: None) -> None:
    """However long it lasts."""
    errors = CommonErrors(NAMES, UNKNOWN)
    for _ in range(200):
        weigh(errors, 812.0, np.array([4.0, -3.0, 1.0]), 0.2)
    settle(errors)
    np.testing.assert_allclose(errors.covariance, np.eye(3), atol=1e-5)
    np.testing.assert_allclose(errors.mean, 0.0, atol=1e-4)      # 812 kg are within what is possible of a mass: 1e4


def test_errors_found_are_as_uncertain_as_said() -> None:
    """NEES of what is found over 400 machines, whose errors have a share that changes."""
    rng, nees = np.random.default_rng(3), []
    for _ in range(400):
        truth, errors = rng.standard_normal(3), CommonErrors(NAMES, UNKNOWN)
        for _ in range(15):
            slopes = poses(rng, 1)[0]
            own = VARYING * slopes * rng.standard_normal(3) * np.sqrt(common_errors.SAME / BLOCK)
            weigh(errors, 800.0 + slopes @ truth + own.sum() + 0.5 * rng.standard_normal(), slopes, 0.5)
        settle(errors)
        off = errors.mean - truth
        nees.append(off @ np.linalg.solve(errors.covariance, off))
    assert 1200 - 3 * np.sqrt(2 * 1200) < np.sum(nees) < 1200 + 3 * np.sqrt(2 * 1200)


def test_what_is_doubted_counts_nothing() -> None:
    """Samples of the last second before a fault is seen, and nothing older."""
    rng, S = np.random.default_rng(4), poses(np.random.default_rng(5), 10)
    one, other = CommonErrors(NAMES, UNKNOWN), CommonErrors(NAMES, UNKNOWN)
    for errors in (one, other):
        for slopes in S:
            weigh(errors, 800.0 + slopes.sum(), slopes, 0.5)
        settle(errors)
    assert np.abs(one.mean).max() > 0.5
    for _ in range(8):
        weigh(other, 2000.0 * rng.standard_normal(), poses(rng, 1)[0], 0.5)
    other.doubt()
    settle(other)
    np.testing.assert_array_equal(one.mean, other.mean)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 700), min_size=1, max_size=12), st.integers(0, 2 ** 32 - 1))
def test_it_does_not_matter_how_steps_come_in_segments(lengths: list[int], seed: int) -> None:
    """Of 1 ms, some without information, some in which the load changes: the same but for rounding."""
    rng, n = np.random.default_rng(seed), sum(lengths)
    slopes = np.cumsum(rng.standard_normal((n, 2)), axis=0)
    rows = np.hstack([np.ones((n, 1)), 800.0 + slopes @ [[1.0], [-1.0]] + rng.standard_normal((n, 1)), slopes])
    counts, forgotten = rng.random(n) < 0.7, np.where(rng.random(n) < 0.002, -1.5, 0.0)
    one, other, first = CommonErrors(NAMES[:2], UNKNOWN), CommonErrors(NAMES[:2], UNKNOWN), 0
    one.take(rows, counts, forgotten, 1e-3)
    for length in lengths:
        part = slice(first, first + length)
        other.take(rows[part], counts[part], forgotten[part], 1e-3)
        first += length
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-9, atol=1e-9)      # of a standard deviation
    np.testing.assert_allclose(one.covariance, other.covariance, rtol=1e-9, atol=1e-9)


def test_an_error_that_no_machine_has_is_named() -> None:
    """12 deviations of one sensor: named; 2 deviations: taken off."""
    rng = np.random.default_rng(6)
    for off, expected in ((12.0, NAMES[1]), (-12.0, NAMES[1]), (2.0, '')):
        errors = CommonErrors(NAMES, UNKNOWN)
        for slopes in poses(rng, 30):
            weigh(errors, 800.0 + off * slopes[1] + 0.5 * rng.standard_normal(), slopes, 0.5)
        settle(errors)
        assert errors.incredible == expected and errors.mean[1] == pytest.approx(off, rel=0.2)


def test_a_mass_that_is_known_in_part_counts_in_part(constant: None) -> None:
    """After a quarter of its information: as if it had walked by three times its variance; twice: by seven times."""
    for count, walked in ((1, 3.0), (2, 3.0 + 12.0)):
        errors = CommonErrors(NAMES[:1], UNKNOWN)
        weigh(errors, 800.0, np.array([2.0]), 0.5)
        for k in range(count):
            settle(errors)
            if k:
                errors.forget(log(0.25))        # as where the state is not used
            else:
                errors.take(np.zeros((1, 3)), np.array([False]), np.array([log(0.25)]), BLOCK)
        settle(errors)
        weigh(errors, 803.0, np.array([-1.0]), 0.5)
        settle(errors)
        variance = 0.5 ** 2 * (2.0 + walked)
        assert errors.covariance[0, 0] == pytest.approx(1 / (1 + 9.0 / variance), rel=1e-5)
        assert errors.mean[0] == pytest.approx(-9.0 / (9.0 + variance), rel=1e-4)


def test_where_masses_come_to_contradict_what_was_found_it_is_found_again() -> None:
    """A base that is moved from level to 3 deviations: said, and within 10 s as if nothing had been known."""
    rng, errors, said = np.random.default_rng(7), CommonErrors(['base.pitch', *NAMES[:2]], UNKNOWN), []
    for truth in ((0.0, 0.2, 0.1), (3.0, 0.2, 0.1)):
        for slopes in poses(rng, 100):
            weigh(errors, 800.0 + slopes @ truth + 0.5 * rng.standard_normal(), slopes, 0.5)
            said.append(errors.surprised)
        settle(errors)
        off = errors.mean - truth
        assert off @ np.linalg.solve(errors.covariance, off) < 16.3      # chi-squared of 3, 0.1 %
    assert not any(said[:110]) and any(said[110:140]) and not any(said[160:])


def test_what_was_found_is_forgotten() -> None:
    """After some memories' time the deviations are nearly those of the file again, and the errors nearly none."""
    errors = CommonErrors(NAMES, UNKNOWN)
    for slopes in poses(np.random.default_rng(8), 40):
        weigh(errors, 800.0 + slopes.sum(), slopes, 0.5)
    settle(errors)
    found, before = np.abs(errors.mean).min(), errors.covariance.max()
    assert found > 0.7 and before < 0.3
    for _ in range(round(8 * common_errors.MEMORY / BLOCK)):
        weigh(errors, 800.0, np.zeros(3), 1e3)
    settle(errors)
    assert np.abs(errors.mean).max() < 0.3 * found and np.diag(errors.covariance).min() > 0.7


def test_a_pose_that_is_held_for_long_tells_nothing() -> None:
    """Ten minutes of samples: what the mass may be off by stays."""
    errors, slopes = CommonErrors(['base.pitch', *NAMES[:2]], UNKNOWN), np.array([7.0, 3.0, 2.0])
    for _ in range(6000):
        weigh(errors, 100.0, slopes, 2.0)
    settle(errors)
    np.testing.assert_allclose(errors.covariance, np.eye(3), atol=1e-4)


def test_what_is_no_number_teaches_nothing() -> None:
    errors = CommonErrors(NAMES, UNKNOWN)
    for slopes in poses(np.random.default_rng(9), 10):
        weigh(errors, 800.0 + slopes.sum(), slopes, 0.5)
    settle(errors)
    before = errors.mean.copy()
    weigh(errors, np.nan, np.ones(3), 0.5)
    weigh(errors, 800.0, np.array([np.inf, 0.0, 0.0]), 0.5)
    settle(errors)
    np.testing.assert_array_equal(errors.mean, before)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(-1e5, 1e5), st.floats(1e-3, 1e4), st.floats(-1e3, 1e3), st.floats(-1e3, 1e3),
                          st.floats(-50.0, 0.0)), min_size=1, max_size=60))
def test_whatever_comes_the_covariance_is_one(samples: list) -> None:
    """Between nothing and the prior, finite."""
    errors = CommonErrors(NAMES[:2], UNKNOWN)
    for mass, deviation, a, b, kept in samples:
        weigh(errors, mass, np.array([a, b]), deviation, kept if kept < -40.0 else 0.0)
    settle(errors)
    values = np.linalg.eigvalsh(errors.covariance)
    assert np.isfinite(errors.mean).all() and values.min() > -1e-9 and values.max() < 1.0 + 1e-6


def test_what_is_corrected_is_as_if_solved() -> None:
    """Minutes of blocks, the mass forgotten a little, by half, and altogether: the covariance that was corrected row by
    row is the inverse of the information, and the estimate its product."""
    rng, errors = np.random.default_rng(12), CommonErrors(NAMES, UNKNOWN)
    for k, slopes in enumerate(poses(rng, 900)):
        kept = -50.0 if k % 97 == 96 else -0.69 if k % 31 == 30 else -0.01 * rng.random()
        weigh(errors, 800.0 + slopes @ [1.0, -1.0, 0.5] + rng.standard_normal(), slopes, 1.0, kept)
        if k % 10 == 9:
            whole = np.linalg.inv(errors._prior + errors._L)
            np.testing.assert_allclose(errors._P, whole, rtol=1e-6, atol=1e-9 * whole.max())
            np.testing.assert_allclose(errors._x, whole @ errors._h, rtol=1e-6, atol=1e-6)


def test_numbers_are_believed_again() -> None:
    """A sensor that jumps by 3 deviations is a contradiction, after which errors are found with three times the
    deviations: the interval is that of the file again once they are credible."""
    rng, errors, off, widths = np.random.default_rng(5), CommonErrors(NAMES, UNKNOWN), np.zeros(3), []
    for k, slopes in enumerate(poses(rng, 400)):
        off[1] = 3.0 * (k >= 200)
        weigh(errors, 800.0 + slopes @ off + 0.3 * rng.standard_normal(), slopes, 0.3)
        widths.append(np.diag(errors._prior)[1:].min())
    assert min(widths[:200]) == 1.0 and min(widths) == pytest.approx(common_errors.DOUBTED ** -2) and widths[-1] == 1.0
    assert errors.mean[1] == pytest.approx(3.0, abs=3.5 * np.sqrt(errors.covariance[1, 1])) and not errors.incredible


def test_a_mass_is_steadier_than_a_sensor() -> None:
    """What is found of a length or a mass is surer, from the same poses."""
    alike = CommonErrors(['sensors.lift_rod.offset', NAMES[1]], UNKNOWN)
    weigh(alike, 800.0, np.array([8.0, 0.0]), 0.1)
    own = CommonErrors(NAMES[:2], UNKNOWN)
    weigh(own, 800.0, np.array([8.0, 0.0]), 0.1)
    for item in (alike, own):
        for _ in range(2):
            weigh(item, 800.0, np.array([-8.0, 0.0]), 0.1)
        settle(item)
    assert own.covariance[0, 0] < 0.2 * alike.covariance[0, 0]


def test_numbers_that_explain_the_masses_about_equally_well_are_suspected_together():
    """Within a likelihood ratio of 20, sensors first; farther apart the best one alone."""
    for gap, found in ((5.8, ('sensors.boom_piston.offset', 'bodies.boom.mass')), (6.2, ('bodies.boom.mass',))):
        errors = CommonErrors(['bodies.boom.mass', 'sensors.boom_piston.offset'], UNKNOWN)
        errors._incredible, errors._P = 'bodies.boom.mass', np.diag([1.0, 0.5, 0.5])
        errors._x = np.array([0.0, *np.sqrt(0.5 * np.array([30.0, 30.0 - gap]))])
        assert errors.suspects == found


def test_steps_that_become_longer_close_a_block_that_is_full_by_then() -> None:
    """Of 60 steps of 1 ms and then 30 of 2 ms, 50 make a block."""
    errors, rows, none = CommonErrors(['sensors.a.offset'], 100.0), np.tile([1.0, 50.0, 0.1], (60, 1)), np.zeros(60)
    errors.take(rows, none == 0.0, none, 1e-3)
    assert (errors._count, len(errors._waiting)) == (60, 0)
    errors.take(rows[:30], none[:30] == 0.0, none[:30], 2e-3)
    assert (errors._count, len(errors._waiting)) == (30, 1) and errors._waiting[0][1].sums[0] == 60.0
