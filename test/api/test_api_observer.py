# SPDX-License-Identifier: Apache-2.0
"""``Observer`` and ``tune``: our filters as they are, filters of one's own beside them, and what is refused."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import mbse_ros as mbse
from mbse_ros.api.observer import Equations
from mbse_ros.api.our_filter import OurFilter
from mbse_ros.errors import DivergenceError, PositionProblemError, SettingError
from mbse_ros.filters.filters import OF_MECHANISMS, default_noises, default_stddev
from mbse_ros.filters.observer import LinkageObserver
from mbse_ros.simulation.three_simulations import wrong_start

SENSORS = ['encoder', 'crank_gyro']


@cache
def four_bar():
    return mbse.load('four_bar')


@pytest.fixture(scope='module')
def truth():
    return mbse.simulate('four_bar', 2.0, 5e-3, 'trapezoid', sensors=SENSORS)


class Model:
    """A filter that only runs the model; the mean may be spoilt."""

    def __init__(self, equations, spoil=lambda mean, P: (mean, P)):
        self.equations, self.spoil = equations, spoil

    def predict(self, mean, P, u, t, dt):
        return self.spoil(self.equations.step(mean, u, t, dt), P)

    def correct(self, mean, P, y, u, t):
        return mean, P, self.equations.difference(y, self.equations.sensors(mean, u, t)), np.eye(len(y))


def test_it_is_the_filter_itself(truth):
    model = truth.model
    observer = mbse.Observer(model, 'errorEKF_FE', SENSORS, gate=0.9999)
    found = observer.start(wrong_start(model)[model.z]).run(truth.samples)
    core = LinkageObserver(model, 'errorEKF_FE', SENSORS, default_noises('errorEKF_FE', 'four_bar'), gate=0.9999,
                           history=True)
    core.start(wrong_start(model), stddev=default_stddev(core.filter, 'four_bar'))
    run = core.run(truth.samples.t, truth.samples.values)
    np.testing.assert_allclose(found.q, run.q, atol=1e-9)       # their starts differ by the last digits of Newton
    np.testing.assert_allclose(found.stddev ** 2, np.diagonal(run.covariances, axis1=1, axis2=2), rtol=1e-6)
    np.testing.assert_allclose(found.nis, run.nis, rtol=1e-4, atol=1e-6)
    assert found.names == ('position/theta', 'velocity/theta', 'acceleration_error/theta')


@pytest.mark.parametrize('estimator', ['errorEKF_FE', Model])
def test_a_log_in_parts_or_sample_by_sample_is_the_log(truth, estimator):
    s = truth.samples
    whole = mbse.Observer('four_bar', estimator, SENSORS).run(s)
    observer = mbse.Observer('four_bar', estimator, SENSORS)
    parts = [observer.run(s.t[:10], s.values[:10]), *(observer.run([t], y) for t, y in zip(s.t[10:20], s.values[10:]))]
    np.testing.assert_allclose(np.concatenate([part.q for part in parts]), whole.q[:20], atol=1e-12)


def test_start_again(truth):
    observer = mbse.Observer('four_bar', 'DEKF', SENSORS).start()
    first, second, third = observer.run(truth.samples), observer.run(truth.samples), observer.start().run(truth.samples)
    assert np.abs(second.q - first.q).max() > 1e-3
    np.testing.assert_array_equal(third.q, first.q)
    other = mbse.Observer('four_bar', 'DEKF', SENSORS)     # without a start, times that go back are another log
    np.testing.assert_array_equal(other.run(truth.samples).q, other.run(truth.samples).q)
    with pytest.raises(SettingError, match='whole steps of 0.005 s after 2 s'):
        other.run([2.012], truth.samples.values[:1])


def test_missing_samples_count_for_nothing(truth):
    values = truth.samples.values.copy()
    values[50:60] = np.nan
    found = mbse.Observer('four_bar', 'errorEKF_FE', SENSORS).run(truth.samples.t, values)
    assert np.isnan(found.innovation[50:60]).all() and not found.used[50:60].any() and (found.nis[50:60] == 0).all()
    assert (np.diff(found.stddev[49:59, 0]) > 0).all()


def test_all_filters_have_named_entries_of_the_right_number(truth):
    for name in OF_MECHANISMS:
        if name in ('kinematic', 'joint', 'dual'):        # need certain sensors, or numbers to estimate
            continue
        observer = mbse.Observer(truth.model, name, SENSORS, backend='vm')
        found = observer.run(truth.samples.t[:3], truth.samples.values[:3])
        assert found.mean.shape == found.stddev.shape == (3, len(observer.names)), name
        assert all(item.values.shape == (3,) for item in found.series())


def test_the_filter_of_a_machine_is_that_of_estimate_and_continues():
    run = mbse.simulate('patu655_lift', 3.0, payload=80.0)
    observer, s = mbse.Observer('patu655_lift', 'hydraulic', backend='vm'), run.samples
    found, other = observer.run(s), mbse.estimate(s, 'patu655_lift', backend='vm')
    assert set(found.status[50:]) == {'ok'} and found.used.mean() > 0.99
    for name, atol in (('velocity/lift', 1e-4), ('payload/mass', 0.5)):      # m/s, kg: of 1e-2 and 80
        np.testing.assert_allclose(found[name][100:], np.interp(found.t, other.t, other[name])[100:], atol=atol)
    np.testing.assert_allclose(found['lift_dot'], found['velocity/lift'])
    names = {item.name: item.unit for item in found.main_series()}
    assert names.items() >= {'mass': 'kg', 'position/lift': 'm', 'velocity/lift': 'm/s'}.items() and names.keys() >= {
        item.name for item in other.series()} - set(other.states.columns)
    np.testing.assert_array_equal(found['mass'], found['payload/mass'])
    slope = np.gradient(found['boom_joint_dot'], found.t)
    np.testing.assert_allclose(slope[100:], found['boom_joint_ddot'][100:], atol=0.1)
    y, u = s.columns(observer.channels), observer.inputs(s)
    observer.start()
    parts = [observer.run(s.t[:100], y[:100], u[:100]), *(observer.run([t], row, [command]) for t, row, command in
                                                          zip(s.t[100:105], y[100:], u[100:]))]
    np.testing.assert_array_equal(np.concatenate([part.mean for part in parts]), found.mean[:105])


@pytest.mark.parametrize('make, said', [
    (lambda: mbse.Observer(four_bar(), 'hydraulic', SENSORS), "estimator: got 'hydraulic', expected a machine with"),
    (lambda: mbse.Observer('patu655_lift', 'hydraulic', ['lift_stroke']), 'sensors: .* it is for a mechanism'),
    (lambda: mbse.Observer('patu655_lift', 'hydraulic', color='both'), "options: got 'color', expected one of .*noise"),
    (lambda: mbse.Observer('patu655_lift', 'hydraulic', noises={'pressure_psd': -1.0}), 'pressure_psd: got -1.0'),
    (lambda: mbse.Observer('patu655_lift', 'hydraulic').start([0.3]), 'z: .*a machine starts from its first samples')])
def test_what_is_refused_of_the_filter_of_a_machine(make, said):
    with pytest.raises(SettingError, match=said):
        make()


def test_bias_as_a_column(truth):
    observer = mbse.Observer('four_bar', 'errorEKF_FE', SENSORS, biases=['crank_gyro'])
    found = observer.start(stddev=[0.1, 0.1, 0.1, 0.05]).run(truth.samples)
    assert found.units['bias/crank_gyro'] == 'rad/s' and found.stddev[-1, 3] < 0.05


def test_inputs_move_the_model():
    push = mbse.simulate('four_bar', 1.0, sensors=['encoder'], inputs=lambda t, q, qd: np.array([20.0]))
    errors = []
    for samples in (push.samples, mbse.Samples(push.samples.t, ('encoder',), push.samples['encoder'])):
        found = mbse.Observer('four_bar', Model, ['encoder']).start().run(samples)
        errors.append(np.abs(found['theta'] - np.interp(found.t, push.t, push['theta'])).max())
    assert errors[0] < 1e-3 and errors[1] > 0.1       # the integrators differ by the square of 5 ms


def test_a_filter_of_ones_own_gets_exact_equations(truth):
    """Without corrections it is the integrator of ours, and so is the truth."""
    found = mbse.Observer('four_bar', Model, SENSORS).start().run(truth.samples)
    np.testing.assert_allclose(found.q, truth.q[1:], atol=1e-7)
    np.testing.assert_allclose(found.qdd, truth.qdd[1:], atol=1e-4)
    assert found.estimator == 'Model' and found.stddev.shape == (400, 2)


@pytest.mark.usefixtures('vm')
def test_sensors_of_the_equations(truth):
    equations = Equations(truth.model, SENSORS)
    x = np.concatenate([truth.q[0, truth.model.z], truth.qd[0, truth.model.z]])
    theta, omega = x
    np.testing.assert_allclose(equations.sensors(x, np.zeros(1), 0.0), [theta, omega], atol=1e-12)
    inclined = Equations(mbse.load('excavator_arm'), [name for name, sensor in mbse.load(
        'excavator_arm').description.mechanical_sensors.items() if sensor.kind == 'inclinometer'] or ['none'])
    assert inclined.angular.any()
    np.testing.assert_allclose(inclined.difference(np.full(len(inclined.channels), 3.1), -3.1), 6.2 - 2 * np.pi)


@pytest.mark.parametrize('make, kind, said', [
    (lambda s: mbse.Observer('four_bar', 'KF'), SettingError, 'errorEKF_FE'),
    (lambda s: mbse.Observer('four_bar', 'DEKF', 'encoder'), SettingError, r"such as \['encoder'\]"),
    (lambda s: mbse.Observer('four_bar', 'DEKF', ['radar']), SettingError, 'crank_gyro'),
    (lambda s: mbse.Observer(four_bar(), 'DEKF', []), SettingError, 'four_bar has encoder'),
    (lambda s: mbse.Observer('n_four_bar:2'), SettingError, 'none in its file'),
    (lambda s: mbse.Observer(four_bar()).run(None), SettingError, 'Samples, or times'),
    (lambda s: mbse.Observer(four_bar(), 'DEKF', stddev=[1.0]), SettingError, 'stddev'),
    (lambda s: mbse.Observer(four_bar(), 'DEKF', SENSORS, transition='best'), SettingError, 'transition=best.*heun'),
    (lambda s: mbse.Observer(four_bar(), 'DEKF', SENSORS, colour='red'), SettingError, 'options of DEKF'),
    (lambda s: mbse.Observer(four_bar(), Model, SENSORS, gate=0.9), SettingError, 'as its own options'),
    (lambda s: mbse.Observer(four_bar(), lambda equations: 3, SENSORS), SettingError, 'predict and correct'),
    (lambda s: mbse.Observer(four_bar(), 'DEKF').start([1.0, 2.0]), SettingError, '1 finite numbers: theta'),
    (lambda s: mbse.Observer(four_bar(), 'DEKF').start(stddev=[1.0] * 7), SettingError, 'velocity/theta'),
    (lambda s: mbse.Observer(four_bar(), 'DEKF').start([1e6]), PositionProblemError, 'out of reach'),
    (lambda s: mbse.Observer(four_bar(), 'DEKF', ['encoder', 'coupler_gyro']).run(s), SettingError, 'coupler_gyro'),
    (lambda s: mbse.Observer(four_bar(), 'DEKF', SENSORS).run(s.t, s.values[:, :1]), SettingError, r'\(400, 2\)'),
    (lambda s: mbse.Observer(four_bar(), 'DEKF', SENSORS).run(s.t ** 2, s.values), SettingError, 'even steps'),
    (lambda s: mbse.Observer(four_bar(), 'DEKF', SENSORS).run(s.t, s.values, np.zeros(3)), SettingError, 'torque'),
    (lambda s: mbse.Observer(four_bar(), Model, SENSORS, spoil=lambda m, P: (m * np.nan, P)).run(s), DivergenceError,
     'Model: not finite at step 0'),
    (lambda s: mbse.Observer(four_bar(), Model, SENSORS, spoil=lambda m, P: (m[:1], P)).run(s), SettingError,
     r'Model: got \(\(1,\), \(2, 2\)\), expected a mean \(2,\)'),
    (lambda s: mbse.tune(mbse.Observer(four_bar(), Model, SENSORS), s), SettingError, 'one of our filters'),
    (lambda s: mbse.tune(mbse.Observer(four_bar(), 'DEKF', SENSORS), []), SettingError, 'one log or more')])
def test_what_is_refused(truth, make, kind, said):
    with pytest.raises(kind, match=said):
        make(truth.samples)


def test_tuned_noises_are_kept_and_better(truth):
    observer = mbse.Observer('four_bar', 'DEKF', SENSORS)
    found = mbse.tune(observer, truth.samples, skip=0.5)
    assert found.estimator == 'DEKF' and found.summary()[0].startswith('DEKF on four_bar: log-likelihood ')
    assert found.after.log_likelihood > found.before.log_likelihood + 1.0
    assert found.before.noises == {'acceleration': [pytest.approx(default_noises('DEKF', 'four_bar')['acceleration'])]}
    fresh = mbse.Observer('four_bar', 'DEKF', SENSORS, noises=found.after.noises)
    np.testing.assert_allclose(observer.run(truth.samples).q, fresh.run(truth.samples).q, atol=1e-12)
    assert mbse.tune(observer, truth.samples, skip=0.5).before.noises == found.after.noises


def test_a_start_by_the_names_of_coordinates(truth):
    one, other = (mbse.Observer('four_bar', 'UKF', SENSORS).start(z, zd).run(truth.samples).mean
                  for z, zd in (({'theta': 1.1}, {'theta': 0.2}), ([1.1], [0.2])))
    np.testing.assert_array_equal(one, other)
    for wrong, start in (({'thet': 1.0}, "z: got 'thet', expected one of theta"),
                         ('fast', "z: got 'fast', expected 1 f")):
        with pytest.raises(SettingError, match=start):
            mbse.Observer('four_bar', 'UKF', SENSORS).start(z=wrong)


@pytest.mark.parametrize('mechanism, estimator, channel, factor', [
    ('four_bar', 'DEKF', 'encoder', 180 / np.pi), ('five_bar', 'errorEKF_FE', 'encoder_1', np.pi / 180)])
def test_an_encoder_in_another_unit_is_named_before_the_numbers_end(mechanism, estimator, channel, factor):
    """A filter that leaves the finite numbers later in the log starts again before, or there: it raised an error."""
    samples = mbse.simulate(mechanism, 3.0).samples
    values = samples.values.copy()
    values[:, samples.names.index(channel)] *= factor
    found = mbse.Observer(mechanism, estimator, backend='vm').run(replace(samples, values=values))
    finite = np.isfinite(found.mean).all(axis=1)
    assert len(finite) == len(samples.t) and set(np.array(found.status)[~finite]) <= {'lost'} and finite.mean() > 0.9
    assert any(f'{channel} ' in line for line in found.warnings) and set(found.status) & {'coasting', 'lost'}


@pytest.fixture
def restarts(monkeypatch):
    """Filled with the reasons to start again: whether the state could not be."""
    found, restart = [], OurFilter._start_again
    monkeypatch.setattr(OurFilter, '_start_again', lambda of, said, *rest: (
        found.append(said.broken), restart(of, said, *rest)))
    return found


def test_a_state_that_cannot_be_leaves_nothing_to_the_next_one(restarts):
    """Its force would lead that astray at once, too, and it would start again every few instants."""
    samples = mbse.simulate('four_bar', 2.4).samples
    first, second = (replace(samples, t=samples.t[part], values=samples.values[part])
                     for part in (slice(240), slice(240, None)))
    observer = mbse.Observer('four_bar', backend='vm').start()
    observer.run(first)
    of = observer.core.observer
    state = of.filter.state.arrays(of.flat[0])
    state['force'] = state['force'] + 1e5
    of.resume(of.filter.state.flat(**state), samples.t[239])
    assert observer.run(second).status[-1] == 'ok' and sum(restarts) == 1


def test_a_start_far_away_is_where_it_is_known_to_be(restarts):
    """An encoder that counts three turns more: the state goes there once."""
    samples = mbse.simulate('four_bar', 2.0, sensors=SENSORS).samples
    values = samples.values.copy()
    values[len(values) // 3:, samples.names.index('encoder')] += 6 * np.pi
    mbse.Observer('four_bar', sensors=SENSORS, backend='vm').start().run(replace(samples, values=values))
    assert restarts == [False]


def test_numbers_that_end_at_once_are_an_error_with_the_doubts_before():
    samples = mbse.simulate('four_bar', 0.5, sensors=['encoder']).samples
    observer = mbse.Observer('four_bar', 'DEKF', ['encoder'], backend='vm').start()
    observer.core.observer.resume(observer.core.observer.flat[0] * np.nan, 0.0)
    with pytest.raises(DivergenceError, match='step 0: at t = 0.005'):
        observer.run(samples)
