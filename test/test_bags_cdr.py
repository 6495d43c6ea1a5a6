# SPDX-License-Identifier: Apache-2.0
"""Reading without definitions against the typestore's reader: the same, or nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbse_ros.bags.bag import RawMessage, decode
from mbse_ros.bags.cdr import MOST, read
from mbse_ros.bags.messages import header, make_message, typestore
from mbse_ros.bags.topics import JOINT_STATE
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
