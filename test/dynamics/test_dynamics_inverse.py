# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics: MSC Adams, hand calculations, balance of the whole, forward dynamics, all coordinates."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from sensor_mechanisms import THREE_CRANKS
from source_tree import ROOT

from mbse_ros.description.load import load_mechanism, parse_mechanism
from mbse_ros.dynamics.forces.driven_motion import inverse_dynamics
from mbse_ros.dynamics.model import Model, load_model
from mbse_ros.errors import SettingError, SingularConfigurationError
from mbse_ros.mechanism.inertia import center_of_mass, inertia

PLANE, SPACE = ('natural', 'reference_point', 'relative'), ('reference_point', 'relative')
TIMES = np.linspace(0.0, 1.0, 11)
FLAT = '''
format: mbse/mechanism/1
name: flat_loop
dimension: 3
gravity: [0, -9.81, 0]
bodies:
'''


def swing(model, size=0.2):
    """A smooth motion of all independent coordinates from the start."""
    z0 = model.start.q[model.z]
    rate = 2.0 + np.arange(len(z0))
    return lambda t: (z0 + size * np.sin(rate * t), size * rate * np.cos(rate * t),
                      -size * rate ** 2 * np.sin(rate * t))


def solved(name, coordinates, **options):
    model = load_model(name, coordinates, backend='vm')
    return model, inverse_dynamics(model, TIMES, swing(model, **options) if model.z else None)


def test_torque_of_adams(shared_data):
    """Blanco-Claraco et al., factor graphs, section 7.2: theta = 1.2 (1 - cos 2t); Adams reports the torque with the
    other sign."""
    table = np.loadtxt(shared_data / 'InverseDynamics_4bars_MSC.tab', comments='%')
    found = inverse_dynamics(load_model('four_bar_adams_driven', backend='vm'), table[::8, 0])
    error = found.forces['motor'] + table[::8, 1]
    assert np.sqrt(np.mean(error ** 2)) < 0.007
    assert np.max(np.abs(np.degrees(found.q[:, -1]) - table[::8, 2])) < 1e-3


@pytest.mark.parametrize('coordinates', PLANE)
@pytest.mark.parametrize('angle', [np.pi, 0.3, -np.pi / 2])
def test_pendulum_held_still(coordinates, angle):
    model = load_model('pendulum', coordinates, backend='vm')
    found = inverse_dynamics(model, [0.0], lambda t: ([angle], [0.0], [0.0]))
    assert found.forces['theta'][0] == pytest.approx(9.81 * np.cos(angle), abs=1e-12)
    assert found.reactions['O'][0] == pytest.approx([0.0, 9.81, 0.0], abs=1e-12)


def test_pendulum_in_a_circle():
    """The pin pulls with the weight and m l omega^2, and leaves the motor its torque."""
    model, omega = load_model('pendulum', backend='vm'), 3.0
    found = inverse_dynamics(model, TIMES, lambda t: ([np.pi + omega * t], [omega], [0.0]))
    out = np.column_stack([np.cos(np.pi + omega * TIMES), np.sin(np.pi + omega * TIMES)])
    assert found.reactions['O'][:, :2] == pytest.approx(np.array([0.0, 9.81]) - omega ** 2 * out, abs=1e-9)
    assert found.forces['theta'] == pytest.approx(9.81 * out[:, 0], abs=1e-9)
    assert found.power == pytest.approx(omega * found.forces['theta'])


@pytest.mark.parametrize('name, kinds', [
    ('four_bar_adams_driven', PLANE), ('five_bar', PLANE), ('slider_crank', PLANE), ('excavator_arm', PLANE),
    ('spatial_four_bar', SPACE), ('spatial_crane', SPACE)])
def test_all_coordinates_agree(name, kinds):
    results = [solved(name, coordinates, size=0.1)[1] for coordinates in kinds]
    first = results[0]
    assert not first.undetermined and len(first.reactions) == len(load_mechanism(name).joints)
    for found in results:
        scale = max(np.abs(values).max() for values in (*first.forces.values(), *first.reactions.values()))
        for mine, others in ((found.forces, first.forces), (found.reactions, first.reactions)):
            assert mine.keys() == others.keys()
            assert all(np.abs(mine[key] - others[key]).max() < 1e-9 * scale for key in mine)
        assert np.abs(found.imbalance).max() < 1e-10 * np.abs(found.power).max()
        assert np.abs(found.power).max() > 1e-3


@pytest.mark.parametrize('name, coordinates', [
    ('five_bar', 'natural'), ('slider_crank', 'relative'), ('spatial_four_bar', 'reference_point'),
    ('spatial_four_bar', 'relative')])
def test_ground_reactions_move_the_whole(name, coordinates):
    """Reactions of the ground's joints and torques of the motors change the momentum and its moment."""
    model = load_model(name, coordinates, backend='vm')
    motion, middle, step = swing(model), 0.4, 2e-3
    found = inverse_dynamics(model, [middle], motion)
    steps = np.arange(-4, 5)
    around = inverse_dynamics(model, middle + steps * step, motion)
    momentum = np.array([_momentum(model, q, qd) for q, qd in zip(around.q, around.qd)])
    weights = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0, 4 / 5, -1 / 5, 4 / 105, -1 / 280])
    rate, weight = weights @ momentum / step, _weight(model, found.q[0])
    total, planar = np.zeros(len(rate)), model.description.dimension == 2
    for joint in model.description.joints.values():
        if joint.parent.body == 'ground':
            wrench = found.reactions[joint.name][0]
            place = _place(model, found.q[0], str(joint.child))
            size = 2 if planar else 3
            total += [*wrench[:size], *(wrench[size:] + _cross(place, wrench[:size]))]
    total[-1] += sum(force[0] for force in found.forces.values())       # absolute angles; a crank about z
    assert total + weight == pytest.approx(rate, rel=1e-8, abs=1e-8 * np.abs(weight).max())


def _place(model, q, point):
    system = model.system
    return ca.Function('p', [system.q], [system.points[point]])(q).full()[:, 0]


def _cross(a, b):
    return np.cross(a, b) if len(a) == 3 else np.array([a[0] * b[1] - a[1] * b[0]])


def _momentum(model, q, qd):
    """Momentum and moment of momentum about the origin."""
    system, sums = model.system, 0
    for name, body in model.description.bodies.items():
        frame = system.frames[name]
        centre, mass = frame.at(center_of_mass(body, system.values)), system.values(body.mass)
        p = mass * ca.jtimes(centre, system.q, system.qd)
        planar = p.numel() == 2
        spin = inertia(body, system.values) @ frame.omega
        moment = spin + (centre[0] * p[1] - centre[1] * p[0] if planar else 0)
        if not planar:
            moment = frame.rotation @ spin + ca.cross(centre, p)
        sums += ca.vertcat(p, moment)
    return ca.Function('momentum', [system.q, system.qd], [sums])(q, qd).full()[:, 0]


def _weight(model, q):
    system, sums = model.system, 0
    gravity = np.array([scalar.value for scalar in model.description.gravity])
    for name, body in model.description.bodies.items():
        centre = ca.Function('c', [system.q], [system.frames[name].at(center_of_mass(body, system.values))])(q)
        force = body.mass.value * gravity
        sums = sums + np.array([*force, *_cross(centre.full()[:, 0], force)])
    return sums


@pytest.mark.parametrize('coordinates', PLANE)
def test_forward_dynamics_with_the_torque(coordinates):
    """The four-bar of Naya et al., review, under the torque found for a motion makes that motion (Runge-Kutta, 2
    ms)."""
    model, h, count = load_model('four_bar', coordinates, backend='vm'), 2e-3, 100
    motion = swing(model, size=0.5)
    torque = inverse_dynamics(model, np.arange(2 * count + 1) * h / 2, motion).forces['theta']
    partition, q = model.partition(), model.start.q
    x = np.array([motion(0.0)[0][0], motion(0.0)[1][0]])
    for k in range(count):
        slopes = []
        for part, ahead in ((0, 0.0), (1, h / 2), (1, h / 2), (2, h)):
            y = x + ahead * slopes[-1] if slopes else x
            q = partition.position(y[:1], q)
            slopes.append(np.array([y[1], partition.rates(q, y[1:], torque[[2 * k + part]]).zdd[0]]))
        x = x + h / 6 * (slopes[0] + 2 * slopes[1] + 2 * slopes[2] + slopes[3])
    assert x == pytest.approx([motion(count * h)[0][0], motion(count * h)[1][0]], abs=2e-9)


def test_inputs_act_beside_the_actuator():
    """The gas force on a piston at rest is carried by the crank's torque: F times the derivative of the stroke."""
    model = load_model('slider_crank', backend='vm')
    still = (lambda z: lambda t: (z, [0.0], [0.0]))(model.start.q[model.z])
    torque = [inverse_dynamics(model, [0.0], still, inputs).forces['theta'][0] for inputs in (None, [0.0, 50.0])]
    ratio = model.partition().velocity(model.start.q, np.ones(1))[model.names.index('stroke')]
    assert torque[1] - torque[0] == pytest.approx(50.0 * ratio, rel=1e-12)
    full = inverse_dynamics(model, TIMES, swing(model), np.column_stack([0 * TIMES, 50 * TIMES]))
    assert np.abs(full.imbalance).max() < 1e-12


@pytest.mark.parametrize('coordinates', PLANE)
def test_redundant_constraints_leave_reactions_open(coordinates):
    """Three parallel cranks: the torque is determined, their pull is not."""
    found = inverse_dynamics(Model(parse_mechanism(THREE_CRANKS), coordinates, backend='vm'), TIMES)
    theta = 0.9272952180016122 + 0.2 * np.sin(3 * TIMES)
    ddot = -1.8 * np.sin(3 * TIMES)
    assert found.forces['motor'] == pytest.approx(4 * ddot + 9.81 * 4.5 * np.cos(theta), rel=1e-9)
    assert found.undetermined == {name: ('fx', 'fy') for name in 'ABCPQR'}
    for values in found.reactions.values():
        assert np.isnan(values[:, :2]).all() and np.abs(values[:, 2]).max() < 1e-9
    assert np.abs(found.imbalance).max() < 1e-10


@pytest.mark.parametrize('coordinates', SPACE)
def test_planar_loop_in_space(coordinates):
    """Four parallel hinges: forces in the plane are those of the planar mechanism, those across it are open."""
    plane, space = load_mechanism('four_bar'), FLAT
    for name, body in plane.bodies.items():
        ends = {point: [local[0].value, local[1].value, 0] for point, local in body.points.items()}
        turn = np.arctan2(body.rotation[1][0], body.rotation[0][0])
        L, m = abs(body.points[list(body.points)[1]][0].value), body.mass.value
        space += f'''  {name}: {{points: {ends}, mass: {m}, center_of_mass: [{L / 2}, 0, 0],
    inertia: {{xx: 0.01, yy: {m * L ** 2 / 12}, zz: {m * L ** 2 / 12}}},
    position: [{body.position[0]}, {body.position[1]}, 0],
    rpy: [0, 0, {turn}]}}\n'''
    space += 'points: {A: {fixed: [0, 0, 0]}, B: {fixed: [10, 0, 0]}}\njoints:\n'
    for joint in plane.joints.values():
        space += f'  {joint.name}: {{type: revolute, parent: {joint.parent}, child: {joint.child}, axis: [0, 0, 1]}}\n'
    space += 'named: {theta: {joint: A}}\nindependent: [theta]\n'
    model = Model(parse_mechanism(space), coordinates, backend='vm')
    flat = load_model('four_bar', backend='vm')
    motion = swing(flat)
    found, expected = inverse_dynamics(model, TIMES, motion), inverse_dynamics(flat, TIMES, motion)
    assert found.forces['theta'] == pytest.approx(expected.forces['theta'], rel=1e-9)
    assert found.undetermined == {name: ('fz', 'mx', 'my') for name in ('A', 'B', 'P1', 'P2')}
    for name, values in found.reactions.items():
        assert values[:, [0, 1]] == pytest.approx(expected.reactions[name][:, :2], rel=1e-9, abs=1e-7)
        assert np.abs(values[:, 5]).max() < 1e-7 and np.isnan(values[:, 2:5]).all()


def test_child_on_the_ground():
    """With parent and child exchanged the reaction is the opposite one."""
    description = load_mechanism('slider_crank')
    turned = {name: replace(joint, parent=joint.child, child=joint.parent)
              if 'ground' in (joint.parent.body, joint.child.body) else joint
              for name, joint in description.joints.items()}
    model, other = Model(description, backend='vm'), Model(replace(description, joints=turned), backend='vm')
    found, opposite = (inverse_dynamics(item, TIMES, swing(model)).reactions for item in (model, other))
    assert opposite['O'] == pytest.approx(-found['O'], rel=1e-9, abs=1e-9)
    assert opposite['cylinder'][:, :2] == pytest.approx(-found['cylinder'][:, :2], rel=1e-9, abs=1e-9)
    slide = inverse_dynamics(model, TIMES, swing(model)).q[:, model.names.index('stroke')]
    about = found['cylinder'][:, 2] + slide * found['cylinder'][:, 1]      # about the parent's point O
    assert opposite['cylinder'][:, 2] == pytest.approx(-about, rel=1e-9, abs=1e-9)


def test_parameters_changed_in_the_model():
    """Free numbers keep their meaning in the bodies' balance, although their symbols stand in another order there."""
    changed = {'points.C.fixed[0]': 0.47, 'bodies.stick.center_of_mass[0]': 1.0}
    model = Model(load_mechanism('excavator_arm'), free=changed, backend='vm')
    model.parameters[:] = [changed[name] for name in model.system.values.names]
    text = (ROOT / 'config' / 'mechanisms' / 'excavator_arm.yaml').read_text()
    other = Model(parse_mechanism(text.replace('[0.42, -0.58]', '[0.47, -0.58]').replace('[0.86 m,', '[1.0 m,')),
                  backend='vm')
    found, expected = (inverse_dynamics(item, TIMES, swing(other, size=0.1)) for item in (model, other))
    for name in model.independent:
        assert found.forces[name] == pytest.approx(expected.forces[name], rel=1e-9)
    assert found.reactions['S'] == pytest.approx(expected.reactions['S'], rel=1e-9, abs=1e-6)


def test_branch_is_kept_between_times_far_apart():
    model = load_model('four_bar_adams_driven', backend='vm')
    fine = inverse_dynamics(model, np.linspace(0.0, 4.8, 97))
    coarse = inverse_dynamics(model, [1.6, 4.8])
    assert coarse.q == pytest.approx(fine.q[[32, 96]], abs=1e-10)
    assert coarse.forces['motor'] == pytest.approx(fine.forces['motor'][[32, 96]], rel=1e-9)


def test_arrays_and_functions_are_the_same():
    model = load_model('five_bar', backend='vm')
    arrays = [np.array(item) for item in zip(*(swing(model)(t) for t in TIMES))]
    found, expected = inverse_dynamics(model, TIMES, arrays), inverse_dynamics(model, TIMES, swing(model))
    assert found.q == pytest.approx(expected.q, abs=1e-10)
    assert found.forces['theta2'] == pytest.approx(expected.forces['theta2'], rel=1e-9)


def test_joint_coordinate_that_the_file_does_not_name():
    """A hinge of relative coordinates: the motor sits between its two bodies."""
    text = (ROOT / 'config' / 'mechanisms' / 'pendulum.yaml').read_text()
    text = text.replace('named:\n  theta: {angle: bob}\n', '').replace('independent: [theta]', '')
    text = text.replace('initial:\n  position: {theta: pi}\n', 'coordinates: relative\n')
    model = Model(parse_mechanism(text), independent=['O'], backend='vm')
    found = inverse_dynamics(model, [0.0], lambda t: ([0.5], [0.0], [0.0]))
    assert found.forces['O'][0] == pytest.approx(9.81 * np.cos(0.5), rel=1e-12)


def test_dead_point_is_an_error_that_says_so():
    model = load_model('slider_crank', independent=['stroke'], backend='vm')
    with pytest.raises(SingularConfigurationError, match='stroke'):
        inverse_dynamics(model, [0.0], lambda t: ([0.4], [0.0], [0.0]))


@pytest.mark.parametrize('times, motion, inputs, name', [
    ([0.0], None, None, 'motion'), ([], 'swing', None, 'times'), ([0.0, 0.0], 'swing', None, 'times'),
    ([np.nan], 'swing', None, 'times'), ([0.0, 1.0], [[0.0], [0.0], [0.0]], None, 'motion'),
    ([0.0], lambda t: (0.0, 0.0), None, 'motion'), ([0.0], lambda t: ('a', 'b', 'c'), None, 'motion'),
    ([0.0], lambda t: ([np.inf], [0.0], [0.0]), None, 'motion'), ([0.0], 'swing', [1.0, 2.0, 3.0], 'inputs')])
def test_wrong_arguments(times, motion, inputs, name):
    model = load_model('four_bar', backend='vm')
    with pytest.raises(SettingError) as caught:
        inverse_dynamics(model, times, swing(model) if motion == 'swing' else motion, inputs)
    assert caught.value.name == name


def test_coordinate_without_a_body():
    """A shared point's own coordinate belongs to no body: on which the actuator acts would be a guess."""
    model = load_model('four_bar', independent=['P1.x'], backend='vm')
    with pytest.raises(SettingError, match='names'):
        inverse_dynamics(model, [0.0], lambda t: ([1.0], [0.0], [0.0]))
