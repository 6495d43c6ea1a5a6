# SPDX-License-Identifier: Apache-2.0
"""Whether the two pressure sensors of a cylinder show one signal: both in one line, or one field of a bus for both."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..machine import Machine

TIME = 1.0          # s over which a signal is looked at, by exponential forgetting, and before which nothing is said
MOVES = 10.0        # times their noise, by which both move at least
ONE_LINE = 0.02     # of their motion, and of their size, up to which two pressures are one, with gains of two sensors
SURE = 3.0          # standard deviations of their noise and of their zeros, by which they may differ


class OneSignal:
    """Of one machine; ``pairs``: pressure channels, piston and rod, of its cylinders by name. ``found``: those of which
    both sensors show one signal.

    The pressures of a cylinder change against each other where a load changes, and together where a valve throttles;
    equal within noise they never are. Mean and variance of each, and of their difference, forget exponentially (D. H.
    D. West, Communications of the ACM 22(9), 1979).
    """

    def __init__(self, machine: Machine, pairs: Mapping[str, tuple[str, str]]) -> None:
        self._pairs = list(pairs)
        self._places = np.array([[machine.channels.index(name) for name in pair] for pair in pairs.values()],
                                dtype=int).reshape(-1, 2)
        channels = [machine.all_channels[k] for k in self._places.ravel()]
        nominal = np.array([item.nominal for item in channels]).reshape(-1, 2, 3)
        self._gain, self._offset, self._zero = np.moveaxis(nominal, 2, 0)
        self._noise = np.array([item.sensor.noise for item in channels]).reshape(-1, 2) / self._gain
        zeros = np.array([item.zero_stddev for item in channels]).reshape(-1, 2) / self._gain
        self._room = np.sqrt((self._noise ** 2).sum(axis=1))
        self._apart = SURE * np.sqrt((self._noise ** 2 + zeros ** 2).sum(axis=1))
        self.reset()

    def reset(self) -> None:
        """Nothing is known."""
        self._seen = np.zeros(len(self._pairs))
        self._mean = np.zeros((len(self._pairs), 3))
        self._variance = np.zeros((len(self._pairs), 3))
        self._same = np.zeros(len(self._pairs), dtype=bool)

    @property
    def found(self) -> list[str]:
        """Cylinders."""
        return [name for name, same in zip(self._pairs, self._same) if same]

    def take(self, dt: float, measured: np.ndarray) -> None:
        """Samples (channels,), NaN where there is none, ``dt``, s, after those before."""
        pressure = (measured[self._places] - self._offset) / self._gain + self._zero
        rows = np.column_stack([pressure, pressure[:, 0] - pressure[:, 1]])
        there = np.isfinite(rows).all(axis=1)
        first = there & (self._seen == 0.0)
        self._mean[first] = rows[first]
        share = min(dt / TIME, 1.0)
        off = rows[there] - self._mean[there]
        self._mean[there] += share * off
        self._variance[there] = (1.0 - share) * (self._variance[there] + share * off ** 2)
        self._seen[there] += dt
        moves = self._variance[:, :2].min(axis=1)
        sure = there & (self._seen >= TIME) & (moves > (MOVES * self._noise.max(axis=1)) ** 2)
        alike = ((self._variance[:, 2] <= ONE_LINE ** 2 * moves + 2.0 * self._room ** 2)
                 & (np.abs(self._mean[:, 2]) <= ONE_LINE * np.abs(self._mean[:, 0]) + self._apart))
        self._same = np.where(sure, alike, self._same)
