# SPDX-License-Identifier: Apache-2.0
"""The estimator of Pyrhönen et al., mass estimation, against one written from the print alone (``crane_by_hand``).

With the preset ``paper`` all is equal but for the sign of Eq. 52; what the defaults differ by is in the last tests and
in docs/papers/mass_estimation_pyrhonen.md.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from crane_by_hand import interpolated, masses_of
from crane_runs import STEP, crane_of, estimated, log_of, printed, smooth, tuning_of

RUNS = [(0.0, 1), (50.0, 2), (200.0, 1)]


def root_mean_square(values: np.ndarray) -> np.ndarray:
    return np.sqrt(np.mean(values ** 2, axis=0))


@pytest.mark.parametrize(('load', 'seed'), RUNS[:1])
def test_samples_are_interpolated_as_printed_and_come_no_later(load: float, seed: int) -> None:
    """Lines between the samples at each step, once the sample at their end has come."""
    log, product = log_of('patu655_lift', load, seed), estimated('patu655_lift', load, seed)
    values, known = interpolated(log.stamps, log.samples, np.arange(STEP, log.stamps[-1] + 1, STEP))
    np.testing.assert_allclose(np.concatenate([segment.values for _, segment in product.segments]), values, rtol=1e-12)
    np.testing.assert_array_equal([stamp for stamp, segment in product.segments for _ in segment.values], known)


@pytest.mark.parametrize(('name', 'load', 'seed'), [('patu655_lift', *run) for run in RUNS]
                         + [('lut_simple_crane', 50.0, 1)])
def test_states_covariances_and_masses_are_those_of_the_print(name: str, load: float, seed: int) -> None:
    """In standard deviations of the state, and kg; the sign of Eq. 52 smoothed."""
    (states, covariances), product = printed(name, load, seed), estimated(name, load, seed)
    stddev = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
    assert np.abs((product.states - states) / stddev).max() < 1e-9
    last, ends = stddev[9::10], covariances[9::10]
    assert np.abs((product.covariances - ends) / (last[:, :, None] * last[:, None, :])).max() < 1e-9
    crane, _ = crane_of(name)
    found = masses_of(crane, states, replace(tuning_of(name), sign=smooth(crane)))
    raw = product.rows[:, 1] / product.rows[:, 0]
    np.testing.assert_allclose(raw, found['raw'], rtol=0, atol=1e-9)
    np.testing.assert_array_equal([payload.raw for payload in product.payloads], raw[9::10])
    there = ~np.isnan(found['mass'][9::10])     # the window is full
    assert np.count_nonzero(there) > 250
    for column in ('low_passed', 'mass'):
        ours = np.array([getattr(payload, column) for payload in product.payloads])
        np.testing.assert_allclose(ours[there], found[column][9::10][there], rtol=0, atol=1e-9)
    assert product.payloads[-1].lower < load < product.payloads[-1].upper
    assert product.payloads[-1].samples == np.count_nonzero(np.abs(states[:, 1]) >= crane.vs)      # others: held


@pytest.mark.parametrize(('load', 'seed'), RUNS)
def test_the_sign_of_the_pressure_friction_is_smoothed_above_vs_by_little(load: float, seed: int) -> None:
    """1 - tanh 4 of the pressure's friction at vs, over what a kg needs of the cylinder."""
    crane, tuning = crane_of('patu655_lift')[0], tuning_of('patu655_lift')
    states = printed('patu655_lift', load, seed)[0]
    states = states[np.abs(states[:, 1]) >= crane.vs]
    signs, smoothed = (masses_of(crane, states, replace(tuning, sign=sign))['raw']
                       for sign in (tuning.sign, smooth(crane)))
    pressed = 1e6 * np.abs(states[:, 3] - states[:, 4]).max() * crane.C_p1 * (1 - np.tanh(4))
    needed = 2.0 * crane.gravity        # N a kg at least: the tip moves at least twice as fast as the piston
    assert 0.0 < np.abs(signs - smoothed).max() < pressed / needed


@pytest.mark.parametrize(('load', 'seed'), RUNS)
def test_samples_alone_as_measurements_move_the_state_by_less_than_it_errs(load: float, seed: int) -> None:
    """Each sample corrects once, and between them are lines: that makes the covariance larger, in the print it is too
    small. The sizes are those of docs/papers/mass_estimation_pyrhonen.md."""
    log, product = log_of('patu655_lift', load, seed), estimated('patu655_lift', load, seed, 'samples')
    states, covariances = printed('patu655_lift', load, seed)
    z, v, a, p1, p2, _ = root_mean_square(product.states - states)
    assert z < 0.06e-3 and v < 0.2e-3 and a < 0.04 and max(p1, p2) < 0.6e-3
    ours, theirs = product.states[9::10, :5] - log.truth[1:], states[9::10, :5] - log.truth[1:]
    assert (0.5 * root_mean_square(theirs) < root_mean_square(ours)).all() and v < root_mean_square(theirs)[1] < 0.5e-3
    assert normalised(ours, product.covariances) < ours.shape[1] < normalised(theirs, covariances[9::10])


def normalised(errors: np.ndarray, covariances: np.ndarray) -> float:
    """Mean of the squared errors (k, 5) by their covariances: 5 where these are right."""
    return float(np.mean([e @ np.linalg.solve(P[:5, :5], e) for e, P in zip(errors, covariances)]))
