# SPDX-License-Identifier: Apache-2.0
"""Recursive dynamics of trees: equal to the sum of Jacobians over all bodies, with derivatives by differentiation of
the whole expressions, and to pinocchio; and what it costs."""

from __future__ import annotations

import numpy as np
import pytest
import yaml

from mbse_ros.compiled import Kernel
from mbse_ros.description.load import parse_mechanism
from mbse_ros.dynamics.formulations.articulated import rates_of_tree
from mbse_ros.dynamics.integrators.compiled_steps import affordable_step
from mbse_ros.dynamics.integrators.fixed_step import rk4_scheme
from mbse_ros.dynamics.model import Model, load_model
from mbse_ros.dynamics.state_equations import state_function
from mbse_ros.mechanism import assembly

KINDS = {2: ['revolute', 'slot', 'prismatic', 'fixed', 'slot', 'revolute', 'prismatic'],
         3: ['revolute', 'cylindrical', 'universal', 'prismatic', 'fixed', 'revolute', 'universal', 'cylindrical']}


def tree(dimension: int) -> dict:
    """All joints that need no constraints, each second one against its direction, two branches, springs, loads,
    inputs."""
    rng, kinds = np.random.default_rng(dimension), KINDS[dimension]
    number = lambda n: [float(v) for v in rng.uniform(-0.7, 0.7, n)]      # noqa: E731
    bodies, joints, last = {}, {}, 'ground.foot'
    for k, kind in enumerate(kinds):
        root = rng.normal(size=(3, 3))
        t = np.trace(root @ root.T) * np.eye(3) - root @ root.T
        keys = {'xx': (0, 0), 'yy': (1, 1), 'zz': (2, 2), 'xy': (0, 1), 'xz': (0, 2), 'yz': (1, 2)}
        inertia = {key: float(t[i]) for key, i in keys.items()} if dimension == 3 else float(t[2, 2])
        bodies[f'b{k}'] = {'points': {'a': number(dimension), 'b': number(dimension)}, 'inertia': inertia,
                           'mass': float(rng.uniform(1, 5)), 'center_of_mass': number(dimension)}
        parent, child = (last, f'b{k}.b') if k % 2 or not k else (f'b{k}.b', last)
        joint = joints[f'j{k}'] = {'type': kind, 'parent': parent, 'child': child}
        if kind != 'fixed' and (dimension == 3 or kind != 'revolute'):
            joint['axis'] = number(dimension)
        if kind == 'universal':
            joint['axis2'] = number(3)
        if kind in ('revolute', 'prismatic', 'cylindrical', 'slot'):
            joint['start'] = 0.3
        last = f'b{k}.a' if k % 3 else last
    some = number(dimension)
    torque = {'body': 'b3', 'input': 'torque'} | ({'direction': [0, 0.6, 0.8]} if dimension == 3 else {})
    return {'format': 'mbse/mechanism/1', 'name': 'tree', 'dimension': dimension, 'gravity': some,
            'coordinates': 'relative', 'points': {'foot': {'fixed': number(dimension)}}, 'bodies': bodies,
            'joints': joints, 'parameters': {'load': {'value': 3.0, 'stddev': 0.1}},
            'springs': {'coil': {'points': ['ground.foot', 'b5.a'], 'stiffness': 40, 'free': 0.5, 'damping': 7},
                        'twist': {'coordinate': 'j0', 'stiffness': 3, 'free': 0.2, 'damping': 2}},
            'forces': {'weight': {'point': 'b2.a', 'force': some}, 'torque': torque,
                       'push': {'point': 'b6.a', 'direction': some, 'input': 'F'}}}


def by_sums(make, monkeypatch):
    """A model whose mass matrix and forces are sums over its bodies."""
    with monkeypatch.context() as patch:
        patch.setattr(assembly, 'open_tree', lambda system: None)
        model = make()
    assert model.system.tree is None
    return model


def check_equal(model: Model, reference: Model, seed: int = 0) -> None:
    """Accelerations, A and B of both ways to compute them at a random state, beside those of the reference."""
    rng, n = np.random.default_rng(seed), model.system.n
    assert model.system.tree is not None and model.names == reference.names
    assert model.system.values.names == reference.system.values.names
    order = [int(i) for i in rng.permutation(n)]
    own, other = (m.partition(order).system for m in (model, reference))
    at = [*rng.normal(size=(2, n)), rng.normal(size=len(model.inputs)), np.zeros(1), model.parameters]
    expected = Kernel(state_function(other, other.values.symbol, True), 'vm')(*at)
    for scalar in (True, False):
        found = Kernel(state_function(own, own.values.symbol, scalar), 'vm')(*at)
        for value, right in zip(found, expected):
            np.testing.assert_allclose(value, right, rtol=0, atol=1e-10 * (1 + np.abs(right).max(initial=0)))
    zdd, = Kernel(rates_of_tree(own, own.values.symbol), 'vm')(*at)
    np.testing.assert_allclose(zdd, expected[0], rtol=0, atol=1e-10 * np.abs(expected[0]).max())
    energies = [m.energy(at[0], at[1], at[2]) for m in (model, reference)]
    assert energies[0].total == pytest.approx(energies[1].total, rel=1e-12)


@pytest.mark.parametrize('dimension', [2, 3])
def test_every_joint_against_sums_over_bodies(dimension, monkeypatch):
    make = lambda: Model(parse_mechanism(yaml.safe_dump(tree(dimension))), backend='vm')      # noqa: E731
    check_equal(make(), by_sums(make, monkeypatch))


def test_an_arm_with_payload_and_rotors_against_sums_over_bodies(monkeypatch):
    """The load, with its own inertia, and what drives add count too; uncertain numbers stay symbols, in one order."""
    text = load_model('ur10e', backend='vm').description.file
    content = yaml.safe_load(open(text, encoding='utf-8'))
    content['payload']['gyration_radius'] = '0.1 m'
    for drive in content['drives'].values():
        drive['rotor_inertia'] = '1e-4 kg*m^2'
    make = lambda: Model(parse_mechanism(yaml.safe_dump(content)), backend='vm')      # noqa: E731
    model = make()
    assert len(model.system.rotors) == 6 and len(model.system.spins) == 7
    check_equal(model, by_sums(make, monkeypatch))


def chain(count: int, dimension: int = 3) -> Model:
    """Links of 0.5 m and 1 kg on pins; in space their axes alternate."""
    place = lambda x, y=0.0: [x, y, 0.0][:dimension]      # noqa: E731
    inertia = {'xx': 0.001, 'yy': 0.02, 'zz': 0.021} if dimension == 3 else 0.021
    axes = [[0, 1, 0], [0, 0, 1]]
    content = {'format': 'mbse/mechanism/1', 'name': 'chain', 'dimension': dimension, 'gravity': '9.81 m/s^2',
               'coordinates': 'relative', 'points': {'foot': {'fixed': place(0.0)}},
               'bodies': {f'b{k}': {'points': {'a': place(0.0), 'b': place(0.5)}, 'mass': 1, 'inertia': inertia,
                                    'center_of_mass': place(0.25, 0.01)} for k in range(count)},
               'joints': {f'j{k}': {'type': 'revolute', 'parent': f'b{k - 1}.b' if k else 'ground.foot',
                                    'child': f'b{k}.a', **({'axis': axes[k % 2]} if dimension == 3 else {})}
                          for k in range(count)}}
    return Model(parse_mechanism(yaml.safe_dump(content)), backend='vm')


def test_against_pinocchio():
    """Accelerations and their derivatives of a chain of 20 links, by a library of its own."""
    pin = pytest.importorskip('pinocchio', reason='pinocchio (pip install pin) is not installed')
    model, count, other, joint = chain(20), 20, pin.Model(), 0
    other.gravity.linear = np.array([0, 0, -9.81])
    for k in range(count):
        place = pin.SE3(np.eye(3), np.array([0.5 if k else 0.0, 0, 0]))
        joint = other.addJoint(joint, pin.JointModelRZ() if k % 2 else pin.JointModelRY(), place, f'j{k}')
        body = pin.Inertia(1.0, np.array([0.25, 0.01, 0]), np.diag([0.001, 0.02, 0.021]))
        other.appendBodyToJoint(joint, body, pin.SE3.Identity())
    q, zd = np.random.default_rng(1).normal(size=(2, count))
    data = other.createData()
    pin.computeABADerivatives(other, data, q, zd, np.zeros(count))
    rates = model.partition().rates(q, zd)
    for value, right in ((rates.zdd, data.ddq), (rates.A[count:, :count], data.ddq_dq),
                         (rates.A[count:, count:], data.ddq_dv)):
        np.testing.assert_allclose(value, right, rtol=0, atol=1e-9 * np.abs(right).max())


@pytest.mark.parametrize('dimension', [2, 3])
def test_operations_of_accelerations_are_proportional_to_the_length(dimension):
    """From 16 to 32 links; written out by sums over bodies they grew with the third power."""
    short, long = (chain(count, dimension).partition().rates_function.n_instructions() for count in (16, 32))
    assert long < 2.2 * short


def test_long_chain_has_derivatives_of_its_accelerations():
    """32 links in space, whose A no sum of Jacobians gave: against central differences along one direction."""
    partition = chain(32).partition()
    rng, n, h = np.random.default_rng(3), 32, 1e-6
    q, zd, *way = rng.normal(size=(4, n))
    ahead, back = (Kernel(partition.rates_function, 'vm')(q + s * way[0], zd + s * way[1], [], [0.0], [])[0]
                   for s in (h, -h))
    A = partition.rates(q, zd).A
    slope = A[n:] @ np.concatenate(way)
    np.testing.assert_allclose((ahead - back) / (2 * h), slope, rtol=0, atol=1e-6 * np.abs(slope).max())


def test_steps_are_compiled_by_what_they_compute():
    """Runge and Kutta's takes no derivatives, and so its size is that of the accelerations."""
    partition = chain(32).partition()
    assert affordable_step(partition, rk4_scheme().rule(np.zeros((64, 64)), 1e-3))
    assert partition.motion_operations < 0.4 * partition.operations


@pytest.mark.parametrize('name, coordinates', [('four_bar', 'relative'), ('pendulum', 'natural')])
def test_constraints_keep_the_sums(name, coordinates):
    assert load_model(name, coordinates, backend='vm').system.tree is None
