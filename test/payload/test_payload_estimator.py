# SPDX-License-Identifier: Apache-2.0
"""The estimator on states that carry a known mass: result, interval, gates, and what a change of tuning keeps."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from core_support import crane
from payload_states import Carrier

from mbse_ros.errors import PositionProblemError
from mbse_ros.filters.mass_information import LOG_KEPT, MassInformation, additive_columns, columns
from mbse_ros.payload.joint import JointEstimator
from mbse_ros.payload.mass import Mass, PayloadSettings
from mbse_ros.payload.paper import PaperEstimator

DT, SPEED = 1e-3, 0.05
STDDEV = np.array([5e-5, 1e-3, 0.05, 1e4, 1e4, 1e-3])
P = np.diag(STDDEV ** 2)


@pytest.fixture(scope='module')
def carrier() -> Carrier:
    return Carrier(crane())


def lift(carrier: Carrier, mass: float, n: int = 2000, speed: float = SPEED) -> np.ndarray:
    """States of a steady lift: every 50th is solved, the rest interpolated (they carry the mass to 1 g)."""
    knots = np.arange(0, n + 50, 50)
    solved = np.array([carrier.state([0.15 + speed * DT * k], [speed], [0.0], mass) for k in knots])
    return np.column_stack([np.interp(np.arange(n), knots, column) for column in solved.T])


@pytest.fixture(scope='module')
def at_50(carrier: Carrier) -> np.ndarray:
    return lift(carrier, 50.0)


def estimator(**changes: float) -> PaperEstimator:
    return PaperEstimator(crane(), PayloadSettings(**changes), 'vm')


def feed(payload: PaperEstimator, states: np.ndarray, segment: int = 10) -> Mass:
    for part in np.split(states, range(segment, len(states), segment)):
        mass = payload.process(part, P, DT)
    return mass


@pytest.mark.parametrize('mass', [0.0, 50.0, 500.0])
def test_a_steady_lift_gives_its_mass(carrier: Carrier, mass: float) -> None:
    found = feed(estimator(), lift(carrier, mass, 1000))
    assert (found.mass, found.raw, found.low_passed) == (pytest.approx(mass, abs=0.05),) * 3
    assert found.gate == 'open' and found.samples == 1000 - 2 * 100     # the guard time at either end
    assert found.half_width > 0 and found.stddev > 0


def test_nothing_before_the_first_samples(at_50: np.ndarray) -> None:
    found = feed(estimator(), at_50[:150])
    assert np.isnan([found.mass, found.stddev, found.half_width, found.low_passed]).all()
    assert found.samples == 0 and found.raw == pytest.approx(50.0, abs=0.05)


def test_segments_change_nothing(at_50: np.ndarray) -> None:
    """The window's answer is at the last sample: the same for segments of 1, 10 and 100 steps."""
    masses = [feed(estimator(), at_50[:600], size) for size in (1, 10, 100)]
    for found in masses[1:]:
        assert (found.mass, found.samples) == (pytest.approx(masses[0].mass, rel=1e-9), masses[0].samples)


def test_standard_deviation_is_what_the_parameters_uncertainty_does(carrier: Carrier, at_50: np.ndarray) -> None:
    """Without noise: each parameter wrong by one deviation shifts the mass; the root of the sum of squares is said."""
    p = carrier.machine.parameters
    shifts = []
    for k, name in enumerate(p.names):
        sensor = name.startswith('sensors.')
        wrong = p.mean + p.stddev * (np.arange(len(p.mean)) == k) * (not sensor)
        masses = []
        for X in at_50[100:1900:150]:
            X = carrier.behind(X, name, p.stddev[k]) if sensor else X
            g = [float(carrier.residual(X, m, wrong)[0]) for m in (0.0, 1.0)]
            masses.append(-g[0] / (g[1] - g[0]) - 50.0)
        shifts.append(np.mean(masses))
    found = feed(estimator(low_pass_gain=1e-6, window=3), at_50)
    assert found.stddev == pytest.approx(sqrt(np.sum(np.square(shifts))), rel=0.05)
    assert found.half_width == pytest.approx(1.96 * found.stddev, rel=0.02)


def test_noise_widens_the_interval(at_50: np.ndarray) -> None:
    """Slow noise on the pressure: what it does to single samples enters by the batches' scatter."""
    noise = np.repeat(np.random.default_rng(2).normal(size=len(at_50) // 10), 10) * 5e4
    noisy = at_50 + noise[:, None] * (np.arange(6) == 3)
    quiet, wide = feed(estimator(), at_50), feed(estimator(), noisy)
    assert wide.stddev > quiet.stddev + 0.005 and abs(wide.mass - 50.0) < wide.half_width


def test_a_gate_that_closes_holds_the_mass(carrier: Carrier, at_50: np.ndarray) -> None:
    payload = estimator()
    before = feed(payload, at_50[:1000])
    still = np.tile(at_50[999] * [1, 0, 0, 1.5, 1, 1], (500, 1))     # and a pressure that means nothing
    held = feed(payload, still)
    assert held.gate == 'too slow'
    assert (held.mass, held.samples, held.half_width) == (before.mass, before.samples, before.half_width)
    after = feed(payload, at_50[1000:1150])
    assert (after.mass, after.samples) == (before.mass, before.samples)     # guard time after the gate has opened
    assert feed(payload, at_50[1150:1500]).samples == before.samples + 300


def test_a_brake_is_not_taken_back_into_the_mass(at_50: np.ndarray) -> None:
    """Samples wait for the guard time: those just before a closing gate are dropped though no gate saw anything."""
    wrong = at_50[:700].copy()
    wrong[610:, 3] *= 2.0           # the force changes 90 ms before the gate closes
    wrong[690:, 1] = 0.0
    assert feed(estimator(), wrong).low_passed == pytest.approx(50.0, abs=0.05)
    assert feed(estimator(guard_time=0.0), wrong).low_passed > 51.0


def test_hold_and_restart_and_reset(at_50: np.ndarray) -> None:
    payload = estimator()
    before = feed(payload, at_50[:1000])
    held = payload.hold()
    assert (held.mass, held.samples) == (before.mass, before.samples) and np.isnan(held.raw)
    payload.restart()
    assert feed(payload, at_50[1000:1100]).samples == before.samples      # nothing waits from before the gap
    payload.reset()
    assert np.isnan(payload.hold().mass) and payload.hold().samples == 0
    assert feed(payload, at_50[:1000]) == before


def test_out_of_reach_is_an_error(at_50: np.ndarray) -> None:
    with pytest.raises(PositionProblemError):
        estimator().process(at_50[:10] + 3.0 * (np.arange(6) == 0), P, DT)


@pytest.mark.parametrize('change', [{'low_pass_gain': 1e-3}, {'window': 11}, {'batch_time': 0.05}])
def test_a_new_filter_goes_on_from_the_mass(at_50: np.ndarray, change: dict[str, float]) -> None:
    payload = estimator()
    before = feed(payload, at_50[:1000])
    payload.configure(PayloadSettings(**change))
    after = payload.hold()
    assert after.mass == pytest.approx(before.low_passed, rel=1e-12) and after.samples == before.samples
    assert np.isfinite(after.half_width) and after.half_width > 0
    assert feed(payload, at_50[1000:1300]).mass == pytest.approx(50.0, abs=0.05)


def test_a_new_gate_changes_nothing_else(at_50: np.ndarray) -> None:
    payload = estimator()
    before = feed(payload, at_50[:1000])
    payload.configure(PayloadSettings(min_speed=0.2))
    assert payload.hold().half_width == before.half_width
    held = feed(payload, at_50[1000:1200])
    assert held.gate == 'too slow' and held.mass == before.mass
    assert payload.settings.min_speed == 0.2


def test_before_two_batches_the_interval_is_wide_by_one_samples_variance(carrier: Carrier, at_50: np.ndarray) -> None:
    """As uncertain as one sample by the observer's covariance, without a load."""
    early = feed(estimator(), at_50[:250])
    X = at_50[125]
    J = [float((carrier.residual(X + h * e, 0.0) - carrier.residual(X - h * e, 0.0))[0]) / (2 * h)
         for h, e in zip(STDDEV * 0.1, np.eye(6))]
    lever = float((carrier.residual(X, 51.0) - carrier.residual(X, 50.0))[0])
    one_sample = sqrt(np.sum((np.array(J) * STDDEV) ** 2)) / lever
    assert early.noise ** 2 == pytest.approx(one_sample ** 2, rel=0.05)


def test_loads_that_follow_each_other_for_hours() -> None:
    """An observer that notices another load again and again: each is weighed from nothing."""
    payload, rng = JointEstimator(crane(), PayloadSettings(), 'vm'), np.random.default_rng(2)
    states = np.tile([0.3, SPEED, 0.0, 4e6, 3e6, 0.0], (100, 1))
    masses = []
    for load in np.tile([20.0, 300.0, 80.0], 30):
        reported = np.zeros((100, columns(crane().parameters.consider.size)))
        reported[0, 2] = -30.0
        reported[10:, 0], reported[10:, 1] = 1.0, load + rng.standard_normal(90)
        gone = payload.process(states[:10], P, DT, reported[:10])
        found = payload.process(states[10:], P, DT, reported[10:])
        masses.append([found.mass, load])
        assert np.isnan(gone.mass) and abs(found.mass - load) < 4 * found.stddev < 1.0
    np.testing.assert_allclose(*np.array(masses).T, atol=0.5)


def test_a_mass_whose_information_fades_is_unknown() -> None:
    """Information goes, little by little, down to nothing, without one sample: then there is no mass."""
    payload = JointEstimator(crane(), PayloadSettings(), 'vm')
    states = np.tile([0.3, SPEED, 0.0, 4e6, 3e6, 0.0], (100, 1))
    reported = np.zeros((100, columns(crane().parameters.consider.size)))
    reported[:, 0], reported[:, 1] = 1.0, 50.0
    known = payload.process(states, P, DT, reported)
    reported[:, :2], reported[:, 2] = 0.0, -0.01
    widths = [payload.process(states, P, DT, reported).stddev for _ in range(200)]
    assert known.mass == pytest.approx(50.0) and np.all(np.diff(widths[:10]) > 0)
    assert np.isnan(widths[-150:]).all()


def test_a_state_that_left_the_finite_numbers_leaves_the_mass_known() -> None:
    payload = JointEstimator(crane(), PayloadSettings(), 'vm')
    states = np.tile([0.3, SPEED, 0.0, 4e6, 3e6, 0.0], (100, 1))
    reported = np.zeros((100, columns(crane().parameters.consider.size)))
    reported[:, 0], reported[:, 1] = 1.0, 50.0
    for _ in range(15):
        payload.process(states, P, DT, reported)
    payload.hold(np.full_like(reported, np.nan))
    payload.restart()
    after = [payload.process(states, P, DT, reported) for _ in range(30)]
    assert after[-1].mass == pytest.approx(50.0) and np.isfinite(after[-1].stddev)


def test_what_an_observer_reports_has_one_layout() -> None:
    """The rows of the wire by their names, and what of them adds up."""
    rows = np.arange(12.0).reshape(2, 6)
    found = MassInformation.of(rows)
    assert columns(2) == 6 and [part[0].tolist() for part in found.row] == [0.0, 1.0, 2.0, [3.0, 4.0], 5.0]
    assert additive_columns(2).tolist() == [0, 1, 3, 4] and found.log_kept.tolist() == rows[:, LOG_KEPT].tolist()


def test_masses_of_a_machine_without_uncertain_numbers_can_be_compared(at_50: np.ndarray) -> None:
    """Whether the load changes is asked of the difference; that of the paper's estimator is of the masses alone."""
    payload = estimator()
    old, new = feed(payload, at_50[:600]), feed(payload, at_50[600:900])
    assert payload.difference(new, old) == (new.mass - old.mass, 0.0)
    assert np.isfinite(payload.difference(new, old)).all()
