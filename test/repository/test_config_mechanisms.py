# SPDX-License-Identifier: Apache-2.0
"""The mechanisms that come with the package: they assemble, and their accelerations are the known ones."""

import math
from functools import cache
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from mbse_ros.api.simulate import simulate_motion
from mbse_ros.description.load import load_mechanism
from mbse_ros.dynamics.model import load_model
from mbse_ros.errors import DescriptionError, SingularConfigurationError
from mbse_ros.mechanism.levels import level_rows

FOLDER = Path(__file__).parents[2] / 'config' / 'mechanisms'
NAMES = sorted(path.stem for path in FOLDER.glob('*.yaml'))
DEGREES_OF_FREEDOM = {
    'andrews': 1, 'chaplygin_sleigh': 3, 'excavator_arm': 3, 'five_bar': 2, 'four_bar': 1, 'four_bar_adams': 1,
    'four_bar_adams_driven': 0, 'four_bar_spring': 2, 'n_four_bar': 1, 'pendulum': 1, 'rolling_disc': 5,
    'slider_crank': 1, 'spatial_crane': 4, 'spatial_four_bar': 1, 'three_rrr': 3}
NONHOLONOMIC = ('chaplygin_sleigh', 'rolling_disc')     # test/dynamics/test_dynamics_nonholonomic.py
# zdd at the start, from rest and without inputs, and the reduced mass matrix: ../shared/design/reference_benchmark.md
REFERENCES = {
    'four_bar': ([-0.9948351599], [[24.25055571]]),
    'four_bar_adams': ([-9.687056707], [[4.555555556]]),
    'five_bar': ([-22.99548387, 24.68322581], [[1.078125, 0.234375], [0.234375, 0.640625]])}


@cache
def model(name, coordinates=None):
    return load_model(name, coordinates=coordinates, backend='vm')


def independent_velocity(name):
    return np.random.default_rng(1).uniform(-0.5, 0.5, DEGREES_OF_FREEDOM[name])


def accelerations(name, coordinates=None):
    """Of the coordinates that the file names, near the start, with velocities and inputs."""
    m = model(name, coordinates)
    u = np.random.default_rng(2).uniform(0.5, 1.5, len(m.inputs))
    q = m.position(m.start.q[m.z] + 0.03, m.start.q)
    qdd = m.accelerations(q, m.partition().velocity(q, independent_velocity(name)), u)
    named = [m.names.index(coordinate) for coordinate in m.description.coordinates]
    return qdd[named]


def test_all_mechanisms_are_known_here():
    assert NAMES == sorted(DEGREES_OF_FREEDOM)


@pytest.mark.parametrize('name', NAMES)
def test_the_start_closes_all_loops(name):
    m = model(name)
    assert load_mechanism(name).name == name
    assert m.degrees_of_freedom == DEGREES_OF_FREEDOM[name] and m.redundant == ()
    assert np.max(np.abs(m.residual(m.start.q)[0])) < 1e-12
    for coordinate, scalar in m.description.initial.position.items():
        assert m.start.q[m.names.index(coordinate)] == scalar.value


@pytest.mark.parametrize('name', NAMES)
def test_the_guess_is_near_the_start(name):
    """Six digits are given, and reading them turns no branch."""
    m = model(name)
    assert np.max(np.abs(m.system.start - m.start.q)) < 2e-6


@pytest.mark.parametrize('name', [name for name in NAMES if name not in NONHOLONOMIC])
def test_accelerations_are_the_same_in_all_coordinates(name):
    planar = load_mechanism(name).dimension == 2
    results = [accelerations(name, choice) for choice in ('natural', 'reference_point', 'relative')[not planar:]]
    assert np.max(np.abs(results[0])) > 1e-3
    for other in results[1:]:
        np.testing.assert_allclose(other, results[0], rtol=1e-9, atol=1e-9 * np.max(np.abs(results[0])))


@pytest.mark.parametrize('name', sorted(REFERENCES))
def test_accelerations_and_reduced_mass_of_the_authors_toolbox(name):
    zdd, mass = REFERENCES[name]
    m = model(name)
    np.testing.assert_allclose(m.partition().rates(m.start.q, np.zeros(len(zdd))).zdd, zdd, rtol=1e-9)
    R = np.column_stack([m.partition().velocity(m.start.q, row) for row in np.eye(len(zdd))])
    np.testing.assert_allclose(R.T @ m.terms(m.start.q, 0 * m.start.q).M @ R, mass, rtol=1e-9)


# Independent solutions: the mechanism as functions of one angle, by Lagrange's equation m zdd = F - m' zd^2/2 - V'.

def lagrange(theta, speed, bodies, force, gravity=9.81):
    """``bodies``: (mass, inertia, centre, angular velocity per speed) of the angle; the last axis is up."""
    z = ca.SX.sym('z')
    mass, height = ca.SX(0), ca.SX(0)
    for m, inertia, centre, turning in bodies(z):
        J = ca.jacobian(ca.vertcat(*centre), z)
        mass, height = mass + m * ca.sumsqr(J) + turning.T @ ca.SX(inertia) @ turning, height + m * centre[-1]
    zdd = (force(z) - ca.jacobian(mass, z) * speed ** 2 / 2 - gravity * ca.jacobian(height, z)) / mass
    return float(ca.Function('zdd', [z], [zdd])(theta))


def by_the_model(name, theta, speed, u):
    m = model(name)
    q = m.start.q
    for z in np.linspace(q[m.z[0]], theta, 20):       # in steps, so that it stays on its branch
        q = m.position([z], q)
    return m.partition().rates(q, np.array([speed]), np.array(u)).zdd[0]


@pytest.mark.parametrize('theta', [math.pi, -2.0, 0.3])
def test_pendulum(theta):
    assert by_the_model('pendulum', theta, 1.7, []) == pytest.approx(-9.81 * math.cos(theta), rel=1e-12)


def slider_crank(z, r=0.1, length=0.3):
    tilt = ca.asin(r * ca.sin(z) / length)
    reach = r * ca.cos(z) + length * ca.cos(tilt)
    return [(1.2, 1.2 * r ** 2 / 12, (r / 2 * ca.cos(z), r / 2 * ca.sin(z)), ca.SX(1)),
            (0.9, 0.9 * length ** 2 / 12, ((r * ca.cos(z) + reach) / 2, r / 2 * ca.sin(z)), ca.jacobian(tilt, z)),
            (1.5, 0.0, (reach, ca.SX(0)), ca.SX(0))]


@pytest.mark.parametrize('theta', [math.pi / 3, 0.5, -0.4])
def test_slider_crank(theta):
    torque, gas = 3.0, 40.0
    expected = lagrange(theta, -2.1, slider_crank,
                        lambda z: torque - gas * ca.jacobian(slider_crank(z)[2][2][0], z))
    assert by_the_model('slider_crank', theta, -2.1, [torque, gas]) == pytest.approx(expected, rel=1e-11)


def spatial_four_bar(z):
    crank, rocker, coupler, base = 0.2, 0.5, 0.7, 0.6
    swing = ca.acos((coupler ** 2 - crank ** 2 - rocker ** 2 - base ** 2 + 2 * base * crank * ca.cos(z))
                    / (2 * rocker * (base - crank * ca.cos(z))))
    P = ca.vertcat(crank * ca.cos(z), crank * ca.sin(z), 0)
    Q = ca.vertcat(base + rocker * ca.cos(swing), 0, rocker * ca.sin(swing))
    x = (Q - P) / coupler                      # the coupler's axes: z is perpendicular to the rocker's y
    up = ca.vertcat(-x[2], 0, x[0]) / ca.sqrt(x[0] ** 2 + x[2] ** 2)
    R = ca.horzcat(x, ca.cross(up, x), up)
    spin = R.T @ ca.reshape(ca.jacobian(ca.vec(R), z), 3, 3)
    return [(1.0, ca.diag([5e-4, 4e-3, 4e-3]), ca.vertsplit(P / 2), ca.vertcat(0, 0, 1)),
            (2.0, ca.diag([1e-3, 0.042, 0.042]), ((base + Q[0]) / 2, Q[1] / 2, Q[2] / 2),
             ca.vertcat(0, -ca.jacobian(swing, z), 0)),
            (1.5, ca.diag([8e-4, 0.062, 0.062]), ca.vertsplit((P + Q) / 2), ca.inv_skew(spin))]


@pytest.mark.parametrize('theta', [math.pi / 4, 1.2, -0.7])
def test_spatial_four_bar(theta):
    expected = lagrange(theta, 1.3, spatial_four_bar, lambda z: 2.0)
    assert by_the_model('spatial_four_bar', theta, 1.3, [2.0]) == pytest.approx(expected, rel=1e-10)


def circles(a, r, b, s):
    """The meeting point of two circles that lies to the left of the line from a to b."""
    d = np.linalg.norm(b - a)
    along = (d ** 2 + r ** 2 - s ** 2) / (2 * d)
    x = (b - a) / d
    return a + along * x + math.sqrt(r ** 2 - along ** 2) * np.array([-x[1], x[0]])


def excavator(angles):
    """Potential energy and lengths of the cylinders at the angles of boom, stick and bucket."""
    boom, stick, bucket = (np.array([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]])
                           for a in np.cumsum(angles))
    S = boom @ [5.70, 0]
    R, K = S + stick @ [2.50, 0.04], S + stick @ [2.92, 0]
    Q = K + bucket @ [-0.04, 0.44]
    L = circles(R, 0.62, Q, 0.60)
    masses = [1650, 820, 780, 70, 60]
    centres = [boom @ [2.60, 0.62], S + stick @ [0.86, 0.12], K + bucket @ [0.62, 0.16], (R + L) / 2, (L + Q) / 2]
    pins = [(np.array([0.42, -0.58]), boom @ [2.30, 0.62]), (boom @ [3.10, 0.92], S + stick @ [-0.78, 0.18]),
            (S + stick @ [0.42, 0.62], L)]
    return np.array([9.81 * np.dot(masses, centres)[1], *(np.linalg.norm(b - a) for a, b in pins)])


def test_cylinders_that_hold_the_excavator_arm():
    angles = np.radians([21.87810278, -102.41001857, -37.15541079])
    slopes = np.array([(excavator(angles + step) - excavator(angles - step)) / 2e-6 for step in 1e-6 * np.eye(3)])
    forces = np.linalg.solve(slopes[:, 1:], slopes[:, 0])          # virtual work: dV = F dl
    np.testing.assert_allclose(excavator(angles)[1:], [2.50, 2.95, 2.20], rtol=1e-9)
    m = model('excavator_arm')
    np.testing.assert_allclose(m.partition().rates(m.start.q, np.zeros(3), forces).zdd, 0.0, atol=1e-8)
    assert m.inputs == ('boom_force', 'stick_force', 'bucket_force')


def test_three_rrr_has_the_levels_of_paper_004():
    system = model('three_rrr').system
    owners = [sorted({system.owners[row] for row in rows}) for rows in level_rows(system)]
    assert [len(rows) for rows in level_rows(system)] == [12, 9, 6]
    assert owners[0] == sorted(f'O{k}_{body}_{k}' for k in 'abc' for body in ('actuator', 'bar'))
    assert owners[1] == [f'P{k}' for k in 'abc'] + [f'drive_{k}' for k in 'abc']
    assert owners[2] == [f'C{k}' for k in 'abc']


@pytest.mark.parametrize('name', NAMES)
def test_plain_simulate_runs_to_its_end(name):
    """Those that would fall into a singular position within 1.2 s are held by their inputs, which the samples have."""
    m = model(name)
    if name == 'andrews':       # is the fastest
        assert 'a shorter dt' in simulate_motion(m, 0.05, sensors=[]).warnings[-1]
    found = simulate_motion(m, *((0.05, 1e-4) if name == 'andrews' else (1.5, 2.5e-3)))
    assert found.motion.failure is None and not found.lost
    assert not [text for text in found.warnings if 'singular' not in text]
    held = m.description.initial.held
    assert held == (name in ('excavator_arm', 'spatial_crane', 'three_rrr')) == found.motion.inputs.any()
    if held:
        assert {f'input/{name}' for name in m.inputs} <= set(found.samples.names)
        driven = [k for k, name in enumerate(m.independent) if name not in ('slew', 'load_x', 'load_y')]
        assert np.ptp(found.motion.q[:, m.z], axis=0)[driven].max() < 2e-3


def test_inputs_hold_the_start_only_where_they_can(tmp_path):
    text = (FOLDER / 'spatial_crane.yaml').read_text()
    for old, new, said in (('load_x: 4.444946 m, load_y', 'load_x: 4.6 m, load_y', 'load_x'),
                           ('held: true', 'held: 3', 'held')):
        path = tmp_path / f'{said}.yaml'
        assert old in text
        path.write_text(text.replace(old, new))
        with pytest.raises(DescriptionError, match=f'initial.held.*{said if said == "load_x" else "3"}'):
            simulate_motion(load_model(path, backend='vm'), 0.1)


def test_what_hangs_at_rest_needs_no_inputs(tmp_path):
    """Rounding of the start is no acceleration; with friction nothing is held."""
    path = tmp_path / 'pendulum.yaml'
    text = ('format: mbse/machine/2\nname: p\ngravity: 9.81\ncoordinates: reference_point\n'
            'points: {O: {fixed: [0, 0]}, P: [0.1, -1]}\n'
            'bodies: {rod: {points: [O, P], length: 1, mass: 2, uniform: true}}\nnamed: {theta: {angle: rod}}\n'
            'initial: {position: {theta: -90 deg}, held: true}\n')
    path.write_text(text)
    assert simulate_motion(load_model(path, backend='vm'), 0.1).motion.failure is None
    path.write_text(text + 'friction: {pin: {joint: O, coefficient: 0.1, radius: 0.1}}\n')
    with pytest.raises(DescriptionError, match='initial.held.*friction.pin'):
        simulate_motion(load_model(path, backend='vm'), 0.1)


def test_a_fall_without_inputs_says_what_to_add(tmp_path):
    path = tmp_path / 'arm.yaml'
    path.write_text((FOLDER / 'excavator_arm.yaml').read_text().replace('held: true', 'held: false'))
    found = simulate_motion(load_model(path, backend='vm'), 1.5, 5e-3, sensors=[], stop=False)
    assert isinstance(found.motion.failure, SingularConfigurationError)
    assert 'boom_force' in found.warnings[-1] and 'held: true' in found.warnings[-1]
