# SPDX-License-Identifier: Apache-2.0
"""Samples that got lost are counted by the stamps of those that came, of regular streams alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbse_ros.monitor.clocks import LOOKED_AT, Gaps

PERIOD = 10_000_000


def taken(stamps, name='position/lift') -> Gaps:
    gaps = Gaps()
    for stamp in stamps:
        gaps.take(name, int(stamp))
    return gaps


@given(st.sets(st.integers(2 * LOOKED_AT, 999), max_size=60), st.floats(0.0, 0.09), st.integers(0, 99))
def test_what_is_left_out_is_counted(lost, jitter, seed):
    """Of a stream whose stamps jitter by up to a tenth of the period, once a window has told the period."""
    random = np.random.default_rng(seed)
    stamps = PERIOD * (np.arange(1001) + random.uniform(-jitter, jitter, 1001))
    runs = np.diff(np.flatnonzero([k not in lost for k in range(1001)]))
    gaps = taken(stamp for k, stamp in enumerate(stamps) if k not in lost)
    if runs.max() <= 10 and len(lost) <= 7:     # a window of 32 intervals stays regular
        found = gaps.recent()
        assert found == ({'position/lift': (len(lost), 1000 - len(lost))} if lost else {})
        assert gaps.total == ({'position/lift': len(lost)} if lost else {})
        assert gaps.recent() == {} and gaps.total == ({'position/lift': len(lost)} if lost else {})


def test_every_tenth_lost():
    assert taken(k * PERIOD for k in range(3200) if k < 40 or k % 10).recent()['position/lift'][0] == 316


@pytest.mark.parametrize('stamps', [
    np.cumsum(np.random.default_rng(1).exponential(PERIOD, 2000)),        # a command that is sent where it changes
    np.cumsum(np.tile([1, 3], 500)) * PERIOD,
    np.arange(1000) * PERIOD + (np.arange(1000) > 500) * 2_000_000_000,     # a pause
    np.concatenate([np.arange(500), np.arange(500)]) * PERIOD,              # a bag in a loop
    np.repeat(np.arange(500), 2) * PERIOD,                                  # two channels, or repeated samples
    np.concatenate([np.arange(500) * PERIOD, 499 * PERIOD + np.arange(1, 65) * PERIOD // 4])])
def test_what_is_no_loss(stamps):
    assert taken(stamps).recent() == {}


def test_another_rate_is_learnt():
    slower = np.concatenate([np.arange(500) * PERIOD, 499 * PERIOD + np.arange(1, 500) * 3 * PERIOD])
    gaps = taken(slower)
    assert gaps.recent()['position/lift'][0] <= 2 * LOOKED_AT       # until a window has told it
    for k in range(1, 200):
        gaps.take('position/lift', int(slower[-1]) + 3 * k * PERIOD)
    assert gaps.recent() == {}


def missing(*intervals: float) -> int:
    """Samples that are counted as missing of a stream with these intervals, ms."""
    return taken(1e6 * np.cumsum([0, *intervals])).recent().get('position/lift', (0, 0))[0]


@pytest.mark.parametrize('inside, outside', [
    ([10] * 32 + [30], [10] * 31 + [30]),                       # 32 intervals, until it is known how often samples come
    ([10] * 24 + [13] * 8 + [30], [10] * 23 + [13] * 9 + [30]),         # of these 24 must be the same ...
    ([10] * 17 + [11.9] * 15 + [30], [10] * 17 + [12.1] * 15 + [30])])      # ... to 20 %
def test_both_sides_of_a_regular_stream(inside, outside):
    assert missing(*inside) == 2 and missing(*outside) == 0


def test_both_sides_of_a_loss():
    """More than half an interval too long, up to a second."""
    assert [missing(*[10] * 32, hole) for hole in (14.9, 15.1, 990, 1010)] == [0, 1, 98, 0]


def test_how_often_samples_come_is_known_after_four_intervals():
    assert [taken(1e6 * 400 * np.arange(count + 1)).slower_than(300_000_000) for count in (3, 4)] == [
        {}, {'position/lift': 400_000_000}]
