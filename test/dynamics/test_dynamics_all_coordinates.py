# SPDX-License-Identifier: Apache-2.0
"""Motions by every formulation: against a reference by other equations and another integrator, at the order of the
scheme; constraints that give way."""

from dataclasses import replace

import numpy as np
import pytest

from mbse_ros.dynamics.formulations.by_name import FORMULATIONS
from mbse_ros.dynamics.model import load_model
from mbse_ros.dynamics.motion import simulate
from mbse_ros.errors import DivergenceError, PositionProblemError, SettingError
from studies import motions
from studies.motions import LENGTH, STEP, WAYS, motion_row

MOVED = {*motions.EXACT.values(), *motions.SOFT.values()}      # by the order of Runge and Kutta's method, below
OTHERS = (('five_bar', 'udwadia_kalaba'), ('five_bar', 'semi_recursive'), ('excavator_arm', 'projection_inverse'),
          ('spatial_crane', 'kkt'))


@pytest.fixture(scope='module')
def reference():
    """Last coordinates of a mechanism, by matrix-R and DOP853."""
    found = {}

    def last(mechanism: str) -> tuple[object, np.ndarray]:
        if mechanism not in found:
            model = load_model(mechanism, 'relative', backend='vm')
            found[mechanism] = model, simulate(model, LENGTH, LENGTH, 'dop853').q[-1]
        return found[mechanism]
    return last


def order(model, q, scheme: str, formulation: str, **options) -> float:
    """log2 of how much less the error is with half the step."""
    errors = [np.abs(simulate(model, LENGTH, dt, scheme, formulation=formulation, **options).q[-1] - q).max()
              for dt in (STEP, STEP / 2)]
    return float(np.log2(errors[0] / errors[1]))


@pytest.mark.parametrize('mechanism, formulation', [
    *(('four_bar', name) for name in FORMULATIONS if name not in MOVED), *OTHERS])
def test_order_is_that_of_the_scheme(reference, mechanism, formulation):
    model, q = reference(mechanism)
    if formulation not in MOVED:
        assert order(model, q, 'rk4', formulation) > 3.7
    else:
        assert 1.8 < order(model, q, 'trapezoid', formulation) < 2.2
        assert 0.7 < order(model, q, 'forward_euler', formulation) < 1.4


@pytest.mark.parametrize('scheme', ['dop853', 'radau'])
def test_steps_under_error_control(reference, scheme):
    model, q = reference('four_bar')
    motion = simulate(model, LENGTH, STEP, scheme, formulation='udwadia_kalaba')
    assert np.abs(motion.q[-1] - q).max() < 1e-8 and motion.violation.max() < 1e-9
    assert np.abs(motion.balance).max() < 1e-3 * np.ptp(motion.kinetic)       # whose work is summed by trapezoids


@pytest.mark.parametrize('mechanism, ways', [('four_bar', WAYS), ('five_bar', WAYS[::3]), ('excavator_arm', WAYS[2::3]),
                                             ('spatial_crane', WAYS[1::3])], ids=lambda value: str(value)[:13])
def test_every_way_moves_mechanisms_at_the_order_of_the_scheme(reference, mechanism, ways):
    """Partitioned, semi-recursive, KKT, Udwadia-Kalaba, projected; penalties and clearances to a limit of their own,
    which is off by as much as they give. All on all: ``mbse benchmark formulations --motions``."""
    model, q = reference(mechanism)
    for way in ways:
        row = motion_row(model, q, way)
        assert 3.7 < row['order'] < 4.3, way
        if row['off']:
            assert row['off'][0] / row['off'][1] == pytest.approx(100.0, rel=0.2), way


def test_clearance_gives_way_as_a_penalty_without_stabilisation(reference):
    """J qdd - c = R lam with R = 1 / alpha, and the motion is off by as much as the constraints give."""
    model, q = reference('four_bar')
    rows = len(model.rows)
    soft, stiff = (simulate(model, LENGTH, STEP, 'rk4', formulation='udwadia_kalaba_recursive',
                            clearance=clearance) for clearance in ([1e-4] * rows, 1e-6))
    penalty = simulate(model, LENGTH, STEP, 'rk4', formulation='penalty', alpha=1e4, omega=0.0)
    np.testing.assert_allclose(soft.q, penalty.q, atol=1e-9)
    np.testing.assert_allclose(soft.multipliers, penalty.multipliers, atol=1e-6 * np.abs(penalty.multipliers).max())
    assert not stiff.warnings and not soft.warnings
    assert soft.violation.max() / stiff.violation.max() == pytest.approx(100.0, rel=0.2)
    assert np.abs(soft.q[-1] - q).max() > 10 * np.abs(stiff.q[-1] - q).max()


def test_a_step_begins_with_what_the_one_before_found(reference):
    """Four evaluations a step of Runge and Kutta, and the last instant."""
    model, _ = reference('four_bar')
    assert simulate(model, 4 * STEP, STEP, 'rk4', formulation='penalty').evaluations == 4 * 4 + 1


def test_multipliers_are_those_of_independent_coordinates(reference):
    model, _ = reference('five_bar')
    ours, own = (simulate(model, 8 * STEP, STEP / 4, 'rk4', formulation=name) for name in ('kkt', 'matrix_r'))
    np.testing.assert_allclose(ours.multipliers, own.multipliers, atol=1e-5 * np.abs(own.multipliers).max())


@pytest.mark.parametrize('scheme, formulation, options, named', [
    ('rk4', 'lagrange', {}, 'formulation: .*semi_recursive, kkt'), ('exponential', 'penalty', {}, 'scheme: .*rk4'),
    ('ali3p', 'semi_recursive', {}, 'formulation: .*ali3p'), ('rk4', 'penalty', {'beta': 1.0}, 'options: .*alpha'),
    ('rk4', 'kkt', {'independent': ['theta']}, 'independent: .*all coordinates'),
    ('rk4', 'penalty', {'alpha': -1.0}, 'options: .*alpha'),
    ('rk4', 'penalty', {'alpha': 'x'}, 'options: .*alpha'), ('rk4', 'kkt', {'redundant': True}, 'options: .*none')])
def test_what_does_not_go_together_is_named(scheme, formulation, options, named):
    with pytest.raises(SettingError, match=named):
        simulate(load_model('four_bar', backend='vm'), 0.1, 0.01, scheme, formulation=formulation, **options)


def test_semi_recursive_asks_for_relative_coordinates():
    with pytest.raises(SettingError, match='relative'):
        simulate(load_model('four_bar', 'natural', backend='vm'), 0.1, 0.01, 'rk4', formulation='semi_recursive')


def test_a_wrong_number_of_inputs_is_refused():
    with pytest.raises(SettingError, match='inputs'):
        simulate(load_model('four_bar', backend='vm'), 0.1, 0.01, 'rk4', formulation='kkt',
                 inputs=lambda t, q, qd: np.zeros(7))


@pytest.mark.parametrize('dt, error, named', [(0.3, DivergenceError, 'forward_euler.*finite'),
                                              (1.0, PositionProblemError, r't = \d.*position problem')])
def test_a_step_that_is_far_too_long_says_where_it_ended(dt, error, named):
    with pytest.raises(error, match=named):
        simulate(load_model('five_bar', 'relative', backend='vm'), 6.0, dt, 'forward_euler', formulation='kkt')


def test_constraints_that_come_apart_are_a_warning():
    motion = simulate(load_model('four_bar', backend='vm'), 5.0, 0.01, 'forward_euler', formulation='penalty')
    assert 'violated by up to' in motion.warnings[0] and motion.violation.max() > 1.0


def test_that_warning_does_not_depend_on_turns():
    """A crank that has turned by 40 rad is not a larger mechanism."""
    model = load_model('four_bar', 'relative', backend='vm')
    spinning = replace(model.start, qd=model.partition(model.z).velocity(model.start.q, np.array([50.0]), 0.0))
    motion = simulate(model, 1.0, 0.002, 'rk4', formulation='udwadia_kalaba_recursive', clearance=1e-4, start=spinning)
    assert 0.05 < motion.violation.max() < 0.01 * np.abs(motion.q).max() and 'violated by up to' in motion.warnings[0]


@pytest.mark.parametrize('clearance', [0.0, [None, 0.0]])
def test_no_clearance_is_an_exact_constraint(clearance):
    model = load_model('four_bar', 'relative', backend='vm')
    motion = simulate(model, 1.0, 0.01, 'rk4', formulation='udwadia_kalaba_recursive', clearance=clearance)
    assert motion.violation.max() < 1e-10


def test_inputs_are_read_at_the_time_of_each_stage():
    """Else the order is one. Errors against matrix-R and DOP853."""
    model = load_model('four_bar', 'relative', backend='vm')

    def run(dt, scheme, **options):
        return simulate(model, LENGTH, dt, scheme, inputs=lambda t, q, qd: np.array([500.0 * np.sin(20 * t)]),
                        **options).q[-1]
    exact = run(LENGTH / 64, 'dop853')
    errors = [np.abs(run(dt, 'rk4', formulation='kkt') - exact).max() for dt in (STEP, STEP / 2)]
    assert np.log2(errors[0] / errors[1]) > 3.7
