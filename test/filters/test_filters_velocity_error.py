# SPDX-License-Identifier: Apache-2.0
"""How far velocities are from what the positions say, by hand and in runs of machines that are not as in their file."""

from __future__ import annotations

import numpy as np
import pytest

from mbse_ros.filters.velocity_error import FADES, WINDOW, VelocityError
from mbse_ros.studies import reality_cases
from mbse_ros.studies.reality_cases import RealityCase, run_reality

DT = 1e-3
OFF = np.array([0.02, -0.3])        # of the velocities, rad/s


def motion(t, off):
    """States (n, 5) at rest at first: two coordinates, velocities that are ``off``, and a mass."""
    rates = 2.0 * np.pi * np.array([0.2, 0.5])
    z, zd = (1.0 - np.cos(np.outer(t, rates))), rates * np.sin(np.outer(t, rates))
    return np.column_stack([z, zd + off, np.full(len(t), 300.0)])


def found(states, steps, variance=0.0):
    """What is stated after each segment of so many steps."""
    error, seen = VelocityError(2), []
    for k in range(0, len(states) - steps, steps):
        error.take(states[k], states[k + 1:k + steps + 1], np.full(5, variance), DT)
        P = np.zeros((5, 5))
        error.widen(P)
        assert np.count_nonzero(P) == np.count_nonzero(P.diagonal()[2:4])
        seen.append(P.diagonal()[2:4])
    return np.array(seen)


@pytest.mark.parametrize('steps', [2, 10, 100])
def test_velocities_that_are_off_are_as_uncertain(steps) -> None:
    """Whatever the segments; by the sum of a geometric series the mean over the window is (1 - exp(-t/W)) of it."""
    t = np.arange(2001) * DT
    seen = found(motion(t, OFF), steps)
    at = (1 + np.arange(len(seen))) * steps * DT
    expected = np.where(at >= WINDOW - 1e-9, 1.0 - np.exp(-at / WINDOW), 0.0)[:, None] ** 2 * OFF ** 2
    assert np.allclose(seen, expected, rtol=1e-3, atol=1e-9)
    assert np.sqrt(found(motion(t, 0.0 * OFF), steps)).max() < 3e-4 * abs(OFF).min()      # of the trapezoidal rule


def test_what_positions_are_not_known_to_does_not_count() -> None:
    t = np.arange(1001) * DT
    sure, unsure = found(motion(t, OFF), 10)[-1], found(motion(t, OFF), 10, (0.1 * WINDOW) ** 2)[-1]
    assert np.allclose(unsure, np.maximum(sure - 0.1 ** 2, 0.0)) and unsure[0] == 0.0 < unsure[1]


def test_it_fades_and_is_forgotten() -> None:
    t = np.arange(6001) * DT
    seen = found(motion(t, OFF * (t[:, None] < 1.0)), 10)
    high = seen.max(axis=0)
    assert np.all(seen[-1] < 1.01 * high * np.exp(-(5.0 - WINDOW) / FADES)) and np.all(seen[-1] > 0.0)
    error = VelocityError(2)
    states = motion(t, OFF)
    error.take(states[0], states[1:], np.zeros(5), DT)
    error.reset()
    P = np.zeros((5, 5))
    error.widen(P)
    assert not P.any()


@pytest.mark.parametrize('case', [('patu655', 'zero_50_mm', 'orifice'), ('patu655_lift', 'load_holding', 'orifice')])
def test_bands_of_a_machine_that_is_not_as_in_its_file(case, monkeypatch) -> None:
    """They hold; without this, the same masses and statuses, and bands that do not."""
    case = RealityCase(*case, seed=1, duration=24.0)
    kept, outputs_of = [], reality_cases.outputs_of

    def keeping(*args):
        kept.append(outputs_of(*args))
        return kept[-1]
    monkeypatch.setattr(reality_cases, 'outputs_of', keeping)
    wide = run_reality(case)
    monkeypatch.setattr(VelocityError, 'widen', lambda self, covariance: None)
    stated = run_reality(case)
    assert wide.row['coverage_velocity'] > 0.9 > 0.88 > stated.row['coverage_velocity']
    (with_, _), (without, _) = kept
    assert len(with_) == len(without)
    for one, other in zip(with_, without):
        assert np.array_equal(one.state.mean, other.state.mean)
        assert (one.payload.mass, one.payload.status) == (other.payload.mass, other.payload.status)
