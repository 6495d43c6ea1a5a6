# SPDX-License-Identifier: Apache-2.0
"""What the sensors of a machine leave blind: coordinates, and mass against centre of the payload."""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np
import pytest

from mbse_ros.dynamics.forces.inertial_forces import inertial_forces
from mbse_ros.errors import SettingError
from mbse_ros.filters.observability.machine import (
    Poses,
    all_poses,
    in_motion,
    machine_observability,
    motion_poses,
    payload_observability,
    payload_regressor,
    sensor_slopes,
    start_pose,
    sweep,
)
from mbse_ros.machine import Machine, load_machine
from mbse_ros.machine.equations import measured_equations

PRESSURES = [f'{cylinder}_{side}' for cylinder in ('boom', 'arm', 'bucket') for side in ('piston', 'rod')]


@cache
def machine_of(name: str) -> Machine:
    return load_machine(name)


def state(machine: Machine, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng, g = np.random.default_rng(seed), len(machine.coordinates)
    low, high = machine.range.T
    start = machine.model.start.q[machine.model.z]
    return (machine.position(np.clip(start + 0.1 * (high - low) * rng.uniform(-1, 1, g), low, high)),
            rng.normal(size=g), rng.normal(size=g))


@pytest.mark.parametrize('name', ['zx200', 'zx200_can', 'patu655'])
def test_regressor_is_the_payload_of_the_inverse_dynamics(name: str) -> None:
    """The column of the mass is the derivative of the machine's own forces by it, in motion."""
    machine = machine_of(name)
    system, reduced = machine.system, machine.reduced
    zdd = ca.SX.sym('zdd', len(machine.coordinates))
    needed, = ca.substitute([inertial_forces(system, reduced.R @ zdd + reduced.S @ reduced.c)], [system.qd],
                            [reduced.qd])
    column = ca.jacobian((reduced.R.T @ needed)[machine.actuated], machine.payload)
    own = ca.Function('own', [system.q, reduced.zd, zdd, machine.parameters.symbol], [column])
    q, zd, a = state(machine, 1)
    W, _ = payload_regressor(machine)(q, zd, a, [500.0, 0, 0, 0], machine.parameters.mean)
    expected = own(q, zd, a, machine.parameters.mean).full()[:, 0]
    np.testing.assert_allclose(W.full()[:, 0], expected, rtol=1e-9, atol=1e-9)


def test_regressor_is_linear_at_rest_and_a_derivative_in_motion() -> None:
    """Potential energy of the load, by differences of the coordinates and of the moments."""
    machine = machine_of('zx200')
    function, p = payload_regressor(machine), machine.parameters.mean
    q, zd, zdd = state(machine, 2)
    payload, still = machine.description.payload, np.zeros(4)
    centre = np.array([s.value for s in payload.center])
    pi = np.array([700.0, 60.0, -40.0, 90.0])
    W = function(q, still, still, pi, p)[0].full()
    other = function(q, still, still, 3 * pi[[0, 2, 1, 3]] * [1, 1, 2, 3], p)[0].full()
    np.testing.assert_allclose(W, other, rtol=1e-9, atol=1e-6)
    height = ca.Function('height', [machine.system.q, machine.system.values.symbol],
                         [machine.system.frames[payload.body].at(ca.DM(centre + pi[1:] / pi[0]))])
    numbers, z = machine.parameters.numbers(), q[machine.model.z]
    for k, row in zip(machine.actuated, W):
        up, down = (float(height(machine.position(z + sign * 1e-5 * np.eye(4)[k], q), numbers)[2]) for sign in (1, -1))
        assert row @ pi == pytest.approx(pi[0] * 9.81 * (up - down) / 2e-5, rel=1e-6)


def test_what_no_pressure_sees() -> None:
    """At one pose two numbers of four; by turning the bucket all but the centre's side."""
    machine = machine_of('zx200')
    start = payload_observability(machine, PRESSURES, start_pose(machine))
    bucket = payload_observability(machine, PRESSURES, sweep(machine, 'bucket'))
    assert start.rank == 2 and bucket.rank == 3 and bucket.blind == ['the centre along y of bucket']
    assert len(start.blind) == 2 and np.isnan(start.stddev).all()
    assert payload_observability(machine, PRESSURES, sweep(machine, 'swing_joint')).rank == 2
    turned = machine.position(machine.model.start.q[machine.model.z] + [0, 0, 0, 0.3])
    assert payload_observability(machine, PRESSURES, Poses(turned[None], np.zeros((1, 4)), np.zeros((1, 4)))).rank == 2
    ahead = payload_observability(machine, PRESSURES[:2], start_pose(machine))
    assert ahead.rank == 1 and any('mass against the centre' in words for words in ahead.blind)


def test_mass_and_moment_of_one_boom_are_one_number() -> None:
    """A load further out weighs as a heavier one nearer: the pivot is where a mass changes nothing."""
    machine = machine_of('patu655_lift')
    observed = payload_observability(machine, ['lift_piston', 'lift_rod'], all_poses(machine))
    tip = [s.value for s in machine.description.payload.center]
    assert observed.rank == 2 and observed.blind[0].startswith('the centre along y')
    assert f'({-tip[0]:.2f}, 0.00' in observed.blind[1]


def test_in_motion_the_side_of_the_centre_is_seen_when_the_machine_swings() -> None:
    """A swing that accelerates pushes a load that hangs to the side along the boom: worse seen than the rest."""
    machine, n = machine_of('zx200'), 40
    t = np.linspace(0.0, 4.0, n)
    z = machine.model.start.q[machine.model.z] + np.outer(np.sin(t), [0.5, 0.02, 0.05, 0.1])
    q = np.array([machine.position(row) for row in z])
    qd = np.gradient(q, t, axis=0)
    observed = payload_observability(machine, PRESSURES, motion_poses(machine, q, qd, t[1] - t[0]))
    assert observed.rank == 4 and not observed.blind
    stddev = observed.stddev
    assert np.isfinite(stddev).all() and stddev[0] < 10.0 and stddev[2] > 5 * stddev[1]


def test_poses_in_motion_show_more() -> None:
    machine = machine_of('zx200')
    poses = all_poses(machine, 10)
    assert payload_observability(machine, PRESSURES, poses).rank == 3
    assert payload_observability(machine, PRESSURES, in_motion(poses)).rank == 4


def test_stddev_is_that_of_least_squares() -> None:
    """Monte Carlo: noise on the forces of a motion, the moments found again; in motion, where nothing is blind."""
    machine, n = machine_of('zx200'), 30
    rng, t = np.random.default_rng(4), np.linspace(0.0, 6.0, n)
    moved = np.column_stack([np.sin(2 * t), 0.02 * t / 6, 0.1 * np.sin(t), 0.2 * t / 6])
    z = machine.model.start.q[machine.model.z] + moved
    q = np.array([machine.position(row) for row in z])
    poses = motion_poses(machine, q, np.gradient(q, t, axis=0), t[1] - t[0])
    observed, m = payload_observability(machine, PRESSURES, poses), machine.description.payload.limits[1] / 2
    rows = []
    for state_ in zip(poses.q, poses.zd, poses.zdd):
        W, S = (item.full() for item in payload_regressor(machine)(*state_, [m, 0, 0, 0], machine.parameters.mean))
        rows.append(W / (6e4 * np.linalg.norm(S, axis=1))[:, None])
    A = np.vstack(rows)
    found = np.linalg.lstsq(A, rng.normal(size=(len(A), 4000)), rcond=None)[0].std(axis=1)
    np.testing.assert_allclose(observed.stddev, found / [1, m, m, m], rtol=0.06)


def test_needs_and_what_is_refused() -> None:
    machine = machine_of('zx200_can')
    assert machine.pressure_needs == [{'boom_piston', 'boom_rod'}, {'arm_piston', 'arm_rod'},
                                       {'bucket_piston', 'bucket_rod'}]
    assert measured_equations(machine, ['pressure/boom_piston', 'pressure/arm_piston', 'pressure/arm_rod']) == [1]
    with pytest.raises(SettingError, match='all pressures of a cylinder'):
        payload_observability(machine, ['boom_piston'], start_pose(machine))


def test_sensor_slopes_are_those_of_differences() -> None:
    """Each sensor by its own coordinate; by differences in the test of the observer."""
    machine = machine_of('zx200')
    H, stddev = sensor_slopes(machine, start_pose(machine))
    np.testing.assert_array_equal(H[0, :4, :4], np.eye(4))
    assert not H[0, 4:].any() and not H[0, :, 4:].any()
    np.testing.assert_allclose(stddev[:4], [0.0004, 0.001, 0.001, 0.001])


def test_missing_stroke_is_blind_and_helps() -> None:
    machine = machine_of('zx200')
    poses = all_poses(machine, 4)
    observed = machine_observability(machine, ['swing_angle', 'boom_stroke', 'arm_stroke'], poses, 0.3)
    assert observed.verdict == 'blind' and observed.rank == 9 and set(observed.blind) == {
        'bucket', 'velocity of bucket', 'acceleration of bucket'}
    assert list(observed.helpers) == ['bucket_stroke'] and observed.helpers['bucket_stroke'] > 1.0
    assert machine_observability(machine, list(machine.description.sensors), poses, 0.3).verdict == 'seen'
