# SPDX-License-Identifier: Apache-2.0
"""Records go through messages and the wire and come back the same, whatever NumPy type their numbers have."""

from dataclasses import fields, replace

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from nodes_support import segment, state     # noqa: E402
from rclpy.serialization import deserialize_message, serialize_message     # noqa: E402

from mbse_ros.errors import MbseError, SampleError     # noqa: E402
from mbse_ros.machine import load_machine     # noqa: E402
from mbse_ros.nodes import _messages as m     # noqa: E402
from mbse_ros.nodes._types import message_class     # noqa: E402
from mbse_ros.simulation.crane import SensorFrame     # noqa: E402
from mbse_ros.streams.records import PayloadEstimate, PayloadStatus     # noqa: E402

PAYLOAD = PayloadEstimate(7, 123_456_789_012_345_678, 50.5, 1.25, 48.0, 53.0, float('nan'), 51.0, 1234,
                          PayloadStatus.TOO_SLOW, 'piston too slow')
CASES = [
    (replace(segment(3, 5_000_000_001, restart=True), values=np.full((10, 3), np.nan)), m.segment_to_message,
     m.segment_from_message),
    (segment(2 ** 32 - 1, (2 ** 31 - 1) * 10 ** 9, steps=1), m.segment_to_message, m.segment_from_message),
    (state(9), m.state_to_message, m.state_from_message),
    (PAYLOAD, m.payload_to_message, m.payload_from_message),
]


def same(a, b):
    return all(np.array_equal(np.asarray(x), np.asarray(y), equal_nan=np.asarray(x).dtype.kind == 'f')
               for x, y in ((getattr(a, f.name), getattr(b, f.name)) for f in fields(a)))


@pytest.mark.parametrize('record, there, back', CASES, ids=['gap', 'large', 'state', 'payload'])
def test_round_trip_over_the_wire(record, there, back):
    message = there(record, 'patu655_lift')
    again = deserialize_message(serialize_message(message), type(message))
    assert message.header.frame_id == 'patu655_lift' and m.to_ns(message.header.stamp) == record.stamp_ns
    assert same(back(again), record) and type(back(again)) is type(record)


def test_numpy_scalars_and_integers_are_cast():
    odd = replace(PAYLOAD, mass=np.float32(50.5), stddev=1, samples=np.int64(4), sequence=np.uint32(7))
    serialize_message(m.payload_to_message(odd, 'x'))
    strange = replace(state(), mean=np.ones((10, 2), dtype=np.float32), nis=np.float64(2), nis_dof=np.int32(3),
                      restart=np.bool_(True))
    assert m.state_from_message(m.state_to_message(strange, 'x')).mean.dtype == np.float64
    assert m.doubles(np.arange(6).reshape(2, 3).T).tolist() == [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]


@pytest.mark.parametrize('stamp', [0, 1, 999_999_999, 1_000_000_000, 1_795_253_121_707_718_140])
def test_stamps(stamp):
    assert m.to_ns(m.to_time(stamp)) == stamp
    assert m.stamp_of(serialize_message(m.fluid_pressure(stamp, 'x', 1.0))) == stamp


@pytest.mark.parametrize('field', ['values', 'repeats', 'command_values'])
def test_segment_of_wrong_length_is_refused(field):
    message = m.segment_to_message(segment(), 'x')
    setattr(message, field, getattr(message, field)[:-1])
    with pytest.raises(SampleError, match=f'segment.{field}'):
        m.segment_from_message(message)


@pytest.mark.parametrize('field', ['mean', 'covariance', 'measured', 'innovation', 'innovation_stddev'])
def test_state_of_wrong_length_is_refused(field):
    message = m.state_to_message(state(), 'x')
    setattr(message, field, [*getattr(message, field), 1.0])
    with pytest.raises(SampleError, match=f'state.{field}'):
        m.state_from_message(message)


def test_empty_and_unknown_are_refused():
    empty = m.segment_to_message(segment(), 'x')
    empty.steps = 0
    unknown = m.payload_to_message(PAYLOAD, 'x')
    unknown.status = 77
    for call in (lambda: m.segment_from_message(empty), lambda: m.payload_from_message(unknown)):
        with pytest.raises(SampleError):
            call()
    with pytest.raises(MbseError, match='nowhere_msgs/msg/None'):
        message_class('nowhere_msgs/msg/None')


def test_truth():
    machine = load_machine('patu655_lift')
    frame = SensorFrame(10, {}, {}, np.array([0.2]), np.array([0.1]), np.array([-1.0]), np.array([3e6, 2e6]), 50.0)
    message = m.truth_message(frame, 1_000_000_010, machine)
    serialize_message(message)
    assert (message.header.stamp.sec, message.header.stamp.nanosec) == (1, 10)
    assert message.pressure.tolist() == [3e6, 2e6] and message.volumes == ['lift_piston', 'lift_rod']
    assert message.acceleration.tolist() == [-1.0] and message.payload == 50.0
