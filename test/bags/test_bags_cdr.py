# SPDX-License-Identifier: Apache-2.0
"""Reading without definitions against the typestore's reader: the same, or nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbse_ros.bags.bag import RawMessage, decode
from mbse_ros.bags.message_layout import MOST, in_columns, read
from mbse_ros.bags.messages import header, make_message, stamp_of, typestore
from mbse_ros.bags.topics import JOINT_STATE, TRUTH
from mbse_ros.errors import SampleError

NAMES = st.lists(st.text(st.characters(exclude_characters='\0', exclude_categories=['Cs']), max_size=9), max_size=5)
VALUES = st.lists(st.floats(width=64), max_size=5)


def serialized(stamp, frame, names, position, velocity=(), effort=()):
    message = make_message(JOINT_STATE, {'header': header(stamp, frame), 'name': names, 'position': position,
                                         'velocity': velocity, 'effort': effort})
    return bytes(typestore().serialize_cdr(message, JOINT_STATE))


def joint_state(cdr):
    found = read(cdr, JOINT_STATE)
    return found and found.message


def slow(cdr):
    return decode(RawMessage(0, 'joints', JOINT_STATE, cdr))


def same(one, other):
    return (one.header.stamp.sec, one.header.stamp.nanosec, one.name) == (
        other.header.stamp.sec, other.header.stamp.nanosec, list(other.name)) and all(
        np.array_equal(getattr(one, field), getattr(other, field), equal_nan=True)
        for field in ('position', 'velocity', 'effort'))


@given(st.integers(-2 ** 31 * 10 ** 9, 2 ** 31 * 10 ** 9 - 1), st.text(st.characters(codec='ascii',
       exclude_characters='\0'), max_size=9), NAMES, VALUES, VALUES, VALUES, st.sampled_from([0, 4, 8]))
def test_reads_what_the_typestore_reads(stamp, frame, names, position, velocity, effort, behind):
    cdr = serialized(stamp, frame, names, position, velocity, effort) + bytes(behind)
    assert same(joint_state(cdr), slow(cdr))


@given(st.data())
def test_spoilt_bytes_are_read_the_same_way_or_not_at_all(data):
    cdr = bytearray(serialized(10, 'm', ['lift', 'tilt'], [0.1, 0.2], [0.0, 1.0]))
    for _ in range(data.draw(st.integers(1, 3))):
        cdr[data.draw(st.integers(0, len(cdr) - 1))] = data.draw(st.integers(0, 255))
    cdr = bytes(cdr[:data.draw(st.integers(0, len(cdr)))])
    ours = joint_state(cdr)
    if ours is not None:
        assert same(ours, slow(cdr))


def test_others_are_left_to_the_typestore():
    cdr = serialized(10, 'm', ['lift'], [0.1])
    assert joint_state(b'\0\0' + cdr[2:]) is None                       # big-endian
    assert joint_state(serialized(10, 'm', ['a'] * (MOST + 1), [])) is None
    assert joint_state(cdr + bytes(12)) is None
    with pytest.raises(SampleError):
        slow(cdr[:30])
    assert joint_state(cdr[:30]) is None and joint_state(b'') is None


@pytest.mark.parametrize('joints, volumes', [(2, 3), (1, 0), (0, 0)])
def test_columns_are_what_single_messages_hold(joints, volumes):
    random = np.random.default_rng(1)
    fields = {'position': joints, 'velocity': joints, 'acceleration': joints, 'pressure': volumes}
    cdrs = [bytes(typestore().serialize_cdr(make_message(TRUTH, {
        'header': header(k * 10 ** 9 + 7, 'm'), 'cylinders': ['c'] * joints, 'volumes': ['v'] * volumes,
        'payload': k + 0.5,
        **{name: random.normal(size=count) for name, count in fields.items()}}), TRUTH)) for k in range(-2, 5)]
    first, stamps, columns = in_columns(cdrs, TRUTH)
    alone = [read(cdr, TRUTH).message for cdr in cdrs]
    assert stamps.tolist() == [stamp_of(message) for message in alone] and first.message.payload == -1.5
    for name in (*fields, 'payload'):
        assert np.array_equal(columns[name], np.array([getattr(message, name) for message in alone])), name
    assert in_columns([*cdrs, cdrs[0] + bytes(4)], TRUTH) is None
    assert in_columns([*cdrs, cdrs[0].replace(b'm\0', b'n\0')], TRUTH) is None
    assert in_columns([cdrs[0][:20]], TRUTH) is None
