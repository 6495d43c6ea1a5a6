# SPDX-License-Identifier: Apache-2.0
"""Every factor's Jacobian is exact: against finite differences, for planar, redundant and spatial mechanisms."""

from __future__ import annotations

import numpy as np
import pytest
from mechanism_samples import PLANAR

from mbse_ros.dynamics.model import load_model
from mbse_ros.errors import SettingError
from mbse_ros.graph.factors import dynamics_factors
from mbse_ros.graph.factors.dynamics_factors import ROLES, constraint
from mbse_ros.graph.factors.equations import FactorEquations

MECHANISMS = {                          # the third and fourth: coordinates without mass
    'four_bar': ('natural', ('bodies.coupler.mass', 'bodies.crank.length')), 'five_bar': ('natural', ()),
    'four_bar_adams_driven': ('relative', ()), 'spatial_four_bar': ('relative', ())}


def equations_of(name):
    coordinates, free = MECHANISMS[name]
    model = load_model(name, coordinates, free=free, backend='vm')
    return FactorEquations(model, unknown=[key for key in model.system.values.names if key in free])


def point(equations, rng):
    """Values of all roles near the start, the constraints a little violated."""
    model, n, g = equations.model, equations.n, equations.g
    q = model.start.q + 1e-3 * rng.normal(size=n)
    return {'q': q, 'qd': rng.normal(size=n), 'qdd': rng.normal(size=n), 'z': q[equations.z] + 1e-3,
            'zd': rng.normal(size=g), 'zdd': rng.normal(size=g), 'Q': rng.normal(size=len(equations.forces)),
            'parameters': equations.numbers[equations.unknown_places] * 1.1, 'u': rng.normal(size=len(model.inputs)),
            't': np.array([0.3])}


def kinds_of(equations):
    unknown = bool(equations.unknown)
    made = [constraint(equations, name, unknown) for name in ROLES]
    return made + [getattr(dynamics_factors, name)(equations, force, unknown)
                   for name in ('dynamics', 'dynamics_independent') for force in (False, True)]


def differences(kind, x, c, h=1e-6):
    """Central differences of fourth order (rows, width)."""
    shift = h * np.eye(len(x))
    points = np.vstack([x + 2 * shift, x + shift, x - shift, x - 2 * shift])
    e = kind.evaluate(points, np.tile(c, (len(points), 1)))[0].reshape(4, len(x), kind.rows)
    return ((-e[0] + 8 * e[1] - 8 * e[2] + e[3]) / (12 * h)).T


def check(kind, x, c):
    e, J = kind.evaluate(x[None], c[None])
    assert e.shape == (1, kind.rows) and J.shape == (1, kind.rows, len(x))
    scale = max(1.0, np.abs(J).max(initial=0.0))
    assert np.abs(differences(kind, x, c, 1e-4) - J[0]).max(initial=0.0) < 1e-7 * scale


@pytest.mark.parametrize('name', MECHANISMS)
def test_jacobians_of_a_mechanism(name):
    equations = equations_of(name)
    values = point(equations, np.random.default_rng(3))
    for kind in kinds_of(equations):
        if kind.rows:
            check(kind, *(np.concatenate([np.zeros(0), *(values[role] for role in roles)])
                          for roles in (kind.variables, kind.constants)))


@pytest.mark.parametrize('make', ['prior', 'equality', 'euler', 'trapezoid'])
def test_jacobians_of_linear_factors(make):
    kind, rng = getattr(dynamics_factors, make)(3), np.random.default_rng(1)
    check(kind, rng.normal(size=kind.width), rng.normal(size=sum(kind.constants.values())))


def test_prior_of_some_components():
    e, J = dynamics_factors.prior(3, (2, 0)).evaluate(np.array([[1.0, 2.0, 3.0]]), np.array([[1.0, 1.0]]))
    assert e.tolist() == [[2.0, 0.0]] and J[0].tolist() == [[0, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize('coordinates', ['natural', 'relative', 'reference_point'])
def test_dynamics_is_the_model(coordinates):
    """On the constraints both forms give the model's accelerations, also with a singular mass matrix."""
    model = load_model('four_bar', coordinates, backend='vm')
    equations, start = FactorEquations(model), model.start
    expected = model.accelerations(start.q, start.qd, np.array([3.0]))
    zeros = np.zeros(equations.n)
    e, _ = dynamics_factors.dynamics(equations).evaluate(
        np.concatenate([start.q, start.qd, zeros])[None], np.array([[3.0, 0.0]]))
    assert e[0] == pytest.approx(expected, abs=1e-9)
    z = equations.z
    x = np.concatenate([start.q[z], start.qd[z], np.zeros(equations.g), start.q])
    e, _ = dynamics_factors.dynamics_independent(equations).evaluate(x[None], np.array([[3.0, 0.0]]))
    assert e[0] == pytest.approx(expected[z], abs=1e-9)


def test_redundant_rows_are_left_out():
    """Three parallel cranks under one beam: exact Jacobians and the model's accelerations without the implied row."""
    model = load_model(PLANAR['parallel_cranks'](), backend='vm')
    equations, start = FactorEquations(model), model.start
    assert model.redundant and constraint(equations, 'position').rows == len(model.active)
    values = point(equations, np.random.default_rng(4))
    for kind in kinds_of(equations):
        check(kind, *(np.concatenate([values[role] for role in roles]) for roles in (kind.variables, kind.constants)))
    x = np.concatenate([start.q, start.qd, np.zeros(equations.n)])
    e, _ = dynamics_factors.dynamics(equations).evaluate(x[None], np.array([[2.0, 0.0]]))
    assert e[0] == pytest.approx(model.accelerations(start.q, start.qd, np.array([2.0])), abs=1e-9)


def test_unknown_number_must_exist():
    with pytest.raises(SettingError, match='bodies.crank.mass'):
        FactorEquations(load_model('four_bar', backend='vm'), unknown=['bodies.crank.mass'])
