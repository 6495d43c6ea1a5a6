# SPDX-License-Identifier: Apache-2.0
"""Drives: joints whose effort is measured. Their force balance against an independent arm, and what becomes of them in
the model of the machine."""

import re
from functools import cache

import arm_mujoco
import arm_plant
import casadi as ca
import numpy as np
import pytest
import small_arm

from mbse_ros.description.load import parse_mechanism
from mbse_ros.dynamics.model import Model
from mbse_ros.filters.force_balance import force_balance
from mbse_ros.filters.hydraulic_state import direct, measurements, state_names
from mbse_ros.machine import Machine, load_machine
from mbse_ros.machine.equations import actuators_of, why_unweighed


@cache
def machine(text: str = small_arm.TEXT) -> Machine:
    return Machine(parse_mechanism(text, 'small_arm.yaml'))


def balance(of: Machine) -> ca.Function:
    """(X, mass) -> what is missing from the force balance, N m."""
    found = force_balance(of, state_names(of)[0])
    g = ca.substitute(found.g, of.parameters.symbol, ca.DM(of.parameters.mean))
    return ca.Function('g', [found.near, found.X, of.payload], [ca.densify(g)])


def test_the_balance_of_a_planar_arm_is_lagranges_by_hand():
    g, (_, *motion) = balance(machine()), small_arm.motion(6.0)
    for load in (0.0, 3.0):
        X = np.hstack([*motion, small_arm.torques(*motion, load)])
        assert np.abs(g(np.zeros((0, len(X))), X.T, load).full()).max() < 1e-9


@pytest.mark.parametrize('load', [0.0, 7.5])
def test_the_balance_of_ur10e_is_a_recursive_newton_euler_that_shares_no_code(load):
    of, arm = load_machine('ur10e'), arm_plant.ur10e()
    q, qd, qdd = np.random.default_rng(3).uniform(-2.0, 2.0, (3, 40, 6))
    center = np.array([item.value for item in of.payload_data.center])
    efforts = (arm.carrying(load, center) if load else arm).torques(q, qd, qdd)
    found = balance(of)(np.zeros((0, 40)), np.hstack([q, qd, qdd, efforts]).T, load).full()
    assert np.abs(found).max() < 1e-9


def test_the_balance_of_ur10e_holds_along_a_motion_by_mujoco():
    """Another program moves the arm, under a controller, with rotors and joints that stick."""
    pytest.importorskip('mujoco', reason='the package mujoco, which is not required, is not installed')
    of, rate, load = load_machine('ur10e'), 500.0, 5.0
    arm = arm_plant.ur10e().carrying(load, np.array([item.value for item in of.payload_data.center]))
    t = np.arange(0.0, 4.0, 1.0 / rate)
    w = np.array([1.3, 1.1, 1.7, 2.1, 1.9, 1.5])
    q, qd, qdd = (0.4 * (1 - np.cos(w * t[:, None])) + [0.0, -1.3, 1.2, -1.2, -1.2, 0.0],
                  0.4 * w * np.sin(w * t[:, None]), 0.4 * w ** 2 * np.cos(w * t[:, None]))
    moved = arm_mujoco.MovedArm(arm, np.array([330.0, 330.0, 150.0, 56.0, 56.0, 56.0]), 101.0)
    found, speed, efforts = moved.moved(t, q, qd, qdd)
    X = np.hstack([found, speed, np.gradient(speed, t, axis=0), efforts])
    missing = balance(of)(np.zeros((0, len(X))), X.T, load).full().T
    usual = np.abs(speed) > 0.1         # where a joint turns round MuJoCo's friction is not a function of the speed
    usual[:200] = False
    for k in range(6):
        assert np.sqrt(np.mean(missing[usual[:, k], k] ** 2)) < 3e-3 * np.abs(efforts[:, k]).max()


def test_a_machine_of_one_drive():
    """Columns of a single entry: a slice of such a one that takes none is a row."""
    text = small_arm.TEXT.replace('elbow: {type: revolute', 'elbow: {type: fixed')
    text = re.sub(r'(?m)^  (elbow|elbow_angle|elbow_encoder|effort_2):(?! {type).*\n(    .*\n)*', '', text)
    assert machine(text).weighing == (0,) and machine(text).actuators.entries == ('effort/shoulder',)
    g = balance(machine(text))(np.zeros((0, 1)), np.zeros(len(state_names(machine(text))[0])), 0.0).full()
    assert g.shape == (1, 1) and np.isfinite(g).all()


def test_friction_by_load_and_direction():
    text = small_arm.TEXT.replace('viscous: {value: 3, stddev: 30 %}',
                                  'load: 0.1, forward_scale: 2, backward_scale: 1.5')
    actuators = machine(text).actuators
    resisting = ca.Function('f', [speed := ca.SX.sym('v', 2), effort := ca.SX.sym('p', 2)], [
        ca.substitute(actuators.resisting_forces(ca.SX.zeros(2), speed, effort), machine(text).parameters.symbol,
                      ca.DM(machine(text).parameters.mean))])
    forward, backward = (resisting([v, 0.0], [-30.0, 0.0]).full()[0, 0] for v in (1.0, -1.0))
    assert forward == pytest.approx(2 * (2.0 + 3.0), rel=1e-9)
    assert backward == pytest.approx(-1.5 * (2.0 + 3.0), rel=1e-9)


def test_the_rotor_is_part_of_the_mass_matrix_too():
    def inertia(text: str) -> np.ndarray:
        model = Model(parse_mechanism(text, 'small_arm.yaml'))
        function = ca.Function('M', [model.system.q, model.system.values.symbol], [model.system.M])
        return function([0.1, 0.2], model.parameters).full()
    without = small_arm.TEXT.replace('    rotor_inertia: 2e-5 kg*m^2\n', '')
    assert inertia(small_arm.TEXT) - inertia(without) == pytest.approx(np.diag([0.2, 0.0]), abs=1e-12)


def test_each_effort_is_an_entry_of_the_state_and_an_equation():
    of = machine()
    names, scale = state_names(of)
    assert names[-2:] == ('effort/shoulder', 'effort/elbow') and (scale == 1.0).all()
    assert actuators_of(of) == [('shoulder',), ('elbow',)] and of.weighing == (0, 1) and not of.cylinders
    assert [direct(of)[name].name for name in names[-2:]] == list(names[-2:])


def test_without_efforts_nothing_weighs_and_it_says_which_are_missing():
    text = '\n'.join(line for line in small_arm.TEXT.splitlines() if 'effort' not in line)
    assert why_unweighed(machine(text)) == ('of no drive is the effort measured: motion alone; to weigh, add sensors '
                                            'of effort/shoulder; or effort/elbow')


def test_a_current_is_an_effort_by_torque_constant_and_gear():
    text = small_arm.TEXT.replace('largest: 80 N*m', 'largest: 80 N*m\n    torque_constant: 0.05 N*m/A').replace(
        'kind: effort, drive: shoulder, stddev: 0.3 N*m, offset: {value: 0, stddev: 1 N*m}',
        'kind: current, drive: shoulder, stddev: 0.06 A')
    of = machine(text)
    item = dict(zip(of.channels, measurements(of, state_names(of)[0], ca.SX.sym('X', 8))))['effort/shoulder']
    assert item.gain == pytest.approx(1.0 / (0.05 * small_arm.RATIO))
