# SPDX-License-Identifier: Apache-2.0
"""What a plot leaves out must not change what it says: peaks, gaps and shares survive the arithmetic on curves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbse_ros.report.series import (
    band_outline,
    break_holes,
    decimate,
    equal_runs,
    finite_runs,
    resample,
    root_mean_square,
    share_inside,
)

VALUES = st.lists(st.one_of(st.floats(-1e6, 1e6), st.just(float('nan'))), min_size=1, max_size=300).map(np.array)


@given(VALUES, st.integers(8, 60))
def test_decimation_keeps_ends_extremes_order_and_gaps(y, limit):
    t = np.arange(y.size, dtype=float)
    kept_t, kept_y = decimate(t, y, limit)
    assert kept_t.size <= max(limit, 8) or kept_t.size == y.size <= limit
    assert np.all(np.diff(kept_t) > 0)
    np.testing.assert_array_equal(kept_y, y[kept_t.astype(int)])
    assert (kept_t[0], kept_t[-1]) == (t[0], t[-1])
    if np.isfinite(y).any():
        assert (np.nanmin(kept_y), np.nanmax(kept_y)) == (np.nanmin(y), np.nanmax(y))
    assert np.isnan(kept_y).any() == np.isnan(y).any()


def test_decimation_keeps_a_single_outlier_and_a_single_gap_of_a_long_curve():
    y = np.sin(np.arange(30000) / 500)
    y[12345], y[23456] = 40.0, np.nan
    t, kept = decimate(np.arange(30000) / 1000, y, 2000)
    assert t.size <= 2000
    assert kept[t == 12.345] == 40.0
    assert np.isnan(kept[t == 23.456])


def test_decimation_leaves_a_short_curve_alone_and_makes_infinity_a_gap():
    t, y = decimate(np.arange(3.0), np.array([1.0, np.inf, 3.0]), 10)
    np.testing.assert_array_equal(y, [1.0, np.nan, 3.0])
    assert t.size == 3


def test_a_hole_in_time_breaks_the_line_and_jitter_does_not():
    t = np.concatenate([np.arange(0, 1, 0.01), np.arange(3, 4, 0.01)])
    t[10] += 0.006
    broken_t, y, z = break_holes(t, np.ones(200), np.zeros(200))
    assert np.flatnonzero(np.isnan(y)).tolist() == [100] == np.flatnonzero(np.isnan(z)).tolist()
    assert 0.99 < broken_t[100] < 3
    assert break_holes(np.array([1.0]), np.array([2.0]))[1].tolist() == [2.0]


def test_a_band_is_one_closed_outline_per_run_and_keeps_its_widest_place():
    t = np.arange(5000) / 1000
    half = np.ones(5000)
    half[1234], half[2000:2500] = 9.0, np.nan
    outlines = band_outline(t, -half, half, 400)
    assert len(outlines) == 2
    assert all((outline[0] == outline[-1]).all() for outline in outlines)
    assert (outlines[0][:, 1].max(), outlines[0][:, 1].min()) == (9.0, -9.0)
    assert outlines[0][:, 0].max() < 2.0 and outlines[1][:, 0].min() >= 2.5
    assert sum(len(outline) for outline in outlines) < 410


def test_runs():
    y = np.array([np.nan, 1, 2, np.nan, 3])
    assert finite_runs(y) == [slice(1, 3), slice(4, 5)]
    assert finite_runs(np.array([])) == []
    codes = np.array([0, 0, 1, 1, 0])
    assert equal_runs(np.arange(5.0), codes) == [(0, 2, 0), (2, 4, 1), (4, 4, 0)]
    assert equal_runs(np.array([]), np.array([])) == []


def test_shares_and_errors_count_only_what_is_known():
    value = np.array([0.0, 2.0, np.nan, -0.5])
    assert share_inside(value, -np.ones(4), np.ones(4)) == pytest.approx(2 / 3)
    assert np.isnan(share_inside(np.array([np.nan]), np.zeros(1), np.ones(1)))
    assert root_mean_square(np.array([3.0, np.nan, 4.0])) == pytest.approx(np.sqrt(12.5))
    assert np.isnan(root_mean_square(np.array([])))


def test_resampling_invents_nothing_outside_its_grid_or_in_its_gaps():
    t = np.array([-1, 0.5, 1.5, 3.5, 9])
    y = resample(t, np.arange(5.0), np.array([0, 10, np.nan, 30, 40]))
    np.testing.assert_array_equal(y, [np.nan, 5, np.nan, 35, np.nan])
