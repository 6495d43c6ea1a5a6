# SPDX-License-Identifier: Apache-2.0
"""CVODES finds the motion of DOP853, stiff or not, with any coordinates, and says where it cannot."""

import numpy as np
import pytest
from motion_examples import model

from mbse_ros.dynamics.model import load_model
from mbse_ros.dynamics.motion import simulate
from mbse_ros.errors import DivergenceError, SettingError, SingularConfigurationError

pytestmark = pytest.mark.usefixtures('vm')


@pytest.mark.parametrize('name, coordinates, duration, output', (
    ('four_bar', None, 1.0, 1.0), ('four_bar', 'relative', 0.5, 1e-3), ('pendulum', None, 1.0, 0.1),
    ('four_bar_spring', None, 0.5, 0.02), ('excavator_arm', None, 0.5, 0.5), ('spatial_four_bar', None, 0.5, 0.05),
    ('spatial_four_bar', 'reference_point', 0.1, 0.05), ('andrews', None, 0.005, 1e-4),
    ('four_bar_adams_driven', None, 1.0, 0.1)))
def test_the_motion_of_dop853(name, coordinates, duration, output):
    mechanism = load_model(name, coordinates)
    found, reference = (simulate(mechanism, duration, output, scheme) for scheme in ('cvodes', 'dop853'))
    assert len(found.t) == len(reference.t) and found.violation.max() < 1e-12
    for what, within in (('q', 2e-7), ('qd', 2e-6)):
        one, other = getattr(found, what), getattr(reference, what)
        assert np.abs(one - other).max() < within * max(1.0, np.abs(other).max()), what


def test_smaller_tolerances_bring_it_nearer():
    reference = simulate(model('four_bar'), 1.0, 1.0, 'dop853').q[-1]
    errors = [np.abs(simulate(model('four_bar'), 1.0, 1.0, 'cvodes', rtol=tolerance, atol=tolerance).q[-1]
                     - reference).max() for tolerance in (1e-5, 1e-8, 1e-12)]
    assert errors[0] > 30 * errors[1] > 900 * errors[2] and errors[2] < 1e-8


def test_exact_jacobians_take_few_evaluations():
    """Of the equations; Radau's Jacobians are differences."""
    one, other = (simulate(model('four_bar_spring'), 0.5, 0.5, scheme, rtol=1e-6, atol=1e-6)
                  for scheme in ('cvodes', 'radau'))
    assert one.evaluations < other.evaluations / 4


def test_coordinates_are_chosen_again_on_the_way():
    found = simulate(model('points_only'), 0.8, 1e-2, 'cvodes')
    reference = simulate(model('crank_rocker'), 0.8, 0.1, 'dop853')
    assert len(found.choices) > 2 and found.of('psi')[-1] == pytest.approx(reference.of('psi')[-1], abs=1e-7)


@pytest.mark.parametrize('name, coordinate, dead', [
    ('crank_rocker', 'psi', 0.3882), ('slider_crank', 'stroke', 0.2581)])
@pytest.mark.parametrize('output', (2e-3, 0.5))
def test_a_dead_point_of_fixed_coordinates_is_an_error(name, coordinate, dead, output):
    with pytest.raises(SingularConfigurationError, match='instead of') as caught:
        simulate(model(name), 1, output, 'cvodes', independent=[coordinate])
    assert float(str(caught.value).split('t = ')[1].split(' s')[0]) == pytest.approx(dead, abs=0.03)


def test_what_it_refuses():
    with pytest.raises(SettingError, match='cvodes takes no inputs'):
        simulate(model('four_bar'), 0.1, 0.1, 'cvodes', inputs=lambda t, q, qd: 0.0)
    for tolerances in ({'rtol': 0.0}, {'atol': -1.0}):
        with pytest.raises(SettingError, match='above zero'):
            simulate(model('four_bar'), 0.1, 0.1, 'cvodes', **tolerances)
    with pytest.raises(DivergenceError, match='CVODES gives up'):
        simulate(model('four_bar'), 0.1, 0.1, 'cvodes', rtol=1e-30, atol=1e-30)
