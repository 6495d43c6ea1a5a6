# SPDX-License-Identifier: Apache-2.0
"""What is packed arrives over the wire as rclpy's own message, and comes back the same."""

from dataclasses import fields, replace

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from nodes_support import joint_state, segment, state
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState

from mbse_ros.bags.messages import (
    OWN,
    linkage_message,
    packed_record,
    payload_record,
    segment_record,
    serialized,
    state_record,
)
from mbse_ros.bags.topics import JOINT_STATE, PAYLOAD, SEGMENT, STATE
from mbse_ros.errors import MbseError, SampleError
from mbse_ros.msg import LinkageState
from mbse_ros.nodes.messages import wire as m
from mbse_ros.streams.records import Health, LinkageEstimate, Measured, ObserverStatus, PayloadEstimate, PayloadStatus

STAMP = 1_700_000_000_123_456_789
MASS = PayloadEstimate(7, 123_456_789_012_345_678, 50.5, 1.25, 48.0, 53.0, float('nan'), 51.0, 1234,
                       PayloadStatus.TOO_SLOW, 'piston too slow')
CASES = [
    (replace(segment(3, 5_000_000_001, restart=True), values=np.full((10, 3), np.nan)), SEGMENT, segment_record),
    (segment(2 ** 32 - 1, (2 ** 31 - 1) * 10 ** 9, steps=1), SEGMENT, segment_record),
    (segment(1, -5_000_000_001), SEGMENT, segment_record),
    (state(9), STATE, state_record),
    (MASS, PAYLOAD, payload_record),
]


each = pytest.mark.parametrize('record, kind, back', CASES, ids=['gap', 'large', 'before 1970', 'state', 'payload'])


def same(a, b):
    return all(np.array_equal(np.asarray(x), np.asarray(y), equal_nan=np.asarray(x).dtype.kind == 'f')
               for x, y in ((getattr(a, f.name), getattr(b, f.name)) for f in fields(a)))


@each
def test_round_trip_over_the_wire(record, kind, back):
    message = deserialize_message(packed_record(record, 'patu655_lift'), m.message_class(kind))
    assert message.header.frame_id == 'patu655_lift' and m.to_ns(message.header.stamp) == record.stamp_ns
    again = back(m.unpacked('topic', kind, serialize_message(message)))
    assert same(again, record) and type(again) is type(record)


@each
def test_records_are_packed_as_the_checked_way_does(record, kind, back):
    values = {item.name: getattr(record, item.name) for item in fields(record)
              if item.name not in ('stamp_ns', *OWN)}
    more = {'steps': len(getattr(record, 'values' if kind == SEGMENT else 'mean'))} if kind != PAYLOAD else {}
    checked = m.packed(kind, record.stamp_ns, 'f', {**values, **more, 'machine': 'm'})
    assert packed_record(record, 'f', 'm') == checked


def test_numpy_scalars_and_integers_are_cast():
    odd = replace(MASS, mass=np.float32(50.5), stddev=1, samples=np.int64(4), sequence=np.uint32(7))
    assert payload_record(m.unpacked('payload', PAYLOAD, packed_record(odd, 'x'))).stddev == 1.0
    strange = replace(state(), mean=np.ones((10, 2), dtype=np.float32), nis=np.float64(2), nis_dof=np.int32(3),
                      restart=np.bool_(True))
    assert state_record(m.unpacked('state', STATE, packed_record(strange, 'x'))).mean.dtype == np.float64


@pytest.mark.parametrize('stamp', [0, 1, 999_999_999, 1_000_000_000, 1_795_253_121_707_718_140])
def test_stamps(stamp):
    assert m.to_ns(m.to_time(stamp)) == stamp
    assert m.stamp_of(serialize_message(joint_state(stamp, 'x', ['a'], [1.0]))) == stamp


@pytest.mark.parametrize('record, kind, back, field', [
    *((segment(), SEGMENT, segment_record, name) for name in ('values', 'repeats', 'command_values')),
    *((state(), STATE, state_record, name) for name in ('mean', 'covariance', 'measured', 'innovation',
                                                        'innovation_stddev'))])
def test_wrong_lengths_are_refused(record, kind, back, field):
    message = deserialize_message(packed_record(record, 'x'), m.message_class(kind))
    setattr(message, field, getattr(message, field)[:-1])
    with pytest.raises(SampleError, match=field):
        back(m.unpacked('topic', kind, serialize_message(message)))


def test_empty_unknown_and_cut_ones_are_refused():
    empty = [deserialize_message(packed_record(record, 'x'), m.message_class(kind))
             for record, kind in ((segment(), SEGMENT), (state(), STATE))]
    for message, kind, back in zip(empty, (SEGMENT, STATE), (segment_record, state_record)):
        message.steps = 0
        with pytest.raises(SampleError, match='at least one step'):
            back(m.unpacked('topic', kind, serialize_message(message)))
    unknown = deserialize_message(packed_record(MASS, 'x'), m.message_class(PAYLOAD))
    unknown.status = 77
    with pytest.raises(SampleError, match='payload.status'):
        payload_record(m.unpacked('payload', PAYLOAD, serialize_message(unknown)))
    cdr = serialize_message(joint_state(STAMP, 'frame', ['first', 'second'], [1.0, 2.0]))
    for size in (0, 3, 13, 20, 30, 45, 60):
        with pytest.raises(SampleError, match='sensors'):
            m.unpacked('sensors/joint_states', JOINT_STATE, cdr[:size])
    with pytest.raises(MbseError, match='nowhere_msgs/msg/None'):
        m.message_class('nowhere_msgs/msg/None')


def test_joint_states():
    fields = np.arange(2.0), np.arange(2.0) + 0.5, ()
    assert deserialize_message(m.packed_joints(STAMP, 'f', ('a', 'bc'), *fields), JointState) == joint_state(
        STAMP, 'f', ('a', 'bc'), *fields)


@pytest.mark.parametrize('channels', [1, 2, 7])
@pytest.mark.parametrize('size, parameters', [
    (2, {}), (6, {'mass': (2.0, 0.1)}), (3, {'a': (1.0, 0.5), 'bc': (2, 3)})])
def test_estimates_of_a_mechanism(size, parameters, channels):
    random, names = np.random.default_rng(size).normal, tuple(f'c{i}' for i in range(channels))
    e = LinkageEstimate(
        STAMP, 7, 2, True, 'errorEKF_FE', tuple(f'entry/{"n" * i}' for i in range(size)), random(size=size),
        random(size=(size, size)), *random(size=(3, 5)), ('theta1', 'x'), random(size=2), np.full(2, np.nan),
        parameters, random(size=channels), np.abs(random(size=channels)),
        tuple(Measured(i % 3) for i in range(channels)), ObserverStatus.COASTING, 'é', Health(0.9, 0.5, 4, 6), 2 ** 40)
    message = deserialize_message(serialized(*linkage_message(e, 'five_bar', names)), LinkageState)
    assert (m.to_ns(message.header.stamp), message.header.frame_id) == (STAMP, 'five_bar')
    assert (message.sequence, message.revision, message.restart, message.dropped) == (7, 2, True, 2 ** 40)
    assert (message.estimator, tuple(message.names), tuple(message.force_names), tuple(message.channels)) == (
        e.estimator, e.names, e.force_names, names)
    assert dict(zip(message.parameters, zip(message.parameter_values, message.parameter_stddev))) == parameters
    for field in ('mean', 'force', 'innovation', 'innovation_stddev'):
        np.testing.assert_array_equal(getattr(message, field), getattr(e, field))
    np.testing.assert_array_equal(np.reshape(message.covariance, (size, size)), e.covariance)
    assert np.isnan(message.force_stddev).all() and list(message.measured) == [i % 3 for i in range(channels)]
    assert (message.nis, message.nis_dof) == (e.nis, sum(e.used))
    assert (message.status, message.reason) == (message.COASTING, 'é')
    assert (message.mean_nis, message.whiteness) == (0.9, 0.5)
    assert (message.observability_rank, message.observability_size) == (4, 6)


def test_a_float64_has_no_header():
    kind = 'std_msgs/msg/Float64'
    assert m.unpacked('sensors/value/x', kind, m.packed(kind, 7, 'm', {'data': 1.5})).data == 1.5
