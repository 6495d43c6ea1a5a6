# SPDX-License-Identifier: Apache-2.0
"""Guard time around rejected samples, against its definition by brute force."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mbse_ros.payload.paper import GuardInterval

CLEAN = st.lists(st.one_of(st.just(True), st.booleans()), min_size=1, max_size=300)


def expected(clean: list[bool], guard: int) -> list[int]:
    """Samples with ``guard`` clean ones on both sides; before the first and after the last sample nothing is clean."""
    n = len(clean)
    return [k for k in range(n) if k >= guard and k + guard < n and all(clean[k - guard:k + guard + 1])]


def run(clean: list[bool], guard: int, cuts: list[int]) -> list[int]:
    """Numbers of the samples that pass, fed in the given pieces."""
    guarded, passed = GuardInterval(2), []
    rows = np.column_stack([np.arange(len(clean)), -np.arange(len(clean))]).astype(float)
    for part in np.split(np.arange(len(clean)), sorted(c % len(clean) for c in cuts)):
        if len(part):
            flags = np.array(clean)[part]
            found = guarded.release(rows[part], None if flags.all() else flags, guard)
            np.testing.assert_array_equal(found[:, 0], -found[:, 1])
            passed += found[:, 0].astype(int).tolist()
    return passed


@given(clean=CLEAN, guard=st.integers(0, 20), cuts=st.lists(st.integers(0, 300), max_size=12))
def test_a_sample_passes_with_clean_neighbours_only(clean: list[bool], guard: int, cuts: list[int]) -> None:
    """In order, each once, and however the samples are cut into segments."""
    assert run(clean, guard, cuts) == expected(clean, guard)


@settings(max_examples=25)
@given(length=st.integers(1, 3000), guard=st.integers(0, 700), piece=st.integers(1, 400))
def test_long_clean_runs_pass_whole(length: int, guard: int, piece: int) -> None:
    """More than its buffer holds at first."""
    assert run([True] * length, guard, list(range(piece, length, piece))) == list(range(guard, length - guard))


def test_clear_drops_what_waits() -> None:
    guarded, rows = GuardInterval(1), np.arange(10.0)[:, None]
    guarded.release(rows, None, 3)
    guarded.clear()
    assert guarded.release(rows + 10, None, 3)[:, 0].tolist() == [13.0, 14.0, 15.0, 16.0]


def test_a_shorter_guard_takes_effect_at_once() -> None:
    guarded, rows = GuardInterval(1), np.arange(20.0)[:, None]
    assert len(guarded.release(rows, None, 8)) == 4      # 8 .. 11
    assert guarded.release(rows[:1] + 20, None, 2)[:, 0].tolist() == [float(k) for k in range(12, 19)]
