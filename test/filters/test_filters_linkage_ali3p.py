# SPDX-License-Identifier: Apache-2.0
"""The error filters with the model in all coordinates, by ALI3P, and with the linearised correction, as the paper's."""

import casadi as ca
import numpy as np
import pytest
from linear_mechanism import linear_model
from linkage_own_model import MASSES
from naya_by_hand import DT, P0, Q_C, SIGMA, error_ekf_ali3p, observed, position_problem, trapezoid

from mbse_ros.description.load import parse_mechanism
from mbse_ros.dynamics import state_equations
from mbse_ros.dynamics.model import load_model
from mbse_ros.errors import SettingError
from mbse_ros.filters.filters import check_options, default_noises
from mbse_ros.filters.linkage_settings import option_values
from mbse_ros.filters.observer import LinkageObserver
from mbse_ros.filters.parts.model_step import advance, linearised
from mbse_ros.filters.parts.problem import problem
from mbse_ros.simulation.three_simulations import wrong_model, wrong_start

pytestmark = pytest.mark.usefixtures('vm')

STEPS, START, GRAVITY = 200, np.pi / 3, 9.81
SETS = (('encoder',), ('crank_gyro',), ('encoder', 'coupler_gyro'))


def log(names):
    """Samples (k, s) of the true four-bar, with noise."""
    rng, theta, zd, samples = np.random.default_rng(5), START, 0.0, []
    for _ in range(STEPS):
        theta, zd = trapezoid(theta, zd, GRAVITY)
        samples.append(observed(names, position_problem(theta), zd)[0])
    return np.array(samples) + rng.normal(size=(STEPS, len(names))) * [SIGMA[name] for name in names]


def run(estimator, names, error=0.02, **options):
    model = wrong_model(load_model('four_bar'))
    observer = LinkageObserver(model, estimator, names, {'acceleration': Q_C}, **options)
    observer.start(wrong_start(model, error), stddev=np.sqrt(P0))
    return observer.run(DT * np.arange(1, STEPS + 1), log(names))


@pytest.mark.parametrize('names', SETS)
@pytest.mark.parametrize('correction', ['exact', 'linearised'])
def test_the_printed_filter_by_ali3p(names, correction):
    """errorEKF in plain NumPy, with ALI3P iterated to its tolerance. Two iterations of Newton's method leave 1e-8 of
    the first correction, and nothing of that stays."""
    means, covariances = error_ekf_ali3p(log(names), names, START + 0.02, GRAVITY - 1.0, correction == 'linearised')
    found = run('errorEKF', names, motion='ali3p', correction=correction)
    difference = np.abs(found.mean - means) / np.abs(means).max(axis=0)
    assert difference.max() < 5e-8 and difference[100:].max() < 5e-9
    assert np.abs(found.covariance / covariances[-1] - 1).max() < 1e-8


def test_a_far_linearised_correction():
    """0.2 rad leave the constraints by 0.02; what the fixed iterations leave, 1e-6 rad, is forgotten."""
    means, _ = error_ekf_ali3p(log(('encoder',)), ('encoder',), START + np.pi / 16, GRAVITY - 1.0)
    found = run('errorEKF', ('encoder',), np.pi / 16, motion='ali3p', correction='linearised')
    difference = np.abs(found.mean[:, 0] - means[:, 0])
    assert difference.max() < 3e-6 and difference[-20:].max() < 1e-9


def test_a_linearised_correction_leaves_what_a_driver_moves():
    """R dz, without what the constraints ask for in time."""
    driven = MASSES.replace('[x, y]', '[y]').replace('x: 1, y: 2', 'y: 2')
    driven += 'drivers: {motor: {coordinate: x, motion: "1 + 0.3*t"}}'
    model = load_model(parse_mechanism(driven, 'driven.yaml'))
    of, q = problem(model, ()), model.assembled.q
    moved = np.array(ca.evalf(linearised(of, ca.SX(q), ca.SX(q[of.z] + 0.2), ca.SX(0.0),
                                         ca.SX(model.parameters)))).ravel()
    names = list(model.names)
    assert moved[names.index('x')] == pytest.approx(q[names.index('x')], abs=1e-12)
    assert of.g == 1 and moved[of.z] == pytest.approx(q[of.z] + 0.2)


def test_accelerations_of_the_corrected_state_instead_of_the_integrators_own():
    """The authors' toolbox keeps the latter, from zero: with an encoder that moves the angle by less than 1e-4 rad."""
    ours, kept = (error_ekf_ali3p(log(('encoder',)), ('encoder',), START + 0.02, GRAVITY - 1.0, kept=way)[0][:, 0]
                  for way in (False, True))
    assert 1e-6 < np.abs(ours - kept).max() < 1e-4


@pytest.mark.parametrize('estimator', ['errorEKF', 'errorEKF_EJ', 'errorEKF_FE', 'direct_FE', 'CEKF'])
def test_without_constraints_it_is_the_trapezoidal_rule(estimator):
    """In independent coordinates both are one."""
    rng, means = np.random.default_rng(1), []
    samples = rng.normal(size=(100, 1)) * 0.2
    for motion in ('trapezoid', 'ali3p'):
        observer = LinkageObserver(linear_model(), estimator, ('place',), {'acceleration': 0.3}, motion=motion)
        observer.start(stddev=0.2)
        means.append(observer.run(DT * np.arange(1, 101), samples).mean)
    np.testing.assert_allclose(*means, rtol=0, atol=1e-11)


@pytest.mark.parametrize('mechanism', ['four_bar', 'five_bar'])
def test_its_transition_is_the_derivative_up_to_the_third_order(mechanism):
    model = load_model(mechanism)
    of, q = problem(model, ()), model.assembled.q
    g, (z, zd, dt) = of.g, of.symbols('zdd zd dt')
    start = of.close(ca.SX(q), z, 0.0, model.parameters, 4)
    ahead, after, F = advance(of, 'ali3p', start, zd, of.zeros(of.system.u.numel() - g), of.zeros(g), dt, dt,
                              ca.DM(model.parameters))
    step = ca.Function('step', [z, zd, dt], [ca.vertcat(of.independent(ahead), after), F])
    at, rate, h, off = q[of.z] + 0.1, np.full(g, 1.5), 1e-3, []
    for length in (0.02, 0.01, 0.005):
        def moved(e):
            return step(at + e[:g], rate + e[g:], length)[0].full().ravel()
        columns = [8 * (moved(e) - moved(-e)) - moved(2 * e) + moved(-2 * e) for e in h * np.eye(2 * g)]
        off.append(np.abs(step(at, rate, length)[1].full() - np.column_stack(columns) / (12 * h)).max())
    assert off[-1] < 2e-5 and all(6 < long / short < 10 for long, short in zip(off, off[1:]))


def test_functions_that_are_called_give_the_same(monkeypatch):
    """As where a mechanism is too large to be written out."""
    noises, found = default_noises('errorEKF_FE', 'four_bar'), []
    for largest in (state_equations.LARGEST_BLOCK, 0):
        monkeypatch.setattr(state_equations, 'LARGEST_BLOCK', largest)
        observer = LinkageObserver(load_model('four_bar'), 'errorEKF_FE', ('encoder',), noises, motion='ali3p',
                                   correction='linearised')
        assert observer.problem.scalar == (largest > 0)
        observer.start(stddev=0.1)
        found.append(observer.run(DT * np.arange(1, 21), log(('encoder',))[:20]).mean)
    np.testing.assert_allclose(*found, rtol=0, atol=1e-10)


def test_options_are_words_and_are_checked():
    """As in the node's and the command line's ``linkage.options``."""
    options = option_values('motion=ali3p correction=linearised')
    for estimator in ('errorEKF', 'errorEKF_EJ', 'errorEKF_FE'):
        check_options(estimator, options)
    run('errorEKF', ('encoder',), **options)
    for wrong, expected in (({'motion': 'ali3'}, 'did you mean ali3p'), ({'motion': 'nose1'}, 'trapezoid'),
                            ({'correction': 'none'}, 'exact, linearised')):
        with pytest.raises(SettingError, match=expected):
            run('errorEKF', ('encoder',), **wrong)
