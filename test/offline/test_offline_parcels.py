# SPDX-License-Identifier: Apache-2.0
"""Records that come out of a parcel as they went in, with arrays of their own."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from mbse_ros.offline.parcels import packed, unpacked
from mbse_ros.streams.records import ObserverStatus, Segment, StateEstimate


def segments() -> list[Segment]:
    values = np.arange(60.0).reshape(12, 5)
    values[3, 2] = np.nan
    first = Segment(7, 10 ** 18 + 1, 10 ** 6, True, ('a', 'b'), values[:4, :2], np.array([10.0, 2.5]), ('u',),
                    values[:4, 4:])
    return [first, replace(first, restart=False, values=values[4:5, 1:3], command_values=np.zeros((1, 0)), commands=())]


def state(status: ObserverStatus, reason: str) -> StateEstimate:
    return StateEstimate(1, 2, 3, False, ('x', 'y'), np.ones((4, 2)), np.eye(2).T, ('a',), np.array([np.nan]),
                         np.array([-0.0]), np.array([5e-324]), 0.1 + 0.2, 1, status, reason)


def assert_same(found: list, given: list) -> None:
    assert len(found) == len(given)
    for one, other in zip(found, given):
        assert type(one) is type(other)
        for field in fields(other):
            a, b = getattr(one, field.name), getattr(other, field.name)
            if isinstance(b, np.ndarray):
                assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes(), field.name
            else:
                assert a == b and type(a) is type(b), field.name


def test_what_goes_in_comes_out() -> None:
    given = segments()
    assert_same(unpacked(packed(given)), given)
    states = [state(ObserverStatus.OK, ''), state(ObserverStatus.LOST, 'nothing is measured: ä')]
    assert_same(unpacked(packed(states)), states)
    assert unpacked(packed([])) == []


def test_other_numbers_than_float64_are_pickled() -> None:
    given = [replace(segments()[0], repeats=np.array([1, 2]), values=np.ones((2, 2), np.float32))]
    assert_same(unpacked(packed(given)), given)


def test_arrays_are_the_receivers_own() -> None:
    """Else one number that is kept would keep the memory of all that came with it."""
    found = unpacked(packed(segments()))
    found[0].values[:] = 0.0
    assert found[1].values.tolist() == segments()[1].values.tolist()
    for array in (found[0].values, found[0].repeats):
        owner = array if array.base is None else array.base
        assert owner.nbytes == array.nbytes
