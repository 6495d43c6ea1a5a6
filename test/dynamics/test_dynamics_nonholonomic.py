# SPDX-License-Identifier: Apache-2.0
"""Constraints on velocities that are none on positions: motions with known solutions by all formulations, exact
derivatives, starts, and what refuses them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import mbse_ros as mbse
from mbse_ros.description.load import parse_mechanism
from mbse_ros.dynamics.formulations.by_name import FORMULATIONS
from mbse_ros.dynamics.model import State, load_model
from mbse_ros.dynamics.motion import simulate
from mbse_ros.errors import DescriptionError, SettingError
from mbse_ros.filters.parts.problem import problem

SPATIAL = """format: mbse/machine/2
name: wheel
dimension: 3
gravity: [3, 0, -9]
bodies:
  wheel:
    points: {centre: [0, 0, 0]}
    mass: 2
    center_of_mass: [0, 0, 0]
    inertia: {xx: 0.05, yy: 0.05, zz: 0.05}
    position: [0, 0, 0.3]
nonholonomic: {roll: {rolls: wheel.centre, radius: 0.3}}
named: {x: {x: wheel.centre}}
"""
PLANAR = """format: mbse/machine/2
name: wheel
gravity: [3, -9]
points: {floor: {fixed: [0, -1]}}
bodies:
  wheel: {points: {centre: [0, 0], rim: [0.3, 0]}, mass: 2, center_of_mass: [0, 0], inertia: 0.05, position: [0, -0.7]}
nonholonomic: {roll: {rolls: wheel.centre, radius: 0.3, on: floor}}
named: {x: {x: wheel.centre}, turn: {angle: wheel}}
"""


@pytest.fixture(scope='module')
def sleigh():
    return load_model('chaplygin_sleigh', backend='vm')


@pytest.fixture(scope='module')
def disc():
    return load_model('rolling_disc', backend='vm')


def chaplygin(t: np.ndarray) -> np.ndarray:
    """Speed of the blade along the body, and rate of the heading (2, k), of the shipped file:
    v' = a w^2, w' = -a m v w / (I + m a^2)."""
    a, m, inertia, v, w = 0.2, 8.0, 0.5, 0.5, 3.0
    k = np.sqrt(inertia / m + a * a)
    V = np.hypot(v, k * w)
    angle = a * V / k ** 2 * t + np.arctanh(v / V)
    return np.array([V * np.tanh(angle), V / k / np.cosh(angle)])


@pytest.mark.parametrize('formulation', [name for name in FORMULATIONS if name != 'penalty'])
def test_sleigh_moves_as_its_solution(sleigh, formulation):
    motion = simulate(sleigh, 1.0, 0.02, 'rk4', formulation=formulation)
    along = motion.of('x', 1) * np.cos(motion.of('heading')) + motion.of('y', 1) * np.sin(motion.of('heading'))
    np.testing.assert_allclose([along, motion.of('heading', 1)], chaplygin(motion.t), atol=1e-6)
    assert motion.violation_rate.max() < 1e-12 and np.abs(motion.balance).max() < 1e-6


@pytest.mark.parametrize('scheme, atol', [('trapezoid', 2e-4), ('forward_euler', 0.05), ('dop853', 1e-8)])
def test_sleigh_by_other_schemes(sleigh, scheme, atol):
    motion = simulate(sleigh, 1.0, 0.01, scheme, formulation='udwadia_kalaba')
    np.testing.assert_allclose(motion.of('heading', 1), chaplygin(motion.t)[1], atol=atol)
    assert motion.violation_rate.max() < 1e-10


def test_penalty_goes_to_the_exact_motion(sleigh):
    """It slips by what the constraint gives, 1 / alpha, and its stabilisation holds the velocity."""
    slips = [simulate(sleigh, 0.2, 0.002, 'rk4', formulation='penalty', alpha=alpha).violation_rate.max()
             for alpha in (1e4, 1e6)]
    assert slips[0] / slips[1] == pytest.approx(100.0, rel=0.1) and slips[1] < 1e-4


def routh(t: float, x: np.ndarray) -> np.ndarray:
    """Of a thin disc: angle of its axis from the vertical, its rate, rate of precession, spin about the axis."""
    lean, rate, turn, spin = x
    r, m, g = 0.3, 2.0, 9.81
    A, C = m * r * r / 4, m * r * r / 2
    s, c = np.sin(lean), np.cos(lean)
    return np.array([rate, (A * turn ** 2 * s * c - (C + m * r * r) * spin * turn * s - m * g * r * c)
                     / (A + m * r * r), rate * (C * spin - 2 * A * turn * c) / (A * s),
                     m * r * r * turn * rate * s / (C + m * r * r)])


def disc_angles(model, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """The state of ``routh`` from Euler parameters."""
    e, ed = q[3:], qd[3:]
    tail, skew = e[1:, None], np.array([[0, -e[3], e[2]], [e[3], 0, -e[1]], [-e[2], e[1], 0]])
    E, G = (np.hstack([-tail, e[0] * np.eye(3) + sign * skew]) for sign in (1, -1))
    R, omega = E @ G.T, 2 * E @ ed
    axis = R[:, 1]
    rate = np.cross(omega, axis)
    s = np.hypot(axis[0], axis[1])
    return np.array([np.arccos(axis[2]), -rate[2] / s, (axis[0] * rate[1] - axis[1] * rate[0]) / s ** 2, omega @ axis])


def test_disc_rolls_as_the_equations_of_routh(disc):
    motion = simulate(disc, 1.0, 0.005, 'rk4', formulation='udwadia_kalaba')
    found = np.array([disc_angles(disc, q, qd) for q, qd in zip(motion.q, motion.qd)])
    known = solve_ivp(routh, (0.0, 1.0), found[0], rtol=1e-10, atol=1e-10, t_eval=motion.t).y.T
    assert np.ptp(known[:, 0]) > 0.1 and np.ptp(known[:, 3]) > 0.02
    np.testing.assert_allclose(found, known, atol=2e-6)
    assert np.abs(motion.balance).max() < 1e-6 * motion.energy[0] and motion.violation.max() < 1e-10


def test_disc_at_rest_on_its_edge_falls_and_does_not_slide(disc):
    """Its lowest point stays where it is: the centre goes round it."""
    rest = State(disc.start.q, np.zeros(7))
    motion = simulate(disc, 0.2, 0.005, 'rk4', start=rest)
    x, y, height = motion.q[:, :3].T
    foot = y + np.sqrt(0.3 ** 2 - height ** 2)
    assert height[0] - height[-1] > 0.01
    np.testing.assert_allclose([x, foot], [0.0 * x, foot[0] + 0.0 * x], atol=1e-8)


@pytest.mark.parametrize('text', [PLANAR, SPATIAL])
def test_wheel_and_ball_roll_down(text):
    """Down a slope with a part of the weight along it: x'' = g_x / (1 + I / (m r^2))."""
    share = 1 + 0.05 / (2 * 0.3 ** 2)
    motion = simulate(load_model(parse_mechanism(text), backend='vm'), 0.5, 0.01, 'rk4')
    np.testing.assert_allclose(motion.of('x'), 3.0 / share * motion.t ** 2 / 2, atol=1e-7)
    if 'turn' in motion.names:
        np.testing.assert_allclose(motion.of('turn'), -motion.of('x') / 0.3, atol=1e-7)


def test_a_disc_that_lies_flat_is_refused():
    with pytest.raises(DescriptionError, match=r'nonholonomic.roll.axis: got .*lies flat'):
        load_model(parse_mechanism(SPATIAL.replace('radius: 0.3}', 'radius: 0.3, axis: [0, 0, 1]}')), backend='vm')


@pytest.mark.parametrize('name, coordinates', [
    ('chaplygin_sleigh', 'reference_point'), ('chaplygin_sleigh', 'natural'), ('rolling_disc', 'relative')])
def test_derivatives_are_those_of_differences(name, coordinates):
    """J of the velocities' rows, and c = -(dJ/dt) qd, at states off the constraints."""
    model, h = load_model(name, coordinates, backend='vm'), 1e-6
    generator, n, k = np.random.default_rng(3), len(model.names), len(model.system.rate_rows)
    for _ in range(3):
        q = model.start.q + 0.1 * generator.normal(size=n)
        qd = generator.normal(size=n)
        terms = model.terms(q, qd)

        def slip(q: np.ndarray, qd: np.ndarray) -> np.ndarray:
            return model.terms(q, qd).Phidot[-k:]
        J = np.array([(slip(q, qd + h * e) - slip(q, qd - h * e)) / (2 * h) for e in np.eye(n)]).T
        np.testing.assert_allclose(terms.J[-k:], J, atol=1e-7)
        np.testing.assert_allclose(terms.c[-k:], -(slip(q + h * qd, qd) - slip(q - h * qd, qd)) / (2 * h), atol=1e-6)
    assert np.abs(terms.c[-k:]).max() > 0.01


def test_start_does_not_slip(sleigh, disc):
    """The velocities that the file gives, the others with the least energy that the constraints allow."""
    for model in (sleigh, disc):
        terms = model.terms(model.start.q, model.start.qd)
        assert np.abs(terms.Phidot).max() < 1e-12 and np.abs(terms.Phi).max() < 1e-12
    assert dict(zip(sleigh.names, sleigh.start.qd))['sleigh.y'] == pytest.approx(0.2 * 3.0)


def test_a_start_that_slips_is_put_on_the_constraints(sleigh):
    slips = replace(sleigh.start, qd=sleigh.start.qd + 0.1)
    motion = simulate(sleigh, 0.1, 0.01, 'rk4', start=slips)
    assert np.abs(sleigh.terms(slips.q, slips.qd).Phidot).max() > 0.05 and motion.violation_rate.max() < 1e-12


def test_velocities_that_slip_are_refused(sleigh):
    given = sleigh.description.initial
    velocity = {**given.velocity, 'y': given.velocity['x']}
    model = load_model(replace(sleigh.description, initial=replace(given, velocity=velocity)), backend='vm')
    with pytest.raises(DescriptionError, match='initial.velocity.*do not slip'):
        _ = model.start


def test_two_wheels_on_one_axle_are_one_constraint(sleigh):
    """They do not slip along it: a row that counts once, in all formulations."""
    blade = sleigh.description.nonholonomic['blade']
    point = replace(blade.point, point='other')
    body = sleigh.description.bodies['sleigh']
    points = {**body.points, 'other': tuple(replace(item, value=value) for item, value in zip(
        body.points['blade'], (0.0, 0.25)))}
    double = replace(sleigh.description, bodies={'sleigh': replace(body, points=points)},
                     nonholonomic={'blade': blade, 'other': replace(blade, name='other', point=point)})
    model = load_model(double, backend='vm')
    assert model.redundant == ('other.slip',)
    for formulation in ('kkt', 'udwadia_kalaba_recursive', 'projection_one_inverse'):
        motion = simulate(model, 0.2, 0.02, 'rk4', formulation=formulation)
        np.testing.assert_allclose(motion.of('heading', 1), chaplygin(motion.t)[1], atol=1e-6)


@pytest.mark.parametrize('options, named', [
    ({'formulation': 'semi_recursive'}, 'formulation: .*semi_recursive.*nonholonomic.blade'),
    ({'scheme': 'exponential'}, 'scheme: .*rk4.*because of nonholonomic.blade'), ({'scheme': 'ali3p'}, 'scheme: .*rk4'),
    ({'independent': ['heading']}, 'independent: .*all coordinates because of nonholonomic.blade')])
def test_what_needs_independent_positions_is_refused(sleigh, options, named):
    with pytest.raises(SettingError, match=named):
        simulate(sleigh, 0.1, 0.01, **{'scheme': 'rk4', **options})


@pytest.mark.parametrize('ask', [
    lambda model: problem(model, ()), lambda model: mbse.Observer(model, 'errorEKF_FE'),
    lambda model: model.partition(), lambda model: mbse.simulate_batch(model, 1.0, runs=3),
    lambda model: mbse.inverse_dynamics(model),
    lambda model: mbse.simulate_batch(model, 0.1, starts={'heading': [0.0, 1.0]})])
def test_filters_and_others_say_why_they_cannot(sleigh, ask):
    with pytest.raises(DescriptionError, match=r"chaplygin_sleigh.yaml: nonholonomic: got \['blade'\].*filters"):
        ask(sleigh)


def test_what_its_sensors_give(sleigh):
    """Of all coordinates: the gyro sees the rate of the heading, the accelerometer the force of the blade."""
    found = mbse.simulate(sleigh, 0.5, 0.005, sensors=['gyro', 'acceleration'], noise=0.0)
    v, w = chaplygin(found.samples.t)
    np.testing.assert_allclose(found.samples.values[:, 0], w, atol=1e-7)
    side = 0.2 * -0.2 * 8.0 * v * w / (0.5 + 8.0 * 0.2 ** 2) + v * w        # a w' + v w of the centre of mass
    np.testing.assert_allclose(found.samples.values[:, 1:].T, [0.0 * v, side], atol=1e-6)


@pytest.mark.parametrize('lean', [15.0, 40.0])
def test_disc_goes_round_in_a_circle(lean):
    """Start by quasi-velocities: spin about its axis, and precession of a lean that stays (``routh`` is zero)."""
    text = open(load_model('rolling_disc', backend='vm').description.file).read().replace('15', f'{lean:g}')
    angle, turn = np.radians(90.0 - lean), 2.0
    r, m, g = 0.3, 2.0, 9.81
    A, C, s, c = m * r * r / 4, m * r * r / 2, np.sin(angle), np.cos(angle)
    spin = (A * turn ** 2 * s * c - m * g * r * c) / ((C + m * r * r) * turn * s)
    assert abs(routh(0.0, np.array([angle, 0.0, turn, spin]))[1]) < 1e-9
    text = text[:text.index('initial:')] + f"""quasi_velocities:
  spin: {{body: disc, along: [0, 1, 0]}}
  lean: {{body: disc, along: [1, 0, 0]}}
  up: {{body: disc, along: [0, 0, 1]}}
initial:
  velocity: {{spin: {float(spin)!r}, lean: 0, up: {float(turn * s)!r}}}
"""
    model = load_model(parse_mechanism(text), backend='vm')
    assert disc_angles(model, model.start.q, model.start.qd) == pytest.approx([angle, 0.0, turn, spin], abs=1e-9)
    motion = simulate(model, 1.0, 0.01, 'rk4', formulation='kkt')
    np.testing.assert_allclose(motion.of('height'), r * np.cos(np.radians(lean)), atol=1e-5)
    speed = np.hypot(motion.of('x', 1), motion.of('y', 1))
    np.testing.assert_allclose(speed, abs(spin) * r, rtol=1e-4)


def test_quasi_velocities_in_a_plane(sleigh):
    """Speed along the body and rate of its turning, as ``x`` and ``heading`` of the file."""
    text = open(sleigh.description.file).read().replace('{x: 0.5 m/s, heading: 3 rad/s}', '{ahead: 0.5, turn: 3 rad/s}')
    text += 'quasi_velocities: {ahead: {point: sleigh.blade, along: [1, 0]}, turn: {body: sleigh}}\n'
    start = load_model(parse_mechanism(text), backend='vm').start
    np.testing.assert_allclose(start.qd, sleigh.start.qd, atol=1e-12)
