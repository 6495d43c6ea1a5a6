# SPDX-License-Identifier: Apache-2.0
"""Whether a series is white: what is left in the innovations of a filter that could still be predicted; and whether its
noise is the stated one."""

from __future__ import annotations

from collections import deque

import numpy as np

from ..compiled.of_scipy import exceeded

WINDOW = 200    # innovations from which the health is computed
LAGS = 20
FEWEST = 50     # innovations from which something can be said
OVERSTATED = 10.0       # times that a stated deviation may be too large: people round noise up
SELDOM = 1e-4           # probability of a window of noise that is smaller by chance
# Third differences of white noise of variance 1: their variance, their autocorrelation at lag 1, and the sum of its
# squares at all lags: so many times fewer of them are independent.
THIRD = 20.0, -0.75, 2.31


def autocorrelation(series: np.ndarray, lags: int = LAGS) -> np.ndarray:
    """Autocorrelations (lags,) at 1, 2, ... of a series (k,) less its mean; NaNs are left out; 0 for a constant."""
    known = np.isfinite(series)
    if not known.any():
        return np.zeros(lags)
    centred = np.where(known, series - np.mean(series[known]), 0.0)
    power = float(centred @ centred)
    if power == 0.0:
        return np.zeros(lags)
    return np.array([centred[lag:] @ centred[:len(centred) - lag] if lag < len(centred) else 0.0
                     for lag in range(1, lags + 1)]) / power


def ljung_box(series: np.ndarray, lags: int = LAGS) -> float:
    """Probability that a white series (k,) is as correlated as this one, or more (Ljung and Box 1978); 1 where the
    series is too short."""
    from scipy.special import chdtrc  # here: slow to import
    count = int(np.sum(np.isfinite(series)))
    lags = min(lags, count - 2)
    if lags < 1:
        return 1.0
    r = autocorrelation(series, lags)
    statistic = count * (count + 2) * np.sum(r ** 2 / (count - np.arange(1, lags + 1)))
    return float(chdtrc(lags, statistic))


def white_of(series: np.ndarray, lags: int = LAGS) -> float:
    """``ljung_box`` of several series (k, s) at once: of the least likely one, as one of so many (Bonferroni)."""
    return min(1.0, series.shape[1] * min((ljung_box(column, lags) for column in series.T), default=1.0))


def innovation_health(ratios: np.ndarray) -> tuple[float, float]:
    """Mean of the squares of normalised innovations (k, s), NaN where not used, and their whiteness; NaN while few."""
    used = np.isfinite(ratios)
    if used.sum() < FEWEST:
        return float('nan'), float('nan')
    series = [column[np.isfinite(column)] for column in ratios.T if np.isfinite(column).sum() >= FEWEST]
    # The least likely of several channels, as if it were one of as many trials (Bonferroni).
    white = min([1.0, *(len(series) * ljung_box(column) for column in series)]) if series else float('nan')
    return float(np.mean(ratios[used] ** 2)), white


def overstated(name: str, innovation: np.ndarray, samples: np.ndarray, stddev: float) -> list[str]:
    """A warning, if the white noise in the innovations (k,) of a channel is far smaller than the ``stddev`` of its
    samples (k',), NaN where missing.

    Third differences of innovations lack slow errors of the model, and hold at least the sensor's noise; more than half
    of the windows of ``FEWEST`` must agree. No warning of noise that is not white, as behind a low-pass filter, and of
    rounded samples, most of which repeat the one before.
    """
    found, samples = innovation[np.isfinite(innovation)] / stddev, samples[np.isfinite(samples)]
    if len(found) < FEWEST or 2 * np.count_nonzero(np.diff(samples)) < len(samples):
        return []
    change = np.diff(found[:len(found) // FEWEST * FEWEST].reshape(-1, FEWEST), 3)
    power, shared = (change ** 2).mean(axis=1), (change[:, 1:] * change[:, :-1]).mean(axis=1)
    variance, correlation, fewer = THIRD
    count = change.shape[1] / fewer
    limit = variance * exceeded(count, 1.0 - SELDOM) / count / OVERSTATED ** 2
    if 2 * np.count_nonzero((power < limit) & (shared < 0.5 * correlation * power)) <= len(power):
        return []
    return [f'{name}: the noise of its innovations is {(variance / np.median(power)) ** 0.5:.2g} times smaller than '
            f'stated ({stddev:.3g}): its values are in another unit, or its stddev in the file is far too large']



class InnovationWatch:
    """Keeps the last innovations of a running filter, each over its standard deviation."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget them."""
        self._ratios: deque[list[float]] = deque(maxlen=WINDOW)

    def take(self, ratios: list[float]) -> None:
        """Those of an instant (s,), NaN where a sample was not used."""
        self._ratios.append(ratios)

    @property
    def health(self) -> tuple[float, float]:
        """Mean NIS per measurement and whiteness (p-value of Ljung-Box), NaN while few."""
        return innovation_health(np.array(self._ratios))
