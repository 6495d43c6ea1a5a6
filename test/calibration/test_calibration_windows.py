# SPDX-License-Identifier: Apache-2.0
"""Windows of a log in which the balance of forces bends, as near a dead point: its mean is not that at their means."""

from __future__ import annotations

from functools import cache

import numpy as np
from new_machines import LOADER

import mbse_ros as mbse
from mbse_ros.calibration.balance import CalibrationBalance, Windows
from mbse_ros.description.load import parse_mechanism
from mbse_ros.machine import Machine

HALF, SPEEDS = 0.25, (0.02, 0.6)      # s; rad/s of boom and bucket


@cache
def loader() -> CalibrationBalance:
    """A wheel loader, whose Z-bar linkage is near a dead point at the end of its tilt cylinder."""
    return CalibrationBalance(Machine(parse_mechanism(mbse.new(LOADER).text, 'loader')))


def windows(share: float, pressure: float = 5e6) -> Windows:
    """One window, with the boom up and the bucket at a share of its range; the bucket turns."""
    balance = loader()
    names, (low, high) = balance.names, balance.machine.range.T
    X = np.zeros((1, balance.X.numel()))
    X[0, :2], X[0, 2:4] = low + np.array([0.85, share]) * (high - low), SPEEDS
    X[0, [names.index(f'pressure/{name}') for name in ('tilt_piston', 'tilt_rod')]] = pressure
    P = np.diag(np.where(np.arange(X.shape[1]) < len(names), 1e-8, 0.0))
    return Windows(np.zeros(1), X, P[None], np.tile(np.array(SPEEDS)[:, None], (1, 1, 2)))


def places(share: float) -> tuple[np.ndarray, np.ndarray]:
    """Dependent coordinates (1, n) and state (1, nx)."""
    w = windows(share)
    near, _ = loader().solved(w.X[:, :2])
    return near, w.X


def test_the_bend_is_that_of_the_mean_over_the_motion() -> None:
    """By the weight of the window at 201 places; second order, so to some percent of it."""
    near, X = places(0.7)
    x = np.linspace(-1.0, 1.0, 201)
    weight = (1 - x ** 2) ** 2 / np.sum((1 - x ** 2) ** 2)
    z = X[0, :2] + HALF * x[:, None] * SPEEDS
    there, reached = loader().solved(z)
    assert reached.all()
    states = np.tile(X, (len(x), 1))
    states[:, :2] = z
    numbers = loader().machine.parameters.mean
    missing = np.asarray(loader().unbalanced(there.T, states.T, numbers, 0.0)).T
    at_mean = np.asarray(loader().unbalanced(near.T, X.T, numbers, 0.0)).T
    bend = loader().bend(near, X, HALF, 0.0)
    assert np.abs(bend).max() > 1.0
    np.testing.assert_allclose(bend[0], weight @ missing - at_mean[0], rtol=0.05, atol=0.02)


def test_a_window_near_a_dead_point_does_not_count() -> None:
    """Where the bucket turns as fast, and its sensors are as exact."""
    usual, dead = (loader().moments(windows(share), HALF) for share in (0.7, 0.93))
    tilt = loader().equations.index('tilt')
    assert usual.counts[0, tilt] and not dead.counts[0, tilt]


def test_what_bends_has_a_larger_variance() -> None:
    near, X = places(0.7)
    usual = loader().moments(windows(0.7), HALF)
    bend = loader().bend(near, X, HALF, 0.0)
    tilt = loader().equations.index('tilt')
    assert usual.counts[0, tilt] and usual.variance[0, tilt] > 9.0 * bend[0, tilt] ** 2
