# SPDX-License-Identifier: Apache-2.0
"""Gates by the states alone are those of the inverse dynamics, but for acceleration, however the steps come."""

from __future__ import annotations

import numpy as np
import pytest

from mbse_ros.errors import PositionProblemError
from mbse_ros.filters.hydraulic_model import coordinate_scale
from mbse_ros.filters.hydraulic_state import state_names
from mbse_ros.machine import Machine, load_machine
from mbse_ros.payload.gates import GATES
from mbse_ros.payload.inverse_dynamics import InverseDynamics
from mbse_ros.payload.payload_settings import PayloadSettings
from mbse_ros.payload.state_gates import StateGates

NOT_HERE = GATES.index('accelerating')


def states(machine: Machine, count: int = 300) -> np.ndarray:
    """States (n, nx) of a motion through the range and beyond the margins, with rests and large accelerations."""
    names, g, t = state_names(machine)[0], len(machine.coordinates), np.linspace(0.0, 1.0, count)[:, None]
    X, (low, high), k = np.zeros((count, len(names))), machine.range.T, np.arange(g) + 1
    middle, half = (low + high) / 2, np.minimum((high - low) / 2, 1.2)
    X[:, :g] = middle + 1.004 * half * np.sin(2 * t * k)
    X[:, g:2 * g] = 0.08 * np.sin(9 * t * k) * half
    X[:, 2 * g:3 * g] = 1.5 * np.sin(5 * t * k) ** 3
    X[:, 3 * g:3 * g + len(machine.volumes)] = 5e6
    return X


@pytest.mark.parametrize('name', ['patu655_lift', 'patu655', 'zx200_can'])
@pytest.mark.parametrize('settings', [PayloadSettings(), PayloadSettings(max_sample_share=3e-3, stroke_margin=0.05)])
def test_gates_are_those_of_the_inverse_dynamics(name: str, settings: PayloadSettings) -> None:
    machine = load_machine(name)
    found, expected, X = StateGates(machine, 'vm'), InverseDynamics(machine, 'vm'), states(machine)
    found.configure(settings)
    expected.configure(settings)
    covariance = np.zeros((X.shape[1], X.shape[1]))
    for k, scale in enumerate(coordinate_scale(machine)):
        if k in machine.actuated:
            covariance[2 * len(machine.coordinates) + k, 2 * len(machine.coordinates) + k] = (0.01 / scale) ** 2
    closed = expected.process(X, covariance).closed
    assert len(set(closed)) >= 3
    np.testing.assert_array_equal(found.closed(X), np.where(closed == NOT_HERE, 0, closed))


def test_segments_change_nothing() -> None:
    machine = load_machine('patu655')
    gates, X = StateGates(machine, 'vm'), states(machine)
    gates.configure(PayloadSettings())
    whole = gates.closed(X)
    gates.reset()
    np.testing.assert_array_equal(np.concatenate([gates.closed(row[None, :]) for row in X]), whole)


def test_out_of_reach() -> None:
    machine = load_machine('zx200')
    gates, X = StateGates(machine, 'vm'), states(machine)[:2]
    gates.configure(PayloadSettings())
    gates.closed(X[:1])
    X[1, :len(machine.coordinates)] = np.nan
    with pytest.raises(PositionProblemError):
        gates.closed(X)
