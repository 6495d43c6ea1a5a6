# SPDX-License-Identifier: Apache-2.0
"""The factor graph of machines with several cylinders, measured by strokes or by angles."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from core_support import crane
from machine_logs import LOAD, differences, excavated, kinds_of, log_of, machine_of
from machine_variants import changed

from mbse_ros.description.basics import Scalar
from mbse_ros.description.load import parse_mechanism
from mbse_ros.errors import GraphError
from mbse_ros.graph.machines.machine_graph import MachineGraphSettings, followed, machine_graph, moving
from mbse_ros.graph.machines.machine_lag import lag_machine
from mbse_ros.graph.machines.machine_log import MachineLog, check_log, hold, readings, unused, unwrapped
from mbse_ros.graph.machines.machine_smoother import MachineSmoothed, smooth_machine
from mbse_ros.machine import Machine

FIXED = MachineGraphSettings(unknown_force=1.0)
EXCAVATORS = ('zx200', 'zx200_can')


@cache
def smoothed() -> MachineSmoothed:
    """The excavator's log by its strokes, the whole of it."""
    machine = machine_of('zx200')
    return smooth_machine(machine, log_of(machine, excavated('zx200')), FIXED, kinds_of('zx200'))


@pytest.fixture(autouse=True)
def gtsam():
    return pytest.importorskip('gtsam', reason='GTSAM is not installed (extra "graph")')


@pytest.mark.parametrize('name', [*EXCAVATORS, 'patu655'])
def test_balance_has_exact_jacobians_along_the_loops(name: str) -> None:
    """By every coordinate, pressure, mass and number of the file; an equation that does not count is a row of zeros."""
    machine, kinds, rng = machine_of(name), kinds_of(name), np.random.default_rng(3)
    low, high = machine.range.T
    z = machine.model.start.q[machine.model.z] + 0.02 * (high - low)
    q, g, a = machine.position(z), len(z), len(machine.actuated)
    x = np.concatenate([z, 0.1 * rng.normal(size=g), 0.3 * rng.normal(size=g), 2 + 3 * rng.random(len(machine.volumes)),
                        rng.normal(size=a), [300.0], 0.3 * rng.normal(size=len(kinds.names))])
    near = q[machine.system.dependent] + 1e-3 * rng.normal(size=len(machine.system.dependent))
    on = np.ones(a)
    e, J = kinds.balance.evaluate(x[None], np.append(near, on)[None])
    slopes = differences(kinds.balance, x, np.append(near, on), 2e-6 * (1 + np.abs(x)))
    np.testing.assert_allclose(J[0], slopes, rtol=1e-5, atol=1e-5 * np.abs(slopes).max())
    solved, _ = kinds.balance.evaluate(x[None], np.append(q[machine.system.dependent], on)[None])
    far, _ = kinds.balance.evaluate(x[None], np.append(q[machine.system.dependent] + 0.01, on)[None])
    np.testing.assert_allclose(far, solved, rtol=1e-4)          # wherever the iteration starts
    on[0] = 0.0
    less, rows = kinds.balance.evaluate(x[None], np.append(near, on)[None])
    assert less[0, 0] == 0.0 and not rows[0, 0].any()
    np.testing.assert_array_equal(less[0, 1:], e[0, 1:])


@pytest.mark.parametrize('name', EXCAVATORS)
def test_balance_holds_for_the_plant(name: str) -> None:
    """On the plant's own motion nothing is missing, of forces of 100 kN and moments as large."""
    machine, kinds, frames = machine_of(name), kinds_of(name), excavated(name)
    for k in (40, 60, 100):
        frame = frames[k]
        x = np.concatenate([frame.position, frame.velocity, frame.acceleration, frame.pressure * 1e-6,
                            np.zeros(3), [LOAD], np.zeros(len(kinds.names))])
        near = machine.position(frame.position)[machine.system.dependent]
        e, _ = kinds.balance.evaluate(x[None], np.append(near, np.ones(3))[None])
        fast = np.abs(frame.velocity[1:]) > 0.02
        assert fast.any() and np.abs(e[0][fast]).max() < 1.5, (k, e)


@pytest.mark.parametrize('name', EXCAVATORS)
def test_equations_count_where_their_own_cylinder_moves(name: str) -> None:
    """Boom and arm, each in its own time; never the bucket, which holds still, nor the swing, which has no cylinder."""
    machine, kinds, frames = machine_of(name), kinds_of(name), excavated(name)
    log = log_of(machine, frames)
    motion = followed(machine, kinds, log, FIXED)
    counted = moving(machine, kinds, log, FIXED, motion)
    boom, arm, bucket = counted.T
    assert boom.sum() > 40 and arm.sum() > 20 and not bucket.any() and (boom & ~arm).any() and (arm & ~boom).any()
    pistons = np.array([machine.position(f.position)[machine.pistons] for f in frames[::20]])
    np.testing.assert_allclose(motion.pistons[::20], pistons, atol=5e-3)
    holed = log.measured.copy()
    holed[:, machine.channels.index('pressure/boom_rod')][60:] = np.nan
    less = moving(machine, kinds, MachineLog(log.t, holed), FIXED, motion)
    assert not less[60:, 0].any() and less[60:, 1].any()


def test_strokes_and_angles_weigh_the_same_load() -> None:
    """800 kg by each within its interval, both intervals alike; the arm's friction is better known than before."""
    other = changed('zx200_can', {'payload/center': ['0.75 m', '0 m', '-0.10 m']})  # as certain as the first
    found = {'zx200': smoothed(), 'zx200_can': smooth_machine(other, log_of(other, excavated('zx200_can')), FIXED)}
    for name, item in found.items():
        assert item.lower[-1] < LOAD < item.upper[-1] and item.mass_stddev[-1] < 25.0, (name, item.mass[-1])
        truth = np.array([f.velocity for f in excavated(name)])
        assert np.sqrt(np.mean((item.velocity - truth) ** 2, axis=0)).max() < 0.02
        assert item.unknown_force.shape == (len(item.t), 3) and item.position.shape[1] == 4
        friction = item.names.index('cylinders.arm.friction.scale')
        assert item.parameters_stddev[friction] < 0.09
    strokes, angles = found.values()
    assert strokes.mass_stddev[-1] == pytest.approx(angles.mass_stddev[-1], rel=0.25)


def test_lag_of_an_excavator_ends_near_the_whole_log() -> None:
    log = log_of(machine_of('zx200'), excavated('zx200'))
    whole = smoothed()
    lagged = lag_machine(machine_of('zx200'), log, 0.8, FIXED, kinds_of('zx200'))
    assert lagged.mass[-1] == pytest.approx(whole.mass[-1], abs=3.0)
    assert np.isfinite(lagged.mass[-1]) and lagged.mass_stddev[0] > lagged.mass_stddev[-1]


def test_readings_take_off_gain_offset_and_zero() -> None:
    """Of pressures in a gauge's volts, and of an angle that wraps."""
    base = crane().description
    sensors = {name: replace(s, gain=Scalar(2.0), bias=(Scalar(0.5),), gauge=True) if s.kind == 'pressure' else s
               for name, s in base.sensors.items()}
    machine = Machine(replace(base, sensors=sensors))
    y = np.tile([0.2, 4e6, 2e6], (4, 1))
    found = {item.channel: item for item in readings(machine, MachineLog(np.arange(4.0), y))}
    item, sensor = found['pressure/lift_piston'], base.sensors['lift_piston']
    np.testing.assert_allclose(item.values, ((4e6 - 0.5) / 2 + 101_325) * 1e-6, rtol=1e-12)
    assert item.stddev == pytest.approx(sensor.stddev / 2 * 1e-6) and item.node == 'p'
    assert found['position/lift'].values[0] == 0.2


def test_angles_count_their_turns() -> None:
    turned = np.linspace(2.0, 8.0, 13)
    wrapped = (turned + np.pi) % (2 * np.pi) - np.pi
    wrapped[4] = np.nan
    found = unwrapped(wrapped, 4.0)
    np.testing.assert_allclose(np.delete(found, 4), np.delete(turned, 4), atol=1e-12)
    assert np.isnan(found[4])
    np.testing.assert_allclose(unwrapped(wrapped, -4.0)[0], 2.0 - 2 * np.pi)


def test_holes_keep_the_value_before_them() -> None:
    np.testing.assert_array_equal(hold(np.array([np.nan, 1.0, np.nan, np.nan, 3.0, np.nan])), [1, 1, 1, 1, 3, 3])


def test_sensors_of_no_coordinate_are_left_out_and_missing_ones_named() -> None:
    """A gyro more changes nothing; an inclinometer in place of the stroke is not enough."""
    text = (crane().description.file, open(crane().description.file, encoding='utf-8').read())
    gyro = 'sensors:\n  spin: {kind: gyro, body: boom, stddev: 0.01 rad/s}\n'
    machine = Machine(parse_mechanism(text[1].replace('sensors:\n', gyro), text[0]))
    assert unused(machine) == ('gyro/spin.x', 'gyro/spin.y', 'gyro/spin.z') and unused(crane()) == ()
    tilted = text[1].replace('lift_stroke: {kind: stroke, cylinder: lift, stddev: 0.4 mm}',
                             'tilt: {kind: inclinometer, body: boom, stddev: 0.01 rad}')
    blind = Machine(parse_mechanism(tilted, text[0]))
    with pytest.raises(GraphError, match='position/boom_joint'):
        check_log(blind, MachineLog(np.arange(3.0), np.ones((3, len(blind.channels)))))


def test_inclination_of_the_base_is_a_node() -> None:
    """A measured pitch of the base walks slowly and turns gravity in the balance."""
    file = crane().description.file
    text = open(file, encoding='utf-8').read().replace(
        'sensors:\n', 'sensors:\n  pitch: {kind: inclination, axis: pitch, stddev: 0.1 deg}\n')
    from mbse_ros.graph.factors.machine_factors import machine_kinds
    machine = Machine(parse_mechanism(text, file))
    kinds, n = machine_kinds(machine, 'vm'), 5
    y = np.full((n, len(machine.channels)), 0.2)
    log = MachineLog(np.arange(n) * 0.01, y)
    graph = machine_graph(machine, kinds, log, FIXED, followed(machine, kinds, log, FIXED), np.ones((n, 1), bool), 1.0)
    assert graph.series['base'].size == 1 and 'base' in kinds.balance.variables
    x = np.concatenate([[0.2, 0.05, 0.1, 4.0, 2.0, 0.1, 0.0, 50.0], np.zeros(len(kinds.names))])
    constants = np.append(machine.position(np.array([0.2]))[machine.system.dependent], 1.0)
    _, J = kinds.balance.evaluate(x[None], constants[None])
    np.testing.assert_allclose(J[0], differences(kinds.balance, x, constants, 1e-5 * (1 + np.abs(x))), rtol=1e-5,
                               atol=1e-5)
    assert abs(J[0, 0, list(kinds.balance.variables).index('base') + 1]) > 0.1
