# SPDX-License-Identifier: Apache-2.0
"""Sensors that repeat a value, end at one, or give coarser steps than the file says."""

from __future__ import annotations

from math import sqrt

import numpy as np

from ...machine.channels import Channel
from .channel_series import Series
from .remedies import Finding

STUCK_S, STUCK = 1.0, 50        # s and samples with one value, of a sensor that is never so still otherwise
REPEATED = 0.05                 # share of the other samples that are as the one before: then it has steps
SATURATED = 0.02                # share of the samples at one value
COARSE = 2.0                    # times the noise of the file
LEVELS, PER_LEVEL = 5, 5        # values, and samples of each, from which on steps are believed


def sensor_findings(channel: Channel, series: Series) -> list[Finding]:
    """A sensor that is stuck, saturated, or coarser than the file says.

    One with a resolution in the file, or that often gives the same value twice, may rest at one.
    """
    values, noise, name = series.values, channel.sensor.noise, channel.name
    starts, lengths = _runs(values)
    if values.size < STUCK or noise <= 0:
        return []
    coarse = _step(values)
    if coarse / sqrt(12.0) > COARSE * noise:
        return [Finding('coarse', (name,), f'values in steps of {coarse:.3g}, noise in the file {noise:.3g}',
                        f'state it in the file (sensors.{channel.sensor.name}.resolution: {coarse:.3g})')]
    longest = int(lengths.argmax())
    first, last = int(starts[longest]), int(starts[longest] + lengths[longest] - 1)
    seconds = float(series.t[last] - series.t[first])
    at, elsewhere = values[starts] == values[first], values[starts] != values[first]
    repeated = lengths[elsewhere & (lengths > 1)].sum()
    if channel.sensor.resolution > 0 or repeated > REPEATED * lengths[elsewhere].sum():
        return []
    share = float(lengths[at].sum() / values.size)
    if np.sum(at & (lengths > 1)) > 1 and share > SATURATED and lengths[longest] >= STUCK // 2:
        return [Finding('saturated', (name,), f'{100 * share:.0f} % of the samples are exactly {values[first]:.6g}, '
                        'again and again', 'a sensor or converter with a larger range: its own ends there')]
    if lengths[longest] >= STUCK and seconds >= STUCK_S:
        return [Finding('stuck', (name,), f'exactly {values[first]:.6g} for {seconds:.1f} s from t = '
                        f'{series.t[first]:.1f} s, without the noise of the sensor',
                        'look at its cable and its driver, or its range ends there: it repeats one value')]
    return []


def _runs(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places (r,) and lengths (r,) of the runs of equal values."""
    starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]])) if values.size else np.zeros(1, int)
    return starts, np.diff(np.append(starts, values.size))


def _step(values: np.ndarray) -> float:
    """Step of values that are all multiples of one, from the first on; 0 where there is none."""
    levels = np.unique(values)
    if levels.size < LEVELS or values.size < PER_LEVEL * levels.size:
        return 0.0
    step = float(np.diff(levels).min())
    count = (levels - levels[0]) / step
    return step if np.abs(count - np.round(count)).max() < 0.02 else 0.0
