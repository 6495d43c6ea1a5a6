# SPDX-License-Identifier: Apache-2.0
"""Positions that a filter does not know, corrections that go far, samples that contradict the estimate."""

import casadi as ca
import numpy as np
import pytest
from linkage_faults import four_bar

from mbse_ros.dynamics.model import load_model
from mbse_ros.errors import SettingError
from mbse_ros.filters.filters import OF_MECHANISMS, default_noises, make_filter
from mbse_ros.filters.observer import LinkageObserver
from mbse_ros.filters.parts.model_step import RELAX, UNKNOWN
from mbse_ros.filters.parts.problem import problem
from mbse_ros.filters.parts.update import DOUBT, STRIDE, correction, widening

DT = 0.005
FORCED = ('errorEKF_FE', 'AerrorEKF_FE', 'errorEKF_FE_SH', 'direct_FE', 'ADEKF')
EKFS = (*FORCED, 'DEKF', 'errorEKF', 'errorEKF_EJ', 'direct_EJ', 'joint', 'kinematic')


def filter_of(estimator, sensors=('encoder',)):
    return make_filter(estimator, problem(four_bar(estimator, 'vm'), sensors))


def predicted(of, stddev, zd=2.0, force=30.0, steps=1):
    """Parts of the state before and after steps without samples; errors of positions ``stddev``, of velocities 1."""
    start, size = of.problem.model.start, of.state.parts['x'][0]
    spread = np.array([stddev, 1.0, *[0.1] * (size - 2)])
    parts = of.state.arrays(of.start(start.q, np.full(of.problem.n, zd), spread))
    if 'force' in parts and of.name in FORCED:
        parts['force'] = np.array([force])
    if of.name == 'ADEKF':
        parts['x'][2] = force
    noises = default_noises(of.name, 'four_bar')
    tuning = of.tuning.flat(dt=[DT], gate=[1e300], variance=np.ones(len(of.problem.channels)),
                            p=np.asarray(of.problem.model.parameters),
                            **{name: np.broadcast_to(value, of.tuning.parts[name][:1])
                               for name, value in noises.items()})
    flat, none = of.state.flat(**parts), np.full(len(of.problem.channels), np.nan)
    for k in range(1, steps + 1):
        given = of.given.flat(o=none, u=np.zeros(len(of.problem.model.inputs)), t=[k * DT])
        flat = np.array(of.predict(flat, given, tuning)).ravel()
    return parts, of.state.arrays(flat)


@pytest.mark.parametrize('estimator', EKFS)
def test_an_unknown_position_stands_still(estimator):
    of = filter_of(estimator, ('encoder', 'crank_tip') if estimator == 'kinematic' else ('encoder',))
    for stddev, stands in ((0.9 * UNKNOWN, False), (1.1 * UNKNOWN, True)):
        before, after = predicted(of, stddev)
        assert (after['x'][0] == pytest.approx(before['x'][0], abs=1e-12)) == stands
        assert (after['x'][1] == 0) == stands
        if estimator in FORCED:
            assert (after['force'][0] == 0) == stands
        if stands:              # what the mean leaves out is in the covariance
            assert after['P'][1, 1] == pytest.approx(1.0 + 2.0 ** 2, rel=0.2)
        if stands and estimator in ('errorEKF_FE', 'AerrorEKF_FE', 'errorEKF_FE_SH'):
            inverse = float(of.problem.rates(after['q'], 0.0, [0.0, 0.0], DT, of.problem.model.parameters)[2][1, -1])
            assert after['P'][2, 2] > 0.9 * (inverse * 30.0) ** 2


def test_the_spread_of_an_unknown_position_grows_as_the_root_of_time():
    _, after = predicted(filter_of('errorEKF_FE'), 1.1 * UNKNOWN, steps=6000)
    variance = after['P'][1, 1]
    expected = np.sqrt((1.1 * UNKNOWN) ** 2 + 2 * variance * RELAX * 30.0)
    assert variance == pytest.approx(5.0, rel=0.05) and np.sqrt(after['P'][0, 0]) == pytest.approx(expected, rel=0.1)
    assert np.linalg.eigvalsh(after['P'])[0] > 0


def test_a_correction_goes_no_further_than_its_stride():
    update = correction(2, (False,), 1)
    x, P, H = np.zeros(2), np.array([[4.0, 1.0], [1.0, 2.0]]), np.array([[1.0, 0.0]])
    near, far = (update(x, P, o, 0.0, H, 0.01, 1e300) for o in (0.4, 3.0))
    kalman = correction(2, (False,))(x, P, 0.4, 0.0, H, 0.01, 1e300)
    np.testing.assert_array_equal(np.array(near[0]), np.array(kalman[0]))
    np.testing.assert_array_equal(np.array(near[1]), np.array(kalman[1]))
    assert float(far[0][0]) == pytest.approx(STRIDE)
    gain = P @ H.T / 4.01 * (STRIDE / (4.0 / 4.01 * 3.0))
    keep = np.eye(2) - gain @ H
    np.testing.assert_allclose(np.array(far[1]), keep @ P @ keep.T + 0.01 * gain @ gain.T, atol=1e-12)    # Joseph
    for _ in range(20):         # the next samples go the rest of the way
        x, P, *_ = update(x, P, 3.0, x[0], H, 0.01, 1e300)
    assert float(x[0]) == pytest.approx(3.0, abs=0.01) and float(P[0, 0]) < 0.01


def test_a_covariance_widens_while_half_of_the_channels_are_refused():
    step, doubt = widening(3), np.zeros(3)
    for used, o, widens in (((0, 1, 1), (1.0, 1.0, 1.0), False), ((0, 0, 1), (1.0, 1.0, 1.0), True),
                            ((0, 1, 0), (1.0, np.nan, np.nan), True), ((0, 0, 0), (np.nan,) * 3, False)):
        doubt = np.zeros(3)
        for _ in range(int(DOUBT / DT) + 2):
            doubt, factor = step(doubt, o, used, DT)
        assert (float(factor) > 1) == widens, (used, o)
    doubt, factor = step(np.full(3, 2 * DOUBT), np.ones(3), np.ones(3), DT)
    assert float(ca.mmax(doubt)) == 0 and float(factor) == 1


def test_a_single_sample_is_one_step_after_the_last():
    runs = []
    for chunks in (np.split(np.arange(1, 41), 40), [np.arange(1, 41)]):
        observer = LinkageObserver(four_bar('DEKF', 'vm'), 'DEKF', ('encoder',), default_noises('DEKF', 'four_bar'))
        observer.start()
        runs.append([observer.run(k * DT, np.full((len(k), 1), 1.0)).mean[-1] for k in chunks][-1])
    np.testing.assert_allclose(*runs, rtol=1e-12)


def test_adekf_covariance_follows_its_mean():
    """Forward Euler: the force reaches the position only in the next step."""
    for transition in ('forward_euler', 'augmented_euler', 'exact'):
        of = make_filter('ADEKF', problem(four_bar('ADEKF', 'vm'), ('encoder',)), transition=transition)
        ends = [predicted(of, 0.1, force=force)[1]['x'] for force in (30.0, 31.0)]
        start = of.problem.model.start
        flat = of.start(start.q, np.full(of.problem.n, 2.0), 0.1)
        parts = of.state.arrays(flat)
        parts['force'], parts['x'][2] = np.array([30.0]), 30.0
        tuning = of.tuning.flat(dt=[DT], gate=[1e300], variance=[1.0], p=np.asarray(of.problem.model.parameters),
                                acceleration=[0.0], force_walk=[0.0])
        given = of.given.flat(o=[np.nan], u=np.zeros(len(of.problem.model.inputs)), t=[DT])
        F = np.array(of.transition(of.state.flat(**parts), given, tuning))
        np.testing.assert_allclose(F[:2, 2], (ends[1] - ends[0])[:2], rtol=0.02, atol=1e-12)


def test_a_mechanism_that_cannot_move_is_refused(tmp_path):
    path = tmp_path / 'triangle.yaml'
    path.write_text('''
format: mbse/mechanism/1
name: triangle
gravity: 9.81 m/s^2
points: {A: {fixed: [0, 0]}, B: {fixed: [3, 0]}, P: [1, 1]}
bodies:
  one: {points: [A, P], mass: 1 kg, uniform: true}
  two: {points: [P, B], mass: 1 kg, uniform: true}
sensors:
  gyro: {kind: gyro, body: one, stddev: 1e-3 rad/s}
''')
    of = problem(load_model(str(path), backend='vm'), ('gyro',))
    for estimator in OF_MECHANISMS:
        with pytest.raises(SettingError, match='degree of freedom'):
            make_filter(estimator, of)


def test_filters_say_which_coordinates_their_mean_holds():
    for estimator in OF_MECHANISMS:
        of = filter_of(estimator, ('encoder', 'crank_tip') if estimator in ('kinematic', 'dual') else ('encoder',))
        all_of_them = estimator in ('SCKF', 'DIEKFpm', 'CEKF_penalty')
        assert list(of.held) == (list(range(of.problem.n)) if all_of_them else of.problem.z)
        start = of.problem.model.start
        x = of.state.arrays(of.start(start.q, start.qd, 0.1))['x']
        if 2 * of.problem.g <= len(x):
            np.testing.assert_array_equal(x[:len(of.held)], start.q[of.held])


def test_a_mean_that_happens_to_be_as_long_as_all_coordinates():
    model = load_model('five_bar', backend='vm')
    sensors = ('encoder_1', 'encoder_2', 'crank_gyro_1', 'crank_gyro_2', 'coupler_gyro_1', 'coupler_gyro_2', 'tip_1')
    of = make_filter('errorEKF_FE_SH', problem(model, sensors), color='both')
    assert of.state.parts['x'][0] == 2 * of.problem.n
    names = of.names
    assert names[:6] == tuple(f'{kind}/theta{k}' for kind in ('position', 'velocity', 'acceleration_error')
                              for k in (1, 2)) and names[6].startswith('other/')
