# SPDX-License-Identifier: Apache-2.0
"""The equations of the force at the tool: their levers and derivatives, and means over a window."""

import numpy as np
import pytest

from mbse_ros.machine import load_machine
from mbse_ros.machine.frames import MachineFrames
from mbse_ros.payload.mass import Mass, PayloadSettings
from mbse_ros.payload.tool_force import ToolForces
from mbse_ros.payload.tool_force_equations import LEVERS, NODES, SHARES, curve


@pytest.fixture(scope='module')
def forces() -> ToolForces:
    """Of an excavator."""
    return ToolForces(load_machine('zx200'), PayloadSettings(), 'vm')


def test_levers_are_those_of_virtual_work(forces: ToolForces) -> None:
    """Of the excavator: how the teeth move with each piston, by finite differences, along the axes of the bucket."""
    machine = forces._machine
    z = machine.model.start.q[machine.model.z]
    X = np.zeros(forces._count)
    X[:len(z)] = z
    near = machine.position(z)[machine.system.dependent]
    A = forces._kernel(near, X, np.eye(len(X)) * 1e-6, [0.0], machine.parameters.mean)[1][:, LEVERS]
    names = machine.description.bodies['bucket'].outline
    frames = MachineFrames(machine)
    axes = frames.poses(machine.position(z))[1][frames.bodies.index('bucket')]
    for row, k in enumerate(machine.weighed):
        h = np.zeros(len(z))
        h[k] = 1e-5
        place = [machine.outline(z + sign * h)['bucket'][names.index('teeth')] for sign in (1, -1)]
        assert A[row] == pytest.approx(axes.T @ (place[0] - place[1]) / 2e-5, abs=1e-6)


def test_derivatives_of_balance_and_levers_are_finite_differences(forces: ToolForces) -> None:
    """By all uncertain numbers, also of the sensors, and by the positions; a force of 20 kN makes the levers count."""
    machine = forces._machine
    p, z = machine.parameters, machine.model.start.q[machine.model.z]
    X, weights = np.zeros(forces._count), np.array([1.0, -20e3, 0.0, 10e3, 0.0])      # of g - A F
    X[:len(z)], X[-len(machine.volumes):] = z, 5e6
    near, P, a = machine.position(z)[machine.system.dependent], np.eye(len(X)) * 1e-6, len(machine.weighing)

    def residual(x: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        return forces._kernel(near, x, P, [800.0], numbers)[1] @ weights
    _, _, by_state, by_numbers, *_ = forces._kernel(near, X, P, [800.0], p.mean)
    found = [weights @ item.reshape(len(weights), -1) for item in (by_state, by_numbers)]
    levers = by_numbers.reshape(len(weights), a, -1)[LEVERS]
    assert {name.partition('.')[0] for name, some in zip(p.names, np.abs(levers).max((0, 1))) if some} == {'sensors'}
    for k in np.flatnonzero(p.stddev):
        h = np.zeros(len(p.names))
        h[k] = 1e-3 * p.stddev[k]
        slope = (residual(X, p.mean + h) - residual(X, p.mean - h)) / 2e-3
        assert found[1].reshape(a, -1)[:, k] * p.stddev[k] == pytest.approx(slope, rel=1e-4, abs=1e-2), p.names[k]
    for k in range(len(z)):
        h = np.zeros(len(X))
        h[k] = 1e-6
        slope = (residual(X + h, p.mean) - residual(X - h, p.mean)) / 2e-6
        assert found[0].reshape(a, -1)[:, k] == pytest.approx(slope, rel=1e-4, abs=1.0)


def test_a_force_that_turns_with_its_levers_is_its_mean(forces: ToolForces) -> None:
    """Levers change by a third in the window; from the means of the equations alone it would be 170 N off."""
    rng = np.random.default_rng(1)
    A, change = rng.standard_normal((2, 3, 3))
    A[:, 1] = change[:, 1] = 0.0
    A = A + change / 3 * NODES[:, None, None]
    F = np.array([5e3, 0.0, 8e3]) + np.array([9e3, 0.0, -7e3]) * NODES[:, None]
    terms = np.concatenate([A @ F[:, :, None], A, 0 * A[:, :, :1]], 2)
    errors = 1.0 * rng.standard_normal((len(NODES), 5, 3, 9))
    errors[:, 1:] = 0.0
    forces._rows.append((0, np.zeros(1)))
    forces._mass = 0, Mass(0.0, 0.0, 0.0, 0.0, 0.0, 1, '', 0.0)
    found = forces._solved((terms, errors, np.zeros((len(NODES), 3, 0)), np.eye(3)), forces._mass[1], 0.0, '')
    assert found.force[[0, 2]] == pytest.approx([5e3, 8e3], rel=1e-9)
    A, g = (np.tensordot(SHARES, item, 1) for item in (A[..., [0, 2]], terms[..., 0]))
    alone = np.linalg.lstsq(A, g, rcond=None)[0]
    assert np.hypot(*(alone - [5e3, 8e3])) > 100.0


def test_the_curve_is_that_of_numpy() -> None:
    """Of degree 6; its errors are those of repeated noise, and few samples get a parabola."""
    rng = np.random.default_rng(3)
    t, x = np.sort(rng.uniform(-1.0, 1.0, 30)), rng.standard_normal((30, 2))
    found, factors = curve(t, x, 4.0)
    for k in range(2):
        fit = np.poly1d(np.polyfit(t, x[:, k], 6))
        wanted = [fit(NODES), 4.0 * fit.deriv()(NODES), 16.0 * fit.deriv(2)(NODES)]
        assert found[:, :, k].T == pytest.approx(np.array(wanted), rel=1e-7, abs=1e-7)
    noise = curve(t, rng.standard_normal((30, 20000)), 4.0)[0]
    assert np.array([np.cov(rows) for rows in noise]) == pytest.approx(
        factors @ factors.transpose(0, 2, 1), rel=0.1, abs=0.1 * np.abs(factors).max() ** 2)
    assert curve(t[::4], x[::4], 4.0)[1].shape == (len(NODES), 3, 3)


def test_accelerations_are_means_with_the_weights_of_pressures_whatever_the_motion() -> None:
    """The mean of the curve's accelerations over a window is that of a parabola, (1 - t^2)^2 weighs both."""
    t = np.linspace(-1.0, 1.0, 2001)
    x = np.sin(3.0 * t)[:, None] + np.cos(5.0 * t + 1.0)[:, None]
    weights = (1 - t ** 2) ** 2
    true = (weights @ (-9.0 * np.sin(3.0 * t) - 25.0 * np.cos(5.0 * t + 1.0))) / weights.sum()
    mean = SHARES @ curve(t, x, 1.0)[0][:, 2, 0]
    assert mean == pytest.approx(true, abs=0.02)
    assert mean == pytest.approx(2 * np.polyfit(t, x[:, 0], 2)[0], abs=0.02)
