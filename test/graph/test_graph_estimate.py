# SPDX-License-Identifier: Apache-2.0
"""Smoothers of a linkage: the graph by GTSAM and as a chain, accuracy, honest intervals, what cannot be estimated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mbse_ros.dynamics.model import load_model
from mbse_ros.errors import DivergenceError, GraphError, SettingError
from mbse_ros.graph.check import check_blind, check_graph
from mbse_ros.graph.estimate import EstimatedMotion, EstimationNoises, estimation_graph, solve_estimation
from mbse_ros.graph.factors.dynamics_factors import prior
from mbse_ros.graph.smoother import LinkageSmoother, default_estimation_noises
from mbse_ros.graph.solvers.batch_solver import marginals
from mbse_ros.graph.window import solve_fixed_lag
from mbse_ros.simulation.estimator_benchmark import STEP
from mbse_ros.simulation.three_simulations import noisy, true_motion
from studies.smoothers import estimation_rows, own_model_rows

UNKNOWN = EstimationNoises(position=np.inf, velocity=np.inf, force=np.inf)


@pytest.fixture
def gtsam():
    return pytest.importorskip('gtsam', reason='GTSAM is not installed (extra "graph")')


def standing(model, count):
    """A track that stands at the start."""
    n, g = len(model.names), len(model.z)
    zeros = np.zeros((count, n))
    return EstimatedMotion(STEP * np.arange(count), np.tile(model.start.q, (count, 1)), zeros, zeros,
                           np.zeros((count, g)))


def log(name, sensors, duration, seed=1, backend='vm'):
    """Model, its true motion as a track, and noisy samples at all instants but the first."""
    model = load_model(name, backend=backend)
    truth = true_motion(model, duration, STEP)
    of = LinkageSmoother(model, sensors, STEP, backend='vm')
    samples = noisy(truth.sensors(sensors), np.sqrt(of.chain.variance), seed)
    motion = truth.motion
    track = EstimatedMotion(motion.t, motion.q, motion.qd, motion.qdd, np.zeros((len(motion.t), len(model.z))))
    return model, track, np.vstack([np.full((1, samples.shape[1]), np.nan), samples])


@pytest.mark.parametrize('name, sensors', [('four_bar', ('encoder', 'coupler_gyro', 'crank_tip')),
                                           ('five_bar', ('encoder_1', 'tip_2'))])
def test_chain_is_the_graph(gtsam, name, sensors):
    """The same estimates and covariances; sensors of several rates, samples missing, one with a bias."""
    model, track, samples = log(name, sensors, 0.15)
    samples[np.arange(len(samples)) % 4 > 0, 0] = np.nan
    samples[10:14, -2:] = np.nan
    noises = replace(default_estimation_noises(model), biases={sensors[0]: 0.01})
    chain = LinkageSmoother(model, sensors, STEP, noises, backend='vm').batch(samples, track)
    made = estimation_graph(model, sensors, samples, track, noises)
    found = solve_estimation(made)
    here, z, g = marginals(found), model.z, len(model.z)
    for k, kind in enumerate(('q', 'qd')):
        assert found[kind] == pytest.approx(getattr(chain, kind), abs=1e-7)
        assert here.stddev(kind)[:, z] == pytest.approx(chain.stddev[:, k * g:(k + 1) * g], rel=1e-6)
    assert found['Q'] == pytest.approx(chain.force, abs=1e-6)
    assert here.stddev('Q') == pytest.approx(chain.stddev[:, 2 * g:3 * g], rel=1e-6)
    bias = found[f'bias.{sensors[0]}'][0]
    assert bias == pytest.approx(chain.mean[7, 3 * g:], abs=1e-8) and abs(bias[0]) > 1e-4
    assert found.cost.hard < 1e-10


def test_lag_as_long_as_the_log_is_the_batch():
    model, track, samples = log('four_bar', ('encoder',), 0.3)
    smoother = LinkageSmoother(model, ('encoder',), STEP, backend='vm')
    batch, lagged = smoother.batch(samples, track), smoother.lagged(track.t, samples, 1.0)
    assert lagged.mean == pytest.approx(batch.mean, abs=2e-2 * batch.stddev.min(axis=0).max())
    assert lagged.after[0] == pytest.approx(0.3) and lagged.after[-1] == 0.0
    short = smoother.lagged(track.t, samples, 0.05)
    assert short.after[:50] == pytest.approx(np.full(50, 0.05)) and short.after[-1] == 0.0
    assert (short.stddev[:40, 0] > batch.stddev[:40, 0]).all()


def test_lag_is_that_of_the_graph(gtsam):
    """Against GTSAM's windows of the same graph, which linearise it at other points."""
    sensors = ('encoder', 'coupler_gyro')
    model, track, samples = log('four_bar', sensors, 0.2)
    noises = default_estimation_noises(model)
    lagged = LinkageSmoother(model, sensors, STEP, noises, backend='vm').lagged(track.t, samples, 0.05)
    made = estimation_graph(model, sensors, samples, track, noises)
    found = solve_fixed_lag(made.graph, made.initial, 11, 'marginal')
    error = found.of(found.lagged, 'q')[:, model.z] - lagged.q[:, model.z]
    assert np.abs(error).max() < 0.02 * lagged.stddev[:, 0].min()


def test_lag_is_causal():
    """An estimate with a lag of 0.1 s knows nothing of what comes later."""
    model, track, samples = log('four_bar', ('encoder',), 0.4)
    smoother = LinkageSmoother(model, ('encoder',), STEP, backend='vm')
    whole = smoother.lagged(track.t, samples, 0.1)
    part = smoother.lagged(track.t[:61], samples[:61], 0.1)
    assert np.array_equal(whole.mean[:41], part.mean[:41]) and not np.array_equal(whole.mean[:61], part.mean)


def test_better_than_the_filter():
    """The errors of Naya et al., review, a noisy gyro on the coupler: a lag of 200 ms and the whole log."""
    rows = {row['way']: row for row in estimation_rows(2, 2.0, (0.2,))}
    assert rows['errorEKF_FE']['gain'] == 1.0 and not any(row['diverged'] for row in rows.values())
    assert rows['lag 0.2 s']['gain'] > 2.5 and rows['batch']['gain'] > rows['lag 0.2 s']['gain']
    assert rows['lag 0.2 s']['rmse_vel'] < 0.6 * rows['errorEKF_FE']['rmse_vel']


def test_intervals_are_honest():
    """Truths drawn from the model itself: position, velocity and force lie inside 95 % of the time."""
    for row in own_model_rows(16, 0.4, 0.1):
        shares = [value for name, value in row.items() if name.startswith('coverage')]
        assert len(shares) == 3 and all(share > 0.87 for share in shares), row
        assert all(share < 0.995 for share in shares[1:]), row      # a position is drawn once a log


def test_unknown_mass(gtsam):
    """A number of the file as a constant node: a wrong mass is found, with its interval."""
    sensors = ('encoder', 'crank_tip')
    _, track, samples = log('four_bar', sensors, 0.5)
    wrong = load_model('four_bar', free=('bodies.coupler.mass',), backend='vm').with_parameters(np.array([9.0]))
    noises = EstimationNoises(force=1e-3, force_walk=1e-6, parameters={'bodies.coupler.mass': 2.0})
    found = solve_estimation(estimation_graph(wrong, sensors, samples, track, noises))
    stddev = marginals(found).stddev('parameters')[0, 0]
    assert stddev < 0.5 and abs(found['parameters'][0, 0] - 8.0) < 3 * stddev < abs(9.0 - 8.0)
    with pytest.raises(SettingError, match='parameters'):
        LinkageSmoother(wrong, sensors, STEP, noises, backend='vm')


@pytest.mark.parametrize('count', [5, 60])
def test_what_no_sensor_sees_is_named(count):
    """A gyro on a crank at rest, over any length; an encoder sees all of it, as does a prior of the force."""
    model = load_model('four_bar', backend='vm')
    track, samples = standing(model, count), np.zeros((count, 1))
    made = estimation_graph(model, ['crank_gyro'], samples, track, UNKNOWN)
    with pytest.raises(GraphError, match=r'1 direction\(s\) that no sensor and no prior sees.*prior of q') as caught:
        solve_estimation(made)
    last = count - 1
    assert {f'q[{last}].theta', f'Q[{last}].theta'} <= set(caught.value.variables)
    assert not any(name.startswith('qd[') for name in caught.value.variables)
    for sensors, noises in ((['encoder'], UNKNOWN), (['crank_gyro'], replace(UNKNOWN, force=1.0))):
        other = estimation_graph(model, sensors, samples, track, noises)
        check_blind(other.graph, other.initial)


def test_bias_of_the_only_sensor_is_blind():
    """An encoder with an unknown bias and no prior of the position."""
    model = load_model('four_bar', backend='vm')
    made = estimation_graph(model, ['encoder'], np.zeros((8, 1)), standing(model, 8),
                            replace(UNKNOWN, biases={'encoder': np.inf}))
    with pytest.raises(GraphError, match='direction') as caught:
        check_blind(made.graph, made.initial)
    assert 'bias.encoder.encoder' in caught.value.variables


def test_disconnected_is_named():
    model = load_model('four_bar', backend='vm')
    made = estimation_graph(model, ['encoder'], np.zeros((8, 1)), standing(model, 8))
    made.graph.add_variables('bias.camera', 1)
    made.graph.add(prior(1), {'x': ('bias.camera', -1)}, 1.0, {'x0': 0.0})
    with pytest.raises(GraphError, match='disconnected: nothing ties these .*bias.camera'):
        check_graph(made.graph, np.append(made.initial, 0.0))


def test_divergence_names_the_step():
    model, track, samples = log('four_bar', ('encoder', 'crank_gyro'), 0.3)
    smoother = LinkageSmoother(model, ('crank_gyro',), STEP, backend='vm')
    samples = samples[:, 1:].copy()
    samples[30] = 1e100
    with pytest.raises(DivergenceError) as caught:
        smoother.lagged(track.t, samples, 0.1)
    assert 30 <= caught.value.step <= 42
    with pytest.raises(DivergenceError):
        smoother.batch(samples, track)


@pytest.mark.parametrize('noises', [{'force': np.inf}, {'stddev': {'encoder': 0.0}}, {'position': 0.0}])
def test_noises_that_a_chain_cannot_have(noises):
    with pytest.raises(SettingError, match='positive'):
        LinkageSmoother(load_model('four_bar', backend='vm'), ['encoder'], STEP, EstimationNoises(**noises))


def test_samples_of_another_shape():
    model = load_model('four_bar', backend='vm')
    track = standing(model, 8)
    for make in (lambda y: estimation_graph(model, ['encoder'], y, track),
                 lambda y: LinkageSmoother(model, ['encoder'], STEP, backend='vm').batch(y, track)):
        with pytest.raises(SettingError, match='8 instants'):
            make(np.zeros((8, 2)))
