# SPDX-License-Identifier: Apache-2.0
"""The sliding window of forward dynamics against the one written from the print of Blanco-Claraco et al., factor
graphs, in plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from graph_by_hand import sliding

from mbse_ros.dynamics.model import load_model
from mbse_ros.graph import forward_graph, simulate_fixed_lag, solve_batch

DT, STEPS = 1e-3, 200           # s, as in section 7.1


def torque(t: float) -> np.ndarray:
    return np.array([8.0 * np.sin(3.0 * t)])            # N m


def by_hand(steps: int, window: int) -> np.ndarray:
    """Positions, velocities and accelerations (3, k, 5)."""
    found = sliding(steps, DT, window, np.array([torque(k * DT)[0] for k in range(steps + 1)]))
    return found.reshape(-1, 3, 5).swapaxes(0, 1)


@pytest.mark.parametrize('window', [2, 4])
def test_the_printed_window(window: int) -> None:
    """Positions, velocities and accelerations, each to 1e-9 of its largest."""
    motion = simulate_fixed_lag(load_model('four_bar_adams', backend='vm'), STEPS * DT, DT, window, inputs=torque)
    for expected, name in zip(by_hand(STEPS, window), ('q', 'qd', 'qdd')):
        assert np.abs(motion.values[name] - expected).max() < 1e-9 * np.abs(expected).max()


def test_the_whole_horizon_is_one_window() -> None:
    """All instants at once, by GTSAM and by hand."""
    pytest.importorskip('gtsam', reason='GTSAM is not installed (extra "graph")')
    problem = forward_graph(load_model('four_bar_adams', backend='vm'), 0.02, DT, inputs=torque)
    found = solve_batch(problem.graph, problem.initial)
    for expected, name in zip(by_hand(20, 21), ('q', 'qd', 'qdd')):
        assert np.abs(found[name] - expected).max() < 1e-9 * np.abs(expected).max()
