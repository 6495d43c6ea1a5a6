# SPDX-License-Identifier: Apache-2.0
"""Smoothing of mass samples: low-pass, triangular window, and the scatter that gives the interval.

Pyrhönen et al., mass estimation, Eqs. 58, 59. All filters are linear, so the derivatives of the samples with respect to
the uncertain parameters go through the same filters as the samples and come out as the derivatives of the result.
"""

from __future__ import annotations

from copy import copy
from functools import lru_cache
from math import exp, inf, log

import numpy as np

from .mass import NORMAL, PayloadSettings

SAMPLE_TIME = 1e-3  # s between the samples for which gain and window of the settings hold
LONGEST = 256       # rows at once: the powers of the decay are kept as a matrix
RESTART = 0.8       # share of the information so far that still counts, from which down window and scatter start again
NONE = np.zeros(0, int)
STEEPEST = 5.0      # of the logarithm of what counts, up to which sums are divided by it: 2 of 16 digits are lost


def gain_of(gain: float, dt: float) -> float:
    """The low-pass's gain for samples each ``dt``, s, that forgets as fast as ``gain`` at ``SAMPLE_TIME``."""
    return gain if dt == SAMPLE_TIME else 1.0 - (1.0 - gain) ** (dt / SAMPLE_TIME)


def window_of(window: int, dt: float) -> int:
    """Samples each ``dt``, s, in a window as long as ``window`` of them at ``SAMPLE_TIME``."""
    return max(1, round(window * SAMPLE_TIME / dt))


@lru_cache(maxsize=64)
def triangular_weights(window: int) -> np.ndarray:
    """Weights 1..n+1..1 over 2n+1 samples, their sum 1 (Pyrhönen et al., mass estimation, Eq. 59), read-only."""
    n = (window - 1) // 2
    ramp = np.arange(1.0, n + 2)
    weights = np.concatenate([ramp, ramp[-2::-1]])
    weights /= weights.sum()
    weights.flags.writeable = False
    return weights


class LowPass:
    """First-order low-pass of vectors (k,), each sample weighted by its information (Pyrhönen et al., mass estimation,
    Eq. 58).

    With equal weights the gain is the paper's Kf once 1/Kf samples have come, and that of a running mean before:
    the first sample does not linger. A row is the weight, then the weight times the vector.
    """

    def __init__(self, gain: float, size: int) -> None:
        self.decay = 1.0 - gain
        self._log_decay = np.log(max(self.decay, 1e-300))
        self.sums = np.zeros(1 + size)
        self._powers: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    @property
    def total(self) -> float:
        """Sum of the weights, older ones forgotten."""
        return float(self.sums[0])

    @property
    def value(self) -> np.ndarray:
        """Filtered vector (k,); NaN before the first sample."""
        return self.sums[1:] / self.sums[0] if self.sums[0] > 0 else np.full(len(self.sums) - 1, np.nan)

    def update(self, rows: np.ndarray, forgotten: np.ndarray | None = None) -> np.ndarray:
        """Filtered vectors (n, k) after each of the rows (n, 1 + k); ``forgotten`` (n,): logarithm of the share of the
        older weights that still counts at each, besides the decay."""
        if len(rows) > LONGEST:
            parts = [slice(k, k + LONGEST) for k in range(0, len(rows), LONGEST)]
            return np.concatenate([self.update(rows[part], None if forgotten is None else forgotten[part])
                                   for part in parts])
        if forgotten is None or not np.count_nonzero(forgotten):
            powers, start = self._powers_of(len(rows))
            sums = powers @ rows
            sums += start * self.sums
        else:
            sums = self._running(rows, (forgotten + self._log_decay).cumsum())
        self.sums = sums[-1].copy()
        return sums[:, 1:] / sums[:, :1]

    def _running(self, rows: np.ndarray, total: np.ndarray) -> np.ndarray:
        """Sums (n, 1 + k) after each row; ``total`` (n,): logarithm of the share that still counts of what was before.

        Where much is forgotten within the rows they are summed in parts, so that nothing overflows.
        """
        sums, first = np.empty_like(rows), 0
        while first < len(rows):
            before = total[first - 1] if first else 0.0
            steep = total[first:] < before - STEEPEST
            last = first + max(1, int(np.argmax(steep))) if np.count_nonzero(steep) else len(rows)
            kept = np.exp(total[first:last] - before if first else total[:last])[:, None]
            if last == first + 1:
                sums[first] = rows[first] + kept[0] * (sums[first - 1] if first else self.sums)
            else:
                part = np.divide(rows[first:last], kept, out=sums[first:last])
                part[0] += sums[first - 1] if first else self.sums
                part.cumsum(axis=0, out=part)
                part *= kept
            first = last
        return sums

    def _powers_of(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Powers of the decay for n samples: among them (n, n), and of the sums before them (n, 1)."""
        if n not in self._powers:
            lag = np.subtract.outer(np.arange(n), np.arange(n))
            powers = np.where(lag >= 0, self.decay ** np.maximum(lag, 0), 0.0)
            self._powers[n] = powers, powers[:, :1] * self.decay
        return self._powers[n]


class TriangularWindow:
    """Triangular moving average over the last ``window`` vectors; over all of them while there are fewer."""

    def __init__(self, window: int, size: int) -> None:
        self.window = window + 1 - window % 2
        self._weights = triangular_weights(self.window)
        self._buffer = np.empty((4 * self.window + 64, size))
        self._end = 0

    def clear(self) -> None:
        """Forget all samples."""
        self._end = 0

    def copy(self) -> TriangularWindow:
        """The same, for itself; of what it has room for only what still counts."""
        other = copy(self)
        first = max(0, self._end - self.window)
        other._buffer, other._end = self._buffer[first:self._end].copy(), self._end - first
        return other

    def update(self, samples: np.ndarray) -> np.ndarray:
        """Average (k,) after the samples (n, k)."""
        n = len(samples)
        if self._end + n > len(self._buffer):
            keep = self._buffer[max(0, self._end - self.window):self._end].copy()
            if 2 * (len(keep) + n) > len(self._buffer):
                self._buffer = np.empty((4 * (self.window + n), samples.shape[1]))
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
        self._moments: tuple[float, ...] = (0.0, 0.0, 0.0)      # sums of w^2, w^2 b, w^2 b^2 over batches b of weight w
        self._weight, self._sum, self._count = 0.0, 0.0, 0

    def update(self, weight: float, weighted: float, count: int) -> None:
        """Take ``count`` samples by the sums of their weights and of weight times sample.

        A batch is closed at the first update that fills it.
        """
        self._weight += weight
        self._sum += weighted
        self._count += count
        if self._count >= self.length:
            mean, square = self._sum / self._weight, self._weight ** 2
            self._moments = tuple(old * self.decay + square * mean ** k for k, old in enumerate(self._moments))
            self.batches += 1
            self._weight, self._sum, self._count = 0.0, 0.0, 0

    def variance(self, mean: float, total: float) -> tuple[float, float]:
        """Variance, kg2, of the mean of all samples, whose weights sum to ``total``, and its degrees of freedom.

        Infinite before the second batch.
        """
        if self.batches < 2:
            return float('inf'), 0.0
        square, first, second = self._moments
        spread = max(second - 2 * mean * first + mean ** 2 * square, 0.0)
        freedom = max(min(total ** 2 / square, self.batches) - 1.0, 1.0)
        return spread / total ** 2 * (freedom + 1.0) / freedom, freedom


class MassFilter:
    """Samples of the mass through low-pass and triangular window, with their scatter.

    Rows (n, 2 + parameters) are information on the mass, 1/kg2, and that times the mass and times its derivatives by
    the uncertain numbers. ``value`` (1 + parameters,), of the window: mass and derivatives, None before the first
    sample. ``kept``: logarithm of the share of the first information on the mass that still counts. ``samples``: how
    many have come.
    """

    def __init__(self, parameters: int, settings: PayloadSettings) -> None:
        self._width = 1 + parameters
        self.value: np.ndarray | None = None
        self.samples, self.kept = 0, 0.0
        self._level = 0.0       # total of rows that are alike
        self._make(settings, SAMPLE_TIME)

    def _make(self, settings: PayloadSettings, dt: float) -> None:
        self.dt, self._gain = dt, gain_of(settings.low_pass_gain, dt)
        self._low_pass = LowPass(self._gain, self._width)
        self._window = TriangularWindow(window_of(settings.window, dt), self._width)
        self._batch = max(1, round(settings.batch_time / dt))
        self._scatter: BatchScatter | None = None
        self._share = 1.0       # of the information that still counts, since window and scatter started

    def tune(self, settings: PayloadSettings, dt: float) -> None:
        """Continue from the mass with another gain, window, batch or step ``dt``, s; its scatter is collected again."""
        sums = self._low_pass.sums
        self._make(settings, dt)
        self.replace(sums)

    def replace(self, sums: np.ndarray) -> None:
        """Continue from the ``sums`` (2 + parameters,) of rows that are all that counts of the past."""
        self._low_pass.sums = sums
        if self.value is not None:
            self.value = self._window.update(self._low_pass.value[None, :])

    def copy(self) -> MassFilter:
        """The same, for itself."""
        other = copy(self)
        other._low_pass, other._window, other._scatter = copy(self._low_pass), self._window.copy(), copy(self._scatter)
        other._low_pass.sums = self._low_pass.sums.copy()
        return other

    @property
    def total(self) -> float:
        """Information on the mass, 1/kg2, older one forgotten."""
        return self._low_pass.total

    @property
    def first_share(self) -> float:
        """What the first of samples that are ``alike`` still counts, at most."""
        return (1.0 - self._gain) ** max(self.samples - 1, 0)

    @property
    def low_passed(self) -> np.ndarray:
        """Mass and derivatives (1 + parameters,) before the window."""
        return self._low_pass.value

    @property
    def variance(self) -> tuple[float, float]:
        """Of the mass by the scatter of its samples, kg2, and its degrees of freedom; infinite before two batches."""
        if self._scatter is None or self.value is None:
            return inf, 0.0
        return self._scatter.variance(float(self.value[0]), self.total)

    def take(self, rows: np.ndarray, forgotten: np.ndarray | None = None) -> None:
        """Rows of samples; ``forgotten`` (n,): logarithm of the share of older information that still counts at
        each."""
        self.samples += len(rows)
        self.value = self._window.update(self._low_pass.update(rows, forgotten))
        if self._scatter is None:
            self._scatter = BatchScatter(self._gain, self._batch)
        weight, weighted = np.add.reduce(rows[:, :2]).tolist()
        self._scatter.update(weight, weighted, len(rows))

    def alike(self, rows: np.ndarray) -> np.ndarray:
        """Rows with weights for which the low-pass has its gain from the first sample on, as printed (Pyrhönen et al.,
        mass estimation, Eq. 58): its total is the information of that sample, except where some is forgotten."""
        self._level = max(self._level, self.total) or float(rows[0, 0])
        weights = np.full(len(rows), self._gain * self._level)
        if not self.total:
            weights[0] = self._level
        return rows * (weights / rows[:, 0])[:, None]

    def take_some(self, rows: np.ndarray, taken: np.ndarray, forgotten: np.ndarray) -> None:
        """Rows of which some are ``taken`` (n,), in parts between the steps in which the window starts again."""
        first, forgotten = 0, forgotten.copy()
        while first < len(rows):
            total = forgotten[first:].cumsum()
            lost = (np.flatnonzero(self._share * np.exp(total) < RESTART)
                    if self._share * exp(max(np.minimum.reduce(total), -700.0)) < RESTART else NONE)
            if lost.size and lost[0] == 0:
                self.forget(float(np.exp(forgotten[first])))
                forgotten[first] = 0.0
                continue
            part = slice(first, first + int(lost[0]) if lost.size else len(rows))
            total, where = total[:part.stop - first], taken[part].nonzero()[0]
            first, left = part.stop, float(total[-1])
            self.kept += left
            self._share *= exp(left)
            if where.size:
                at = total[where]
                at[1:] -= at[:-1].copy()
                self.take(rows if len(where) == len(rows) else rows[part][where], at)
                left -= float(total[where[-1]])
            if left:
                self._low_pass.sums *= exp(left)

    def forget(self, share: float) -> None:
        """Of the information so far only a share still counts; where much is lost, window and scatter start again."""
        if share < 1.0:
            self.kept += log(max(share, 1e-300))
            self._low_pass.sums *= share
            self._share *= share
            if self._share < RESTART:
                self._window.clear()
                self._scatter, self._share = None, 1.0


def t_quantile(freedom: float) -> float:
    """Two-sided 95 % quantile of Student's t; that of the normal distribution for infinite ``freedom``."""
    from scipy.special import stdtrit  # here: slow to import
    return float(stdtrit(freedom, 0.975)) if freedom < 1e6 else NORMAL
