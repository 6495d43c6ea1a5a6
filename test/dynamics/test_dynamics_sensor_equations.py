# SPDX-License-Identifier: Apache-2.0
"""The sensors' exact Jacobian: against differences along the constraints, and the same in all coordinates."""

from dataclasses import replace

import numpy as np
import pytest
from sensor_mechanisms import CASES, MECHANISMS, THREE_CRANKS, central, model, sensors, states

from mbse_ros.compiled import Kernel
from mbse_ros.description.load import parse_mechanism
from mbse_ros.dynamics.model import Model
from mbse_ros.dynamics.sensor_equations import sensor_function, state_sensors
from mbse_ros.errors import SettingError

STEP = 4e-3


def relative(found, expected):
    """Largest difference over the largest value."""
    return np.max(np.abs(found - expected)) / max(1.0, np.max(np.abs(expected)))


@pytest.mark.parametrize('name, coordinates', CASES)
def test_jacobian_is_the_derivative_along_the_constraints(name, coordinates):
    made, kernel = model(name, coordinates), sensors(name, coordinates)
    partition, g = made.partition(), len(made.z)
    for q, zd, u, t in states(name, coordinates):
        def output(change):
            closed = partition.position(q[made.z] + change[:g], q, t)
            return kernel(closed, zd + change[g:], u, [t], made.parameters)[0]
        H = kernel(q, zd, u, [t], made.parameters)[1]
        expected = np.stack([central(lambda s: output(s * axis), STEP) for axis in np.eye(2 * g)], axis=-1)
        assert relative(H, expected) < 1e-9


@pytest.mark.parametrize('name', MECHANISMS)
def test_all_coordinates_agree(name):
    found = {}
    for coordinates in (case[1] for case in CASES if case[0] == name):
        parameters = model(name, coordinates).parameters
        found[coordinates] = [sensors(name, coordinates)(q, zd, u, [t], parameters)
                              for q, zd, u, t in states(name, coordinates)]
    for h, H in zip(found['relative'], found['reference_point']):
        assert all(relative(a, b) < 1e-9 for a, b in zip(h, H))
    for h, H in zip(found['relative'], found.get('natural', found['relative'])):
        assert all(relative(a, b) < 1e-9 for a, b in zip(h, H))


@pytest.mark.parametrize('name', ['five_bar', 'driven_five_bar'])
def test_sparse_way_gives_the_same(name):
    for q, zd, u, t in states(name, 'natural'):
        arguments = (q, zd, u, [t], model(name, 'natural').parameters)
        for a, b in zip(sensors(name, 'natural', True)(*arguments), sensors(name, 'natural', False)(*arguments)):
            assert relative(a, b) < 1e-11


@pytest.mark.parametrize('coordinates', ['natural', 'reference_point', 'relative'])
def test_force_with_redundant_rows_taken_away(coordinates):
    """A beam in translation on three cranks, driven by one: the torque is determined and known by hand."""
    made = Model(parse_mechanism(THREE_CRANKS), coordinates, backend='vm')
    system = made.partition().system
    assert made.redundant and state_sensors(system).channels == ('torque',)
    q = made.start.q
    torque = Kernel(sensor_function(system, system.values.symbol), 'vm')(q, [], [], [0.0], made.parameters)[0][0]
    assert torque == pytest.approx(9.81 * (3 * 0.5 + 3) * np.cos(0.9272952180016122), rel=1e-9)    # no acceleration


def test_undetermined_force_is_refused():
    """A system from which the driver's own row was taken as redundant: how much the motor carries cannot be known."""
    system = model('driven_five_bar', 'natural').partition().system
    kept = [i for i, row in enumerate(system.rows) if row != 'drivers.motor']
    poorer = replace(system, Phi=system.Phi[kept], rows=tuple(system.rows[i] for i in kept))
    with pytest.raises(SettingError, match='torque'):
        sensor_function(poorer, system.values.symbol)
