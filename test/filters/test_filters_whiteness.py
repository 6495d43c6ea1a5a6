# SPDX-License-Identifier: Apache-2.0
"""Noise of innovations against the stated one."""

import numpy as np
import pytest

from mbse_ros.filters.whiteness import overstated

T = 0.01 * np.arange(800)
NOISE = np.random.default_rng(7).normal(size=len(T))
SLOW = np.sin(5.0 * T)


def said(noise: np.ndarray, samples: np.ndarray = NOISE) -> bool:
    """Whether there is a warning of innovations, with errors of the model, whose stated deviation is 1."""
    return bool(overstated('encoder', noise + 0.3 * SLOW, samples, 1.0))


def test_noise_in_another_unit_or_far_smaller_than_stated() -> None:
    assert said(NOISE * np.pi / 180.0)
    line, = overstated('encoder', 0.02 * NOISE, NOISE, 1.0)
    size = float(line.partition(' times smaller')[0].rpartition(' ')[2])
    assert line.startswith('encoder: ') and 40.0 < size < 60.0


@pytest.mark.parametrize('share', [1.0, 0.3, 0.12])
def test_noise_that_was_rounded_up_is_not_told(share) -> None:
    assert not said(share * NOISE)


def test_what_is_not_white_rounded_or_too_short_is_not_told() -> None:
    smooth = np.convolve(NOISE, np.hanning(50) / np.linalg.norm(np.hanning(50)), 'same')     # a low-pass filter
    assert not said(smooth) and not said(np.zeros_like(T))
    assert not said(0.02 * NOISE, np.repeat(NOISE[::4], 4))
    assert not overstated('encoder', 0.02 * NOISE[:40], NOISE[:40], 1.0)


def test_missing_samples_count_for_nothing() -> None:
    gaps = np.where(np.arange(len(T)) % 3 == 0, np.nan, 0.02 * NOISE)
    assert said(gaps) and not overstated('encoder', np.full(len(T), np.nan), NOISE, 1.0)


def test_a_single_disturbance_does_not_hide_it() -> None:
    assert said(0.02 * NOISE + 5.0 * (np.arange(len(T)) % 250 == 100))
