# SPDX-License-Identifier: Apache-2.0
"""``simulate_batch``: each run is that of ``simulate`` with its start and parameters, whatever the other runs do."""

from dataclasses import replace

import numpy as np
import pytest
from motion_examples import CRANK_ROCKER, model

import mbse_ros as mbse
from mbse_ros.compiled.compiler import have_compiler
from mbse_ros.description.load import parse_mechanism
from mbse_ros.dynamics.batch import start_of
from mbse_ros.dynamics.integrators.choice import CoordinateChoice
from mbse_ros.dynamics.model import Model
from mbse_ros.dynamics.motion import simulate
from mbse_ros.errors import SettingError

pytestmark = pytest.mark.skipif(not have_compiler(), reason='no C compiler: there are no compiled steps')


@pytest.fixture(scope='module')
def four_bar():
    return mbse.load('four_bar', free=['crank', 'ground'])


def one(item, parameters, z, zd, *arguments):
    """The same run by ``simulate``."""
    changed = item.with_parameters(np.asarray(parameters, dtype=float))
    return simulate(changed, *arguments, start=start_of(changed, np.atleast_1d(z), np.atleast_1d(zd)))


def test_runs_are_those_of_simulate(four_bar):
    crank, theta, speed = [1.9, 2.0, 2.1], [0.9, 1.0, 1.3], [0.0, -1.0, 2.0]
    batch = mbse.simulate_batch(four_bar, 0.6, starts={'theta': theta, 'theta_dot': speed}, every=200,
                                parameters={'crank': crank})
    assert batch.completed.all() and batch.reasons == ('', '', '') and batch.q.shape == (3, 4, 5)
    np.testing.assert_array_equal(batch.parameters['crank'], crank)
    for i in range(3):
        alone = one(four_bar, [crank[i], 10.0], theta[i], speed[i], 0.6, 1e-3)
        np.testing.assert_allclose(batch.q[i], alone.q[::200], rtol=0, atol=1e-11)
        np.testing.assert_allclose(batch.qd[i], alone.qd[::200], rtol=0, atol=1e-10)
        np.testing.assert_allclose(batch['theta_dot'][i], alone.of('theta', 1)[::200], rtol=0, atol=1e-10)
    assert np.ptp(batch['theta'][:, -1]) > 0.1


def test_threads_change_no_bit(four_bar):
    numbers = np.random.default_rng(1).normal(10.0, 0.05, 40)
    batches = [mbse.simulate_batch(four_bar, 0.5, parameters={'ground': numbers}, every=100, jobs=jobs)
               for jobs in (1, 2, 7)]
    for other in batches[1:]:
        np.testing.assert_array_equal(batches[0].q, other.q)
        np.testing.assert_array_equal(batches[0].qd, other.qd)


def test_a_run_that_fails_says_why_and_ends_no_other(four_bar):
    batch = mbse.simulate_batch(four_bar, 0.2, parameters={'ground': [10.0, 30.0, np.nan, 10.0]}, every=100,
                                starts={'theta_dot': [0.0, 0.0, 0.0, 1e70]})
    assert batch.completed.tolist() == [True, False, False, False]
    assert [reason.split(':')[0] for reason in batch.reasons] == [
        '', 'PositionProblemError', 'SettingError', 'DivergenceError']
    assert np.isfinite(batch.q[0]).all() and np.isnan(batch.q[1:]).all()


def test_a_dead_point_on_the_way_ends_it_where_it_ends_simulate():
    rocker = Model(replace(model('crank_rocker').description, independent=('psi',)))
    alone = simulate(rocker, 1.0, 2e-3, independent=['psi'], stop=False)
    batch = mbse.simulate_batch(rocker, 1.0, 2e-3, starts={'psi_dot': [rocker.start.qd[rocker.z[0]], 0.0]})
    assert batch.batch.steps[0] == len(alone.t) - 1
    assert batch.reasons[0].startswith('SingularConfigurationError') and np.isnan(batch.q[0, -1]).all()


def test_coordinates_are_chosen_along_the_motion(monkeypatch):
    item, checks, check = model('points_only'), [], CoordinateChoice.check
    monkeypatch.setattr(CoordinateChoice, 'check', lambda *arguments: checks.append(1) or check(*arguments))
    batch = mbse.simulate_batch(item, 0.8, 5e-4, starts={name: [item.start.q[place]] * 2
                                                         for name, place in zip(item.independent, item.z)}, every=1600)
    reference = simulate(model('crank_rocker'), 0.8, 0.1, 'dop853')
    assert batch.completed.all() and 10 < len(checks) < 200        # of 3,200 steps; all others ran compiled
    tip = np.cos(reference.of('theta')[-1])
    np.testing.assert_allclose(batch['x'][:, -1], tip, rtol=0,
                               atol=2 * abs(simulate(item, 0.8, 5e-4).of('x')[-1] - tip))


def test_numbers_are_drawn_from_the_file():
    uncertain = Model(parse_mechanism(CRANK_ROCKER.replace(
        'length: 1, mass: 3 kg', 'length: 1, mass: {value: 3 kg, stddev: 0.3 kg}')))
    batches = [mbse.simulate_batch(uncertain, 0.1, runs=50, every=100, seed=seed) for seed in (1, 1, 2)]
    mass, = batches[0].parameters.values()
    assert 0.2 < mass.std() < 0.4 and abs(mass.mean() - 3.0) < 0.2 and np.ptp(batches[0]['theta'][:, -1]) > 1e-3
    np.testing.assert_array_equal(batches[0].q, batches[1].q)
    assert not np.array_equal(batches[0].q, batches[2].q)
    nominal = mbse.simulate_batch(uncertain, 0.1, starts={'theta': [1.0]}, every=100)
    assert [values.tolist() for values in nominal.parameters.values()] == [[3.0]]


@pytest.mark.parametrize('options, said', [
    (dict(), 'runs'), (dict(runs=0), 'runs'), (dict(starts={'thet': [1.0]}), 'theta, theta_dot'),
    (dict(starts={'theta': [1.0, 2.0]}, parameters={'crank': [1.0]}), 'array (2,)'),
    (dict(parameters={'rocker': [1.0]}), "free=['rocker']"), (dict(runs=2, every=3, starts={'theta': 1.0}), 'every'),
    (dict(runs=2), 'no free number with a standard deviation'), (dict(runs=True), 'runs'), (dict(runs=2.0), 'runs'),
    (dict(runs=1, jobs=1.5), 'jobs'), (dict(runs=1, scheme='dop853'), 'scheme'), (dict(runs=1, jobs=0), 'jobs'),
    (dict(runs=1, options={'rtol': 1}), 'options of exponential'), (dict(runs=1, starts={'theta': 'far'}), 'theta')])
def test_what_is_refused(options, said, four_bar):
    with pytest.raises(SettingError, match=said.replace('(', r'\(').replace(')', r'\)').replace('[', r'\[')):
        mbse.simulate_batch(four_bar, 0.1, **options)


def test_a_machine_is_refused():
    with pytest.raises(SettingError, match='a mechanism'):
        mbse.simulate_batch('zx200', runs=2)
