# SPDX-License-Identifier: Apache-2.0
"""The linkage stage while its filter, its noises and its other settings change: what is known goes along."""

from dataclasses import replace
from threading import Event

import numpy as np
import pytest
from linkage_stages import COUNT, DT, SENSORS, SETTINGS, START, STEP, feed, five_bar_stage, stage

from mbse_ros.dynamics.model import load_model
from mbse_ros.errors import SettingError
from mbse_ros.streams.active_filter import FilterCache
from mbse_ros.streams.linkage import LinkageSettings, LinkageStage
from mbse_ros.streams.records import ObserverStatus

pytestmark = pytest.mark.usefixtures('vm')


@pytest.mark.parametrize('estimator', ['DEKF', 'ADEKF', 'errorEKF_FE', 'direct_FE', 'UKF', 'UKF_acceleration', 'CEKF',
                                       'CEKF_penalty', 'SCKF'])
def test_switching_keeps_the_state(model, measured, motion, estimator):
    one = stage(model)
    before = feed(one, measured[:200])[-1]
    one.configure(replace(SETTINGS, estimator=estimator, noises=''))
    first, *rest = feed(one, measured, range(200, 300))
    assert first.estimator == estimator and first.sequence == 201 and not first.restart
    assert first.q[model.z[0]] == pytest.approx(motion.of('theta')[201], abs=0.02)
    place = first.names.index('position/theta')
    assert first.covariance[place, place] < 4 * before.covariance[0, 0]     # it did not begin again
    one.configure(SETTINGS)
    again = feed(one, measured, range(300, COUNT))
    assert again[0].estimator == 'errorEKF_EJ' and again[-1].status is ObserverStatus.OK
    assert again[-1].mean[0] == pytest.approx(motion.of('theta')[-1], abs=0.02)


def test_a_force_goes_along(model, measured):
    one = stage(model, LinkageSettings(gate=1.0))
    known = feed(one, measured[:300] + [0.3, 0.0])[-1].force
    one.configure(LinkageSettings(estimator='ADEKF', options='transition=exact', gate=1.0))
    first = feed(one, measured, range(300, 301))[0]
    force = first.mean[first.names.index('force/theta')]
    assert abs(known[0]) > 1 and force == pytest.approx(known[0], rel=0.5) and np.isfinite(first.force_stddev).all()


def test_noise_and_window_change_live(model, measured):
    one = stage(model)
    steady = feed(one, measured[:200])[-1].covariance[0, 0]
    one.configure(replace(SETTINGS, noises='acceleration=100', delay_window=0.0))
    assert feed(one, measured, range(200, 300))[-1].covariance[0, 0] > steady
    assert one.add(START + 298 * STEP, {'encoder': 0.0}) == ()


@pytest.mark.parametrize('change, name', [
    ({'noises': 'nose=1'}, 'noises'), ({'noises': 'acceleration=x'}, 'noises: acceleration'),
    ({'noises': 'acceleration=1,2'}, 'noises: acceleration'), ({'noises': 'acceleration'}, 'noises'),
    ({'stddev': 'encoder=0'}, 'stddev'), ({'stddev': 'nose=1'}, 'stddev'), ({'options': 'nose=1'}, 'options'),
    ({'noises': 'acceleration=-1'}, 'noises: acceleration')])
def test_bad_settings_are_refused_and_change_nothing(model, measured, change, name):
    one = stage(model)
    feed(one, measured[:10])
    with pytest.raises(SettingError) as error:
        one.configure(replace(SETTINGS, **change))
    assert error.value.name == name
    assert feed(one, measured, range(10, 20))[-1].sequence == 20 and one.settings == SETTINGS


def test_late_samples_round_a_switch_count_in_their_filter(model, measured):
    """Gyros come 20 instants late, so that those of before the change arrive after it."""
    late, prompt, other = stage(model), stage(model), replace(SETTINGS, estimator='DEKF')
    final = {}
    for k in range(120):
        if k == 100:
            prompt.configure(other)
            late.configure(other)
        expected, = prompt.add(START + k * STEP, dict(zip(SENSORS, measured[k])))
        for at, i in ((k, 0), (k - 19, 1)):
            for estimate in late.add(START + at * STEP, {SENSORS[i]: measured[at, i]}) if at >= 0 else ():
                final[estimate.sequence] = estimate
    for k in range(101, 120):
        estimate, = late.add(START + k * STEP, {'crank_gyro': measured[k, 1]})
    assert late.dropped == {} and final[100].estimator == 'errorEKF_EJ' and estimate.estimator == 'DEKF'
    np.testing.assert_allclose(estimate.mean, expected.mean, rtol=0, atol=1e-12)
    np.testing.assert_allclose(estimate.covariance, expected.covariance, rtol=1e-9)


def test_an_input_after_a_change_of_the_filter_is_not_lost():
    one, values = five_bar_stage(delay_window=0.0)
    for k in range(20):
        one.add(START + k * STEP, values)
        one.configure(replace(one.settings, estimator=('DEKF', 'errorEKF_EJ')[k % 2]))
        one.add(START + k * STEP, {'input/torque_1': 1.0})
    assert one.dropped == {}


def test_a_filter_is_compiled_in_the_background(model, measured):
    one, other, may, make = stage(model), replace(SETTINGS, estimator='SSUKF'), Event(), FilterCache._make
    one._active._cache._make = lambda settings: may.wait(120.0) and make(one._active._cache, settings)
    feed(one, measured[:20])
    one.configure(other, wait=False)
    assert one.requested == other and one.settings == SETTINGS and not one.activate()
    assert feed(one, measured, range(20, 21))[-1].estimator == 'errorEKF_EJ'
    one.configure(replace(other, gate=0.99), wait=False)        # the last word counts
    may.set()
    one._active._cache._requests['SSUKF', ''].result()
    assert one.activate() and one.requested is None and one.settings.gate == 0.99
    estimate, = feed(one, measured, range(21, 22))
    assert estimate.estimator == 'SSUKF' and estimate.sequence == 22 and not estimate.restart
    one.configure(SETTINGS, wait=False)
    assert one.requested is None and one.settings == SETTINGS     # it is there already
    assert not one.activate()


def test_what_cannot_be_compiled_leaves_the_filter_as_it_is(model, measured):
    one = stage(model)
    with pytest.raises(SettingError, match='options of DEKF'):
        one.configure(replace(SETTINGS, estimator='DEKF', options='nose=1'), wait=False)
    bad = replace(SETTINGS, estimator='DEKF', options='transition=nose')
    one.configure(bad, wait=False)
    with pytest.raises(SettingError, match='transition=nose'):
        one._active._cache._requests['DEKF', 'transition=nose'].result()
    with pytest.raises(SettingError):
        one.activate()
    assert one.requested is None and feed(one, measured[:10])[-1].estimator == 'errorEKF_EJ'


def test_a_bias_is_reported_and_goes_along():
    model = load_model('four_bar')
    one = LinkageStage(model, replace(SETTINGS, noises='acceleration=20', options='biases=crank_gyro', start_bias=0.03),
                       ('encoder', 'crank_gyro'), DT)
    assert one.names[-1] == 'bias/crank_gyro'
    theta, moving = float(model.start.q[model.z[0]]), 0.02
    for k in range(40):
        estimate = one.add(START + k * 5_000_000, {'encoder': theta, 'crank_gyro': moving})[0]
    found, spread = estimate.mean[-1], np.sqrt(estimate.covariance[-1, -1])
    assert 0 < spread < 0.03 and found > 0.005
    one.configure(replace(one.settings, estimator='errorEKF_EJ', noises=''))
    after = one.add(START + 40 * 5_000_000, {'encoder': np.nan, 'crank_gyro': np.nan})[0]
    assert one.names[-1] == 'bias/crank_gyro' and after.mean[-1] == pytest.approx(found)
    assert np.sqrt(after.covariance[-1, -1]) == pytest.approx(spread)


def test_the_error_of_an_acceleration_is_no_acceleration(model, measured):
    one = stage(model, replace(SETTINGS, estimator='errorEKF_FE', noises=''))
    before = feed(one, measured[:200])[-1]
    one.configure(replace(SETTINGS, estimator='direct_FE', noises=''))
    after = one.add(START + 200 * 5_000_000, {name: np.nan for name in one.channels})[0]
    place = after.names.index('acceleration/theta')
    assert after.mean[place] == pytest.approx(before.qdd[model.z[0]], abs=0.5)
    assert np.linalg.eigvalsh(after.covariance).min() > 0
