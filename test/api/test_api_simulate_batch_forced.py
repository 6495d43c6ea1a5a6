# SPDX-License-Identifier: Apache-2.0
"""Inputs, drivers and random forces of many runs: those of single runs, theory of linear systems, any threads."""

import numpy as np
import pytest
from motion_examples import CRANK_ROCKER, DAMPED, model

import mbse_ros as mbse
from mbse_ros.compiled import have_compiler
from mbse_ros.description.load import parse_mechanism
from mbse_ros.dynamics import batch
from mbse_ros.dynamics.batch import start_of
from mbse_ros.dynamics.forcing import Forcing
from mbse_ros.dynamics.integrators.choice import CoordinateChoice
from mbse_ros.dynamics.model import Model
from mbse_ros.dynamics.motion import simulate
from mbse_ros.errors import SettingError

pytestmark = pytest.mark.skipif(not have_compiler(), reason='no C compiler: there are no compiled steps')
SCHEMES = 'exponential', 'trapezoid', 'forward_euler', 'augmented_euler'
# a bar about its middle, without weight: I = m L^2 / 12 = 0.25 kg m2, theta'' = torque / I
INERTIA = 0.25
WHEEL = '''
format: mbse/mechanism/1
name: wheel
gravity: 0
points: {A: {fixed: [0, 0]}}
bodies:
  wheel: {points: {A: [0, 0], P: [1, 0]}, mass: 3 kg, center_of_mass: [0, 0], inertia: 0.25, angle: 0}
named:
  theta: {angle: wheel}
independent: [theta]
forces:
  motor: {coordinate: theta, input: torque}
'''
STIFFNESS, DAMPING = 25.0, 4.0
SPRING = WHEEL + f'springs:\n  s: {{coordinate: theta, stiffness: {STIFFNESS} N*m/rad, free: 0, damping: {DAMPING}}}\n'
# a crank at a prescribed speed, with a swinging bar on it
DRIVEN = '''
format: mbse/mechanism/1
name: driven
gravity: 9.81 m/s^2
points: {A: {fixed: [0, 0]}, P: [1, 0], Q: [1, -2]}
bodies:
  crank: {points: [A, P], length: 1, mass: 3 kg, uniform: true}
  bar: {points: [P, Q], length: 2, mass: 1 kg, uniform: true}
named:
  theta: {angle: crank}
  phi: {angle: bar}
independent: [phi]
drivers:
  motor: {coordinate: theta, motion: "0.8*sin(3*t)"}
forces:
  push: {coordinate: phi, input: push}
'''


def torque(t):
    return 12.0 * np.sin(7.0 * t) + 3.0


@pytest.fixture(scope='module')
def rocker():
    return Model(parse_mechanism(CRANK_ROCKER))


@pytest.fixture(scope='module')
def wheel():
    return Model(parse_mechanism(WHEEL))


@pytest.fixture(scope='module')
def spring():
    return Model(parse_mechanism(SPRING))


@pytest.fixture(scope='module')
def driven():
    return Model(parse_mechanism(DRIVEN))


@pytest.mark.parametrize('scheme', SCHEMES)
def test_inputs_are_those_of_simulate(scheme, rocker):
    """A function of time, the same for all; the trapezoidal rule ends within its tolerance."""
    theta = np.array([0.9, 1.0, 1.3])
    found = mbse.simulate_batch(rocker, 0.4, 1e-3, scheme, starts={'theta': theta, 'theta_dot': 8.0},
                                inputs={'torque': torque}, every=100)
    free = mbse.simulate_batch(rocker, 0.4, 1e-3, scheme, starts={'theta': theta, 'theta_dot': 8.0}, every=100)
    assert found.completed.all() and np.abs(found['theta'][:, -1] - free['theta'][:, -1]).min() > 0.05
    for i in range(3):
        alone = simulate(rocker, 0.4, 1e-3, scheme, start=start_of(rocker, theta[[i]], np.array([8.0])),
                         inputs=lambda t, q, qd: np.array([torque(t)]))
        np.testing.assert_allclose(found.q[i], alone.q[::100], rtol=0, atol=1e-11)
        np.testing.assert_allclose(found.qd[i], alone.qd[::100], rtol=0, atol=1e-9)


def test_each_run_has_its_own_table(rocker):
    """Straight lines between the times of the table; a number holds all the time; a row alone is of all runs."""
    at, levels = np.array([-1.0, 0.1, 0.25, 0.6]), np.array([[0, 5, -8, 20], [1, 1, 1, 1], [9, -9, 9, -9]], dtype=float)
    found = mbse.simulate_batch(rocker, 0.6, inputs={'torque': levels}, input_times=at, every=600)
    assert found.q.shape[0] == 3
    for i in range(3):
        alone = simulate(rocker, 0.6, 1e-3, inputs=lambda t, q, qd: np.array([np.interp(t, at, levels[i])]))
        np.testing.assert_allclose(found.q[i, -1], alone.q[-1], rtol=0, atol=1e-11)
    number = mbse.simulate_batch(rocker, 0.6, runs=1, inputs={'torque': 1.0}, every=600)
    np.testing.assert_array_equal(number.q[0], found.q[1])
    shared = mbse.simulate_batch(rocker, 0.6, runs=2, inputs={'torque': levels[2]}, input_times=at, every=600)
    np.testing.assert_array_equal(shared.q, found.q[[2, 2]])


@pytest.mark.parametrize('scheme, order', [('exponential', 2), ('trapezoid', 2), ('forward_euler', 1)])
def test_the_order_holds_with_inputs(scheme, order, rocker):
    exact = simulate(rocker, 0.5, 0.5, 'dop853', inputs=lambda t, q, qd: np.array([torque(t)]), rtol=1e-12).of('theta')
    errors = [abs(mbse.simulate_batch(rocker, 0.5, dt, scheme, runs=1, inputs={'torque': torque})['theta'][0, -1]
                  - exact[-1]) for dt in (5e-4, 2.5e-4)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.1)


@pytest.mark.parametrize('scheme', SCHEMES)
def test_drivers_move_as_in_simulate(scheme, monkeypatch, driven):
    """With a free coordinate and an input beside the driver, and of a mechanism that its driver moves alone; no step
    is left to the march."""
    decided, decide = [], batch._BatchRun._decide
    monkeypatch.setattr(batch._BatchRun, '_decide', lambda self: decided.append(1) or decide(self))
    found = mbse.simulate_batch(driven, 0.5, 1e-3, scheme, starts={'phi': [-1.0, -1.5]}, every=125,
                                inputs={'push': lambda t: np.cos(2 * t)})
    assert found.completed.all()
    np.testing.assert_allclose(found['theta'], np.tile(0.8 * np.sin(3 * found.t), (2, 1)), rtol=0, atol=1e-12)
    for i, phi in enumerate((-1.0, -1.5)):
        start = start_of(driven, np.array([phi]), driven.start.qd[driven.z])
        alone = simulate(driven, 0.5, 1e-3, scheme, start=start, inputs=lambda t, q, qd: np.array([np.cos(2 * t)]))
        np.testing.assert_allclose(found.q[i], alone.q[::125], rtol=0, atol=1e-11)
        np.testing.assert_allclose(found.qd[i], alone.qd[::125], rtol=0, atol=1e-10)
    moved = mbse.simulate_batch('four_bar_adams_driven', 0.2, 1e-3, scheme, runs=1, every=50)
    alone = simulate(mbse.load('four_bar_adams_driven'), 0.2, 1e-3, scheme)
    np.testing.assert_allclose(moved.q[0], alone.q[::50], rtol=0, atol=1e-13)
    assert len(decided) < 20 and moved['theta'][0] == pytest.approx(1.2 * (1 - np.cos(2 * moved.t)), abs=1e-12)


def test_a_driver_beyond_its_reach_says_when():
    item = Model(parse_mechanism(CRANK_ROCKER.replace(
        'initial: {position: {theta: 1.0}, velocity: {theta: 8 rad/s}}',
        'drivers: {motor: {coordinate: psi, motion: "-0.9 + t"}}')))
    with pytest.raises(Exception) as alone:
        simulate(item, 3.0, 1e-3)
    found = mbse.simulate_batch(item, 3.0, runs=1, every=3000)
    kind, when = type(alone.value).__name__, str(alone.value).partition(' s:')[0]
    assert when.startswith('t = ') and found.reasons[0].startswith(f'{kind}: {when} s:')
    assert found.reached[0] == pytest.approx(float(when[4:]) - 1e-3, abs=1.1e-3) and found.reached[0] > 0.2


def test_random_forces_add_up_as_white_noise(wheel):
    """A wheel sums them exactly; deviations of speed and angle do not depend on the step."""
    S, T, runs = 0.4, 1.0, 1500
    for dt in (1e-2, 2e-3):
        found = mbse.simulate_batch(wheel, T, dt, runs=runs, noise={'torque': S}, every=round(T / dt), seed=3)
        pushes = np.array([Forcing(('torque',), {}, {'torque': S}, 3).random(i, round(T / dt), dt)[1:, 0]
                           for i in range(runs)])
        assert found['theta_dot'][:, -1] == pytest.approx(pushes.sum(axis=1) * dt / INERTIA, abs=1e-10)
        # 1,500 runs tell a deviation to 1.8 %; five of these
        assert found['theta_dot'][:, -1].std() == pytest.approx(S * np.sqrt(T) / INERTIA, rel=0.09)
        assert found['theta'][:, -1].std() == pytest.approx(S * np.sqrt(T ** 3 / 3) / INERTIA, rel=0.09)
        assert abs(found['theta_dot'][:, -1].mean()) < 5 * S / INERTIA / np.sqrt(runs)


@pytest.mark.parametrize('scheme', SCHEMES)
def test_a_damped_spring_settles_at_the_variance_of_theory(scheme, spring):
    """``var(theta_dot) = S^2 / (2 c I)``, ``var(theta) = S^2 / (2 c k)``; forces on a coordinate and on an input."""
    S, dt = 0.4, 1e-3
    found = mbse.simulate_batch(spring, 1.0, dt, scheme, runs=500, noise={'torque': S, 'theta': S}, every=250)
    late = slice(2, None)
    # 500 runs and three instants that hardly depend on each other (exp(-c t / 2I) = 0.14); the start is forgotten after
    # 0.5 s (0.02, squared in the variance); Euler's own error is below 5 %
    assert found['theta_dot'][:, late].var() == pytest.approx(2 * S ** 2 / (2 * DAMPING * INERTIA), rel=0.15)
    assert found['theta'][:, late].var() == pytest.approx(2 * S ** 2 / (2 * DAMPING * STIFFNESS), rel=0.15)


def test_threads_change_no_bit(rocker):
    """Nor does the number of runs; the seed does."""
    def run(jobs, runs=12, seed=5):
        return mbse.simulate_batch(rocker, 0.4, runs=runs, noise={'psi': 2.0, 'torque': 1.0}, every=100, jobs=jobs,
                                   inputs={'torque': torque}, seed=seed).q
    first = run(1)
    np.testing.assert_array_equal(first, run(2))
    np.testing.assert_array_equal(first, run(7))
    np.testing.assert_array_equal(first, run(2, runs=20)[:12])
    assert len(np.unique(first[:, -1, 0])) == 12 and not np.isin(run(1, seed=6)[:, -1], first[:, -1]).any()


@pytest.mark.parametrize('scheme', SCHEMES)
def test_steps_one_by_one_have_the_forces_of_compiled_ones(scheme, monkeypatch, rocker):
    options = dict(starts={'theta': [1.0]}, inputs={'torque': torque}, noise={'psi': 2.0, 'torque': 1.0}, every=150)
    compiled = mbse.simulate_batch(rocker, 0.15, 1e-3, scheme, **options)
    calm = mbse.simulate_batch(rocker, 0.15, 1e-3, scheme, **{**options, 'noise': None})
    monkeypatch.setattr(batch._BatchRun, '_sweep', lambda self: None)
    monkeypatch.setattr(batch._BatchRun, '_other_rule', lambda self: False)
    alone = mbse.simulate_batch(rocker, 0.15, 1e-3, scheme, **options)
    assert np.abs(compiled.q - calm.q)[:, -1].max() > 1e-3
    np.testing.assert_allclose(alone.q, compiled.q, rtol=0, atol=1e-10)


def test_coordinates_are_chosen_along_a_random_motion(monkeypatch):
    """Where the choice changes the step's error does too: it is small beside what the random force does."""
    item, checks, check = model('points_only'), [], CoordinateChoice.check
    monkeypatch.setattr(CoordinateChoice, 'check', lambda *arguments: checks.append(1) or check(*arguments))
    starts = {**{n: [item.start.q[p]] for n, p in zip(item.independent, item.z)},
              **{f'{n}_dot': [item.start.qd[p]] for n, p in zip(item.independent, item.z)}}
    dt, S = 5e-4, 2.0
    found = mbse.simulate_batch(item, 0.8, dt, starts=starts, noise={'x': S}, every=1600, seed=2)
    count, pushes = len(checks), Forcing(('x',), {}, {'x': S}, 2).random(0, 1600, dt)
    calm = mbse.simulate_batch(item, 0.8, dt, starts=starts, every=1600)
    alone = simulate(item.with_forces(['x']), 0.8, dt, inputs=lambda t, q, qd: pushes[int(np.ceil(t / dt - 1e-6))])
    noise = np.abs(found.q - calm.q)[:, -1].max()
    assert found.completed.all() and 4 < count < 300 and noise > 0.01
    np.testing.assert_allclose(found.q[0, -1], alone.q[-1], rtol=0, atol=0.01 * noise)


def test_a_force_on_a_coordinate_is_a_further_input(rocker):
    more = rocker.with_forces(['theta', 'psi'])
    q, qd = rocker.start.q, rocker.start.qd
    assert more.inputs == ('torque', 'theta', 'psi') and rocker.inputs == ('torque',)
    plain = rocker.accelerations(q, qd, np.array([3.0]))
    np.testing.assert_allclose(more.accelerations(q, qd, np.array([1.0, 2.0, 0.0])), plain, rtol=0, atol=1e-12)
    np.testing.assert_allclose(more.partition().rates(q, qd[more.z], np.array([0.0, 3.0, 0.0])).qdd, plain, rtol=0,
                               atol=1e-12)
    power = more.energy(q, qd, np.array([0.0, 0.0, 5.0])).power - more.energy(q, qd).power
    assert power == pytest.approx(5.0 * qd[rocker.names.index('psi')], rel=1e-12)


def test_without_noise_nothing_changes(rocker):
    """Inputs of zero are the plain run within rounding; an intensity of zero too."""
    plain = mbse.simulate_batch(rocker, 0.3, runs=1, every=100).q
    for more in (dict(inputs={'torque': 0.0}), dict(noise={'theta': 0.0})):
        np.testing.assert_allclose(mbse.simulate_batch(rocker, 0.3, runs=1, every=100, **more).q, plain, rtol=0,
                                   atol=1e-12)


def test_damping_is_in_the_equations_in_the_middle():
    """A of the middle of the step, with what depends on velocities."""
    item = Model(parse_mechanism(DAMPED))
    alone = simulate(item, 0.4, 1e-3, inputs=lambda t, q, qd: np.array([torque(t)]))
    found = mbse.simulate_batch(item, 0.4, runs=1, inputs={'torque': torque}, every=400)
    np.testing.assert_allclose(found.q[0, -1], alone.q[-1], rtol=0, atol=1e-11)


@pytest.mark.parametrize('options, said', [
    (dict(inputs={'force': 1.0}), 'one of torque'), (dict(inputs={'torque': [1.0, 2.0]}), 'input_times: got None'),
    (dict(inputs={'torque': 'much'}), 'a number'), (dict(inputs={'torque': np.nan}), 'finite'),
    (dict(inputs={'torque': [1.0, 2.0]}, input_times=[0.0, 0.05]), '0.1 or after'),
    (dict(inputs={'torque': [1.0, 2.0]}, input_times=[0.2, 0.1]), 'ascending'),
    (dict(inputs={'torque': [1.0, 2.0, 3.0]}, input_times=[0.0, 0.1]), "inputs['torque']: got (3,)"),
    (dict(inputs={'torque': np.ones((3, 2))}, input_times=[0.0, 0.1]), '(2, 2)'),
    (dict(inputs={'torque': lambda t: np.ones(2)}), 'a function of times'),
    (dict(inputs={'torque': lambda t: np.full(len(t), np.inf)}), 'values are finite'),
    (dict(noise={'force': 1.0}), 'one of torque, '), (dict(noise={'theta': -1.0}), 'an intensity of 0 or more'),
    (dict(noise={'theta': True}), 'an intensity'), (dict(noise={'theta': np.nan}), 'an intensity')])
def test_what_is_refused(options, said, rocker):
    with pytest.raises(SettingError) as caught:
        mbse.simulate_batch(rocker, 0.1, runs=2, **options)
    assert said in str(caught.value)


def test_inputs_of_a_mechanism_without_any_are_refused():
    with pytest.raises(SettingError, match='four_bar_adams_driven has no inputs'):
        mbse.simulate_batch('four_bar_adams_driven', 0.1, runs=1, inputs={'torque': 1.0})
