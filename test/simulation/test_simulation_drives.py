# SPDX-License-Identifier: Apache-2.0
"""Simulated machines with drives: the efforts are those of equations by hand, and of the force balance."""

import re

import casadi as ca
import numpy as np
import pytest
import small_arm
from source_tree import ROOT

import mbse_ros as mbse
from mbse_ros.description.load import parse_mechanism
from mbse_ros.errors import SettingError
from mbse_ros.filters.force_balance import force_balance
from mbse_ros.filters.hydraulic_state import state_names
from mbse_ros.machine import Machine
from mbse_ros.simulation.crane import CraneSettings, SimulatedCrane, cycle_by_name, plant_of


def frames(text, load, count, seed=1, **more):
    machine = Machine(parse_mechanism(text, 'small_arm.yaml'))
    crane = SimulatedCrane(machine, load, 1, cycle_by_name('random', machine, seed), CraneSettings(noise=0.0),
                           plant=plant_of(machine, 'vm'), **more)
    return machine, [crane.frame() for _ in range(count)]


@pytest.mark.parametrize('load_friction', [0.0, 0.2])
def test_efforts_are_lagranges_with_friction(load_friction):
    text = small_arm.TEXT.replace('viscous: {value: 3, ', f'load: {load_friction}, viscous: {{value: 3, ')
    _, found = frames(text, 2.0, 400)
    q, qd, qdd = (np.array([getattr(frame, name) for frame in found]) for name in (
        'position', 'velocity', 'acceleration'))
    assert np.ptp(q, axis=0).min() > 0.2 and np.abs(qdd).max() > 1.0
    efforts = np.array([[frame.samples[f'effort/{name}'] for name in small_arm.JOINTS] for frame in found])
    expected = small_arm.torques(q, qd, qdd, 2.0)
    expected[:, 0] += load_friction * np.abs(efforts[:, 0]) * np.tanh(4 * qd[:, 0] / small_arm.TRANSITION)
    np.testing.assert_allclose(efforts, expected, atol=1e-6)


def test_gains_and_offsets_of_the_true_arm_are_in_its_samples():
    machine = Machine(parse_mechanism(small_arm.TEXT, 'small_arm.yaml'))
    true = machine.parameters.mean.copy()
    true[machine.parameters.names.index('sensors.effort_2.gain')] = 1.1
    (_, right), (_, wrong) = frames(small_arm.TEXT, 1.0, 50), frames(small_arm.TEXT, 1.0, 50, parameters=true)
    for one, other in zip(right, wrong):
        assert other.samples['effort/elbow'] == pytest.approx(1.1 * one.samples['effort/elbow'], rel=1e-9)
        assert other.samples['effort/shoulder'] == one.samples['effort/shoulder']


def test_an_excavator_whose_swing_has_a_drive_balances_with_pressures_and_effort():
    """Cylinders and a drive in one machine: the observer's force balance is 0 along the simulated motion."""
    text = (ROOT / 'config/machines/zx200.yaml').read_text() + (
        '\ndrives:\n  swing: {joint: swing_joint, largest: 80 kN*m, friction: {coulomb: 2 kN*m}}\n')
    text = re.sub('(?m)^sensors:\n', 'sensors:\n  swing_effort: {kind: effort, drive: swing, stddev: 500 N*m}\n', text)
    machine = Machine(parse_mechanism(text, 'swings.yaml'))
    crane = SimulatedCrane(machine, 500.0, 1, cycle_by_name('random', machine, 2), CraneSettings(noise=0.0),
                           plant=plant_of(machine, 'vm'))
    found = [crane.frame() for _ in range(140)]
    balance = force_balance(machine, state_names(machine)[0])
    g = ca.Function('g', [balance.near, balance.X, machine.payload], [ca.substitute(
        balance.g, machine.parameters.symbol, ca.DM(machine.parameters.mean))])
    names, missing = state_names(machine)[0], []
    for frame in found[60:]:
        q = machine.model.partition(tuple(machine.model.z)).position(frame.position, machine.model.start.q)
        X = np.zeros(len(names))
        X[:3 * len(frame.position)] = [*frame.position, *frame.velocity, *frame.acceleration]
        for name, value in zip((f'pressure/{name}' for name in machine.volumes), frame.pressure):
            X[names.index(name)] = value
        X[names.index('effort/swing')] = frame.samples['effort/swing']
        missing.append(g(q[machine.system.dependent], X, 500.0).full().ravel())
    assert abs(found[-1].velocity[0]) > 0.05 and len(missing[0]) == 4
    assert np.abs(missing).max() < 1e-3 * max(abs(frame.samples['effort/swing']) for frame in found)


def test_the_command_simulates_an_arm_and_the_estimate_finds_its_load(tmp_path):
    (tmp_path / 'small_arm.yaml').write_text(small_arm.TEXT)
    found = mbse.simulate(tmp_path / 'small_arm.yaml', payload=3.0, duration=10.0)
    estimate = mbse.estimate(found.samples, tmp_path / 'small_arm.yaml')
    assert estimate.lower[-1] < 3.0 < estimate.upper[-1] and not estimate.warnings
    assert estimate.mass[-1] == pytest.approx(3.0, abs=0.1)


def test_what_an_arm_cannot_do_is_refused(tmp_path):
    (tmp_path / 'small_arm.yaml').write_text(small_arm.TEXT)
    with pytest.raises(SettingError, match="cycle: got 'dig'"):
        mbse.simulate(tmp_path / 'small_arm.yaml', cycle='dig')
    with pytest.raises(SettingError, match='physics.*cylinders alone'):
        mbse.simulate(tmp_path / 'small_arm.yaml', physics={'ripple': 1e5})
