# SPDX-License-Identifier: Apache-2.0
"""Double-step semi-recursive equations: equal to matrix-R in relative coordinates and to Lagrange's equations."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
import yaml
from lagrange_by_hand import Lagrange, spatial_tree

from mbse_ros.compiled import Kernel
from mbse_ros.description.load import known_machines, parse_mechanism
from mbse_ros.dynamics.formulations.semi_recursive import semi_recursive, semi_recursive_partition, tree
from mbse_ros.dynamics.model import Model, load_model
from mbse_ros.errors import SettingError
from mbse_ros.mechanism.assembly import build_mechanism

MECHANISMS = ['excavator_arm', 'five_bar', 'four_bar', 'four_bar_adams_driven', 'four_bar_spring', 'n_four_bar:4',
              'pendulum', 'slider_crank', 'spatial_crane', 'spatial_four_bar', 'three_rrr']


def mass_and_forces(system):
    """Kernel ``(q, qd, u, t, p) -> (M, Q)``."""
    symbols = [system.q, system.qd, system.u, system.t, system.values.symbol]
    return Kernel(ca.Function('terms', symbols, [system.M, system.Q], {'cse': True}), 'vm')


def states(model, count, seed=0):
    """States that the constraints allow, about the start."""
    rng, start = np.random.default_rng(seed), model.start
    partition = model.partition()
    for step in [0.0] + [0.05] * (count - 1):
        q = partition.position(start.q[model.z] + step * rng.normal(size=len(model.z)), start.q)
        yield q, partition.velocity(q, rng.normal(size=len(model.z))), rng.normal(size=len(model.inputs))


def check_accelerations(model, count=3):
    """Accelerations with the accumulated M and Q, by coordinate partitioning, against the model's own."""
    kernel, n = mass_and_forces(semi_recursive(model.system)), len(model.names)
    for q, qd, u in states(model, count):
        M, Q = kernel(q, qd, u, [0.0], model.parameters)
        terms = model.terms(q, qd, u)
        own = replace(terms, M=M.reshape(n, n), Q=Q)
        J, R = second_step(model, terms)
        free = np.linalg.lstsq(J, terms.c[model.active], rcond=None)[0]
        qdd = [R @ np.linalg.solve(R.T @ t.M @ R, R.T @ (t.Q - t.M @ free)) + free for t in (terms, own)] \
            if R.size else [free, free]
        scale = np.abs(qdd[0]).max() + np.abs(terms.Q).max()
        np.testing.assert_allclose(qdd[1], qdd[0], rtol=0, atol=1e-10 * scale)
        np.testing.assert_allclose(R.T @ own.M @ R, R.T @ terms.M @ R, rtol=0, atol=1e-10 * np.abs(terms.M).max())


def second_step(model, terms):
    """Constraints that count and R of Pyrhönen et al., mass estimation, Eq. 4."""
    J, n = terms.J[model.active], len(model.names)
    dependent = [i for i in range(n) if i not in model.z]
    R = np.zeros((n, len(model.z)))
    R[model.z] = np.eye(len(model.z))
    R[dependent] = -np.linalg.solve(J[:, dependent], J[:, model.z])
    return J, R


@pytest.mark.parametrize('name', MECHANISMS)
def test_mechanisms(name):
    check_accelerations(load_model(name, 'relative', backend='vm'))


@pytest.mark.parametrize('name', ['ur10e', 'patu655'])
def test_payloads_and_rotors_count(name):
    content = yaml.safe_load(open(load_model(name, backend='vm').description.file, encoding='utf-8'))
    content['payload']['gyration_radius'] = '0.3 m'
    model = Model(parse_mechanism(yaml.safe_dump(content)), backend='vm')
    numbers = model.parameters.copy()
    numbers[model.system.values.names.index('payload.mass')] = 100.0
    loaded = model.with_parameters(numbers)
    assert len(model.system.rotors) == 6 * (name == 'ur10e')
    check_accelerations(loaded)


def test_a_base_that_is_inclined_and_accelerated():
    """Weights are those of the frame of the machine, whose gravity is not that of the file."""
    text = known_machines()['patu655'].read_text()
    head, _, rest = text.partition('\nsensors:')
    imu = '  base_imu: {kind: accelerometer, body: ground, stddev: 0.05 m/s^2}\n'
    model = Model(parse_mechanism(f'{head}\nsensors:{rest.partition(chr(10))[0]}\n{imu}{rest.partition(chr(10))[2]}'))
    numbers = dict(zip(model.system.values.names, model.parameters))
    changed = {**numbers, 'base.pitch': 0.1, 'base.acceleration[0]': 1.5, 'base.acceleration[2]': -0.7}
    assert set(changed) == set(numbers)
    check_accelerations(model.with_parameters(np.array(list(changed.values()))))


@pytest.mark.parametrize('name', ['spatial_four_bar', 'four_bar_spring'])
def test_state_equations(name):
    """The compiled double-step form: accelerations, all exact Jacobians."""
    model = load_model(name, 'relative', backend='vm')
    own, reference = semi_recursive_partition(model), model.partition()
    for q, qd, u in states(model, 2):
        found, expected = (part.rates(q, qd[model.z], u) for part in (own, reference))
        for part in ('zdd', 'A', 'B', 'qdd'):
            value = getattr(expected, part)
            atol = 1e-10 * (1 + np.abs(value).max(initial=0))
            np.testing.assert_allclose(getattr(found, part), value, rtol=0, atol=atol)


def mechanism(bodies, joints, ground, **others):
    """Description in relative coordinates."""
    content = {'format': 'mbse/mechanism/1', 'name': 'made', 'dimension': 3, 'gravity': [0.4, -1.1, -9.0],
               'coordinates': 'relative', 'points': {name: {'fixed': place} for name, place in ground.items()},
               'bodies': bodies, 'joints': joints, **others}
    return parse_mechanism(yaml.safe_dump(content, sort_keys=False))


@pytest.mark.parametrize('seed', range(3))
def test_spatial_tree_against_lagrange(seed):
    """Both ways to M and Q of relative coordinates against Lagrange's equations by complex-step derivatives."""
    description = spatial_tree(seed)
    lagrange, system = Lagrange(description), build_mechanism(description)
    order = [lagrange.moving.index(name) for name in system.names]
    rng = np.random.default_rng(seed)
    for way in (system, semi_recursive(system)):
        q, qd = rng.normal(size=(2, system.n))
        M, Q = mass_and_forces(way)(q, qd, [], [0.0], [])
        there = np.argsort(order)
        np.testing.assert_allclose(M, lagrange.mass_matrix(q[there]).real[np.ix_(order, order)], rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(Q, lagrange.forces(q[there], qd[there]).real[order], rtol=1e-10, atol=1e-10)


def random_bodies(count, rng, dimension):
    number = lambda: [float(v) for v in rng.uniform(-0.7, 0.7, dimension)]      # noqa: E731
    root = rng.normal(size=(count, 3, 3))
    tensors = [np.trace(a @ a.T) * np.eye(3) - a @ a.T for a in root]
    inertia = [{'xx': float(t[0, 0]), 'yy': float(t[1, 1]), 'zz': float(t[2, 2]), 'xy': float(t[0, 1]),
                'xz': float(t[0, 2]), 'yz': float(t[1, 2])} if dimension == 3 else float(t[2, 2]) for t in tensors]
    return {f'b{k}': {'points': {'a': number(), 'b': number()}, 'mass': float(rng.uniform(1, 5)),
                      'center_of_mass': number(), 'inertia': inertia[k]} for k in range(count)}


def random_joints(kinds, rng, dimension):
    """A chain whose every second joint points to the ground, with a branch at each third body."""
    joints, last = {}, 'ground.foot'
    for k, kind in enumerate(kinds):
        ends = (last, f'b{k}.b') if k % 2 else (f'b{k}.b', last)
        if k == 0:
            ends = (last, 'b0.b')
        joints[f'j{k}'] = {'type': kind, 'parent': ends[0], 'child': ends[1]}
        if kind not in ('fixed', 'spherical') and (dimension == 3 or kind != 'revolute'):
            joints[f'j{k}']['axis'] = [float(v) for v in rng.normal(size=dimension)]
        if kind == 'universal':
            joints[f'j{k}']['axis2'] = [float(v) for v in rng.normal(size=3)]
        turn = [float(v) for v in rng.uniform(-1, 1, 3)]
        if dimension == 3 and kind != 'spherical':
            joints[f'j{k}']['rpy'] = turn
        if dimension == 2 and kind in ('prismatic', 'fixed'):
            joints[f'j{k}']['angle'] = turn[0]
        if kind in ('revolute', 'prismatic', 'cylindrical', 'slot'):
            joints[f'j{k}']['start'] = 0.3
        last = f'b{k}.a' if k % 3 else last
    return joints


SPATIAL = ['revolute', 'cylindrical', 'spherical', 'universal', 'prismatic', 'fixed', 'revolute', 'spherical',
           'universal', 'cylindrical']
PLANAR = ['revolute', 'slot', 'prismatic', 'fixed', 'slot', 'revolute', 'prismatic']


@pytest.mark.parametrize('dimension, kinds', [(2, PLANAR), (3, SPATIAL)])
def test_every_joint_both_ways(dimension, kinds):
    """All joints along and against their direction, branches, a body without joints, a distance, all loads."""
    rng = np.random.default_rng(dimension)
    bodies, joints = random_bodies(len(kinds) + 1, rng, dimension), random_joints(kinds, rng, dimension)
    free, last, some = f'b{len(kinds)}', f'b{len(kinds) - 1}', [1.0, -2.0, 0.5][:dimension]
    bodies[free] |= {'position': some} | ({'rpy': [0.1, 0.2, 0.3]} if dimension == 3 else {'angle': 0.3})
    torque = {'body': 'b3', 'input': 'torque'} | ({'direction': [0, 0.6, 0.8]} if dimension == 3 else {})
    description = mechanism(
        bodies, joints, {'foot': some}, dimension=dimension, gravity=some,
        named={'first': {'joint': 'j0'}, 'far': {'distance': ['ground.foot', f'{last}.a']}},
        springs={'coil': {'points': [f'{free}.a', f'{last}.b'], 'stiffness': 40, 'free': 0.5, 'damping': 7},
                 'twist': {'coordinate': 'first', 'stiffness': 3, 'free': 0.2, 'damping': 2}},
        forces={'load': {'point': 'b2.a', 'force': some}, 'torque': torque,
                'push': {'point': f'{last}.a', 'direction': some, 'input': 'F'},
                'drive': {'coordinate': 'far', 'input': 'F'}})
    model = Model(description, backend='vm')
    assert {step.hangs_on for step in tree(model.system)} >= {'ground', 'b1'}
    check_accelerations(model)


@pytest.mark.parametrize('coordinates', ['natural', 'reference_point'])
def test_other_coordinates_are_refused(coordinates):
    with pytest.raises(SettingError, match='relative coordinates'):
        semi_recursive(load_model('four_bar', coordinates, backend='vm').system)


def test_cost_of_a_chain():
    """Operations for M and Q of a spatial chain grow slowly, and as those of the system itself."""
    def operations(count):
        rng = np.random.default_rng(0)
        joints = {f'j{k}': {'type': 'revolute', 'parent': f'b{k - 1}.a' if k else 'ground.foot', 'child': f'b{k}.b',
                            'axis': [float(v) for v in rng.normal(size=3)]} for k in range(count)}
        system = build_mechanism(mechanism(random_bodies(count, rng, 3), joints, {'foot': [0, 0, 0]}))
        return [ca.Function('f', [way.q, way.qd], [way.M, way.Q], {'cse': True}).n_instructions()
                for way in (system, semi_recursive(system))]
    short, long = operations(6), operations(12)
    assert long[1] < 2.0 ** 1.6 * short[1]
    assert long[0] < 1.1 * long[1]
