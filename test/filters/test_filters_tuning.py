# SPDX-License-Identifier: Apache-2.0
"""Whiteness of series; default noises; a process noise found again on data drawn from the filter's own model."""

import numpy as np
import pytest

from mbse_ros.compiled import Kernel
from mbse_ros.dynamics.model import load_model
from mbse_ros.errors import SettingError
from mbse_ros.filters.filters import CHOOSY, KNOWN, OF_MECHANISMS, default_noises, default_stddev, make_filter
from mbse_ros.filters.observer import LinkageObserver
from mbse_ros.filters.parts.problem import problem
from mbse_ros.filters.parts.update import constant_noise
from mbse_ros.filters.tuning import Log, log_likelihood, run_of, tune
from mbse_ros.filters.whiteness import autocorrelation, ljung_box, white_of

DT, DENSITY, SAMPLES = 5e-3, 2.0, 1500


@pytest.fixture(scope='module')
def observer():
    return LinkageObserver(load_model('four_bar'), 'DEKF', ['encoder'], {'acceleration': DENSITY}, stddev=[2e-3],
                           backend='vm')


@pytest.fixture(scope='module')
def log(observer):
    """A motion of the filter's own model, with noise of the density on its acceleration."""
    of, model, rng = observer.filter, observer.model, np.random.default_rng(5)
    predict, flat = Kernel(of.predict, 'vm'), of.start(model.start.q, model.start.qd, 0.0)
    tuning = of.tuning.flat(dt=[DT], gate=[1e300], acceleration=[DENSITY], variance=observer.stddev ** 2,
                            p=model.parameters)
    spread = np.linalg.cholesky(np.array(constant_noise(1, 2)([DENSITY], DT)))
    measured, times = [], DT * np.arange(1, SAMPLES + 1)
    for t in times:
        flat, = predict(flat, of.given.flat(o=[np.nan], u=np.zeros(1), t=[t]), tuning)
        parts = of.state.arrays(flat)
        x = parts['x'] + spread @ rng.normal(size=2)
        q = model.partition().position(x[:1], parts['q'], t)
        flat = of.state.flat(**{**parts, 'x': x, 'q': q})
        measured.append(q[model.z] + observer.stddev * rng.normal(size=1))
    return Log(times, np.array(measured), model.start.q, model.start.qd, 1e-6)


@pytest.mark.parametrize('start', [1e-4, 1e3])
def test_a_known_noise_is_found_again(observer, log, start):
    tuned = tune(observer, [log], {'acceleration': start})
    found, spread = np.log10(tuned.after.noises['acceleration'][0]), tuned.stddev_log10['acceleration'][0]
    assert tuned.converged and spread < 0.1
    assert abs(found - np.log10(DENSITY)) < 3 * spread
    assert tuned.before.noises['acceleration'] == [start]
    assert tuned.after.log_likelihood > tuned.before.log_likelihood + 10
    assert abs(tuned.after.nis / tuned.after.expected - 1) < 0.1 < abs(tuned.before.nis / tuned.before.expected - 1)
    assert tuned.after.ljung_box['encoder'] > 1e-3 > tuned.before.ljung_box['encoder']


def test_a_noise_of_zero_stays(observer, log):
    with pytest.raises(SettingError, match='one above 0'):
        tune(observer, [log], {'acceleration': 0.0})


def test_what_is_skipped_does_not_count(observer, log):
    run = run_of(observer, log)
    parts = -0.5 * (np.log(run.innovation_variance) + run.innovation ** 2 / run.innovation_variance)[:, 0]
    assert log_likelihood(run, 100) == pytest.approx(parts[100:].sum())
    with pytest.raises(SettingError, match='skip'):
        tune(observer, [log], {'acceleration': 1.0}, skip=DT * SAMPLES)


def test_a_missing_sample_does_not_count(observer, log):
    gone = log.measured.copy()
    gone[50:60] = np.nan
    run = run_of(observer, Log(log.t, gone, log.q, log.qd, log.stddev))
    parts = -0.5 * (np.log(run.innovation_variance) + run.innovation ** 2 / run.innovation_variance)[:, 0]
    assert log_likelihood(run) == pytest.approx(parts[:50].sum() + parts[60:].sum())


def test_white_noise_is_white_and_a_walk_is_not():
    rng = np.random.default_rng(2)
    p = np.array([ljung_box(rng.normal(size=500)) for _ in range(400)])
    assert np.all(np.abs(np.quantile(p, [0.05, 0.5, 0.95]) - [0.05, 0.5, 0.95]) < 0.07)
    colored = np.convolve(rng.normal(size=500), [1.0, 0.5], 'same')
    assert ljung_box(colored) < 1e-6
    assert autocorrelation(colored, 1)[0] == pytest.approx(0.4, abs=0.1)
    assert white_of(np.column_stack([colored, rng.normal(size=500)])) == pytest.approx(2 * ljung_box(colored))
    assert ljung_box(np.full(500, 3.0)) == 1.0 and ljung_box(np.full(500, np.nan)) == 1.0


@pytest.mark.parametrize('mechanism', KNOWN)
def test_every_default_fits_its_filter(mechanism):
    of = problem(load_model(mechanism, backend='vm'), [])
    for name in set(OF_MECHANISMS) - set(CHOOSY):
        filter_, noises = make_filter(name, of), default_noises(name, mechanism)
        assert set(noises) == set(filter_.noises), name
        for noise, value in noises.items():
            np.broadcast_to(value, filter_.tuning.parts[noise][:1])
        assert default_stddev(filter_, mechanism).shape == (filter_.state.parts['x'][0],)


def test_defaults_of_others():
    four, five = (default_noises('SCKF', name) for name in KNOWN)
    assert default_noises('SCKF', 'pendulum') == four != five
    with pytest.raises(SettingError, match='errorEKF_FE'):
        default_noises('no_filter', 'four_bar')
