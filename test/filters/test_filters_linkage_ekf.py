# SPDX-License-Identifier: Apache-2.0
"""Filters of the EKF family against the textbook filter on a linear mechanism, and against each other."""

import numpy as np
import pytest
from linear_mechanism import MASS, STDDEV, A, H, linear_model
from rauch_tung_striebel import smooth
from scipy.linalg import expm

from mbse_ros.dynamics.model import load_model
from mbse_ros.dynamics.motion import simulate
from mbse_ros.errors import DivergenceError, SettingError
from mbse_ros.filters.observer import LinkageObserver

pytestmark = pytest.mark.usefixtures('vm')

DT, STEPS, DENSITY = 0.005, 400, 0.3
NOISE = DENSITY * np.array([[DT ** 3 / 3, DT ** 2 / 2], [DT ** 2 / 2, DT]])
PUSH = np.array([0.0, 1 / MASS])
EYE = np.eye(2)
HALF = np.linalg.inv(EYE - DT / 2 * A)
MOTIONS = {'forward_euler': (EYE + DT * A, DT * PUSH),
           'exact': (expm(A * DT), np.linalg.solve(A, (expm(A * DT) - EYE) @ PUSH)),
           'heun': (EYE + DT * A + DT ** 2 / 2 * A @ A, DT * (EYE + DT / 2 * A) @ PUSH),
           'trapezoid': (HALF @ (EYE + DT / 2 * A), HALF @ (DT * PUSH))}


@pytest.fixture(scope='module')
def log():
    """Samples of all sensors with gaps, and the push."""
    rng = np.random.default_rng(3)
    inputs = np.sin(np.arange(STEPS) * DT * 4)
    measured = rng.normal(size=(STEPS, 3)) * 0.2
    measured[rng.random((STEPS, 3)) < 0.3] = np.nan
    measured[50:90] = np.nan
    return np.arange(1, STEPS + 1) * DT, measured, inputs[:, None]


def observe(estimator, log, sensors=('place', 'speed', 'feel'), noises=None, **options):
    observer = LinkageObserver(linear_model(), estimator, sensors, noises or {'acceleration': DENSITY}, **options)
    observer.start(stddev=0.2)
    t, measured, inputs = log
    columns = [['place', 'speed', 'feel'].index(name) for name in sensors]
    return observer, observer.run(t, measured[:, columns], inputs)


def expected(log, F, motion, sensors=('place', 'speed', 'feel')):
    """Textbook filter whose mean follows ``motion`` and whose covariance follows F."""
    _, measured, inputs = log
    columns = [['place', 'speed', 'feel'].index(name) for name in sensors]
    move, push = MOTIONS[motion]
    mean, P, means = np.array([0.3, 0.1]), 0.04 * EYE, []
    for o, u in zip(measured[:, columns], inputs[:, 0]):
        mean, P = move @ mean + push * u, F @ P @ F.T + NOISE
        for k, name in enumerate(sensors):
            if np.isfinite(o[k]):
                row, extra = H[name][0], u / MASS if name == 'feel' else 0.0
                spread = row @ P @ row + STDDEV[name] ** 2
                gain = P @ row / spread
                mean, P = mean + gain * (o[k] - row @ mean - extra), P - np.outer(gain, gain) * spread
        means.append(mean)
    return np.array(means), P


@pytest.mark.parametrize('estimator, options, motion, exact', [
    ('DEKF', {'transition': 'exact'}, 'exact', 'flow'),
    ('DEKF', {}, 'forward_euler', 'simple'),
    ('DEKF', {'transition': 'heun'}, 'heun', 'heun'),
    ('errorEKF_EJ', {}, 'trapezoid', 'taylor')])
def test_equal_to_the_kalman_filter(log, estimator, options, motion, exact):
    simple = np.array([[1.0, DT], [0.0, 1.0]])
    F = {'flow': expm(A * DT), 'heun': MOTIONS['heun'][0], 'simple': simple,
         'taylor': simple + np.outer([DT ** 2 / 2, DT], A[1])}[exact]
    observer, found = observe(estimator, log, **options)
    means, P = expected(log, F, motion)
    np.testing.assert_allclose(found.mean[:, :2], means, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.covariance, P, rtol=1e-9, atol=1e-12)


def test_heun_has_order_two_and_its_own_jacobian():
    """On the four-bar: half the step leaves a quarter of the error; F is the derivative of the prediction."""
    model, errors = load_model('four_bar'), []
    exact = simulate(model, 1.0, 1e-3, 'dop853').q[-1, model.z]
    for dt in (0.01, 0.005):
        observer = LinkageObserver(model, 'DEKF', ('encoder',), {'acceleration': 0.1}, transition='heun')
        observer.start()
        t = dt * np.arange(1, round(1 / dt) + 1)
        errors.append(np.abs(observer.run(t, np.full((len(t), 1), np.nan)).q[-1, model.z] - exact)[0])
    assert 3.5 < errors[0] / errors[1] < 4.5
    of, h = observer.filter, 1e-6
    tuning = observer.filter.tuning.flat(dt=dt, gate=1e9, acceleration=0.1, variance=1.0, p=model.parameters)
    given = of.given.flat(o=np.nan, u=np.zeros(of.given.parts['u'][0]), t=dt)

    def ahead(z, zd):
        q = model.position(np.array([z]), model.start.q)
        return np.array(of.predict(of.start(q, model.partition().velocity(q, np.array([zd])), 0.1), given, tuning)
                        ).ravel()[of.state.indices['x']].ravel()
    z, zd = 1.0, 2.0
    numbers = np.column_stack([ahead(z + h, zd) - ahead(z - h, zd), ahead(z, zd + h) - ahead(z, zd - h)]) / (2 * h)
    q = model.position(np.array([z]), model.start.q)
    state = of.start(q, model.partition().velocity(q, np.array([zd])), 0.1)
    np.testing.assert_allclose(np.array(of.transition(state, given, tuning)), numbers, atol=1e-7)


def test_errorekf_leaves_the_accelerations_out(log):
    """The simple filter reads an accelerometer's sample as if nothing depended on it."""
    _, with_it = observe('errorEKF', log)
    _, without = observe('errorEKF', log, ('place', 'speed'))
    np.testing.assert_allclose(with_it.mean, without.mean, rtol=0, atol=1e-12)


def test_force_is_found(log):
    """A constant force that the model does not know of, from position and speed."""
    t = log[0]
    truth = expm_motion(3.0, len(t))
    rng = np.random.default_rng(1)
    observer = LinkageObserver(linear_model(), 'errorEKF_FE', ('place', 'speed'), {'acceleration': 1.0})
    observer.start(stddev=0.2)
    found = observer.run(t, truth + rng.normal(size=truth.shape) * observer.stddev)
    assert abs(found.force[-100:].mean() - 3.0) < 0.15


def expm_motion(force, steps):
    """Position and speed under a constant force."""
    x, found = np.array([0.3, 0.1]), []
    move, push = MOTIONS['exact']
    for _ in range(steps):
        x = move @ x + push * force
        found.append(x)
    return np.array(found)


def test_smoother_equals_the_batch_solution(log):
    """Rauch-Tung-Striebel against one least squares problem over the whole log."""
    t, measured, inputs = (part[:40] for part in log)
    observer = LinkageObserver(linear_model(), 'DEKF', ('place', 'speed'), {'acceleration': DENSITY},
                               transition='exact')
    observer.start(stddev=0.2)
    us = np.column_stack([measured[:, :2], inputs, t])
    start, tuning = observer.flat
    found = smooth(observer.filter, start, us, tuning, 'vm')
    F, push = MOTIONS['exact']
    size, rows, values = 2 * (len(t) + 1), [], []

    def add(block, at, value, root):
        row = np.zeros((len(value), size))
        for piece, k in zip(block, at):
            row[:, 2 * k:2 * k + 2] = piece
        rows.append(np.linalg.solve(root, row))
        values.append(np.linalg.solve(root, value))

    add([EYE], [0], np.array([0.3, 0.1]), 0.2 * EYE)
    root = np.linalg.cholesky(NOISE)
    for k in range(len(t)):
        add([-F, EYE], [k, k + 1], push * inputs[k, 0], root)
        for j, name in enumerate(('place', 'speed')):
            if np.isfinite(measured[k, j]):
                add([H[name]], [k + 1], measured[k, j:j + 1], np.array([[STDDEV[name]]]))
    solution = np.linalg.lstsq(np.vstack(rows), np.concatenate(values), rcond=None)[0].reshape(-1, 2)[1:]
    np.testing.assert_allclose(found.mean, solution, rtol=0, atol=1e-8)
    information = np.vstack(rows)
    cov = np.linalg.inv(information.T @ information)[2:4, 2:4]
    np.testing.assert_allclose(found.covariance[0], cov, rtol=1e-6)


def test_smoother_refuses_what_forgets(log):
    observer, _ = observe('errorEKF_FE', log, ('place',))
    with pytest.raises(SettingError, match='errorEKF_FE'):
        smooth(observer.filter, *observer.flat[:1], np.zeros((1, 3)), observer.flat[1])


@pytest.mark.parametrize('estimator, noises, limit, after', [
    ('DEKF', {'acceleration': 0.0916}, None, None), ('errorEKF_EJ', {'acceleration': 0.0916}, 0.032, 0.004),
    ('errorEKF_FE', {'acceleration': 0.458}, 0.012, 0.002)])
def test_crank_gyro_blind_and_seeing(estimator, noises, limit, after):
    """Naya et al., review, section 12: with the gyro on the crank alone, only the exact Jacobian removes the start's
    error."""
    from mbse_ros.simulation.three_simulations import noisy, true_motion, wrong_model, wrong_start
    model = load_model('four_bar')
    truth, wrong = true_motion(model, 4.0, DT), wrong_model(model)
    observer = LinkageObserver(wrong, estimator, ('crank_gyro',), noises)
    observer.start(wrong_start(wrong))
    found = observer.run(truth.motion.t[1:], noisy(truth.sensors(('crank_gyro',)), observer.stddev, 1))
    error = (found.q - truth.motion.q[1:])[:, truth.z[0]]
    if limit is None:
        assert abs(abs(error[-100:].mean()) - np.pi / 16) < 0.02
    else:
        assert np.sqrt(np.mean(error[400:] ** 2)) < after


def test_bad_choices_are_refused():
    model = linear_model()
    for change in ({'estimator': 'EKF'}, {'sensors': ('nose',)}, {'noises': {'acceleration': -1.0}}, {'gate': 0.0},
                   {'noises': {'jerk': 1.0}}, {'stddev': [0.0]}):
        choice = {'estimator': 'DEKF', 'sensors': ('place',), 'noises': {'acceleration': 1.0}, **change}
        with pytest.raises(SettingError):
            LinkageObserver(model, choice.pop('estimator'), choice.pop('sensors'), choice.pop('noises'), **choice)


@pytest.mark.parametrize('estimator, option', [('errorEKF_FE', 'motion'), ('UKF', 'transition')])
def test_an_unknown_transition_is_refused_with_those_that_there_are(estimator, option):
    with pytest.raises(SettingError, match='huen.*heun'):
        LinkageObserver(linear_model(), estimator, ('place',), {'acceleration': 1.0}, **{option: 'huen'})


def test_a_gate_leaves_an_outlier_out(log):
    t, measured, inputs = (part.copy() for part in log)
    measured[:, 0] = expm_motion(0.0, len(t))[:, 0]
    measured[200, 0] += 1.0
    observer = LinkageObserver(linear_model(), 'DEKF', ('place',), {'acceleration': DENSITY}, gate=0.9999,
                               transition='exact')
    observer.start(stddev=0.2)
    found = observer.run(t, measured[:, :1], 0 * inputs)
    assert found.used[200, 0] == 0 and found.used[199, 0] == 1
    assert abs(found.mean[200, 0] - expm_motion(0.0, len(t))[200, 0]) < 0.01


def test_divergence_is_reported():
    observer = LinkageObserver(linear_model(), 'DEKF', ('place',), {'acceleration': DENSITY})
    observer.start(stddev=0.2)
    with pytest.raises(DivergenceError, match='step 3'):
        observer.run(np.arange(1, 6) * DT, np.zeros((5, 1)), np.array([[0.0], [0.0], [0.0], [np.inf], [0.0]]))


