# SPDX-License-Identifier: Apache-2.0
"""The sliding window of forward dynamics against the one written from the print of Blanco-Claraco et al., factor
graphs, in plain NumPy."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from graph_by_hand import Form, dependent, independent, sliding

from mbse_ros.dynamics.model import load_model
from mbse_ros.dynamics.motion import simulate
from mbse_ros.graph import forward_graph, simulate_fixed_lag, solve_batch

DT, STEPS = 1e-3, 50        # s, as in section 7.1


def torque(t: float) -> np.ndarray:
    return np.array([8.0 * np.sin(3.0 * t)])            # N m


def by_hand(steps: int, window: int, form: Form = dependent) -> np.ndarray:
    """Positions, velocities and accelerations (3, k, 5)."""
    found = sliding(steps, DT, window, np.array([torque(k * DT)[0] for k in range(steps + 1)]), form)
    return found[:, :15].reshape(-1, 3, 5).swapaxes(0, 1)


@pytest.mark.parametrize('form, window, steps', [(dependent, 2, STEPS), (dependent, 4, STEPS), (independent, 3, STEPS)])
def test_the_printed_window(form: Form, window: int, steps: int) -> None:
    """Positions, velocities and accelerations, each to 1e-9 of its largest."""
    motion = simulate_fixed_lag(load_model('four_bar_adams', backend='vm'), steps * DT, DT, window,
                                form=form.__name__, inputs=torque)
    for expected, name in zip(by_hand(steps, window, form), ('q', 'qd', 'qdd')):
        assert np.abs(motion.values[name] - expected).max() < 1e-9 * np.abs(expected).max()


def test_the_whole_horizon_is_one_window() -> None:
    """All instants at once, by GTSAM and by hand."""
    pytest.importorskip('gtsam', reason='GTSAM is not installed (extra "graph")')
    problem = forward_graph(load_model('four_bar_adams', backend='vm'), 0.02, DT, inputs=torque)
    found = solve_batch(problem.graph, problem.initial)
    for expected, name in zip(by_hand(20, 21), ('q', 'qd', 'qdd')):
        assert np.abs(found[name] - expected).max() < 1e-9 * np.abs(expected).max()


def test_what_the_printed_equality_costs() -> None:
    """Table 2 has a variance of 1e2 for the soft equality of the independent form, ours has 1e6: that of the paper
    pulls the motion towards standing still."""
    exact = simulate(load_model('four_bar_adams', backend='vm'), STEPS * DT, DT, 'dop853',
                     inputs=lambda t, q, qd: torque(t)).q
    ours, printed = (np.sqrt(np.mean((by_hand(STEPS, 2, form)[0] - exact) ** 2))
                     for form in (independent, partial(independent, equality=10.0)))
    assert 100 < printed / ours
