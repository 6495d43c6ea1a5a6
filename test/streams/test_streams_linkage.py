# SPDX-License-Identifier: Apache-2.0
"""The linkage stage: samples in any order and rate, bad sensors, gaps."""

from dataclasses import replace

import numpy as np
import pytest
from linkage_stages import COUNT, DT, SENSORS, SETTINGS, START, STEP, feed, five_bar_stage, stage

from mbse_ros.dynamics.model import load_model
from mbse_ros.dynamics.motion import simulate
from mbse_ros.filters.observer import LinkageObserver
from mbse_ros.streams.linkage import LinkageSettings, LinkageStage, Measured
from mbse_ros.streams.records import ObserverStatus

pytestmark = pytest.mark.usefixtures('vm')


def batch(model, measured, settings=SETTINGS, sensors=SENSORS):
    """The same in one run."""
    observer = LinkageObserver(model, settings.estimator, sensors, {'acceleration': 0.1})
    observer.start(stddev=np.repeat([settings.start_position, settings.start_velocity], 1))
    return observer.run(DT * np.arange(1, len(measured) + 1), measured)


def test_samples_in_order_equal_the_batch(model, measured):
    result = feed(stage(model), measured)
    expected = batch(model, measured)
    assert [e.sequence for e in result] == list(range(1, COUNT + 1)) and {e.revision for e in result} == {0}
    assert [e.stamp_ns for e in result] == [START + k * STEP for k in range(COUNT)]
    np.testing.assert_allclose([e.mean for e in result], expected.mean, rtol=0, atol=1e-12)
    np.testing.assert_allclose(result[-1].covariance, expected.covariance, rtol=1e-9)
    np.testing.assert_allclose([e.nis for e in result], expected.nis, rtol=1e-9)


def test_several_rates_and_missing_samples_equal_the_batch(model, measured):
    thinned = measured.copy()
    thinned[np.arange(COUNT) % 4 != 0, 0] = np.nan      # encoder at 50 Hz
    thinned[100:120, 1] = np.nan
    one, expected = stage(model), batch(model, thinned)
    for k in range(COUNT):
        one.add(START + k * STEP, {name: value for name, value in zip(SENSORS, thinned[k]) if k % 3 or value == value})
    last = one.add(START + (COUNT - 1) * STEP, {'encoder': np.nan})[-1]
    np.testing.assert_allclose(last.mean, expected.mean[-1], rtol=0, atol=1e-12)
    np.testing.assert_allclose(last.covariance, expected.covariance, rtol=1e-9)


def test_late_samples_within_the_window_equal_the_batch(model, measured):
    one, expected, random = stage(model), batch(model, measured), np.random.default_rng(1)
    events = [(k + (random.integers(0, 15) if i else 0), k, i) for k in range(COUNT) for i in range(2)]
    final = {}
    for _, k, i in sorted(events):
        for estimate in one.add(START + k * STEP, {SENSORS[i]: measured[k, i]}):
            final[estimate.sequence] = estimate
    assert one.dropped == {}
    assert final[COUNT].revision > 0
    np.testing.assert_allclose(final[COUNT].mean, expected.mean[-1], rtol=0, atol=1e-12)
    np.testing.assert_allclose(final[COUNT].covariance, expected.covariance, rtol=1e-9)


def test_later_ones_are_dropped_and_counted(model, measured):
    one = stage(model)
    feed(one, measured[:100])
    assert one.add(START + 50 * STEP, {'encoder': 1.0}) == ()
    assert one.dropped == {'later than the delay window': 1}
    refusal, = one.refusals()
    assert refusal.channel == 'encoder' and 'stamp after' in str(refusal) and one.refusals() == []


def test_unknown_and_infinite_samples_are_dropped_and_counted(model, measured):
    one = stage(model)
    feed(one, measured[:10])
    estimate, = one.add(START + 10 * STEP, {'encoder': measured[10, 0], 'crank_gyro': np.inf, 'nose': 1.0})
    assert one.dropped == {'unknown channel': 1, 'not finite': 1} and estimate.dropped == 2
    assert estimate.measured == (Measured.USED, Measured.MISSING)


def test_an_absurd_sample_is_rejected_with_the_reason(model, measured):
    one = stage(model, replace(SETTINGS, gate=0.9999))
    feed(one, measured[:100])
    estimate, = one.add(START + 100 * STEP, {'encoder': 1e6, 'crank_gyro': measured[100, 1]})
    assert estimate.measured == (Measured.REJECTED, Measured.USED)
    assert 'encoder' in estimate.reason and 'gate 3.89' in estimate.reason
    after = feed(one, measured, range(101, 200))
    assert after[-1].status is ObserverStatus.OK and after[-1].reason == ''


def test_a_wrong_start_is_taken_up(model, measured, motion):
    """All is rejected at first: lost, then at the measurements."""
    one = stage(model, replace(SETTINGS, gate=0.9999, lost_after=0.1))
    result = feed(one, measured, range(200, COUNT))
    statuses = [e.status for e in result]
    assert ObserverStatus.LOST in statuses and statuses[-1] is ObserverStatus.OK
    assert result[-1].mean[0] == pytest.approx(motion.of('theta')[-1], abs=0.03)


def test_nothing_but_nonsense_stays_lost(model, measured):
    one = stage(model, replace(SETTINGS, gate=0.9999))
    feed(one, measured[:20])
    result = feed(one, np.full((COUNT, 2), 1e6) + np.arange(COUNT)[:, None], range(20, COUNT))
    assert result[-1].status is ObserverStatus.LOST and 'rejected' in result[-1].reason
    assert all(np.isfinite(e.mean).all() and abs(e.mean[0]) < 100 for e in result)


def test_a_constant_sensor_is_left_out(model, measured):
    one = stage(model, replace(SETTINGS, constant_after=0.3))
    stuck = measured.copy()
    stuck[100:300, 0] = stuck[100, 0]
    result = feed(one, stuck, range(300))
    assert result[-1].status is ObserverStatus.COASTING and 'constant: encoder' in result[-1].reason
    assert one.dropped['constant sensor'] > 50
    assert feed(one, stuck, range(300, COUNT))[-1].status is ObserverStatus.OK


def test_a_silent_sensor_and_a_gap_are_reported(model, measured, motion):
    one = stage(model)
    feed(one, measured[:100])
    half = [one.add(START + k * STEP, {'crank_gyro': measured[k, 1]})[-1] for k in range(100, 200)]
    assert half[-1].status is ObserverStatus.COASTING and half[-1].reason == 'silent: encoder'
    later, = one.add(START + (199 + 6000) * STEP, {'crank_gyro': np.nan})        # 30 s
    assert later.status is not ObserverStatus.OK and later.sequence == 6200
    assert later.covariance[0, 0] > half[-1].covariance[0, 0]
    assert np.linalg.eigvalsh(later.covariance).min() > 0


def test_a_jump_of_time_starts_again_once_it_is_confirmed(model, measured):
    one = stage(model)
    feed(one, measured[:50])
    assert one.add(START + 10 ** 12, {'encoder': 1.0}) == ()        # one wrong stamp alone changes nothing
    assert feed(one, measured, range(50, 60))[-1].sequence == 60
    back = [one.add(START - 10 ** 12 + k * STEP, {'encoder': measured[k, 0]}) for k in range(5)]
    assert [len(b) for b in back] == [0, 0, 1, 1, 1]
    assert back[2][0].restart and back[2][0].sequence == 1 and not back[3][0].restart


def test_it_starts_at_the_encoders(model, measured, motion):
    first, *rest = feed(stage(model, replace(SETTINGS, start_at='sensors')), measured, range(200, 300))
    assert first.mean[0] == pytest.approx(measured[200, 0], abs=0.01)
    np.testing.assert_allclose(rest[-1].q, motion.q[300], atol=0.1)     # on the right branch too


def test_health(model, measured):
    one = stage(model, replace(SETTINGS, noises='acceleration=1e-6'))
    feed(one, measured)
    health = one.health()
    assert 0.7 < health.mean_nis < 1.4 and health.whiteness > 1e-3 and (health.rank, health.size) == (2, 2)


def test_inputs_are_held_and_belong_to_their_time():
    model = load_model('five_bar')
    sensors, count = ('encoder_1', 'encoder_2'), 40
    settings = replace(SETTINGS, start_position=1e-3, start_velocity=1e-3)
    torque = np.repeat([[5.0, -3.0], [-8.0, 2.0]], count // 2, axis=0)
    u = lambda t, q, qd: torque[min(int(t / DT + 1e-6), count - 1)]     # noqa: E731
    motion = simulate(model, count * DT, DT, 'exponential', inputs=u)     # reads u once a step
    one = LinkageStage(model, settings, sensors, DT)
    one.add(START - STEP, {'input/torque_1': 5.0, 'input/torque_2': -3.0})
    for k in range(count):
        out = one.add(START + k * STEP, dict(zip(sensors, motion.q[k + 1, model.z])))
        if k + 1 == count // 2:
            one.add(START + k * STEP, {'input/torque_1': -8.0, 'input/torque_2': 2.0})
    np.testing.assert_allclose(out[-1].q[model.z], motion.q[-1, model.z], atol=2e-4)
    np.testing.assert_allclose(out[-1].qd[model.z], motion.qd[-1, model.z], atol=2e-2)


def test_only_samples_of_instants_before_a_new_start_are_dropped(model, measured):
    """A gyro on a topic of its own is in time for its instant; one that is two instants late is not."""
    for late, dropped in ((0, {}), (2, {'of an instant before, or at, which the filter started (again)': 2})):
        one = stage(model, LinkageSettings())
        for k, angle in enumerate(measured[:, 0].tolist()):
            one.add(START + k * STEP, {'encoder': angle + (k > COUNT // 2)})
            if k >= late:
                one.add(START + (k - late) * STEP, {'crank_gyro': measured[k - late, 1]})
        assert one.dropped == dropped


def test_a_late_input_counts_from_its_instant_or_is_dropped_and_counted():
    results = {}
    for when in (10, 29, 30, 31):       # the window is 20 instants
        one, values = five_bar_stage()
        for k in range(40):
            out = one.add(START + k * STEP, values)
            if k == when:
                one.add(START + 10 * STEP, {'input/torque_1': 50.0})
        results[when] = out[-1].qd, one.dropped, one.refusals()
    for when in (29, 30):
        np.testing.assert_allclose(results[when][0], results[10][0], rtol=0, atol=1e-12)
        assert results[when][1] == {}
    assert results[31][1] == {'later than the delay window': 1}
    refusal, = results[31][2]
    assert refusal.channel == 'input/torque_1' and 'stamp after' in str(refusal)
    assert np.abs(results[31][0] - results[10][0]).max() > 0.01


@pytest.mark.parametrize('estimator', ['joint', 'dual'])
def test_estimated_parameters_are_reported(estimator):
    model = load_model('four_bar', free=('bodies.coupler.mass',))
    settings = replace(SETTINGS, estimator=estimator, noises='', options='parameters=bodies.coupler.mass',
                       start_parameter=0.2)
    one = LinkageStage(model, settings, ('encoder', 'crank_tip'), DT)
    true = float(model.parameters[0])
    assert one.channels[0] == 'encoder' and one.names[-1] == 'parameter/bodies.coupler.mass'
    estimate, = one.add(START, {'encoder': float(model.start.q[model.z[0]])})
    (name, (value, stddev)), = estimate.parameters.items()
    assert name == 'bodies.coupler.mass' and value == pytest.approx(true, rel=0.02)
    assert stddev == pytest.approx(0.2 * true, rel=0.1)


def test_the_force_says_what_it_is_along():
    one, values = five_bar_stage()
    assert one.add(START, values)[0].force_names == one.model.independent
    one, values = five_bar_stage(estimator='errorEKF_FE', options='actuators=torque_2')
    estimate, = one.add(START, values)
    assert estimate.force_names == ('torque_2',) and estimate.force.shape == estimate.force_stddev.shape == (1,)


def test_a_sensor_that_comes_second_in_its_instant_is_not_silent(model, measured):
    """On topics of their own: the gyro first, later the encoder first."""
    one = stage(model)
    for k in range(100):
        pairs = list(zip(SENSORS, measured[k]))
        for name, value in pairs[::-1] if k < 3 else pairs:
            last = one.add(START + k * STEP, {name: value})[-1]
    assert last.revision == 1 and (last.status, last.reason) == (ObserverStatus.OK, '')
