# SPDX-License-Identifier: Apache-2.0
"""Records and truth as arrays over time."""

from dataclasses import replace

import numpy as np
import pytest
from bags_samples import NAMES, PERIOD_NS, payload, state, write_bag

from mbse_ros.bags.bag import Bag
from mbse_ros.bags.messages import header, record_message
from mbse_ros.bags.series import read_payload, read_states, read_truth, records
from mbse_ros.bags.writer import BagWriter
from mbse_ros.errors import BagError
from mbse_ros.streams.records import ObserverStatus, PayloadEstimate, PayloadStatus, Segment, StateEstimate


@pytest.fixture(scope='module')
def bag(tmp_path_factory) -> Bag:
    return Bag(write_bag(tmp_path_factory.mktemp('bags') / 'bag', count=5))


def test_states_are_arrays(bag):
    series, expected = read_states(bag), [state(k) for k in range(1, 6)]
    assert series.names == NAMES and series.reason == ('missing: pressure/lift_piston',) * 5
    np.testing.assert_array_equal(series.stamp_ns, [k * PERIOD_NS for k in range(1, 6)])
    np.testing.assert_array_equal(series.mean, [record.mean[-1] for record in expected])
    np.testing.assert_allclose(series.stddev, np.sqrt(np.arange(1, 6))[:, None] * [1.0, 2.0, 3.0], rtol=1e-14)
    np.testing.assert_array_equal(series.step_stamp_ns, np.arange(1, 11) * PERIOD_NS // 2)
    np.testing.assert_array_equal(series.step_mean[2:4], expected[1].mean)
    np.testing.assert_array_equal(series.measured[4], [0.1, np.nan, 2e6])
    np.testing.assert_array_equal(series.status, [ObserverStatus.COASTING] * 5)
    assert series.restart.tolist() == [True, False, False, False, False]


def test_payloads_are_arrays(bag):
    series = read_payload(bag)
    np.testing.assert_array_equal(series.mass, 50.0 + np.arange(1, 6))
    np.testing.assert_array_equal(series.raw, [np.nan] * 5)
    assert series.samples.tolist() == [2 ** 40] * 5
    assert series.status.tolist() == [PayloadStatus.TOO_SLOW] * 5 and series.reason[0] == payload(1).reason


def test_the_truth_is_arrays(bag):
    series = read_truth(bag)
    assert series.cylinders == ('lift',) and series.volumes == ('lift_piston', 'lift_rod')
    np.testing.assert_array_equal(series.position, [[0.1]] * 5)
    np.testing.assert_array_equal(series.acceleration, [[0.3]] * 5)
    np.testing.assert_array_equal(series.pressure, [[1e6, 2e6]] * 5)
    np.testing.assert_array_equal(series.payload, [50.0] * 5)
    assert series.stamp_ns[2] == 3 * PERIOD_NS


def test_what_is_not_in_the_bag_is_none(tmp_path):
    with BagWriter(tmp_path / 'bag') as writer:
        writer.write_pressure(0, 'lift_rod', 1e6)
    bag = Bag(tmp_path / 'bag')
    assert (read_states(bag), read_payload(bag), read_truth(bag)) == (None, None, None)
    assert all(list(records(bag, kind)) == [] for kind in (Segment, StateEstimate, PayloadEstimate))


@pytest.mark.parametrize('change, reason', [
    ({'mean': np.zeros(5)}, 'state.mean at 10000000 ns: got 5, expected 2 x 3 values'),
    ({'covariance': np.zeros(4)}, 'state.covariance at 10000000 ns: got 4, expected 3 x 3 values'),
    ({'measured': np.zeros(1)}, 'state.measured'), ({'status': 9}, 'state.status at 10000000 ns: got 9')])
def test_records_whose_parts_disagree_are_refused(tmp_path, change, reason):
    msgtype, message = record_message(state(1), '')
    for name, value in change.items():
        setattr(message, name, value)
    with BagWriter(tmp_path / 'bag') as writer:
        writer.write('state', msgtype, 0, message)
    with pytest.raises(BagError, match=reason):
        read_states(tmp_path / 'bag')


def test_a_wrong_truth_is_refused(tmp_path):
    with BagWriter(tmp_path / 'bag') as writer:
        writer.write_truth(7, ['lift', 'tilt'], [0.1], [0.0], [0.0], [], [], 0.0)
    with pytest.raises(BagError, match='truth.position at 7 ns: got 1, expected as many as cylinders'):
        read_truth(tmp_path / 'bag')


def test_states_of_two_machines_on_one_topic_are_refused(tmp_path):
    with BagWriter(tmp_path / 'bag') as writer:
        writer.write_record(state(1))
        writer.write_record(replace(state(2), names=('a', 'b', 'c')))
    with pytest.raises(BagError, match='several machines on one topic'):
        read_states(tmp_path / 'bag')


def test_another_version_of_a_message_is_refused(bag, monkeypatch):
    text = bag.definitions['mbse_ros/msg/PayloadEstimate'].replace('float64 raw ', 'float32 raw ')
    monkeypatch.setitem(bag.definitions, 'mbse_ros/msg/PayloadEstimate', text)
    with pytest.raises(BagError, match='recorded with another version of mbse_ros/msg/PayloadEstimate'):
        read_payload(bag)
    assert read_states(bag) is not None


def test_a_topic_of_another_type_is_refused(tmp_path):
    with BagWriter(tmp_path / 'bag') as writer:
        writer.write('state', 'std_msgs/msg/Header', 0, {'stamp': header(5, '').stamp})
    with pytest.raises(BagError, match='/state is a std_msgs/msg/Header, expected mbse_ros/msg/HydraulicState'):
        read_states(tmp_path / 'bag')
