# SPDX-License-Identifier: Apache-2.0
"""The error filters with their model by any formulation in all coordinates: its accelerations, its exact derivatives,
and the filters against the default at the order of the integrator."""

from functools import cache

import casadi as ca
import numpy as np
import pytest
from linear_mechanism import linear_model

from mbse_ros.dynamics import state_equations
from mbse_ros.dynamics.formulations.by_name import FORMULATIONS, accelerations
from mbse_ros.dynamics.formulations.expressions import WAYS, formulated
from mbse_ros.dynamics.model import load_model
from mbse_ros.dynamics.motion import simulate
from mbse_ros.errors import SettingError
from mbse_ros.filters.filters import check_options
from mbse_ros.filters.linkage_settings import option_values
from mbse_ros.filters.observer import LinkageObserver
from mbse_ros.filters.parts.all_coordinates import step
from mbse_ros.filters.parts.problem import problem
from mbse_ros.simulation.three_simulations import wrong_model, wrong_start

pytestmark = pytest.mark.usefixtures('vm')

ENCODERS = {'four_bar': ('encoder',), 'five_bar': ('encoder_1', 'encoder_2')}
LENGTH, GRID, ALPHA = 0.24, 0.02, 1e4
OTHER = [name for name in WAYS if name != 'kkt_sparse']        # which is kkt here


@cache
def functions(mechanism: str, name: str):
    of = problem(load_model(mechanism), ())
    return of, formulated(of.system, of.system.values.symbol, name, ALPHA)


@cache
def samples(mechanism: str) -> np.ndarray:
    """Encoders on a grid, without noise."""
    motion = simulate(load_model(mechanism), LENGTH, GRID, 'dop853')
    return motion.q[1:, load_model(mechanism).z]


def run(mechanism, dt=GRID / 2, estimator='errorEKF_FE', **options):
    """All coordinates at the samples, the covariance at the end."""
    model, each = wrong_model(load_model(mechanism)), round(GRID / dt)
    log = np.full((each * len(samples(mechanism)), len(ENCODERS[mechanism])), np.nan)
    log[each - 1::each] = samples(mechanism)
    observer = LinkageObserver(model, estimator, ENCODERS[mechanism], **options)
    observer.start(wrong_start(model, 0.02), stddev=0.1)
    found = observer.run(dt * np.arange(1, len(log) + 1), log)
    return found.q[each - 1::each], found.covariance


@cache
def known(mechanism: str, name: str):
    return run(mechanism, motion='heun', formulation=name)


def state(of):
    """A state off the constraints (q, qd), with inputs."""
    rng, q = np.random.default_rng(3), of.model.assembled.q
    return q + rng.normal(0, 0.01, of.n), rng.normal(0, 1.0, of.n), rng.normal(0, 1.0, of.system.u.numel())


def test_every_formulation_is_there():
    assert {*WAYS, 'matrix_r'} == set(FORMULATIONS)


@pytest.mark.parametrize('name', WAYS)
def test_accelerations_are_those_of_simulate(name):
    """Also where a state has left the constraints: c, and of the penalty the stabilisation."""
    of, made = functions('five_bar', name)
    q, qd, u = state(of)
    given = np.zeros(of.system.u.numel())
    given[:len(of.model.inputs)] = u[:len(of.model.inputs)]
    qdd = made.field(q, qd, given, 0.1, of.model.parameters)[0].full().ravel()
    terms = of.model.terms(q, qd, given[:len(of.model.inputs)], 0.1)
    expected = accelerations(name, terms.take(list(of.model.active)), **({'alpha': ALPHA} if name == 'penalty' else {}))
    np.testing.assert_allclose(qdd, expected.qdd, atol=1e-7 * np.abs(expected.qdd).max())


@pytest.mark.parametrize('mechanism', ENCODERS)
@pytest.mark.parametrize('name', OTHER)
def test_derivatives_by_finite_differences(mechanism, name):
    """K and D off the constraints; A and B along them, with the velocities that keep them."""
    of, made = functions(mechanism, name)
    (q, qd, u), p, h = state(of), of.model.parameters, 1e-5
    _, K, D = (part.full() for part in made.field(q, qd, u, 0.1, p))

    def slope(function, size):
        return np.column_stack([(function(e) - function(-e)).full().ravel() / (2 * h) for e in h * np.eye(size)])
    for exact, numerical in ((K, slope(lambda e: made.field(q + e, qd, u, 0.1, p)[0], of.n)),
                             (D, slope(lambda e: made.field(q, qd + e, u, 0.1, p)[0], of.n))):
        np.testing.assert_allclose(exact, numerical, atol=2e-7 * max(1.0, np.abs(exact).max()))

    g, z, zd = of.g, of.model.assembled.q[of.z], qd[of.z]
    symbol = ca.SX.sym('z', g)
    close = ca.Function('close', [symbol], [of.close(ca.SX(of.model.assembled.q), symbol, 0.1, p, 4)])

    def zdd(x, u=u):
        return made.rates(close(x[:g]), x[g:], u, 0.1, p)[0]
    at = made.rates(close(z), zd, u, 0.1, p)
    A, B = at[1].full()[g:], at[2].full()[g:]
    x = np.concatenate([z, zd])
    np.testing.assert_allclose(A, slope(lambda e: zdd(x + e), 2 * g), atol=2e-7 * max(1.0, np.abs(A).max()))
    np.testing.assert_allclose(B, slope(lambda e: zdd(x, u + e), len(u)), atol=2e-7 * max(1.0, np.abs(B).max()))


@pytest.mark.parametrize('mechanism, motion, order', [
    ('four_bar', 'trapezoid', 2), ('four_bar', 'forward_euler', 1), ('five_bar', 'heun', 2)])
def test_the_filter_agrees_with_the_default_at_the_order_of_the_integrator(mechanism, motion, order):
    """A sample every 20 ms, steps of 10 and 5 ms: both go to the same estimate."""
    off = [np.abs(run(mechanism, dt, motion=motion, formulation='kkt')[0] - run(mechanism, dt, motion=motion)[0]).max()
           for dt in (GRID / 2, GRID / 4)]
    assert 1e-9 < off[1] < off[0] < 1e-3 and abs(np.log2(off[0] / off[1]) - order) < 0.3


@pytest.mark.parametrize('mechanism', ENCODERS)
@pytest.mark.parametrize('name', OTHER)
def test_a_step_is_that_of_simulate(mechanism, name):
    """Two ways to write it: expressions with Newton's method, and NumPy, repeated until it does not change."""
    of, made = functions(mechanism, name)
    start, dt, u = of.model.start, 0.02, np.zeros(of.system.u.numel())
    for kind in ('forward_euler', 'trapezoid'):
        found = step(of, made, kind, *map(ca.DM, (start.q, start.qd, u, dt, dt, of.model.parameters)))
        motion = simulate(of.model, dt, dt, kind, formulation=name, **({'alpha': ALPHA} if name == 'penalty' else {}))
        for part, expected in zip(found, (motion.q[-1], motion.qd[-1])):
            np.testing.assert_allclose(part.full().ravel(), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize('mechanism', ENCODERS)
@pytest.mark.parametrize('name', ['udwadia_kalaba_recursive', 'projection_one_inverse', 'penalty'])
def test_all_formulations_are_one_filter(mechanism, name):
    """Exact constraints: by rounding; those that give way by 1 / alpha; the default by what the rule of the step
    does."""
    (usual, P), (exact, _) = known(mechanism, 'matrix_r'), known(mechanism, 'kkt')
    q, covariance = run(mechanism, motion='heun', formulation=name)
    deviation = np.sqrt(np.diag(P))
    assert np.abs(q - exact).max() < (1e-4 if name == 'penalty' else 1e-9)
    assert np.abs((covariance - P) / np.outer(deviation, deviation)).max() < 3e-3
    assert 1e-9 < np.abs(q - usual).max() < 1e-3


def test_the_penalty_goes_to_the_exact_filter():
    """What is left is the give of the constraints, 1 / alpha, in the step alone: the correction closes them again."""
    stiff, _ = run('four_bar', formulation='penalty', alpha=1e9)
    away = [np.abs(run('four_bar', formulation='penalty', alpha=alpha)[0] - stiff).max() for alpha in (1e3, 1e4)]
    assert away[0] / away[1] == pytest.approx(10.0, rel=0.2)


@pytest.mark.parametrize('estimator', ['errorEKF', 'errorEKF_EJ'])
def test_the_other_error_filters_and_the_linearised_correction(estimator):
    usual, _ = run('four_bar', estimator=estimator)
    for correction in ('exact', 'linearised'):
        q, _ = run('four_bar', estimator=estimator, formulation='udwadia_kalaba', correction=correction)
        assert 1e-9 < np.abs(q - usual)[-1].max() < 2e-4


@pytest.mark.parametrize('name', OTHER)
def test_without_constraints_it_is_the_trapezoidal_rule(name):
    rng, means = np.random.default_rng(1), []
    log = rng.normal(size=(50, 1)) * 0.2
    for options in ({}, {'formulation': name}):
        observer = LinkageObserver(linear_model(), 'errorEKF_FE', ('place',), {'acceleration': 0.3}, **options)
        observer.start(stddev=0.2)
        means.append(observer.run(0.005 * np.arange(1, 51), log).mean)
    np.testing.assert_allclose(*means, rtol=0, atol=1e-11)


@pytest.mark.parametrize('name', ['kkt', 'udwadia_kalaba', 'projection_orthonormal', 'penalty'])
def test_functions_that_are_called_give_the_same(monkeypatch, name):
    """As where a mechanism is too large to be written out."""
    found = []
    for largest in (state_equations.LARGEST_BLOCK, 0):
        monkeypatch.setattr(state_equations, 'LARGEST_BLOCK', largest)
        found.append(run('four_bar', GRID, formulation=name)[0])
    np.testing.assert_allclose(*found, rtol=0, atol=1e-10)


@pytest.mark.parametrize('words, named', [
    ('formulation=kk', 'did you mean kkt'), ('formulation=semi_recursive', 'formulation: '),
    ('formulation=kkt motion=ali3p', 'motion: .*trapezoid, heun, forward_euler.* kkt'),
    ('formulation=penalty motion=exact', 'motion: .*penalty'), ('formulation=kkt alpha=1e7', 'alpha: .*kkt'),
    ('alpha=1e7', 'alpha: .*matrix_r'), ('formulation=penalty alpha=0', 'alpha: .*positive'),
    ('formulation=penalty alpha=nan', 'alpha: .*positive'), ('formulation=penalty alpha=true', 'alpha: .*positive')])
def test_what_does_not_go_together_is_named(words, named):
    """As in the node's and the command line's ``linkage.options``."""
    for estimator in ('errorEKF', 'errorEKF_EJ', 'errorEKF_FE'):
        check_options(estimator, option_values(words))
        with pytest.raises(SettingError, match=named):
            LinkageObserver(load_model('four_bar'), estimator, ('encoder',), **option_values(words))
