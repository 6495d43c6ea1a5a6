# SPDX-License-Identifier: Apache-2.0
"""``Observer`` and ``estimate`` give one answer: numbers bit for bit, statuses and warnings word for word."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from mechanism_samples import RIG

import mbse_ros as mbse

ARRAYS = 'mean', 'stddev', 'q', 'qd', 'qdd', 'force', 'innovation', 'innovation_stddev', 'used'


@pytest.fixture(scope='module')
def rig(tmp_path_factory):
    """A fast crank, up to 31 rad/s, with an encoder at 40 Hz: half a radian and more from one sample to the next."""
    path = tmp_path_factory.mktemp('rig') / 'rig.yaml'
    path.write_text(RIG)
    return mbse.load(str(path))


@cache
def driven():
    """An input, and a sensor of two components."""
    return mbse.simulate('four_bar', 1.0, sensors=['encoder', 'crank_tip'], rate=250.0,
                         inputs=lambda t, q, qd: np.array([20.0 * np.sin(3.0 * t)])).samples


def spoilt(samples):
    """A hole, and an encoder that stays where it is."""
    values = samples.values.copy()
    values[40:60], values[120:] = np.nan, values[120]
    return replace(samples, values=values)


def both(model, estimator, samples, **gate):
    """By either door."""
    sensors = tuple(dict.fromkeys(name.partition('.')[0] for name in samples.names if not name.startswith('input/')))
    one = mbse.Observer(model, estimator, sensors, backend='vm', **gate).run(samples)
    other = mbse.estimate(samples, mechanism=model, estimator=estimator, sensors=sensors, backend='vm',
                          tuning={f'linkage.{name}': value for name, value in gate.items()})
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert (one.status, one.warnings) == (other.status, other.warnings)
    np.testing.assert_allclose(one.t, other.t, rtol=0, atol=1e-9)      # those given, and those of the grid
    return one


@pytest.mark.parametrize('estimator, lost', [('errorEKF_FE', True), ('UKF', False), ('DEKF', True)])
def test_either_door_gives_one_answer_also_where_the_filter_is_lost(rig, estimator, lost):
    samples = mbse.simulate(rig, 4.0, rate=40.0).samples
    found = both(rig, estimator, samples)
    assert ('lost' in found.status) is lost and bool(found.warnings) is lost
    if lost:        # which sensor, how far, what to try
        assert any(line.startswith('encoder does not fit: median NIS ') and 'Try a shorter step (now 0.025 s)' in line
                   for line in found.warnings)


def test_what_is_to_be_tried_first_helps(rig):
    run = mbse.simulate(rig, 4.0, rate=40.0)
    errors = []
    for step in (None, 0.005):
        found = mbse.estimate(run.samples, mechanism=rig, step=step, backend='vm')
        errors.append(np.sqrt(np.mean((found['theta'] - np.interp(found.t, run.t, run['theta'])) ** 2)))
    assert errors[1] < 0.01 < 4 * errors[1] < errors[0] and 'lost' not in found.status and not found.warnings


@pytest.mark.parametrize('of', [spoilt, lambda s: replace(s, values=np.degrees(s.values))], ids=['spoilt', 'degrees'])
@pytest.mark.parametrize('gate', [{}, {'gate': 1.0}], ids=['', 'no_gate'])
def test_so_do_faulty_samples_with_and_without_a_gate_and_each_warns(rig, of, gate):
    """Degrees let the solver of the position problem try long at every sample: 40 of them say all."""
    seconds = 4.0 if of is spoilt else 1.0
    assert both(rig, 'UKF', of(mbse.simulate(rig, seconds, rate=40.0).samples), **gate).warnings


def test_so_do_inputs_and_a_log_in_parts_is_the_log():
    s = driven()
    whole = both('four_bar', 'errorEKF_FE', s)
    observer = mbse.Observer('four_bar', 'errorEKF_FE', ['encoder', 'crank_tip'], backend='vm')
    y, u = s.columns(observer.channels), observer.inputs(s)
    parts = [observer.run(s.t[:100], y[:100], u[:100]), *(observer.run([t], row, [given]) for t, row, given in zip(
        s.t[100:105], y[100:], u[100:])), observer.run(s.t[105:], y[105:], u[105:])]
    np.testing.assert_array_equal(np.concatenate([part.mean for part in parts]), whole.mean)


class Follows:
    """A filter of one's own with a small gain, at the side of ours."""

    def __init__(self, equations):
        self.equations = equations

    def predict(self, mean, P, u, t, dt):
        return self.equations.step(mean, u, t, dt), P

    def correct(self, mean, P, y, u, t):
        off = self.equations.difference(y, self.equations.sensors(mean, u, t))
        return mean + np.array([0.1, 0.0]) * off[0], P, off, np.diag(self.equations.stddev ** 2)


def test_a_filter_of_ones_own_starts_where_ours_do_and_warns_of_its_nis(rig):
    samples = mbse.simulate(rig, 4.0, rate=40.0).samples
    own = mbse.Observer(rig, Follows, backend='vm').run(samples)
    ours = mbse.Observer(rig, 'DEKF', backend='vm').run(samples)
    assert abs(own.innovation[0, 0] - ours.innovation[0, 0]) < 0.05     # 0.3 rad of the first step, from one pose
    assert any('median NIS' in line and 'Try a shorter step' in line for line in own.warnings)
