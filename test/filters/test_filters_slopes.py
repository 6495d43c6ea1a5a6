# SPDX-License-Identifier: Apache-2.0
"""Derivatives of the force balance in lanes are those of one equation after the other."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from test_filters_weighing import MACHINES, carried, covariance, machine_of

from mbse_ros.filters.hydraulic_model import hydraulic_model
from mbse_ros.filters.weighing import _deviation, _residuals, _steep, directions


@pytest.mark.parametrize('name', MACHINES)
def test_derivatives_along_directions_are_those_of_each_equation(name: str) -> None:
    """Bit for bit, though the directions are not known before: as many as lanes, those beyond the equations 0."""
    machine, model, X = machine_of(name), hydraulic_model(machine_of(name), True), carried(name)
    (balance, g, by), unit, numbers = _residuals(machine, model), directions(machine), machine.parameters.symbol
    x, P, n = ca.SX.sym('x', len(X)), ca.SX.sym('P', len(X), len(X)), len(machine.coordinates)
    near, along = ca.SX.sym('near', len(machine.system.dependent)), ca.SX.sym('along', *unit.shape)
    each = ca.Function('each', [machine.system.q, balance.X, numbers, balance.deviation], [g, ca.jacobian(g, by)])
    here = machine.joined(near, x[:n]), x, numbers, _deviation(machine, balance, x, P, near)
    at = ca.Function('at', [x, P, near, numbers, along], [*_steep(machine, model, x, P, near, along), *here])
    solved = machine.position(X[:n])[machine.system.dependent]
    found, slopes, *place = at(X, covariance(name), solved, machine.parameters.mean, unit)
    residuals, expected = (item.full() for item in each(*place))
    np.testing.assert_array_equal(found, residuals)
    np.testing.assert_array_equal(slopes, np.pad(expected, ((0, max(4 - len(expected), 0)), (0, 0))))
