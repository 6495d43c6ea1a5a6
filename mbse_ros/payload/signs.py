# SPDX-License-Identifier: Apache-2.0
"""Axes of an accelerometer on the base that have the other sign: at rest a horizontal one reads almost nothing either
way, but while the base drives the masses that the steps measure follow its error.

With the other sign a sample is off by twice the acceleration a, so a mass by -2 D a, with the derivative D of the mass
by the zero of the axis, which the observer reports. The logarithm of the likelihood ratio of both signs (J. Neyman, E.
S. Pearson, On the problem of the most efficient tests of statistical hypotheses, Phil. Trans. R. Soc. A 231, 1933) is
``-2 (sum of I (m - mass) D a + sum of I (D a)^2)`` over the measured masses m of information I.
"""

from __future__ import annotations

import numpy as np

from ..filters.hydraulic_state import state_names
from ..filters.mass_information import MassInformation
from ..machine import Machine

LIKELIER = 30.0     # logarithm of that ratio from which the sign is wrong
MEAN = 2.0          # s, of the mean that is subtracted: a tilt that stays, and a load that changes, say nothing
FORGOTTEN = 60.0    # s of samples after which one counts by 1/e
MOST = 3.0          # times D a, by which a mass counts at most: an error of another kind


class AxisSigns:
    """Of one machine; axes whose zeros have no deviation are not looked at."""

    def __init__(self, machine: Machine) -> None:
        names, numbers = state_names(machine, True)[0], machine.parameters.consider_names
        channels = [(channel, channel.sensor.bias[channel.index]) for channel in machine.all_channels
                    if channel.sensor.on_base and channel.sensor.bias]
        self._axes = [(channel.name, names.index(f'base_acceleration/{"xyz"[channel.index]}'),
                       numbers.index(zero.key), zero.stddev) for channel, zero in channels if zero.key in numbers]
        self.reset()

    def reset(self) -> None:
        """Forget all samples."""
        self._means = np.full(len(self._axes), np.nan)
        self._sums = np.zeros((len(self._axes), 2))

    def take(self, mean: np.ndarray, found: MassInformation[np.ndarray], taken: np.ndarray, mass: float, dt: float
             ) -> None:
        """Steps (n,) of ``dt``, s, with states (n, nx), of which those ``taken`` (n,) measure the mass; ``mass``, kg,
        as known before."""
        for k, (_, place, number, stddev) in enumerate(self._axes):
            a, last = mean[:, place], self._means[k]
            share = min(1.0, len(a) * dt / MEAN)
            self._means[k] = last = float(a.mean()) if last != last else last + share * (float(a.mean()) - last)
            if not taken.any():
                continue
            information = found.information[taken]
            error = found.slopes[taken, number] / stddev / information * (a[taken] - last)
            size = float(information @ error ** 2)
            along = float((found.weighted[taken] - information * mass) @ error)
            kept = np.exp(-np.count_nonzero(taken) * dt / FORGOTTEN)
            self._sums[k] = kept * self._sums[k] + [np.clip(along, -MOST * size, MOST * size), size]

    @property
    def wrong(self) -> str:
        """Axes that seem to have the other sign, in words; '' for none. Of two that are exchanged it may be one."""
        ratios = -2.0 * self._sums.sum(axis=1)
        return ' or '.join(f'{name} (sign, or another axis)' for (name, *_), ratio in zip(self._axes, ratios)
                           if ratio > LIKELIER)
