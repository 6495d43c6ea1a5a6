# SPDX-License-Identifier: Apache-2.0
"""Sensors on topics of their own: a start in the middle of a motion is the same in every order of the topics, and with
an encoder that comes later than the others."""

from functools import cache
from itertools import permutations

import numpy as np
import pytest
from linkage_stages import DT, START, STEP

from mbse_ros.dynamics.model import load_model
from mbse_ros.dynamics.motion import simulate
from mbse_ros.filters.parts.problem import problem
from mbse_ros.streams.linkage import LinkageSettings, LinkageStage
from mbse_ros.streams.records import ObserverStatus

pytestmark = pytest.mark.usefixtures('vm')
CASES = {'four_bar': (('crank_tip', 'crank_gyro', 'encoder'), 250, 80),     # sensors, first instant and number of them
         'five_bar': (('tip_1', 'tip_2', 'encoder_1', 'encoder_2'), 150, 400)}


@cache
def moving(name):
    """Stage of a mechanism, its true independent coordinates (k, g) and samples (k, s) of a log that begins in the
    middle of a motion, and the places of the channels by topic."""
    sensors, first, count = CASES[name]
    model = load_model(name, backend='vm')
    motion, of = simulate(model, (first + count) * DT, DT, 'trapezoid'), problem(model, sensors)
    none, numbers = np.zeros(of.system.u.numel()), np.asarray(model.parameters)
    rows = np.array([of.sensors(q, qd[model.z], qdd[model.z], none, [0.0], numbers)[0].full().ravel()
                     for q, qd, qdd in zip(motion.q[first:], motion.qd[first:], motion.qdd[first:])])
    rows += np.random.default_rng(1).normal(size=rows.shape) * of.stddev
    topics = [[i for i, channel in enumerate(of.channels) if channel.partition('.')[0] == sensor] for sensor in sensors]
    return LinkageStage(model, LinkageSettings(), sensors, DT, 'vm'), motion.q[first:, model.z], rows, topics


def run(one, rows, arrivals):
    """The last estimate of each instant, by (instant, places of channels) in their order of arrival."""
    one.reset()
    final = {}
    for k, places in arrivals:
        for estimate in one.add(START + k * STEP, {one.channels[i]: rows[k, i] for i in places}):
            final[estimate.sequence] = estimate
    return [final[k] for k in sorted(final)]


@pytest.mark.parametrize('name, every, count', [('four_bar', 1, 80), ('five_bar', 11, 160)])
def test_a_start_in_motion_is_the_same_in_every_order_of_the_topics(name, every, count):
    """Also where coordinates start again: the five-bar's do after half a second."""
    one, truth, rows, topics = moving(name)
    together = run(one, rows, [(k, range(rows.shape[1])) for k in range(count)])
    assert np.abs(together[-1].q[one.model.z] - truth[count - 1]).max() < 0.1
    for order in list(permutations(topics))[::every]:
        single = run(one, rows, [(k, places) for k in range(count) for places in order])
        assert len(single) == len(together) and single[-1].status is together[-1].status, order
        np.testing.assert_allclose([e.mean for e in single], [e.mean for e in together], rtol=0, atol=1e-9)
        np.testing.assert_allclose(single[-1].covariance, together[-1].covariance, rtol=1e-6, atol=1e-15)


@pytest.mark.parametrize('late', [1, 3])
def test_encoders_that_come_instants_after_the_accelerometers_find_the_motion(late):
    """Their samples go back to their instants, and so does a start by them."""
    one, truth, rows, topics = moving('five_bar')
    arrivals = sorted((k + late * (t > 1), k, t) for k in range(len(rows)) for t in range(4))
    found = run(one, rows, [(k, topics[t]) for _, k, t in arrivals])
    error = np.array([np.abs(e.q[one.model.z] - truth[e.sequence - 1]).max() for e in found])
    ok = np.array([e.status is ObserverStatus.OK for e in found])
    assert error[200:-late].max() < 0.05 and ok[-20:-late].all() and not (ok & (error > 0.1)).any()


def test_a_start_after_instants_without_samples_has_the_inputs_of_them():
    """As if they had been there before; the instants between have not been estimated."""
    one, truth, rows, topics = moving('five_bar')
    tips, encoders = (dict(zip(np.array(one.channels)[places], rows[0, places])) for places in (
        topics[0] + topics[1], topics[2] + topics[3]))

    def last(*arrivals):
        one.reset()
        return [one.add(START + k * STEP, values) for k, values in arrivals][-1][0]
    after = [(k, encoders) for k in range(4, 24)]
    torques = dict(zip(one.inputs, (0.3, -0.2)))
    found = last((0, tips), (1, torques), *after).q
    np.testing.assert_allclose(found, last((0, torques), *after).q, rtol=0, atol=1e-12)
    assert np.abs(found - last((0, tips), *after).q).max() > 1e-6


@pytest.mark.parametrize('seconds', [0.2, 0.6])
def test_encoders_that_begin_to_send_later_start_the_state_again(seconds):
    """Of a state by accelerometers alone, far from the truth, nothing stays."""
    one, truth, rows, topics = moving('five_bar')
    first = round(seconds / DT)
    found = run(one, rows, [(k, topics[t]) for k in range(len(rows)) for t in range(4) if t < 2 or k >= first])
    error = np.array([np.abs(e.q[one.model.z] - truth[e.sequence - 1]).max() for e in found])
    ok = np.array([e.status is ObserverStatus.OK for e in found])
    assert error[first - 1] > 1.0 and not ok[:first].any()
    assert error[-20:].max() < 0.05 and not (ok & (error > 0.1)).any()
