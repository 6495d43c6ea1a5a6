# SPDX-License-Identifier: Apache-2.0
"""Messages read and written as bytes are those that rclpy makes."""

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from geometry_msgs.msg import Vector3     # noqa: E402
from hypothesis import given, settings     # noqa: E402
from hypothesis import strategies as st     # noqa: E402
from rclpy.serialization import deserialize_message, serialize_message     # noqa: E402
from sensor_msgs.msg import Imu, JointState     # noqa: E402

from mbse_ros.msg import LinkageState     # noqa: E402
from mbse_ros.nodes._cdr import IMU_FIELDS, JointReader, JointWriter, imu_of     # noqa: E402
from mbse_ros.nodes._linkage_state import StateWriter     # noqa: E402
from mbse_ros.nodes._messages import header, joint_state, to_ns     # noqa: E402
from mbse_ros.streams.linkage.records import Health, LinkageEstimate, Measured     # noqa: E402
from mbse_ros.streams.records import ObserverStatus     # noqa: E402

TEXT = st.text(st.characters(blacklist_characters='\0', blacklist_categories=['Cs']), max_size=9)
STAMP = 1_700_000_000_123_456_789


@settings(max_examples=100)
@given(st.lists(st.tuples(TEXT, st.lists(TEXT, max_size=4), st.tuples(*[st.integers(0, 3)] * 3)), max_size=4))
def test_joint_states(messages):
    read = JointReader()
    for number, (frame, names, sizes) in enumerate(messages):
        fields = [np.arange(size) + 0.5 * number for size in sizes]
        found = read(serialize_message(joint_state(STAMP + number, frame, names, *fields)))
        assert found[:2] == (STAMP + number, tuple(names))
        assert [list(values) for values in found[2:]] == [list(values) for values in fields]


def test_of_the_other_byte_order():
    cdr = (b'\0\0\0\0' + (5).to_bytes(4, 'big') + (7).to_bytes(4, 'big') + (1).to_bytes(4, 'big') + b'\0\0\0\0'
           + (1).to_bytes(4, 'big') + (2).to_bytes(4, 'big') + b'a\0\0\0' + (1).to_bytes(4, 'big')
           + np.array([1.5], dtype='>f8').tobytes() + bytes(8))
    assert JointReader()(cdr) == (5_000_000_007, ('a',), (1.5,), (), ())


@pytest.mark.parametrize('size', [0, 3, 13, 20, 30, 45, 60])
def test_cut_messages_are_told(size):
    cdr = serialize_message(joint_state(STAMP, 'frame', ['first', 'second'], [1.0, 2.0]))
    read = JointReader()
    with pytest.raises(ValueError):
        read(cdr[:size])
    assert read(cdr).name == ('first', 'second')
    with pytest.raises(ValueError):
        imu_of(cdr[:size])


@pytest.mark.parametrize('fields', [['position'], ['effort'], ['position', 'velocity'], ['velocity', 'effort']])
@pytest.mark.parametrize('names', [['a'], ['theta1', 'phi']])
def test_written_joint_states(fields, names):
    write = JointWriter('frame', names, fields)
    for stamp in (STAMP, STAMP + 1):
        values = {field: np.random.default_rng(stamp).normal(size=len(names)) for field in fields}
        expected = joint_state(stamp, 'frame', names, *(values.get(f, ()) for f in ('position', 'velocity', 'effort')))
        assert deserialize_message(write(stamp, *values.values()), JointState) == expected
    with pytest.raises(ValueError):
        write(STAMP, *([0.0] * 5 for _ in fields))


@pytest.mark.parametrize('frame', ['', 'abc', 'longer than that'])
def test_imus(frame):
    message = Imu(header=header(STAMP, frame), angular_velocity=Vector3(x=1.0, y=2.0, z=3.0),
                  linear_acceleration=Vector3(x=4.0, y=5.0, z=6.0))
    stamp, numbers = imu_of(serialize_message(message))
    assert stamp == STAMP
    assert [numbers[IMU_FIELDS[name]] for name in ('angular_velocity', 'linear_acceleration')] == [
        (1.0, 2.0, 3.0), (4.0, 5.0, 6.0)]


def estimate(random, size, channels, reason='', parameters=None, forces=('theta1', 'x')):
    """Random numbers."""
    numbers = random.normal
    return LinkageEstimate(
        STAMP, 7, 2, True, 'errorEKF_FE', tuple(f'entry/{"n" * i}' for i in range(size)), numbers(size=size),
        numbers(size=(size, size)), numbers(size=5), numbers(size=5), numbers(size=5), forces,
        numbers(size=len(forces)), np.full(len(forces), np.nan), parameters or {}, numbers(size=channels),
        np.abs(numbers(size=channels)), tuple(Measured(i % 3) for i in range(channels)), ObserverStatus.COASTING,
        reason, Health(0.9, 0.5, 4, 6), 2 ** 40)


@pytest.mark.parametrize('channels', [1, 2, 7])
@pytest.mark.parametrize('size, parameters', [
    (2, None), (6, {'mass': (2.0, 0.1)}), (3, {'a': (1.0, 0.5), 'bc': (2, 3)})])
def test_states(size, parameters, channels):
    random, names = np.random.default_rng(size), tuple(f'c{i}' for i in range(channels))
    write = StateWriter('five_bar', names)
    for reason in ('', 'silent: encoder', 'é'):
        e = estimate(random, size, channels, reason, parameters)
        m = deserialize_message(write(e), LinkageState)
        assert (to_ns(m.header.stamp), m.header.frame_id) == (STAMP, 'five_bar')
        assert (m.sequence, m.revision, m.restart, m.dropped, m.status) == (7, 2, True, 2 ** 40, m.COASTING)
        assert (m.estimator, tuple(m.names), tuple(m.force_names), tuple(m.channels), m.reason) == (
            e.estimator, e.names, e.force_names, names, reason)
        assert dict(zip(m.parameters, zip(m.parameter_values, m.parameter_stddev))) == e.parameters
        for field in ('mean', 'force', 'innovation', 'innovation_stddev'):
            np.testing.assert_array_equal(getattr(m, field), getattr(e, field))
        np.testing.assert_array_equal(np.reshape(m.covariance, (size, size)), e.covariance)
        assert np.isnan(m.force_stddev).all() and list(m.measured) == [i % 3 for i in range(channels)]
        assert (m.nis, m.nis_dof) == (e.nis, sum(e.used))
        assert (m.mean_nis, m.whiteness, m.observability_rank, m.observability_size) == (0.9, 0.5, 4, 6)
    other = estimate(random, size, channels, forces=('torque',))
    assert tuple(deserialize_message(write(other), LinkageState).force_names) == ('torque',)
