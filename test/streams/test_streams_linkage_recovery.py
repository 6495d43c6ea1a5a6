# SPDX-License-Identifier: Apache-2.0
"""Starts in motion, quick motions and broken sensors: every filter is right, or says that it is not and why, and comes
back."""

from functools import lru_cache

import double_pendulum_by_hand as by_hand
import numpy as np
import pytest

import mbse_ros as mbse
from mbse_ros.dynamics.model import load_model
from mbse_ros.filters.filters import OF_MECHANISMS
from mbse_ros.monitor.steps import common_step
from mbse_ros.streams.linkage import LinkageSettings, LinkageStage
from mbse_ros.streams.records import ObserverStatus

RATE, SECONDS = 100.0, 3.0
ORIGIN = 10 ** 18
CHANNELS = ('enc_a', 'enc_b', 'elbow.x', 'elbow.y', 'tip.x', 'tip.y')
ALL = {'kinematic', 'dual'}             # filters that need the accelerometers
PARAMETERS = {'joint', 'dual'}
BROAD = 0.03                            # rad: what a filter may be off beside four of its deviations


@lru_cache
def log(rate=RATE, seconds=SECONDS):
    """Times, true angles (k, 2) and samples (k, 6) of a pendulum that swings from the first sample on."""
    t, y = by_hand.motion([-1.1, 0.5, 0.4, 1.9], seconds, rate)
    return t, y[:, :2], by_hand.samples(y)


@lru_cache(maxsize=1)
def stage(estimator, rate=RATE, **settings):
    model = by_hand.model()
    sensors = ('enc_a', 'enc_b', 'elbow', 'tip') if estimator in ALL else ('enc_a', 'enc_b')
    noises = {'errorEKF_FE': 'acceleration=1e4', 'direct_FE': 'acceleration=1e4', 'ADEKF': 'force_walk=1e-4',
              'errorEKF_FE_SH': 'color_walk=100'}.get(estimator, 'acceleration=2')
    return LinkageStage(model, LinkageSettings(estimator=estimator, noises=noises, **settings), sensors, 1.0 / rate,
                        'vm')


class Run:
    """Estimates of a log: times (k,), errors (k, 2), deviations (k, 2) of the angles, whether OK, and reasons."""

    def __init__(self, one, t, truth, measured):
        one.reset()
        found = []
        for at, row in zip(t, measured):
            sent = {name: value for name, value in zip(CHANNELS, row) if name in one.channels and value == value}
            found += one.add(ORIGIN + round(at * 1e9), sent) if sent else ()
        self.estimates = found
        self.t = np.array([(e.stamp_ns - ORIGIN) * 1e-9 for e in found])
        right = truth[np.rint(self.t / (t[1] - t[0])).astype(int)]
        self.error = np.abs(np.array([e.q[one.model.z] for e in found]) - right)
        places = [one.model.independent.index(name) for name in ('a', 'b')]
        self.stddev = np.array([np.sqrt(np.fmax(np.diag(e.covariance)[places], 0.0)) for e in found])
        self.outside = ~(self.error <= 4.0 * self.stddev + BROAD).all(axis=1)
        self.ok = np.array([e.status is ObserverStatus.OK for e in found])

    def silent(self):
        """Longest time, s, in which the estimate is outside and the status good."""
        longest = count = 0
        for wrong in (self.outside & self.ok).tolist():
            count = count + 1 if wrong else 0
            longest = max(longest, count)
        return longest * np.median(np.diff(self.t))

    def reasons(self, first, last):
        """All that was said between two times."""
        return ' '.join(e.reason for e, t in zip(self.estimates, self.t)
                        if first <= t <= last and e.status is not ObserverStatus.OK)


def during(t, first, last):
    return (t >= first - 1e-9) & (t < last - 1e-9)


@pytest.mark.parametrize('estimator', OF_MECHANISMS)
def test_every_filter_is_right_or_says_that_it_is_not(estimator):
    """A log that starts in motion, has a jump that goes back, a gap and spikes: never OK and outside for long."""
    t, truth, measured = log()
    found, jump, gap, spikes = measured.copy(), during(t, 0.6, 1.1), during(t, 1.6, 2.0), during(t, 2.5, 2.8)
    found[jump, 1] += 0.5
    found[gap, 0] = np.nan
    found[spikes.nonzero()[0][::4], 1] += 1.0
    run = Run(stage(estimator), t, truth, found)
    assert run.silent() < 0.3
    if estimator != 'CEKF_published':       # whose covariance is none, whatever the samples
        assert run.ok[during(run.t, 0.3, 0.6)].any() or estimator == 'dual'
        assert 'enc_b' in run.reasons(0.6, 1.1) and 'silent: enc_a' in run.reasons(1.6, 2.0)
        assert np.isfinite(run.error[-10:]).all()


def slow_faults(t, measured):
    """By name, samples of a slow log without and with a fault of an encoder."""
    swapped, stuck, step = (measured.copy() for _ in range(3))
    swapped[:, [0, 1]] = swapped[:, [1, 0]]
    stuck[:, 1] = stuck[0, 1]
    step[t >= 1.5, 1] += 0.5
    return {'healthy': measured, 'swapped': swapped, 'stuck': stuck, 'step': step}


@pytest.mark.parametrize('estimator, rate', [('UKF', 5.0), ('errorEKF_FE', 10.0), ('ADEKF', 20.0)])
def test_samples_that_any_value_would_fit_are_no_good_status(estimator, rate):
    """Predicted over a long step, or with much noise; and what is LOST states the deviations of all that can be."""
    t, y = by_hand.motion([-1.1, 0.5, 0.4, 1.9], 4.0, rate)
    one = LinkageStage(by_hand.model(), LinkageSettings(estimator=estimator), ('enc_a', 'enc_b'), 1.0 / rate, 'vm')
    for fault, measured in slow_faults(t, by_hand.samples(y)).items():
        run = Run(one, t, y[:, :2], measured)
        assert run.silent() <= 0.6, fault
        lost = [e.status is ObserverStatus.LOST and 'rejected' in e.reason for e in run.estimates]
        lost &= np.isfinite(run.error).all(axis=1)
        assert (run.error[lost] < 4.0 * run.stddev[lost]).all() and (run.stddev[lost] > 5.0).all(), fault
    if estimator == 'ADEKF':        # whose default noise of the forces is that of a machine of tons
        assert 'nothing checks enc_a' in run.reasons(1.0, 4.0) and not run.ok.any()


def test_a_log_that_starts_in_motion_is_right_at_once():
    """Row of a free swing at 1 kHz: the gate does not take the first speed for a fault."""
    t, truth, measured = log(1000.0, 0.6)
    for estimator in ('errorEKF_FE', 'DEKF'):
        one = LinkageStage(by_hand.model(), LinkageSettings(estimator=estimator), ('enc_a', 'enc_b'), 1e-3, 'vm')
        run = Run(one, t, truth, measured)
        assert run.error[20:].max() < 0.01 and run.ok[110:].all()


def test_a_quick_motion_starts_both_coordinates_again_with_the_speed_of_the_samples():
    """Faster than the start's deviation allows: refused, then found again within ``lost_after`` and its settling."""
    t, y = by_hand.motion([-1.1, 0.5, 0.4, 1.9], 1.0, RATE)
    more, kicked = by_hand.motion([*y[-1, :2], 7.0, -12.0], 2.0, RATE)
    y = np.vstack([y, kicked])
    t = np.arange(len(y)) / RATE
    one = stage('errorEKF_EJ')
    run = Run(one, t, y[:, :2], by_hand.samples(y))
    assert run.silent() < 0.2 and 'starts again' in run.reasons(1.0, 1.6)
    assert run.ok[run.t > 2.2].all() and not run.outside[run.t > 1.7].any()


@pytest.mark.parametrize('fault, named', [('degrees', 'enc_b'), ('reversed', 'enc_a'), ('swapped', 'enc_'),
                                          ('garbage', 'enc_b'), ('noise', 'does not fit: mean NIS of enc_a')])
def test_faults_from_the_first_sample_on_are_never_silent(fault, named):
    t, truth, measured = log()
    found, rng = measured.copy(), np.random.default_rng(2)
    if fault == 'degrees':
        found[:, 1] = np.degrees(found[:, 1])
    elif fault == 'reversed':
        found[:, 0] *= -1.0
    elif fault == 'swapped':
        found[:, [0, 1]] = found[:, [1, 0]]
    elif fault == 'garbage':
        found[:, 1] = rng.normal(size=len(t))
    else:
        found[:, :2] += 4e-3 * rng.normal(size=(len(t), 2))
    run = Run(stage('errorEKF_EJ'), t, truth, found)
    assert run.silent() < 0.3 and named in run.reasons(0.0, SECONDS)
    assert run.ok[run.t > 1.5].mean() < 0.1


def test_a_jump_that_stays_is_never_trusted_and_one_that_goes_back_is_forgotten():
    t, truth, measured = log()
    one, stays, back = stage('errorEKF_EJ'), measured.copy(), measured.copy()
    stays[t >= 1.0, 1] += 0.5
    run = Run(one, t, truth, stays)
    assert not run.ok[run.t > 1.1].any() and 'jumped: enc_b by 0.' in run.reasons(1.1, SECONDS)
    back[during(t, 1.0, 1.3), 1] += 0.5
    run = Run(one, t, truth, back)
    assert run.silent() < 0.1 and run.ok[run.t > 2.2].all() and not run.outside[run.t > 1.9].any()


def test_a_quantised_sensor_at_rest_is_in_order_and_one_with_noise_that_stays_is_not():
    t = np.arange(300) / RATE
    rest = np.tile([-np.pi / 2, 0.0, 0.0, 0.0], (300, 1))
    run = Run(stage('errorEKF_EJ'), t, rest[:, :2], by_hand.samples(rest, quantum=by_hand.QUANTUM * 10))
    assert run.ok[20:].all()
    t, truth, _ = log()
    _, y = by_hand.motion([-1.1, 0.5, 0.4, 1.9], SECONDS, RATE)
    measured = by_hand.samples(y, quantum=0.0)
    measured[t >= 1.0, 0] = measured[100, 0]
    run = Run(stage('errorEKF_EJ'), t, truth, measured)
    assert run.silent() < 0.2 and 'constant: enc_a' in run.reasons(2.0, SECONDS) and not run.ok[run.t > 1.5].any()


def test_the_step_of_quantised_values():
    def found(values, finest=1e-5):
        step = np.nan
        for a, b in zip(values, values[1:]):
            step = common_step(step, abs(b - a), finest) if a != b else step
        return step
    rng = np.random.default_rng(0)
    q = by_hand.QUANTUM
    assert found(q * np.round(rng.normal(size=30) / q)) == pytest.approx(q, rel=0.02)
    assert found(rng.normal(size=30)) == 0.0 and np.isnan(found([1.0, 1.0]))


def test_a_bad_first_sample_spoils_no_more_than_the_first_half_second():
    t, truth, measured = log()
    found = measured.copy()
    found[0, 0] += 1.0
    run = Run(stage('errorEKF_EJ'), t, truth, found)
    assert run.silent() < 0.2 and run.ok[run.t > 1.2].all() and not run.outside[run.t > 0.6].any()


LIMITED = """
format: mbse/mechanism/1
name: boom
dimension: 3
gravity: 9.81
points: {O: {fixed: [0, 0, 0]}}
bodies: {boom: {points: {O: [0, 0, 0]}, mass: 10, center_of_mass: [0, 0, 0], inertia: {xx: 1, yy: 1, zz: 1}}}
joints: {swing: {type: revolute, parent: ground.O, child: boom.O, axis: [0, 0, 1], start: 0, limits: [-1, 1]}}
named: {slew: {joint: swing}}
independent: [slew]
sensors:
  slew_encoder: {kind: encoder, coordinate: slew, stddev: 1e-3}
"""


def test_samples_beyond_the_limits_of_a_joint_are_named_and_a_state_beyond_them_is_lost():
    from mbse_ros.description.load import parse_mechanism
    from mbse_ros.dynamics.model import Model
    one = LinkageStage(Model(parse_mechanism(LIMITED), backend='vm'), LinkageSettings(), (), 0.05, 'vm')
    place = one.model.z[0]
    for k in range(60):
        value = 0.3 + 1e-3 * (k % 3)
        found = one.add(ORIGIN + k * 50_000_000, {'slew_encoder': np.degrees(value) if k < 30 else value})
        if k == 29:
            assert found[-1].status is not ObserverStatus.OK
            assert 'slew_encoder reads 17.' in found[-1].reason and 'limits of slew, -1 to 1' in found[-1].reason
    assert found[-1].status is ObserverStatus.OK and found[-1].q[place] == pytest.approx(0.3, abs=0.01)
    of, state = one._history.last.running.observer.filter.state, one._history.last.state
    state[of.places['q']][place] = state[of.places['x']][0] = 40.0
    lost = one.add(ORIGIN + 60 * 50_000_000, {'slew_encoder': np.nan})[-1]
    assert lost.status is ObserverStatus.LOST and np.isnan(lost.mean).all() and 'slew at 40' in lost.reason
    again = one.add(ORIGIN + 61 * 50_000_000, {'slew_encoder': 0.3})[-1]
    assert again.restart and again.q[place] == pytest.approx(0.3, abs=0.01) and 'slew at 40' in again.reason


def test_what_others_see_too_does_not_start_again():
    """The crank's gyro contradicts its encoder: the gyro is named; the encoder alone sees the position."""
    model = load_model('four_bar', backend='vm')
    one = LinkageStage(model, LinkageSettings(estimator='errorEKF_EJ', noises='acceleration=0.2'),
                       ('encoder', 'crank_gyro'), 0.01, 'vm')
    rng = np.random.default_rng(0)
    theta = model.start.q[model.z[0]]
    truth = theta + 0.3 * np.sin(2.0 * np.arange(300) * 0.01)
    rate = 0.6 * np.cos(2.0 * np.arange(300) * 0.01)
    found = []
    for k in range(300):
        gyro = rate[k] + 1e-3 * rng.normal() + (2.0 if k > 100 else 0.0)
        found += one.add(ORIGIN + k * 10_000_000, {'encoder': truth[k] + 0.0175 * rng.normal(), 'crank_gyro': gyro})
    late = [e for e in found[200:] if e.status is not ObserverStatus.OK]
    assert len(late) > 90 and all('crank_gyro' in e.reason for e in late)


def test_an_observer_of_arrays_judges_and_recovers_as_the_stage_does():
    t, truth, measured = log()
    found = measured[:, :2].copy()
    found[during(t, 1.0, 1.3), 1] += 0.5
    observer = mbse.Observer(by_hand.model(), 'errorEKF_EJ', ['enc_a', 'enc_b'], noises={'acceleration': 2.0},
                             backend='vm').start(truth[0])
    run = observer.run(t + 1.0 / RATE, found)
    error, ok = np.abs(run.q[:, observer.model.z] - truth).max(axis=1), np.array(run.status) == 'ok'
    assert not (ok & (error > BROAD)).any() and ok[t > 2.2].all()
    assert not ok[:10].any() and set(run.status[:100]) - {'ok', 'starting'}        # it was told to start at rest
    assert any('jumped: enc_b' in text for text in run.warnings)
    wrong = observer.start(truth[0], truth[1] * RATE - truth[0] * RATE).run(
        t + 1.0 / RATE, measured[:, :2] + 4e-3 * np.random.default_rng(0).normal(size=truth.shape))
    assert any('does not fit: mean NIS of enc_a' in text for text in wrong.warnings) and 'ok' not in wrong.status[150:]


def test_a_mechanism_held_by_forces_that_the_model_lacks_is_followed_with_more_noise():
    """A raised arm at rest, encoders in steps at 19 Hz: the model falls; the sensors are in order, and nobody is LOST
    for good."""
    t = np.arange(200) / 19.0
    held = np.tile([0.3, -0.4, 0.0, 0.0], (len(t), 1))
    held[80:110, 0] += 0.02 * np.arange(30)
    held[110:, 0] += 0.6
    model = by_hand.model()
    one = LinkageStage(model, LinkageSettings(estimator='DEKF'), ('enc_a', 'enc_b'), round(1 / 19, 6), 'vm')
    run = Run(one, t, held[:, :2], by_hand.samples(held))
    assert run.silent() < 0.2 and not run.outside[t > 6.0].any()
    assert 'does not fit: the noise of the motion is raised 1' in run.reasons(6.0, 11.0)
    assert 'constant' not in run.reasons(0.0, 11.0) and not any(e.status is ObserverStatus.LOST
                                                                for e in run.estimates[120:])


def test_a_position_that_the_encoder_alone_sees_starts_again_though_the_gyro_agrees():
    model = load_model('four_bar', backend='vm')
    one = LinkageStage(model, LinkageSettings(estimator='errorEKF_EJ', noises='acceleration=0.2'),
                       ('encoder', 'crank_gyro'), 0.01, 'vm')
    rng, t = np.random.default_rng(0), 0.01 * np.arange(250)
    angle, rate = model.start.q[model.z[0]] + 0.3 * np.sin(2.0 * t), 0.6 * np.cos(2.0 * t)
    found = []
    for k, at in enumerate(t):
        encoder = angle[k] + 2e-3 * rng.normal() + (0.6 if at >= 1.0 else 0.0)
        found += one.add(ORIGIN + round(at * 1e9), {'encoder': encoder, 'crank_gyro': rate[k] + 1e-3 * rng.normal()})
    places = np.array([e.q[model.z[0]] for e in found]) - angle
    assert 0.5 < places[-60:].mean() < 0.7 and any('theta starts again' in e.reason for e in found)
    assert not any(e.status is ObserverStatus.OK for e in found[110:])     # it jumped, and nothing shows which is right


@pytest.mark.parametrize('wrong', ['none', 'swapped', 'negated', 'in g'])
def test_accelerometers_that_drive_a_wrong_prediction_are_named(wrong):
    """A good encoder is rejected, as the acceleration takes the prediction away from it."""
    made = mbse.simulate('four_bar', 2.0, sensors=['encoder', 'crank_tip'], rate=200.0).samples
    values = made.values.copy()
    tip = values[:, 1:]
    values[:, 1:] = {'swapped': tip[:, ::-1], 'negated': tip * [-1, 1], 'in g': tip / 9.81}.get(wrong, tip)
    one = LinkageStage(load_model('four_bar'), LinkageSettings(estimator='kinematic'), ('encoder', 'crank_tip'), 0.005,
                       'vm')
    reasons = [found.reason for t, row in zip(made.t, values)
               for found in one.add(ORIGIN + round(t * 1e9), dict(zip(made.names, row)))]
    named = [reason for reason in reasons if 'or wrong are crank_tip.x, crank_tip.y, which drive' in reason]
    assert bool(named) == (wrong != 'none') and all('encoder' in reason for reason in named)
