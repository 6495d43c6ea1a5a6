# SPDX-License-Identifier: Apache-2.0
"""Estimation of parameters: derivatives, bounds, and numbers of a four-bar linkage that are wrong and are found."""

from functools import lru_cache

import numpy as np
import pytest

from mbse_ros.compiled import Kernel
from mbse_ros.dynamics.model import load_model
from mbse_ros.dynamics.motion import simulate
from mbse_ros.errors import SettingError
from mbse_ros.filters.observer import LinkageObserver
from mbse_ros.filters.parameters import parameter_partials
from mbse_ros.filters.parts.parameter_space import parameter_space
from mbse_ros.filters.parts.problem import problem
from mbse_ros.simulation.three_simulations import TrueMotion, noisy

pytestmark = pytest.mark.usefixtures('vm')

DT, SENSORS, SEEDS = 0.005, ('encoder', 'crank_tip'), 20
FREE = ('bodies.coupler.mass', 'crank')
INITIAL = {'bodies.coupler.mass': 0.2, 'crank': 0.02}      # standard deviations, shares of the value


@lru_cache(maxsize=1)
def truth() -> tuple[TrueMotion, np.ndarray]:
    model = load_model('four_bar')
    true = TrueMotion(model, simulate(model, 1.5, DT, 'trapezoid'), DT)
    return true, true.sensors(SENSORS)


def observer_of(estimator, free, share, **options):
    """Observer whose parameter starts at ``1 + share`` of the truth."""
    model = load_model('four_bar', free=(free,))
    model = model.with_parameters((1 + share) * model.parameters)
    noises = {'acceleration': 1e-6 if estimator == 'joint' else 0.1, 'parameter_walk': 0.0}
    return LinkageObserver(model, estimator, SENSORS, noises, history=True, **options)


def run(observer, seed, initial, measured=None, share=0.0):
    """Values (k,) of the parameter, and their standard deviations."""
    true, h = truth()
    start = true.motion.q[0]
    q = observer.model.position(start[true.z], start)
    size = observer.filter.state.parts['x'][0]
    random = np.random.default_rng(1000 + seed)
    stddev = np.full(size, 0.02)
    stddev[-1] = initial
    q = observer.model.position(q[true.z] + 0.02 * random.normal(size=1), q)
    observer.start(q, None, stddev)
    observer.state[observer.filter.state.places['x'].stop - 1] = share
    found = observer.run(true.motion.t[1:], noisy(h, observer.stddev, seed) if measured is None else measured)
    space = observer.filter.parameters
    return (space.values(found.mean[:, -1:])[:, 0],
            space.stddev(found.mean[:, -1:], found.covariances[:, -1:, -1])[:, 0])


@pytest.mark.parametrize('free', FREE)
def test_joint_finds_a_wrong_number_within_its_interval(free):
    """Starts are drawn from the filter's own uncertainty: the errors at the end are as large as it says."""
    shares = INITIAL[free] * np.random.default_rng(5).normal(size=SEEDS)
    observer, scaled = observer_of('joint', free, 0.0), []
    true = observer.model.parameters[0]
    for seed, share in enumerate(shares):
        values, stddev = run(observer, seed, INITIAL[free], share=share)
        scaled.append((values[-1] - true) / stddev[-1])
        assert stddev[-1] < 0.1 * INITIAL[free] * true and abs(scaled[-1]) < 4
    assert 0.4 < np.mean(np.square(scaled)) < 2.2          # chi2 / 20: beyond 99.5 % bounds


def test_dual_finds_a_wrong_mass():
    observer = observer_of('dual', 'bodies.coupler.mass', 0.2)
    for seed in range(4):
        values, stddev = run(observer, seed, 0.2)
        assert abs(values[-1] - 8) < 3 * stddev[-1] and stddev[-1] < 0.5 and abs(values[-1] - 8) < 0.7


def test_dual_refuses_lengths():
    with pytest.raises(SettingError, match='joint'):
        observer_of('dual', 'crank', 0.0)


@pytest.mark.parametrize('estimator', ['joint', 'dual'])
def test_bounds_are_never_left(estimator):
    observer = observer_of(estimator, 'bodies.coupler.mass', 0.2, bounds={'bodies.coupler.mass': (9.0, 12.0)})
    true, h = truth()
    wild = noisy(h, 20 * observer.stddev, 0)
    for measured in (None, wild):                          # the true mass, 8 kg, lies outside
        values, _ = run(observer, 0, 0.2, measured)
        assert np.all((values > 9) & (values < 12))
    assert run(observer, 0, 0.2)[0][-1] < 9.5


def test_space():
    model = load_model('four_bar', free=('bodies.coupler.mass', 'crank', 'rocker', 'coupler'))
    bounds = {'crank': (1.5, 3.0), 'rocker': (-np.inf, np.inf), 'coupler': (-np.inf, 10.0)}
    space = parameter_space(problem(model, SENSORS), None, bounds)
    zero = np.zeros(len(space.names))
    np.testing.assert_allclose(space.values(zero), space.start)
    np.testing.assert_allclose(space.stddev(zero, zero + 1), space.start)            # theta: a share of the value
    step = (space.values(zero + 1e-6) - space.values(zero - 1e-6)) / 2e-6
    np.testing.assert_allclose(step, space.start, rtol=1e-8)
    for sign in (-1, 1):
        ends = space.values(sign * np.minimum(space.limit, 1e3))
        assert np.all((ends > space.low) & (ends < space.high))


def test_partials_are_difference_quotients():
    free = ('bodies.coupler.mass', 'crank')
    model = load_model('four_bar', free=free)
    of = problem(model, ('encoder', 'coupler_gyro', 'crank_tip'))
    places, p = range(len(of.system.values.names)), np.asarray(model.parameters)
    z, zd, u = model.start.q[model.z] + 0.3, np.array([1.3]), np.array([2.0, 1.0])
    rates, sensors, newton = Kernel(of.rates, 'vm'), Kernel(of.sensors, 'vm'), Kernel(of.newton, 'vm')

    def at(p):
        q = model.position(z, model.start.q)
        for _ in range(5):
            q = newton(q, [0.0], p)[0]
        zdd = rates(q, zd, u, [0.0], p)[0]
        return np.concatenate([zdd, sensors(q, zd, zdd, u, [0.0], p)[0], q])

    q = at(p)[-of.n:]
    found = np.vstack([np.array(part) for part in parameter_partials(of, places)(q, zd, u, 0.0, p)])
    for k, step in enumerate(1e-6 * np.eye(len(p))):
        np.testing.assert_allclose(found[:, k], (at(p + step) - at(p - step)) / 2e-6, atol=2e-7)


@pytest.mark.parametrize('options, key', [({'parameters': ('mass',)}, 'parameters'),
                                          ({'bounds': {'bodies.coupler.mass': (9.0, 12.0)}}, 'bounds')])
def test_bad_parameters_are_refused(options, key):
    with pytest.raises(SettingError, match=key):
        observer_of('joint', 'bodies.coupler.mass', 0.0, **options)
