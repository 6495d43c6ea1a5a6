# SPDX-License-Identifier: Apache-2.0
"""Smoothing of mass samples: low-pass, triangular window, and the scatter that gives the interval.

Paper 003 Eqs. 58, 59. All filters are linear, so the derivatives of the samples with respect to the uncertain
parameters go through the same filters as the samples and come out as the derivatives of the result.
"""

from __future__ import annotations

import numpy as np


def triangular_weights(window: int) -> np.ndarray:
    """Weights 1..n+1..1 over 2n+1 samples, their sum 1 (paper 003 Eq. 59)."""
    n = (window - 1) // 2
    ramp = np.arange(1.0, n + 2)
    weights = np.concatenate([ramp, ramp[-2::-1]])
    return weights / weights.sum()


class LowPass:
    """First-order low-pass of vectors (k,), each sample weighted by its information (paper 003 Eq. 58).

    With equal weights the gain is the paper's Kf once 1/Kf samples have come, and that of a running mean before:
    the first sample does not linger.
    """

    def __init__(self, gain: float, size: int) -> None:
        self.decay = 1.0 - gain
        self.total, self.sums = 0.0, np.zeros(size)
        self._powers = np.zeros((0, 0))

    @property
    def value(self) -> np.ndarray:
        """Filtered vector (k,); NaN before the first sample."""
        return self.sums / self.total if self.total > 0 else np.full_like(self.sums, np.nan)

    def update(self, weights: np.ndarray, samples: np.ndarray) -> np.ndarray:
        """Filtered vectors (n, k) after each of the samples (n, k) with weights (n,)."""
        n = len(weights)
        if len(self._powers) < n:
            lag = np.subtract.outer(np.arange(n), np.arange(n))
            self._powers = np.where(lag >= 0, self.decay ** np.maximum(lag, 0), 0.0)
        powers = self._powers[:n, :n]
        start = powers[:, 0] * self.decay
        totals = powers @ weights + start * self.total
        sums = powers @ (weights[:, None] * samples) + start[:, None] * self.sums
        self.total, self.sums = float(totals[-1]), sums[-1].copy()
        return sums / totals[:, None]


class TriangularWindow:
    """Triangular moving average over the last ``window`` vectors; over all of them while there are fewer."""

    def __init__(self, window: int, size: int) -> None:
        self.window = window + 1 - window % 2
        self._weights = triangular_weights(self.window)
        self._buffer = np.zeros((4 * self.window + 64, size))
        self._end = 0

    def update(self, samples: np.ndarray) -> np.ndarray:
        """Average (k,) after the samples (n, k)."""
        n = len(samples)
        if self._end + n > len(self._buffer):
            keep = self._buffer[max(0, self._end - self.window):self._end].copy()
            if len(keep) + n > len(self._buffer):
                self._buffer = np.zeros((len(keep) + 4 * n, samples.shape[1]))
            self._buffer[:len(keep)] = keep
            self._end = len(keep)
        self._buffer[self._end:self._end + n] = samples
        self._end += n
        if self._end >= self.window:
            return self._weights @ self._buffer[self._end - self.window:self._end]
        weights = triangular_weights(self._end - 1 + self._end % 2)
        return weights @ self._buffer[self._end - len(weights):self._end]


class BatchScatter:
    """Variance of a weighted mean of correlated samples, from the scatter of batches longer than the correlation.

    The batches are forgotten as fast as the low-pass forgets their samples.
    """

    def __init__(self, gain: float, length: int) -> None:
        self.decay, self.length = (1.0 - gain) ** (2 * length), length
        self.batches = 0
        self._moments = np.zeros(3)      # sums of w^2, w^2 b, w^2 b^2 over batches b of weight w
        self._weight, self._sum, self._count = 0.0, 0.0, 0

    def update(self, weights: np.ndarray, masses: np.ndarray) -> None:
        """Take samples (n,) with weights (n,); a batch is closed at the first update that fills it."""
        self._weight += float(weights.sum())
        self._sum += float(weights @ masses)
        self._count += len(weights)
        if self._count >= self.length:
            mean, square = self._sum / self._weight, self._weight ** 2
            self._moments = self._moments * self.decay + square * np.array([1.0, mean, mean ** 2])
            self.batches += 1
            self._weight, self._sum, self._count = 0.0, 0.0, 0

    def variance(self, mean: float, total: float) -> tuple[float, float]:
        """Variance, kg2, of the mean of all samples, whose weights sum to ``total``, and its degrees of freedom.

        Infinite before the second batch.
        """
        if self.batches < 2:
            return np.inf, 0.0
        square, first, second = self._moments
        effective = total ** 2 / square
        spread = max(second - 2 * mean * first + mean ** 2 * square, 0.0)
        freedom = max(min(effective, self.batches) - 1.0, 1.0)
        return spread / total ** 2 * (freedom + 1.0) / freedom, freedom


def t_quantile(freedom: float, normal: float = 1.959963984540054) -> float:
    """Two-sided 95 % quantile of Student's t (Cornish-Fisher, within 1 % from 4 degrees of freedom on)."""
    z, v = normal, max(freedom, 2.0)
    return z + (z ** 3 + z) / (4 * v) + (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * v ** 2)
