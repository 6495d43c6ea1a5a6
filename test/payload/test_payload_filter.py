# SPDX-License-Identifier: Apache-2.0
"""Low-pass, triangular window, batch scatter and Student's quantile against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter
from scipy.stats import t as student

from mbse_ros.payload.filter import (
    BatchScatter,
    LowPass,
    MassFilter,
    TriangularWindow,
    t_quantile,
    triangular_weights,
)
from mbse_ros.payload.mass import PayloadSettings

SPLITS = st.lists(st.integers(1, 40), min_size=1, max_size=12)


def rows(n: int, seed: int = 0, equal: bool = False) -> np.ndarray:
    """Weight, then weight times a vector of two."""
    rng = np.random.default_rng(seed)
    weight = np.ones(n) if equal else rng.uniform(0.1, 3.0, n)
    return np.column_stack([weight, weight[:, None] * (50 + rng.normal(size=(n, 2)))])


@given(sizes=SPLITS, gain=st.floats(1e-4, 0.9))
def test_low_pass_is_the_recursion(sizes: list[int], gain: float) -> None:
    """Weighted sums, each forgotten by the gain at every sample, however the samples are split."""
    data, low_pass, sums, expected = rows(sum(sizes)), LowPass(gain, 2), np.zeros(3), []
    for row in data:
        sums = (1 - gain) * sums + row
        expected.append(sums[1:] / sums[0])
    found = np.concatenate([low_pass.update(part) for part in np.split(data, np.cumsum(sizes)[:-1])])
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    np.testing.assert_allclose(low_pass.value, expected[-1], rtol=1e-11)
    assert low_pass.total == pytest.approx(sums[0], rel=1e-11)


@given(sizes=SPLITS, gain=st.floats(1e-4, 1.0), seed=st.integers(0, 2 ** 32 - 1))
def test_low_pass_forgets_what_it_is_told_to(sizes: list[int], gain: float, seed: int) -> None:
    """Of what was before each sample, by the share of it, nearly nothing included."""
    rng, n = np.random.default_rng(seed), sum(sizes)
    forgotten = np.where(rng.random(n) < 0.3, -rng.exponential(1.0, n) * 10.0 ** rng.integers(-6, 3, n), 0.0)
    data, low_pass, sums, expected = rows(n), LowPass(gain, 2), np.zeros(3), []
    for row, kept in zip(data, np.exp(forgotten)):
        sums = (1 - gain) * kept * sums + row
        expected.append(sums[1:] / sums[0])
    ends = np.cumsum(sizes)[:-1]
    found = [low_pass.update(*parts) for parts in zip(np.split(data, ends), np.split(forgotten, ends))]
    np.testing.assert_allclose(np.concatenate(found), expected, rtol=1e-9)


def test_low_pass_takes_a_long_block() -> None:
    """What a guard time made shorter releases at once."""
    data, one_by_one = rows(2000), LowPass(1e-3, 2)
    expected = np.concatenate([one_by_one.update(row[None, :]) for row in data])
    np.testing.assert_allclose(LowPass(1e-3, 2).update(data), expected, rtol=1e-11)


def test_low_pass_becomes_the_papers() -> None:
    """Eq. 58, ``(1 - Kf) m_LP + Kf m``, with equal weights once many more than 1/Kf samples have come."""
    gain, data = 0.02, rows(1500, equal=True)
    found = LowPass(gain, 2).update(data)
    paper = found[1199].copy()
    for k in range(1200, 1500):
        paper = (1 - gain) * paper + gain * data[k, 1:]
    np.testing.assert_allclose(found[-1], paper, rtol=1e-9)


def test_low_pass_begins_as_a_running_mean() -> None:
    """The first sample does not linger: after k << 1/Kf samples all count alike."""
    data = rows(50, equal=True)
    np.testing.assert_allclose(LowPass(1e-6, 2).update(data)[-1], data[:, 1:].mean(axis=0), rtol=1e-5)
    low_pass = LowPass(1e-3, 2)
    assert np.isnan(low_pass.value).all() and low_pass.total == 0.0
    np.testing.assert_allclose(low_pass.update(data[:1])[0], data[0, 1:])


@pytest.mark.parametrize('before', ['plain', 'information'])
def test_of_samples_that_count_alike_what_is_forgotten_counts_no_more(before: str) -> None:
    """Else they have the gain of the print, after samples that counted by their information, too."""
    def masses(mass: float, information: float, n: int) -> np.ndarray:
        return information * np.column_stack([np.ones(n), np.full(n, mass)])
    gain, known = 2e-4, MassFilter(0, PayloadSettings(low_pass_gain=2e-4))
    first = masses(50.0, 0.01, 1000)
    known.take(known.alike(first) if before == 'plain' else first)
    known.take(known.alike(first[:1]))
    for share, after in (1.0, 50.0 + 30.0 * (1.0 - (1.0 - gain) ** 200)), (1e-9, 80.0):
        found = known.copy()
        found.forget(share)
        for size in (150, 50):
            found.take(found.alike(masses(80.0, 0.07, size)))
        np.testing.assert_allclose(found.low_passed, after, rtol=1e-6)


def test_weights_count_as_repeated_samples() -> None:
    """A sample of weight 3 is three samples of weight 1, where nothing is forgotten."""
    heavy = LowPass(1e-12, 1).update(np.array([[1.0, 10.0], [3.0, 3 * 20.0]]))[-1]
    assert heavy[0] == pytest.approx((10 + 3 * 20) / 4)


@pytest.mark.parametrize('window, weights', [(1, [1]), (3, [1, 2, 1]), (5, [1, 2, 3, 2, 1])])
def test_triangular_weights(window: int, weights: list[int]) -> None:
    np.testing.assert_allclose(triangular_weights(window), np.array(weights) / sum(weights))


def windowed(x: np.ndarray, k: int, n: int) -> np.ndarray:
    """Pyrhönen et al., mass estimation, Eq. 59 as printed, at sample k + 1 (zero-based k), window 2n + 1."""
    total = sum(i * (x[k - 2 * n + i - 1] + x[k - i + 1]) for i in range(1, n + 1)) + (n + 1) * x[k - n]
    return total / (2 * sum(range(1, n + 1)) + n + 1)


@given(sizes=SPLITS, window=st.integers(1, 31))
def test_window_is_the_papers_once_full_and_shorter_before(sizes: list[int], window: int) -> None:
    x, filtered, n = rows(sum(sizes))[:, 1:], TriangularWindow(window, 2), window // 2
    assert filtered.window == 2 * n + 1
    end = 0
    for size in sizes:
        found = filtered.update(x[end:end + size])
        end += size
        have = min(n, (end - 1) // 2)       # the largest triangle of odd length over what there is
        np.testing.assert_allclose(found, windowed(x, end - 1, have), rtol=1e-12)


def test_window_runs_long() -> None:
    """Its buffer wraps many times, and takes a block longer than itself."""
    x, filtered = rows(5000)[:, 1:], TriangularWindow(11, 2)
    filtered.update(x[:10])
    for k in range(10, 4000, 10):
        found = filtered.update(x[k:k + 10])
        np.testing.assert_allclose(found, windowed(x, k + 9, 5), rtol=1e-12)
    np.testing.assert_allclose(filtered.update(x[4000:]), windowed(x, 4999, 5), rtol=1e-12)


def scatter_of(series: np.ndarray, length: int, gain: float) -> tuple[float, float, float]:
    """Weighted mean, variance and degrees of freedom of a series, taken in segments of 50."""
    low_pass, scatter = LowPass(gain, 1), BatchScatter(gain, length)
    for part in np.split(series, len(series) // 50):
        low_pass.update(np.column_stack([np.ones(50), part]))
        scatter.update(50.0, float(part.sum()), 50)
    return float(low_pass.value[0]), *scatter.variance(float(low_pass.value[0]), low_pass.total)


def correlated(runs: int, n: int = 5000, samples: float = 8.0) -> np.ndarray:
    """AR(1) noise (runs, n) of variance 1, correlated over ``samples``, as mass samples are."""
    keep = np.exp(-1 / samples)
    noise = np.random.default_rng(8).standard_normal((runs, n + 200))
    return lfilter([np.sqrt(1 - keep ** 2)], [1.0, -keep], noise, axis=1)[:, 200:]


@pytest.mark.parametrize('gain', [1e-9, 2e-4])
def test_scatter_covers_the_mean_of_correlated_samples(gain: float) -> None:
    """The 95 % interval from batches of 100 holds the mean in 95 % of 400 runs, with or without forgetting."""
    found = np.array([scatter_of(series, 100, gain) for series in correlated(400)])
    inside = np.abs(found[:, 0]) < np.array([t_quantile(v) for v in found[:, 2]]) * np.sqrt(found[:, 1])
    assert 0.92 < inside.mean() < 0.98
    assert np.mean(found[:, 1]) == pytest.approx(np.var(found[:, 0]), rel=0.2)
    full = 5000 / 100 - 1
    assert full / 2 < found[0, 2] <= full


def test_samples_taken_as_independent_would_be_too_sure() -> None:
    """What the batches are for: the scatter of single samples, over their number, covers half as often."""
    series = correlated(400)
    inside = np.abs(series.mean(axis=1)) < 1.96 * series.std(axis=1) / np.sqrt(5000)
    assert inside.mean() < 0.6


def test_scatter_needs_two_batches() -> None:
    scatter = BatchScatter(2e-4, 100)
    for _ in range(19):
        scatter.update(10.0, 500.0, 10)
    assert scatter.batches == 1 and scatter.variance(50.0, 190.0)[0] == float('inf')
    scatter.update(10.0, 520.0, 10)
    variance, freedom = scatter.variance(50.1, 200.0)
    assert scatter.batches == 2 and np.isfinite(variance) and variance > 0 and freedom >= 1.0


def test_quantile_is_students() -> None:
    for freedom in (1.0, 2.5, 4.0, 20.0, 200.0):
        assert t_quantile(freedom) == pytest.approx(student.ppf(0.975, freedom), rel=1e-9)
    assert t_quantile(float('inf')) == pytest.approx(1.95996, abs=1e-5)


def test_a_copy_of_a_window_runs_on_for_itself() -> None:
    window, samples = TriangularWindow(21, 2), np.random.default_rng(5).normal(size=(300, 2))
    for first in range(0, 150, 7):
        window.update(samples[first:first + 7])
    other = window.copy()
    for part in (samples[150:153], samples[153:200], samples[200:]):
        expected = window.update(part)
        window.copy().update(part)
        np.testing.assert_allclose(other.update(part), expected, rtol=0, atol=1e-15)
