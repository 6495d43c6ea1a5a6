# SPDX-License-Identifier: Apache-2.0
"""Wrong zeros of position sensors, found by masses of different poses."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from core_support import crane

from mbse_ros.filters.mass_information import LOG_TRUSTED, columns
from mbse_ros.monitor.faults import Fault, PayloadStatus
from mbse_ros.payload import common_errors
from mbse_ros.payload.common_errors import BLOCK, CommonErrors
from mbse_ros.payload.zeros import MARGIN, SIGNIFICANT, SOONEST, free, gains, position_zeros, wrong_zero
from mbse_ros.simulation.work import working_machine
from mbse_ros.streams.pipeline import Output, Pipeline

NAMES = ['sensors.lift_stroke.bias', 'sensors.lift_piston.offset', 'sensors.lift_rod.offset']
NOISE = 0.5         # kg of a block
FAR = 4.4


def solved(S: np.ndarray, y: np.ndarray, prior: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Mass and errors, their covariance, and the weighted sum of squares, of one least squares of all masses."""
    A = np.hstack([np.ones((len(S), 1)), S]) / NOISE
    L = A.T @ A + np.diag(np.append(0.0, prior))
    x = np.linalg.solve(L, A.T @ y / NOISE)
    return x, np.linalg.inv(L), float(np.sum((y / NOISE - A @ x) ** 2) + prior @ x[1:] ** 2)


def test_gains_and_free_estimates_are_those_of_fits_without_the_prior() -> None:
    """A fit for each number, in which nothing is known of it alone; with priors of several sizes."""
    rng = np.random.default_rng(1)
    S, prior = 3.0 * rng.standard_normal((9, 3)), np.array([1.0, 1 / 9, 4.0])
    y = 500.0 + S @ [20.0, -0.5, 0.3] + NOISE * rng.standard_normal(9)
    x, P, squares = solved(S, y, prior)
    found = gains(x[1:], P.diagonal()[1:], prior)
    for k in range(3):
        own, covariance, fewer = solved(S, y, prior * (np.arange(3) != k))
        assert found[k] == pytest.approx(squares - fewer, rel=1e-9)
        size, stddev = free(x[1 + k], P[1 + k, 1 + k], prior[k])
        assert size == pytest.approx(own[1 + k], rel=1e-9)
        assert stddev == pytest.approx(np.sqrt(covariance[1 + k, 1 + k]), rel=1e-9)


@pytest.mark.parametrize('size,other,expected', [
    (40.0, 0.0, True), (-40.0, 0.0, True), (1.0, 0.0, False), (0.0, 40.0, False), (40.0, 40.0, False)])
def test_a_zero_is_wrong_where_it_alone_explains_the_masses(size: float, other: float, expected: bool) -> None:
    """Not where it is about as stated, nor where another number explains them better."""
    rng = np.random.default_rng(2)
    S = 3.0 * rng.standard_normal((12, 3))
    x, P, _ = solved(S, 500.0 + S @ [size, other, 0.0] + NOISE * rng.standard_normal(12), np.ones(3))
    zero = wrong_zero(x[1:], P.diagonal()[1:], np.ones(3), np.array([0]), FAR)
    if other:       # both free: each alone leaves much; it is the zero only if it leaves no more
        found = gains(x[1:], P.diagonal()[1:], np.ones(3))
        expected = bool(found[0] > found.max() - MARGIN)
    assert (zero is not None) == expected
    if zero is not None:
        assert zero.place == 0 and (other or abs(zero.size - size) < 4 * zero.stddev)


def test_what_is_not_significant_and_what_has_no_zeros_is_none() -> None:
    """Just below the limit, just above, and a machine without position sensors of its coordinates."""
    mean, variance, prior = np.array([0.5, 0.0]), np.array([0.99, 1.0]), np.ones(2)
    assert gains(mean, variance, prior)[0] == pytest.approx(25.0)
    assert wrong_zero(mean, variance, prior, np.array([0]), FAR) is not None
    assert wrong_zero(mean, variance, prior, np.array([0]), 51.0) is None
    assert wrong_zero(0.99 * mean * SIGNIFICANT / 5, variance, prior, np.array([0]), FAR) is None
    assert wrong_zero(mean, variance, prior, np.array([], dtype=int), FAR) is None


@pytest.mark.parametrize('other,expected', [(0.0, 0), (0.52, 0), (0.7, None), (-0.7, None)])
def test_a_zero_has_to_explain_the_masses_about_as_well_as_any_number(other: float, expected: int | None) -> None:
    """Gains of 25, and of 0, 27 and 49 of another number; of two zeros it is the one that gains more."""
    mean, variance = np.array([0.5, other]), np.array([0.99, 0.99])
    zero = wrong_zero(mean, variance, np.ones(2), np.array([0]), FAR)
    assert (None if zero is None else zero.place) == expected
    both = wrong_zero(mean, variance, np.ones(2), np.array([0, 1]), FAR)
    assert both is not None and both.place == int(abs(other) > 0.5)


def weigh(errors: CommonErrors, rng: np.random.Generator, truth: np.ndarray, count: int = 60) -> None:
    """Blocks of masses of poses that change smoothly, as one step each."""
    rates, phases = rng.uniform(1.0, 3.0, 3), rng.uniform(0.0, 2.0 * np.pi, 3)
    for k in range(count):
        slopes = 0.3 * np.sin(rates * k * BLOCK + phases)
        mass = 500.0 + slopes @ truth + NOISE * rng.standard_normal()
        errors.take(NOISE ** -2 * np.array([[1.0, mass, *slopes]]), np.array([True]), np.zeros(1), BLOCK)


def test_right_zeros_are_not_found_to_be_wrong() -> None:
    """Of 20 machines whose numbers have the deviations of the file."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        errors = CommonErrors(NAMES, 1e4, zeros=[0])
        weigh(errors, rng, rng.standard_normal(3))
        assert not errors.wrong_zeros and not errors.incredible


def test_wrong_zeros_are_as_uncertain_as_said() -> None:
    """Of 20 machines with one that is 12 deviations off, which is found in many; no other number is ever named."""
    rng, squares = np.random.default_rng(4), []
    for _ in range(20):
        errors = CommonErrors(NAMES, 1e4, zeros=[0])
        weigh(errors, rng, np.array([12.0, *rng.standard_normal(2)]), 90)
        assert errors.incredible in ('', NAMES[0])
        squares += [((zero.size - 12.0) / zero.stddev) ** 2 for zero in errors.wrong_zeros]
    assert len(squares) > 6 and np.sum(squares) < len(squares) + 4 * np.sqrt(2 * len(squares))


def test_the_first_masses_say_nothing_of_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where zeros are looked for later, they are found later."""
    found = []
    for soonest in (SOONEST, 60):
        monkeypatch.setattr(common_errors, 'SOONEST', soonest)
        errors = CommonErrors(NAMES, 1e4, zeros=[0])
        weigh(errors, np.random.default_rng(5), np.array([15.0, 0.0, 0.0]), 55)
        found.append(bool(errors.wrong_zeros))
    assert found == [True, False]


@pytest.mark.parametrize('size,agrees', [(0.0, True), (2.5, True), (4.0, False)])
def test_a_zero_that_agrees_with_the_file_after_all_is_that_of_the_file(size: float, agrees: bool) -> None:
    """Once it is known to a tenth of the deviation of the file, and not far from it."""
    errors = CommonErrors(NAMES, 1e4, zeros=[0])
    weigh(errors, np.random.default_rng(5), np.array([15.0, 0.0, 0.0]), 55)
    assert errors.wrong_zeros and errors._prior[1, 1] < 0.01
    errors._L = np.diag([1e4, 400.0 if size == 4.0 else 1.5, 0.0, 0.0])
    errors._h = errors._L @ [500.0, size, 0.0, 0.0]
    errors._solve()
    errors._judge()
    assert bool(errors.wrong_zeros) != agrees and (errors._prior[1, 1] == 1.0) == agrees


@cache
def run(size: float) -> tuple[Pipeline, list[Output]]:
    """Of a crane that lifts 400 kg, and whose stroke reads ``size``, m, too much."""
    machine, found = crane(), []
    work, pipeline = working_machine(machine, 400.0, 4, 'random', duration=16.0), Pipeline(machine)
    for frame in [work.frame() for _ in range(1600)]:
        for channel, value in (*frame.commands.items(), *frame.samples.items()):
            found += pipeline.add(channel, frame.stamp_ns, value + size * (channel == 'position/lift'))
    return pipeline, found


def test_the_mass_is_corrected_by_a_zero_that_is_named_with_its_size(size: float = 0.05) -> None:
    """It stays UPDATING, with an interval that holds the mass, and a reason that names sensor and size."""
    last = run(size)[1][-1].payload
    assert last.lower <= 400.0 <= last.upper
    named = [item.payload for item in run(size)[1] if Fault.CONTRADICTION in item.payload.faults]
    assert named and {item.status for item in named} <= {PayloadStatus.UPDATING, PayloadStatus.TOO_SLOW}
    words = named[-1].reason.split('position/lift reads ')[1].split()
    found, low, high = float(words[0]), float(words[6]), float(words[8])
    assert words[1:4] == ['mm', 'too', 'much'] and low < found < high
    assert low - 200.0 * size < 1e3 * size < high + 200.0 * size


def test_what_makes_the_mass_uncertain_adds_up_with_a_zero_that_was_found() -> None:
    payload = run(0.05)[0].payload
    assert payload._mass.zeros
    total = sum(cause.kg ** 2 for cause in payload.budget)
    assert total == pytest.approx(payload._mass.stddev ** 2, rel=1e-6)


def test_a_force_balance_that_is_wrong_is_no_wrong_zero() -> None:
    """After the observer has found an error of the balance no zero is looked for, until a reset."""
    estimator = Pipeline(crane()).payload._estimator
    assert estimator._common._zeros.size == 1
    rows = np.zeros((1, columns(len(estimator._consider))))
    rows[0, LOG_TRUSTED] = -1.0
    estimator.hold(rows)
    assert not estimator._common._zeros.size
    estimator.reset()
    assert estimator._common._zeros.size == 1


def test_a_right_zero_is_not_named() -> None:
    """With the same motion; its interval is not wider."""
    assert not any(Fault.CONTRADICTION in item.payload.faults for item in run(0.0)[1])
    right, wrong = (run(size)[1][-1].payload for size in (0.0, 0.05))
    assert right.upper - right.lower < wrong.upper - wrong.lower
    assert [item.name for item in position_zeros(crane()).values()] == ['position/lift']
