# SPDX-License-Identifier: Apache-2.0
"""Measurements as factors: exact Jacobians, angles, biases, what they depend on."""

from __future__ import annotations

import numpy as np
import pytest
from sensor_mechanisms import description, model
from test_graph_factors import check, point

from mbse_ros.dynamics.model import load_model
from mbse_ros.errors import SettingError
from mbse_ros.graph.equations import Equations
from mbse_ros.graph.sensor_factors import sample_noise, sensor_factor

MECHANISMS = [('four_bar', 'natural'), ('slider_crank', 'relative'), ('spatial_four_bar', 'reference_point'),
              ('driven_five_bar', 'natural')]


def equations_of(name, coordinates):
    """With an unknown length and mass where the mechanism is planar, forces along the independent coordinates."""
    if name == 'spatial_four_bar':
        made = model(name, coordinates)
        return Equations(made, forces=made.independent)
    body = {'four_bar': 'coupler', 'slider_crank': 'rod', 'driven_five_bar': 'coupler_1'}[name]
    free = (f'bodies.{body}.mass',)
    made = load_model(description(name), coordinates, free=free, backend='vm')
    return Equations(made, forces=made.independent, unknown=free)


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
