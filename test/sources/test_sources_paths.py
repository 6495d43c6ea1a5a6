# SPDX-License-Identifier: Apache-2.0
"""Paths to fields: text, values in messages of real types, and what is said where there is no such field."""

from __future__ import annotations

import math
import timeit

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from sources_support import joint_state, multi_array, store

from mbse_ros.sources.fields import FieldType, PathStep, Selection, parse_path, path_text, store_fields
from mbse_ros.sources.getters import Absent, getter, number_getter, stamp_getter, time_paths
from mbse_ros.sources.topic_samples import as_object

JOINT_STATE, IMU, MULTI = 'sensor_msgs/msg/JointState', 'sensor_msgs/msg/Imu', 'std_msgs/msg/Float64MultiArray'
TYPES = store(False)
FIELDS = store_fields(TYPES)
names = st.from_regex(r'[A-Za-z][A-Za-z0-9_]{0,8}', fullmatch=True)
labels = st.text(st.characters(codec='ascii', exclude_characters='\'"'), max_size=8)
selections = st.one_of(st.none(), st.integers(0, 999_999).map(Selection),
                       st.builds(Selection, st.none(), st.lists(names, min_size=1, max_size=3).map(tuple),
                                 st.lists(labels, min_size=1, max_size=3).map(tuple)))


def value(path, message, msgtype):
    return float(number_getter(parse_path(path), msgtype, FIELDS)(message))


def fault(path, msgtype):
    with pytest.raises(ValueError) as raised:
        number_getter(parse_path(path), msgtype, FIELDS)
    return str(raised.value)


@given(st.lists(st.builds(PathStep, names, selections), min_size=1, max_size=5).map(tuple))
def test_a_path_is_its_text(path):
    assert parse_path(path_text(path)) == path


@pytest.mark.parametrize('text', ['', '.', 'a.', 'a..b', 'a[', 'a[]', 'a[-1]', 'a[b]', 'a[b=]', 'a[=c]', 'a[b=c', '1a',
                                  'a[b=c]d', 'a b', "a[b='c]", 'a[b=c|]', 'a[0][1]'])
def test_what_is_no_path(text):
    with pytest.raises(ValueError):
        parse_path(text)


def test_elements_by_name_and_by_place():
    message = joint_state(TYPES, 7, ['swing', 'boom', 'arm'], [1.0, 2.0, 3.0], [0.1, 0.2, 0.3])
    assert value('position[name=arm]', message, JOINT_STATE) == 3.0
    assert value('velocity[name=swing]', message, JOINT_STATE) == 0.1
    assert value('position[1]', message, JOINT_STATE) == 2.0
    assert value('position[name=stick|arm]', message, JOINT_STATE) == 3.0
    labelled = multi_array(TYPES, ['a b', 'c]d', 'e'], [5.0, 6.0, 7.0])
    assert value('data[layout.dim.label=a b]', labelled, MULTI) == 5.0
    assert value("data[layout.dim.label='c]d']", labelled, MULTI) == 6.0


def test_names_that_move_about_from_message_to_message():
    """Where a name was the last time is only a hint."""
    get = number_getter(parse_path('position[name=arm]'), JOINT_STATE, FIELDS)
    for order in (['boom', 'arm'], ['arm', 'boom'], ['arm'], ['a', 'b', 'c', 'arm']):
        message = joint_state(TYPES, 0, order, [9.0 if name == 'arm' else 1.0 for name in order])
        assert get(message) == 9.0
    with pytest.raises(Absent, match='no arm in name') as raised:
        get(joint_state(TYPES, 0, ['boom', 'swing'], [1.0, 2.0]))
    assert raised.value.there == ('boom', 'swing')
    for message in joint_state(TYPES, 0, [], []), joint_state(TYPES, 0, ['boom', 'arm'], []):
        with pytest.raises(Absent):
            get(message)
    for values in [1.0], [1.0, 2.0, 3.0]:       # whose is which?
        with pytest.raises(ValueError, match=f'{len(values)} values in position for 2 in name'):
            get(joint_state(TYPES, 0, ['boom', 'arm'], values))
    assert get(joint_state(TYPES, 0, ['arm'], [4.0])) == 4.0
    with pytest.raises(Absent, match='no element 2 of position'):
        value('position[2]', joint_state(TYPES, 0, ['a'], [1.0]), JOINT_STATE)


def test_the_angles_of_a_quaternion():
    """Against SciPy's, about the fixed axes x, y, z (REP-103)."""
    rng = np.random.default_rng(3)
    for roll, pitch, yaw in rng.uniform([-3, -1.5, -3], [3, 1.5, 3], (50, 3)):
        q = Rotation.from_euler('xyz', [roll, pitch, yaw]).as_quat()       # about the fixed axes, x first
        message = as_object({'orientation': dict(zip('xyzw', q))})
        found = [value(f'orientation.{angle}', message, IMU) for angle in ('roll', 'pitch', 'yaw')]
        np.testing.assert_allclose(found, [roll, pitch, yaw], atol=1e-9)
    for length in (0.0, 0.9, math.nan):         # nobody fills it in, or it is no attitude
        for angle in ('roll', 'pitch', 'yaw'):
            with pytest.raises(ValueError, match=f'a quaternion of length {length:.3g}, not 1'):
                value(f'orientation.{angle}', as_object({'orientation': dict.fromkeys('xyzw', length / 2.0)}), IMU)
    assert 'roll, pitch, yaw (rad)' in fault('orientation.rol', IMU)


@pytest.mark.parametrize('path, msgtype, expected', [
    ('positions', JOINT_STATE, 'velocity (float64[]), effort (float64[]); did you mean position?'),
    ('position', JOINT_STATE, 'position[0], position[name=...]'),
    ('data', MULTI, 'data[0], data[layout.dim.label=...]'),
    ('header[0]', JOINT_STATE, 'header without brackets: it is a std_msgs/msg/Header, not an array'),
    ('header', JOINT_STATE, 'a path to a number; header is a std_msgs/msg/Header with the fields stamp'),
    ('header.frame_id', JOINT_STATE, 'a path to a number, not to a string'),
    ('header.frame_id.x', JOINT_STATE, 'nothing behind header.frame_id, which is a string'),
    ('position[nam=boom]', JOINT_STATE, 'name (string[])'),
    ('position[velocity=boom]', JOINT_STATE, 'a key to an array of text: velocity is an array of float64'),
    ('position[header.frame_id=boom]', JOINT_STATE, 'a key to an array of text: header.frame_id is a string'),
    ('angular_velocity.w', IMU, 'x (float64), y (float64), z (float64)')])
def test_a_wrong_path_is_told_what_there_is(path, msgtype, expected):
    assert expected in fault(path, msgtype)


def test_an_array_of_messages_is_told_how_to_choose():
    assert 'poses[0], poses[header.frame_id=...]' in fault('poses', 'nav_msgs/msg/Path')
    assert 'dim[0], layout.dim[label=...]' in fault('layout.dim', MULTI)
    assert getter(parse_path('layout.dim[label=x]'), MULTI,
                  FIELDS).kind == FieldType('std_msgs/msg/MultiArrayDimension')


def test_stamps():
    stamp = 1_700_000_000_123_456_789
    message = joint_state(TYPES, stamp, ['a'], [1.0])
    for text in ('header', 'header.stamp'):
        assert stamp_getter(text, JOINT_STATE, FIELDS)(message) == stamp
    assert stamp_getter('arrival', MULTI, FIELDS) is None
    assert time_paths('nav_msgs/msg/Path', FIELDS) == ['header', 'poses[0].header']
    with pytest.raises(ValueError, match='arrival, the time at which a message arrives') as raised:
        stamp_getter('header', MULTI, FIELDS)
    assert 'Float64MultiArray has no header' in str(raised.value)
    with pytest.raises(ValueError, match=r'position\[0\] is a float64'):
        stamp_getter('position[0]', JOINT_STATE, FIELDS)
    with pytest.raises(ValueError, match=r'poses\[0\].header \(nested'):
        stamp_getter('poses[0].pose', 'nav_msgs/msg/Path', FIELDS)
    message.header.stamp.nanosec = 2 * 10 ** 9
    with pytest.raises(ValueError, match='2000000000 ns'):
        stamp_getter('header', JOINT_STATE, FIELDS)(message)


def test_it_is_fast_enough_for_1000_hz():
    """Six pressures by name a thousand times a second take less than a twentieth of a processor: by far, a bound for
    a machine that is busy."""
    message = multi_array(TYPES, [f'name_{k}' for k in range(16)], range(16))
    getters = [number_getter(parse_path(f'data[layout.dim.label=name_{k}]'), MULTI, FIELDS) for k in range(6)]
    best = min(timeit.repeat(lambda: [get(message) for get in getters], number=200, repeat=20)) / 200
    assert best < 50e-6


