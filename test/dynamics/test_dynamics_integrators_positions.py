# SPDX-License-Identifier: Apache-2.0
"""Integrators at dead points, at singular positions, with redundant constraints, and for a long time."""

from __future__ import annotations

import numpy as np
import pytest
from motion_examples import model, slope

from mbse_ros.dynamics.model import State, load_model
from mbse_ros.dynamics.motion import simulate
from mbse_ros.errors import DivergenceError, PositionProblemError, SingularConfigurationError

pytestmark = pytest.mark.usefixtures('vm')

IN_INDEPENDENT = [('forward_euler', 2e-3), ('augmented_euler', 2e-3), ('exponential', 2e-3), ('exponential', 1e-2),
                  ('rk4', 2e-3), ('trapezoid', 2e-3), ('dop853', 0.5), ('radau', 0.5)]
FLAT = (-0.195020301949435, -0.980799205662174)        # B0 of the two loops at 1 s


@pytest.mark.parametrize('scheme, dt', IN_INDEPENDENT)
@pytest.mark.parametrize('name, coordinate, dead, cure', [
    ('crank_rocker', 'psi', 0.3882, 'theta instead of psi'), ('slider_crank', 'stroke', 0.2581, 'theta instead of')])
def test_a_dead_point_of_fixed_coordinates_is_an_error_with_its_time(name, coordinate, dead, cure, scheme, dt):
    with pytest.raises(SingularConfigurationError, match=cure) as caught:
        simulate(model(name), 1, dt, scheme, independent=[coordinate])
    time = float(str(caught.value).split('t = ')[1].split(' s')[0])
    assert time == pytest.approx(dead, abs=0.03)
    assert caught.value.alternatives


def test_a_start_at_a_dead_point():
    """The slider at its dead centre: the crank's angle serves, the stroke does not."""
    slider = model('slider_crank')
    q = slider.position(np.array([0.0]), slider.start.q)
    start = State(q, slider.partition().velocity(q, np.array([5.0])))
    with pytest.raises(SingularConfigurationError, match='t = 0 s.*theta instead of stroke'):
        simulate(slider, 0.1, 1e-3, independent=['stroke'], start=start)
    reference = simulate(slider, 0.1, 0.1, 'dop853', start=start)
    for scheme in ('exponential', 'ali3p'):
        found = simulate(slider, 0.1, 1e-3, scheme, start=start)
        assert found.of('theta')[-1] == pytest.approx(reference.of('theta')[-1], abs=1e-4)


def test_coordinates_chosen_along_the_motion_equal_the_reference():
    """Three turns without an angle: x and y of the crank's pin take turns; nothing is seen of their dead points."""
    reference = simulate(model('crank_rocker'), 3, 0.1, 'dop853')
    assert np.ptp(reference.of('theta')) > 6 * np.pi
    found = simulate(model('points_only'), 3, 0.1, 'dop853')
    assert np.abs(found.of('psi') - reference.of('psi')).max() < 1e-8
    assert len(found.choices) > 12
    assert {'x', 'P.y'} <= {name for _, names in found.choices for name in names}
    assert found.independent(0.0) == ('x',) != found.independent(0.3)
    by_steps = simulate(model('points_only'), 0.8, 1e-3, 'trapezoid')
    assert len(by_steps.choices) > 4
    assert by_steps.of('psi')[-1] == pytest.approx(reference.of('psi')[8], abs=5e-5)


def test_one_kept_point_coordinate_fails_where_auto_goes_on():
    with pytest.raises(SingularConfigurationError, match='instead of x'):
        simulate(model('points_only'), 3, 2e-3, independent=['x'])
    assert simulate(model('points_only'), 0.6, 2e-3, independent='auto').failure is None


@pytest.mark.parametrize('angle', [np.pi / 2, -np.pi / 2, np.pi])
@pytest.mark.parametrize('scheme', ['exponential', 'trapezoid', 'ali3p', 'dop853'])
def test_crank_exactly_at_a_quarter_turn(angle, scheme):
    """Where elimination without pivoting divides by zero. The reference starts 0.02 s before."""
    four_bar = model('crank_rocker')
    q = four_bar.position(np.array([angle]), four_bar.start.q)
    assert four_bar.z == [four_bar.names.index('theta')] and q[four_bar.z[0]] == angle
    qd = four_bar.partition().velocity(q, np.array([3.0]))
    before = simulate(four_bar, 0.02, 0.02, 'dop853', start=State(q, -qd)).state()
    reference = simulate(four_bar, 0.06, 0.06, 'dop853', start=State(before.q, -before.qd))
    assert reference.balance[-1] == pytest.approx(0.0, abs=1e-10)
    found = simulate(four_bar, 0.04, 1e-3, scheme, start=State(q, qd))
    assert found.of('theta')[-1] == pytest.approx(reference.of('theta')[-1], abs=1e-5)
    assert np.isfinite(found.multipliers).all()


def test_flat_position_by_schemes_of_fixed_step():
    two_loops = model('n_four_bar:2')
    for scheme, steps in (('ali3p', (4e-3, 2e-3, 1e-3)), ('exponential', (4e-3, 2e-3, 1e-3))):
        motions = [simulate(two_loops, 1, dt, scheme) for dt in steps]
        errors = [motion.of('B0.x')[-1] - FLAT[0] for motion in motions]
        assert slope(errors) == pytest.approx(2, abs=0.3), scheme
        assert abs(errors[-1]) < 1e-4
        assert max(motion.violation.max() for motion in motions) < 1e-9


def test_redundant_constraints_and_a_singular_mass_matrix():
    platform = model('platform')
    assert platform.redundant and platform.degrees_of_freedom == 1
    terms = platform.terms(platform.start.q, platform.start.qd)
    assert np.linalg.matrix_rank(terms.M) < len(platform.names)         # theta has no mass of its own
    reference = simulate(platform, 1, 1, 'dop853')                      # through its flat position, once
    assert np.abs(reference.balance).max() < 1e-8 and len(reference.singular_times) == 1
    for scheme in ('ali3p', 'exponential', 'trapezoid'):
        found = simulate(platform, 1, 1e-3, scheme)
        assert found.of('theta')[-1] == pytest.approx(reference.of('theta')[-1], abs=2e-5), scheme
        assert found.violation.max() < 1e-10


@pytest.mark.parametrize('name, coordinates', [
    ('spatial_four_bar', 'relative'), ('spatial_four_bar', 'reference_point'), ('n_four_bar:5', None)])
def test_larger_and_spatial_mechanisms(name, coordinates):
    """Both ways of the compiled functions: scalar operations and sparse factorisations."""
    mechanism = load_model(name, coordinates)
    reference = simulate(mechanism, 0.2, 0.2, 'dop853')
    assert np.abs(reference.balance).max() < 1e-9
    for scheme in ('exponential', 'ali3p'):
        found = simulate(mechanism, 0.2, 1e-3, scheme)
        assert np.abs(found.q[-1] - reference.q[-1]).max() < 1e-5


def test_ali3p_keeps_the_constraints_for_long():
    """10^5 steps; benchmarks/ali3p_million.py takes ten times as many."""
    motion = simulate(model('four_bar'), 100, 1e-3, 'ali3p')
    assert motion.violation.max() < 1e-9
    assert motion.violation_rate.max() < 1e-9
    assert np.abs(motion.balance).max() < 0.02


def test_ali3p_raises_its_penalty_where_it_is_too_weak():
    """A millionth of the usual penalty; the motion is the same."""
    usual = simulate(model('four_bar'), 0.1, 1e-3, 'ali3p')
    weak = simulate(model('four_bar'), 0.1, 1e-3, 'ali3p', penalty=1e3)
    assert weak.evaluations > 3 * usual.evaluations
    assert np.abs(weak.q - usual.q).max() < 1e-7


@pytest.mark.parametrize('scheme', ['exponential', 'dop853', 'ali3p'])
def test_a_driver_beyond_the_reach_is_an_error_with_its_time(scheme):
    with pytest.raises((PositionProblemError, SingularConfigurationError, DivergenceError), match='t = 0.') as caught:
        simulate(model('too_far'), 1, 1e-2, scheme)
    time = float(str(caught.value).split('t = ')[1].split(' s')[0])
    assert time == pytest.approx(0.226, abs=0.01), caught.value


@pytest.mark.parametrize('coordinates', ['relative', 'reference_point'])
def test_other_coordinates_move_alike(coordinates):
    for name in ('pendulum', 'four_bar'):         # the pendulum has no constraint left in relative coordinates
        reference = simulate(model(name), 0.2, 0.2, 'dop853').of('theta')[-1]
        other = load_model(name, coordinates=coordinates)
        for scheme, tolerance in (('dop853', 1e-9), ('exponential', 1e-6), ('trapezoid', 1e-6), ('ali3p', 1e-6)):
            assert simulate(other, 0.2, 1e-3, scheme).of('theta')[-1] == pytest.approx(reference, abs=tolerance)
