# SPDX-License-Identifier: Apache-2.0
"""Constraints as measurements of a Kalman filter: against the recursion written from the print of Orsino, modular
modelling, in plain NumPy, along a motion of its 3RRR mechanism."""

from __future__ import annotations

import numpy as np
import pytest
from orsino_by_hand import at_once, forces, levels, masses, motion, recursively

from mbse_ros.dynamics.formulations.udwadia_kalaba import batch, recursive
from mbse_ros.dynamics.model import Model, load_model
from mbse_ros.dynamics.motion import simulate
from mbse_ros.mechanism.levels import level_rows

TORQUES, DT, STEPS = np.array([2.0, -1.0, 0.5]), 1e-3, 300      # N m, s
STIFF = 1e-4            # clearance, in units of a level's own P: small, but far above rounding


@pytest.fixture(scope='module')
def model() -> Model:
    return load_model('three_rrr', backend='vm')


@pytest.fixture(scope='module')
def path(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """States by hand, from rest where the file begins."""
    return motion(model.start.q, model.start.qd, TORQUES, DT, STEPS)


def close(found: np.ndarray, expected: np.ndarray) -> bool:
    """Equal to 1e-9 of the largest."""
    return bool(np.abs(found - expected).max() < 1e-9 * np.abs(expected).max())


def test_accelerations_at_once_and_recursively(model: Model, path: tuple[np.ndarray, np.ndarray]) -> None:
    """Eqs. 4.9 and 4.14 to 4.16, level after level, at each state of the motion."""
    rows, M, f = level_rows(model.system), masses(), forces(TORQUES)
    for q, qd in zip(*path):
        terms, groups = model.terms(q, qd, TORQUES), levels(q, qd)
        qdd, P = recursively(M, f, groups)
        found, covariance = recursive(terms, rows)
        assert close(found.qdd, qdd) and close(batch(terms).qdd, qdd) and close(at_once(M, f, groups), qdd)
        assert close(covariance, P) and np.trace(P) == pytest.approx(3.0)


def test_clearance(model: Model, path: tuple[np.ndarray, np.ndarray]) -> None:
    """Eqs. 4.17 and 4.18: each level gives way by its own R."""
    rows, M, f = level_rows(model.system), masses(), forces(TORQUES)
    for q, qd in zip(*(states[::10] for states in path)):
        groups = levels(q, qd)
        # each row by its own effective mass, so that rows of rotations and of translations give way alike
        soft = [np.diag(STIFF * np.sum(A ** 2 / M, axis=1)) for A, _ in groups]
        qdd, P = recursively(M, f, groups, soft)
        terms = model.terms(q, qd, TORQUES)
        same = [STIFF * np.sum(terms.J[level] ** 2 / M, axis=1) for level in rows]
        found, covariance = recursive(terms, rows, same)
        assert close(found.qdd, qdd) and close(covariance, P)
        assert not close(qdd, recursively(M, f, groups)[0])


def test_motion(model: Model, path: tuple[np.ndarray, np.ndarray]) -> None:
    """The motion by hand is that of the package, to the error of the Runge-Kutta steps."""
    exact = simulate(model, STEPS * DT, DT, 'dop853', inputs=lambda t, q, qd: TORQUES)
    assert np.abs(path[0] - exact.q).max() < 1e-6 and np.abs(exact.q[-1] - exact.q[0]).max() > 1.0
