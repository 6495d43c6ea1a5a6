# SPDX-License-Identifier: Apache-2.0
"""The lagged stage: on the same samples what the offline smoother says, whatever the rate of the solver."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from mbse_ros.dynamics.model import load_model
from mbse_ros.errors import DivergenceError, SettingError
from mbse_ros.graph.smoother import LinkageSmoother
from mbse_ros.graph.window import ChainWindow
from mbse_ros.simulation.linkage import SimulatedLinkage
from mbse_ros.streams import lagged as module
from mbse_ros.streams.lagged import LaggedStage, smoother_noises
from mbse_ros.streams.linkage import LinkageSettings, LinkageStage, Measured
from mbse_ros.streams.records import ObserverStatus
from mbse_ros.streams.start import encoded, moved_to

pytestmark = pytest.mark.usefixtures('vm')

DT, LAG, COUNT, START = 0.005, 0.1, 240, 1_700_000_000_000_000_000
STEP = 5_000_000
SENSORS = ('encoder_1', 'encoder_2', 'coupler_gyro_1')
SETTINGS = LinkageSettings(gate=1.0)


@pytest.fixture(scope='module')
def model():
    return load_model('five_bar')


@pytest.fixture(scope='module')
def frames(model):
    """Frames of a driven five-bar."""
    plant = SimulatedLinkage(model, SENSORS, seed=4)
    return [plant.frame() for _ in range(COUNT)]


@pytest.fixture(scope='module')
def made(model):
    return LaggedStage(model, SETTINGS, SENSORS, DT, LAG)


@pytest.fixture
def stage(made):
    made.reset()
    return made


def samples(stage, frame):
    return {**dict(zip(stage.channels, frame.samples)), **dict(zip(stage.inputs, frame.inputs))}


def run(stage, frames, every=1, shift=0, change=None):
    """Estimates of all instants; solved after every so many frames."""
    out = []
    for k, frame in enumerate(frames):
        stamp = START + frame.stamp_ns + shift
        stage.add(stamp, samples(stage, frame) if change is None else change(k, samples(stage, frame)))
        while (k + 1) % every == 0 and stage.ready:
            out += stage.solve()
    return [*out, *stage.flush()]


@pytest.fixture(scope='module')
def offline(model, frames):
    """The same samples filtered, then smoothed offline with the lag, as ``mbse smooth`` does."""
    stage = LinkageStage(model, SETTINGS, SENSORS, DT)
    found = [e for f in frames for e in stage.add(START + f.stamp_ns, samples(stage, f))]
    assert len(found) == COUNT and all(e.used.all() for e in found)
    y, u = np.array([f.samples for f in frames]), np.array([f.inputs for f in frames])
    held = (np.vstack([np.zeros(u.shape[1]), u[:-1]]) + u) / 2
    held[-1] = u[-2]        # nothing came after it
    smoother = LinkageSmoother(model, SENSORS, DT, smoother_noises(model, SENSORS, SETTINGS))
    q = moved_to(model, encoded(model, stage.channels, y[0]))
    return smoother.lagged(DT * np.arange(COUNT), y, LAG, q, model.start.qd, held)


def test_each_instant_is_the_offline_smoothers(stage, frames, offline):
    found = run(stage, frames)
    assert [e.stamp_ns for e in found] == [START + f.stamp_ns for f in frames]
    assert [e.sequence for e in found] == list(range(1, COUNT + 1)) and [e.restart for e in found].count(True) == 1
    full = slice(COUNT - 24)        # after those the end is flushed: 4 instants at once
    for name, tolerance in (('mean', 1e-9), ('covariance', 1e-12), ('q', 1e-9), ('qdd', 1e-6), ('force', 1e-9)):
        got = np.array([getattr(e, name) for e in found[full]])
        np.testing.assert_allclose(got, getattr(offline, name)[full], rtol=1e-9, atol=tolerance)
    assert np.abs((np.array([e.mean for e in found[-20:]]) - offline.mean[-20:]) / offline.stddev[-20:]).max() < 0.02
    last = found[-1]
    assert last.estimator == 'smoother' and last.names[::2] == ('position/theta1', 'velocity/theta1', 'force/theta1')
    assert {e.status for e in found[30:]} == {ObserverStatus.OK}


def test_a_solver_that_runs_less_often_says_the_same(stage, frames, offline):
    """Each solution serves five instants; the last of them has the lag, the others know more of what comes after."""
    found = {}
    for k, frame in enumerate(frames):
        stage.add(START + frame.stamp_ns, samples(stage, frame))
        if stage.ready == 5:
            published = stage.solve()
            assert stage.ready == 0 and len(published) == (5 if k >= 28 else 0)
            found |= {e.sequence - 1: e for e in published}
    assert sorted(found) == list(range(len(found))) and len(found) > 200
    last = list(found)[4::5]
    off = np.array([(found[k].mean - offline.mean[k]) / offline.stddev[k] for k in last])
    assert np.abs(off).max() < 0.1        # the way to linearise differs
    np.testing.assert_allclose([np.diag(found[k].covariance) for k in last], offline.stddev[last] ** 2, rtol=0.05)
    more = [k for k in found if k not in last]
    ratio = np.array([np.diag(found[k].covariance) for k in more]) / offline.stddev[more] ** 2
    assert ratio.max() < 1.05 and ratio.mean() < 0.97


def test_samples_in_any_order_within_the_delay(stage, frames):
    """Gyro and inputs of an instant after the encoders of the next two."""
    expected = run(stage, frames[:100])
    stage.reset()
    found = []
    for k in range(102):
        if k < 100:
            all_of = samples(stage, frames[k])
            stage.add(START + frames[k].stamp_ns, {name: all_of[name] for name in SENSORS[:2]})
        if k >= 2:
            all_of = samples(stage, frames[k - 2])
            rest = {name: value for name, value in all_of.items() if name not in SENSORS[:2]}
            stage.add(START + frames[k - 2].stamp_ns, rest)
        found += stage.solve()
    found += stage.flush()
    assert [e.sequence for e in found] == [e.sequence for e in expected]
    assert all(e.measured == (Measured.USED,) * 3 for e in found)
    np.testing.assert_allclose([e.mean for e in found[:-1]], [e.mean for e in expected[:-1]], rtol=0, atol=1e-9)


def test_what_the_filter_rejects_stays_out(model, frames):
    stage = LaggedStage(model, replace(SETTINGS, gate=0.9999), SENSORS, DT, LAG)
    found = run(stage, frames, change=lambda k, s: {**s, 'encoder_1': s['encoder_1'] + (0.5 if k == 120 else 0)})
    assert [k for k, e in enumerate(found) if Measured.REJECTED in e.measured] == [120]
    assert found[120].measured[0] is Measured.REJECTED and found[120].innovation[0] > 0.3
    z = model.z
    assert np.abs([e.q[z] - f.q[z] for e, f in zip(found, frames)]).max() < 0.02


def test_a_short_gap_is_coasting_a_long_one_a_new_start(stage, frames):
    short = frames[:100] + frames[150:]
    found = run(stage, short)
    assert [e.sequence for e in found] == list(range(1, COUNT + 1))
    coasting = [e for e in found if e.status is ObserverStatus.COASTING]
    assert coasting and all(e.measured == (Measured.MISSING,) * 3 for e in coasting)
    assert np.sqrt(found[124].covariance[0, 0]) > 2 * np.sqrt(found[99].covariance[0, 0])
    assert [e.restart for e in found].count(True) == 1
    stage.reset()
    found = run(stage, frames[:100]) + run(stage, frames[100:], shift=2_000_000_000)
    assert [e.sequence for e in found] == [*range(1, 101), *range(501, 641)]
    _, again = (e.sequence for e in found if e.restart)
    assert 501 <= again < 541 and {e.status for e in found[100:again - 401]} <= {ObserverStatus.LOST}
    assert [e.status for e in found][-100:] == [ObserverStatus.OK] * 100


def test_a_divergence_is_reported_and_followed_by_a_new_start(stage, frames, monkeypatch):
    extend = ChainWindow.extend

    def fail(self, step, rows):
        if step == 101:
            raise DivergenceError('smoother', step, 'made up')
        return extend(self, step, rows)
    monkeypatch.setattr(ChainWindow, 'extend', fail)
    found = run(stage, frames)
    assert [e.sequence for e in found] == list(range(1, COUNT + 1))
    lost = [e for e in found if e.status is ObserverStatus.LOST]
    assert [e.sequence for e in lost] == list(range(81, 102)) and all(np.isnan(e.mean).all() for e in lost)
    assert all('step 101' in e.reason and 'made up' in e.reason for e in lost)
    assert [e.sequence for e in found if e.restart] == [1, 102]
    assert all(np.isfinite(e.mean).all() for e in found[101:])
    assert abs(found[150].q[stage.model.z[0]] - frames[150].q[stage.model.z[0]]) < 0.01


def test_sensors_that_contradict_the_estimate_are_lost(model, frames):
    stage = LaggedStage(model, replace(SETTINGS, gate=0.9999, lost_after=0.2), SENSORS, DT, LAG)
    found = run(stage, frames, change=lambda k, s: {
        **s, **({'encoder_1': s['encoder_1'] + 0.4, 'encoder_2': s['encoder_2'] + 0.4} if 100 <= k < 160 else {})})
    lost = [e for e in found if e.status is ObserverStatus.LOST]
    assert [e.sequence for e in found] == list(range(1, COUNT + 1))
    assert lost and all('rejected' in e.reason and np.isnan(e.mean).all() for e in lost)
    assert sum(e.restart for e in found) > 1 and found[-1].status is not ObserverStatus.LOST


def test_a_solver_far_behind_starts_again_and_says_so(stage, frames, monkeypatch):
    monkeypatch.setattr(module, 'BEHIND', 50)
    first = run(stage, frames[:40], every=1000)
    assert [e.sequence for e in first] == list(range(1, 41))
    stage.reset()
    found = run(stage, frames[:150], every=150)
    assert found[0].status is ObserverStatus.LOST and 'behind' in found[0].reason and found[0].dropped > 50
    assert found[1].restart and [e.sequence for e in found[1:]] == list(range(found[0].sequence + 1, 151))
    assert stage.dropped == {'solver too slow': found[0].sequence}


@pytest.mark.parametrize('settings, more, text', [
    ({'estimator': 'DEKF'}, {}, 'errorEKF_FE'), ({'options': 'transition=exact'}, {}, 'options'),
    ({'noises': 'nose=1'}, {}, 'acceleration'), ({'stddev': 'nose=1'}, {}, 'encoder_1'),
    ({}, {'delay': 0.6}, 'delay_window')])
def test_bad_settings_are_refused(model, settings, more, text):
    with pytest.raises(SettingError, match=text):
        LaggedStage(model, replace(SETTINGS, **settings), SENSORS, DT, LAG, **more)


def test_gtsam_is_not_needed(stage, frames, monkeypatch):
    monkeypatch.setitem(sys.modules, 'gtsam', None)
    assert len(run(stage, frames[:30])) == 30
