# SPDX-License-Identifier: Apache-2.0
"""Constraint forces that do work: friction of joints by the forces of their constraints, against balances by hand."""

from dataclasses import replace

import numpy as np
import pytest

from mbse_ros.description.load import load_mechanism, parse_mechanism
from mbse_ros.dynamics.formulations.by_name import FORMULATIONS, accelerations, with_work
from mbse_ros.dynamics.formulations.kkt import kkt
from mbse_ros.dynamics.formulations.projectors import enforce
from mbse_ros.dynamics.formulations.terms_arrays import JointWork
from mbse_ros.dynamics.model import load_model
from mbse_ros.dynamics.motion import simulate
from mbse_ros.errors import DescriptionError, SettingError, SingularEquationsError

MU, PIN, MASS, LENGTH = 0.3, 0.05, 2.0, 1.0
RAIL = """format: mbse/machine/2
name: rail
gravity: [0, -9.81]
coordinates: reference_point
points: {top: {fixed: [0, 0]}}
bodies:
  block:
    {points: {pin: [0, 0], far: [1, 0]}, mass: 2, center_of_mass: [0, 0], inertia: 0.1, position: [0, 0], angle: -0.6}
joints: {rail: {type: TYPE, parent: ground.top, child: block.pin, axis: [cos(0.6), -sin(0.6)], angle: -0.6}}
named: {way: {joint: rail}}
initial: {velocity: {way: 0.5}}
friction: {rail: {joint: rail, coefficient: 0.3, speed: 1 mm/s}}
"""
PENDULUM = """format: mbse/machine/2
name: pendulum
gravity: 9.81
coordinates: reference_point
points: {O: {fixed: [0, 0]}, P: [1, 0]}
bodies: {rod: {points: [O, P], length: 1, mass: 2, uniform: true}}
named: {theta: {angle: rod}}
initial: {velocity: {theta: 3}}
friction: {pin: {joint: O, coefficient: 0.3, radius: 50 mm, speed: 0.1 mm/s}}
"""
SPATIAL = """format: mbse/machine/2
name: pendulum
dimension: 3
gravity: 9.81
points: {O: {fixed: [0, 0, 0]}}
bodies:
  rod:
    {points: {a: [0, 0, 0], b: [1, 0, 0]}, mass: 2, center_of_mass: [0.5, 0, 0], inertia: {xx: 0.01, yy: 1/6, zz: 1/6}}
joints: {O: {type: revolute, parent: ground.O, child: rod.a, axis: [0, -1, 0]}}
named: {theta: {joint: O}}
initial: {velocity: {theta: 3}}
friction: {pin: {joint: O, coefficient: 0.3, radius: 50 mm, speed: 0.1 mm/s}}
"""


def model_of(text):
    return load_model(parse_mechanism(text), backend='vm')


def swing(angle: float, rate: float) -> float:
    """Acceleration of the pendulum: the moment of its weight and that of the pin, MU PIN times the force there."""
    inertia, away, g = MASS * LENGTH ** 2 / 3, LENGTH / 2, 9.81
    alpha = 0.0
    for _ in range(200):
        centre = away * np.array([-np.sin(angle) * alpha - np.cos(angle) * rate ** 2,
                                  np.cos(angle) * alpha - np.sin(angle) * rate ** 2])
        force = np.linalg.norm(MASS * (centre + [0.0, g]))
        alpha = (-MASS * g * away * np.cos(angle) - np.sign(rate) * MU * PIN * force) / inertia
    return alpha


@pytest.mark.parametrize('text', [PENDULUM, SPATIAL])
@pytest.mark.parametrize('formulation', [name for name in FORMULATIONS if name != 'penalty'])
def test_pendulum_on_a_pin_with_friction(text, formulation):
    model = model_of(text)
    for rate in (3.0, -2.0):
        qd = model.start.qd * rate / 3.0
        qdd = model.accelerations(model.start.q, qd, formulation=formulation)
        assert qdd[model.names.index('theta')] == pytest.approx(swing(0.0, rate), rel=1e-9)
    assert abs(swing(0.0, 3.0) - swing(0.0, -3.0)) > 0.3


def test_constraint_forces_work_as_phi_says():
    """``S' gamma = S' phi`` (Orsino, modular modelling, Eq. 3.3) with gamma = M qdd - f, and ``A qdd = b``; the power
    of gamma is that of phi, which takes energy away."""
    model = model_of(PENDULUM)
    terms = model.terms(model.start.q, model.start.qd)
    found = accelerations('udwadia_kalaba_recursive', terms)
    gamma, phi = terms.M @ found.qdd - terms.Q, terms.phi(found.multipliers)
    S = enforce(replace(terms, phi=None), [range(terms.m)]).S
    np.testing.assert_allclose(S.T @ gamma, S.T @ phi, atol=1e-9 * np.abs(gamma).max())
    np.testing.assert_allclose(terms.J @ found.qdd, terms.c, atol=1e-9)
    np.testing.assert_allclose(gamma, phi - terms.J.T @ found.multipliers, atol=1e-9 * np.abs(gamma).max())
    assert model.start.qd @ gamma == pytest.approx(model.start.qd @ phi) and model.start.qd @ phi < -0.3


def test_penalty_and_clearance_have_the_friction_too():
    model = model_of(PENDULUM)
    place = model.names.index('theta')
    for formulation, options in (('penalty', {'alpha': 1e10}), ('udwadia_kalaba_recursive', {'clearance': 1e-10})):
        qdd = model.accelerations(model.start.q, model.start.qd, formulation=formulation, **options)
        assert qdd[place] == pytest.approx(swing(0.0, 3.0), rel=1e-6)


@pytest.mark.parametrize('kind', ['prismatic', 'slot'])
def test_block_on_a_rail(kind):
    """s'' = g (sin - MU cos), and the energy that is lost is MU N s."""
    text = RAIL.replace('TYPE', kind).replace(', angle: -0.6}}', '}}' if kind == 'slot' else ', angle: -0.6}}')
    motion = simulate(model_of(text), 0.2, 0.01, 'rk4', formulation='udwadia_kalaba_recursive')
    pull, normal = 9.81 * np.sin(0.6), 9.81 * np.cos(0.6)
    np.testing.assert_allclose(motion.of('way', 2), pull - MU * normal, rtol=1e-9)
    way = motion.of('way')
    np.testing.assert_allclose(motion.energy[0] - motion.energy, MU * MASS * normal * (way - way[0]), atol=1e-7)
    assert np.abs(motion.balance).max() < 1e-6 * (motion.energy[0] - motion.energy[-1])


def test_it_comes_to_rest_and_stays():
    """On a slope of less than MU; what is left is creeping within the transition."""
    text = RAIL.replace('TYPE', 'prismatic').replace('0.6', '0.2').replace('1 mm/s', '10 mm/s')
    motion = simulate(model_of(text), 0.9, 0.005, 'rk4', formulation='kkt')
    rest = np.arctanh(np.tan(0.2) / MU) * 0.01
    assert motion.of('way', 1)[0] == pytest.approx(0.5) and motion.of('way', 1)[-1] == pytest.approx(rest, rel=1e-3)


@pytest.mark.parametrize('speed, start, warned', [('1e-6', 0, True), ('20 mm/s', 0, False), ('1e-6', 0.5, False)])
def test_steps_that_are_too_long_for_a_rest_are_said(speed, start, warned):
    """By the limit of steps that an explicit scheme has: 2 mass speed / (MU normal force)."""
    text = RAIL.replace('TYPE', 'prismatic').replace('0.6', '0.2').replace('1 mm/s', speed).replace('0.5', str(start))
    motion = simulate(model_of(text), 0.1, 0.005, 'rk4')
    said = [text for text in motion.warnings if 'friction.rail: rail, which it holds, creeps' in text]
    assert len(said) == warned
    if warned:
        limit = 2 * 1e-6 / (MU * 9.81 * np.cos(0.2))
        assert np.abs(motion.of('way', 1)[-5:]).max() > 1e-5 and f'a dt below {limit:.2g} s' in said[0]


def test_each_joint_comes_to_rest_at_its_own_rate():
    """Joints that do not act on each other: their decelerations over their speeds; one that slides fast has none."""
    sliding, speeds = np.array([0.0, 1e-4, 1.0]), np.array([0.1, 0.01, 0.001])
    work = JointWork(np.eye(3), np.zeros((3, 1, 3)), sliding, speeds, np.ones(3))
    np.testing.assert_allclose(work.stopping_rates(np.diag([2.0, 3.0, 4.0]), 0.01), [20.0, 300.0, 0.0])


def test_one_solution_for_each_joint_with_friction_and_one_without():
    terms, calls = model_of(PENDULUM), []
    terms = terms.terms(terms.start.q, terms.start.qd)

    def counted(terms):
        calls.append(terms)
        return kkt(terms)
    with_work(counted)(terms)
    assert len(calls) == 2


def test_energy_of_a_four_bar_goes_into_its_pins():
    """Friction in two pins: the power is theirs alone, and the energy falls."""
    text = open(load_mechanism('four_bar').file).read() + """
friction:
  one: {joint: A, coefficient: 0.2, radius: 50 mm, speed: 50 mm/s}
  two: {joint: P1, coefficient: 0.2, radius: 50 mm, speed: 50 mm/s}
"""
    model = load_model(parse_mechanism(text), 'reference_point', backend='vm')
    motion = simulate(model, 0.2, 0.005, 'rk4')
    assert (np.diff(motion.energy) < 0).all() and motion.violation.max() < 1e-9
    assert np.abs(motion.balance).max() < 1e-3 * (motion.energy[0] - motion.energy[-1])


def test_friction_that_jams_is_an_error():
    text = PENDULUM.replace('coefficient: 0.3, radius: 50 mm', 'coefficient: 3, radius: 1 m')
    with pytest.raises(SingularEquationsError, match='friction jams.*O.x'):
        model_of(text).accelerations(np.array([0.5, 0.0, 0.0]), np.array([0.0, 1.5, 3.0]), formulation='kkt')


@pytest.mark.parametrize('joint', ['one', 'two'])
def test_a_force_that_redundant_constraints_share_is_refused(joint):
    """Two pins at one place: matrix R would give all of the force to the first, others a half to each."""
    rod = ('{points: {a: [0, 0], b: [1, 0]}, mass: 2, center_of_mass: [0.5, 0], inertia: 1/6, position: [0, 0]}}\n'
           'joints: {one: {type: revolute, parent: ground.O, child: rod.a}, two: {type: revolute, parent: ground.O, '
           'child: rod.a}}')
    text = PENDULUM.replace(', P: [1, 0]', '').replace('{points: [O, P], length: 1, mass: 2, uniform: true}}', rod)
    with pytest.raises(DescriptionError, match=f"friction.pin: got '{joint}'.*two.x, two.y"):
        model_of(text.replace('joint: O', f'joint: {joint}'))


def test_redundant_constraints_beside_the_force_do_no_harm():
    """A four-bar of pins in space: what is redundant is out of its plane, and the forces in it are determined."""
    bar = ('{points: {a: [0, 0, 0], b: [LONG, 0, 0]}, mass: 2, center_of_mass: [1, 0, 0], '
           'inertia: {xx: 0.01, yy: 0.7, zz: 0.7}, position: [X, 0, Z], rpy: [0, ANGLE deg, 0]}')
    bars = [bar.replace('LONG', long).replace('X', x).replace('Z', z).replace('ANGLE', angle) for long, x, z, angle in (
        ('2', '0', '0', '-60'), ('4', '1', 'sqrt(3)', '0'), ('2', '4', '0', '-60'))]
    pins = [f'{{type: revolute, parent: {parent}, child: {child}, axis: [0, 1, 0]}}' for parent, child in (
        ('ground.A', 'crank.a'), ('crank.b', 'coupler.a'), ('coupler.b', 'rocker.b'), ('ground.D', 'rocker.a'))]
    start = SPATIAL.index('points:'), SPATIAL.index('named:')
    model = model_of(SPATIAL[:start[0]] + 'points: {A: {fixed: [0, 0, 0]}, D: {fixed: [4, 0, 0]}}\n'
                     f'bodies: {{crank: {bars[0]}, coupler: {bars[1]}, rocker: {bars[2]}}}\n'
                     f'joints: {{O: {pins[0]}, B: {pins[1]}, C: {pins[2]}, D: {pins[3]}}}\n' + SPATIAL[start[1]:])
    assert len(model.redundant) == 3
    found = [model.accelerations(model.start.q, model.start.qd, formulation=formulation)
             for formulation in ('matrix_r', 'udwadia_kalaba')]
    np.testing.assert_allclose(*found, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize('coordinates', ['natural', 'relative'])
def test_coordinates_without_rows_of_the_joint_are_refused(coordinates):
    with pytest.raises(DescriptionError, match='friction.pin: .*reference_point'):
        load_model(parse_mechanism(PENDULUM), coordinates, backend='vm')


def test_what_has_independent_coordinates_refuses_it():
    model = model_of(PENDULUM)
    with pytest.raises(DescriptionError, match=r"friction: got \['pin'\].*filters"):
        model.partition()
    with pytest.raises(SettingError, match='semi_recursive.*friction.pin'):
        simulate(model, 0.1, 0.01, 'rk4', formulation='semi_recursive')
