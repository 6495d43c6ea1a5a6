# SPDX-License-Identifier: Apache-2.0
"""Measurements as factors: exact Jacobians, angles, biases, what they depend on."""

from __future__ import annotations

import numpy as np
import pytest
from sensor_mechanisms import description, model
from test_graph_factors import check, point

from mbse_ros.dynamics.model import load_model
from mbse_ros.errors import SettingError
from mbse_ros.graph.factors.equations import FactorEquations
from mbse_ros.graph.factors.sensor_factors import sample_noise, sensor_factor

MECHANISMS = [('four_bar', 'natural'), ('slider_crank', 'relative'), ('spatial_four_bar', 'reference_point'),
              ('driven_five_bar', 'natural')]


def equations_of(name, coordinates):
    """With an unknown length and mass where the mechanism is planar, forces along the independent coordinates."""
    if name == 'spatial_four_bar':
        made = model(name, coordinates)
        return FactorEquations(made, forces=made.independent)
    body = {'four_bar': 'coupler', 'slider_crank': 'rod', 'driven_five_bar': 'coupler_1'}[name]
    free = (f'bodies.{body}.mass',)
    made = load_model(description(name), coordinates, free=free, backend='vm')
    return FactorEquations(made, forces=made.independent, unknown=free)


def arguments(kind, equations, rng, error=0.1):
    values = point(equations, rng)
    values['bias'] = rng.normal(size=kind.rows)
    values['y'] = np.zeros(kind.rows)
    x = np.concatenate([values[role] for role in kind.variables])
    c = np.concatenate([values[role] for role in kind.constants])
    e, _ = kind.evaluate(x[None], c[None])
    values['y'] = e[0] + error
    return x, np.concatenate([values[role] for role in kind.constants])


@pytest.mark.parametrize('name, coordinates', MECHANISMS)
def test_jacobians_of_all_sensors(name, coordinates):
    equations, rng = equations_of(name, coordinates), np.random.default_rng(5)
    kinds = {item.kind for item in equations.model.description.sensors.values()}
    assert kinds >= {'encoder', 'rate', 'gyro', 'accelerometer', 'position', 'velocity', 'distance'}
    for k, sensor in enumerate(equations.model.description.sensors):
        kind = sensor_factor(equations, sensor, bias=k % 2 == 0)
        check(kind, *arguments(kind, equations, rng))


def test_full_turns_do_not_count():
    """An encoder of an angle that wraps, and one of a length that does not."""
    for name, coordinate, turned in (('four_bar', 'theta', 0.1), ('slider_crank', 'stroke', 0.1 - 2 * np.pi)):
        equations = equations_of(name, 'natural')
        kind = sensor_factor(equations, 'angle')
        q = equations.model.start.q
        y = q[equations.names.index(coordinate)] - 0.1 + 2 * np.pi
        e, _ = kind.evaluate(q[None], np.array([[y]]))
        assert e[0, 0] == pytest.approx(turned, abs=1e-12)


def test_roles_are_what_a_sensor_depends_on():
    equations = equations_of('driven_five_bar', 'natural')     # whose points and axes are linear in q
    roles = {name: set(sensor_factor(equations, name).variables) for name in ('angle', 'rate', 'imu', 'torque')}
    assert roles == {'angle': {'q'}, 'rate': {'qd'}, 'imu': {'q', 'qdd'},
                     'torque': {'q', 'qd', 'Q', 'parameters'}}
    kind = sensor_factor(equations, 'place', bias=True)
    assert kind.variables == {'q': equations.n, 'bias': 2} and kind.constants == {'y': 2}


def test_force_is_that_of_the_model():
    """The multiplier of the driver, against the model's own sensors."""
    equations = equations_of('driven_five_bar', 'natural')
    kind, made = sensor_factor(equations, 'torque'), equations.model
    expected = torque(made)
    values = {'q': made.start.q, 'qd': made.start.qd, 'Q': np.zeros(equations.g),
              'parameters': equations.numbers[equations.unknown_places], 'u': np.zeros(len(made.inputs)),
              't': np.zeros(1), 'y': np.zeros(1)}
    e, _ = kind.evaluate(*(np.concatenate([values[role] for role in roles])[None]
                           for roles in (kind.variables, kind.constants)))
    assert e[0, 0] == pytest.approx(expected, rel=1e-9)


def torque(made):
    """Of the driver, by the equations of motion in full: ``-lam`` of its row."""
    terms = made.terms(made.start.q, made.start.qd)
    m, n = terms.J.shape
    K = np.block([[terms.M, terms.J.T], [terms.J, np.zeros((m, m))]])
    return -np.linalg.solve(K, np.concatenate([terms.Q, terms.c]))[n + made.rows.index('drivers.motor')]


def test_what_is_not_there():
    equations = equations_of('four_bar', 'natural')
    with pytest.raises(SettingError, match='camera'):
        sensor_factor(equations, 'camera')
    with pytest.raises(SettingError, match='positive'):
        sample_noise(equations, 'angle')            # the file gives no standard deviation
    assert sample_noise(equations, 'place', 0.1).tolist() == [0.1, 0.1]
