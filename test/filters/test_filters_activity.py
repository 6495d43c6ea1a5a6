# SPDX-License-Identifier: Apache-2.0
"""Activity of the observer, samples that count once, and the gate that separates a shock from a wrong sample."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from core_support import kinematic

from mbse_ros.filters.activity import activity_of
from mbse_ros.filters.between_samples import SamplePlans
from mbse_ros.filters.hydraulic_model import hydraulic_model
from mbse_ros.filters.hydraulic_observer import HydraulicObserver
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.machine import Machine, load_machine

DT, AT = 1e-3, np.array([0.25, 5e6, 3e6])
SENSORS = np.array([4e-4, 12e3, 8e3])


@cache
def machine(valve: str = 'unknown') -> Machine:
    return load_machine('patu655_lift', valve)


def started(settings: ObserverSettings = kinematic()) -> HydraulicObserver:
    observer = HydraulicObserver(machine(), settings, 'vm')
    observer.start(AT, np.zeros(0))
    return observer


def run(observer: HydraulicObserver, samples: np.ndarray) -> list:
    """Results, a segment of ten steps for each sample (channels,)."""
    return [observer.process(np.tile(row, (10, 1)), np.zeros((10, 0)), np.full(3, 10.0), DT) for row in samples]


def activity(observer: HydraulicObserver) -> float:
    return float(observer.running.state[observer._activity][0])


def noisy(n: int, scale: float = 1.0) -> np.ndarray:
    return AT + scale * SENSORS * np.random.default_rng(4).standard_normal((n, 3))


def test_activity_falls_at_rest_and_rises_where_the_filter_lags() -> None:
    observer = started()
    run(observer, noisy(1500))
    quiet = activity(observer)
    ramp = noisy(40)
    ramp[:, 0] += 0.5 * 1.0 * (np.arange(40) * 0.01) ** 2      # 1 m/s2
    run(observer, ramp)
    assert quiet < 0.3 and activity(observer) > 10 * quiet


def test_activity_keeps_its_range() -> None:
    fixed, some = started(kinematic(activity_range=1.0)), started(kinematic(activity_range=2.0))
    shock = noisy(340)
    shock[300:, 0] += 0.5 * 1.0 * (np.arange(40) * 0.01) ** 2      # 1 m/s2
    run(fixed, shock)
    assert activity(fixed) == 1.0
    found = []
    for row in shock:
        run(some, row[None, :])
        found.append(activity(some))
    assert min(found) == pytest.approx(0.5) and max(found[300:]) == pytest.approx(2.0)


@pytest.mark.parametrize('name, valve, position', [
    ('patu655_lift', 'orifice', False), ('patu655_lift', 'unknown', True), ('zx200_can', 'orifice', False),
    ('zx200_can', 'unknown', True)])
def test_channels_and_noises_of_a_coordinate(name: str, valve: str, position: bool) -> None:
    m = load_machine(name, valve)
    model = hydraulic_model(m)
    lively = activity_of(m, model)
    for k, coordinate in enumerate(m.coordinates):
        seen = {m.channels[i] for i in lively.channels[k]}
        noises = {model.names[i] for i in lively.noises[k]}
        free = k not in m.actuated
        assert (f'position/{coordinate}' in seen) == (position or free)
        assert sum(channel.startswith('pressure/') for channel in seen) == (0 if free else 2)
        assert f'acceleration/{coordinate}' in noises and len(noises) == (3 if position and not free else 1)


@pytest.mark.parametrize('channel, error', [(0, 0.05), (1, 20e6), (2, 20e6)])
def test_one_wrong_sample_is_rejected_and_forgotten(channel: int, error: float) -> None:
    samples = noisy(320)
    samples[300, channel] += error
    results, right = run(started(), samples), run(started(), noisy(320))
    assert [k for k, r in enumerate(results) if r.rejected.any()] == [300] and results[300].rejected[channel]
    assert results[300].innovation[channel] == pytest.approx(error, rel=0.1)
    deviation = np.sqrt(np.diag(right[-1].covariance))
    assert (np.abs(results[-1].mean[-1] - right[-1].mean[-1]) < deviation)[[0, 1, 3, 4]].all()


def test_a_shock_is_no_wrong_sample() -> None:
    """A machine at rest that moves off within a sample: a ramp of 0.3 m/s."""
    samples = noisy(330)
    samples[300:, 0] += 0.3 * 0.01 * np.arange(1, 31)
    results = run(started(), samples)
    assert not any(r.rejected.any() for r in results)
    assert results[-1].mean[-1, 1] == pytest.approx(0.3, abs=0.02)


@pytest.mark.parametrize('lengths', [[10] * 12, [7, 14, 9, 10, 3, 17] * 2, [120]])
@pytest.mark.parametrize('interval', [1.0, 3.3, 10.0])
def test_in_the_long_run_each_sample_counts_once(lengths: list[int], interval: float) -> None:
    plans = SamplePlans(1)
    taken = np.concatenate([plans.next(n, np.array([interval]), DT).used for n in lengths])[:, 0]
    assert abs(taken.sum() - 120 / interval) <= 0.5 + 1e-6 and taken[-max(1, round(interval / 2)):].any()


def test_what_stands_between_samples_changes_nothing() -> None:
    values = np.repeat(noisy(6), 10, axis=0)
    alone = np.full_like(values, np.nan)
    alone[9::10] = values[9::10]
    expected, found = (started().process(v, np.zeros((60, 0)), np.full(3, 10.0), DT) for v in (alone, values))
    np.testing.assert_array_equal(found.mean, expected.mean)
    steps = np.arange(9, 60)
    for column in found.mean.T:
        np.testing.assert_allclose(column[9:], np.interp(steps, steps[::10], column[9::10]), rtol=1e-9, atol=1e-12)
