# SPDX-License-Identifier: Apache-2.0
"""By how much the lines between rare samples may be off: what a signal does between two samples, no sensor tells.

With gap h and second derivative y'' a line is off by up to h^2/8 |y''|, an eighth of the second difference of the
samples; of a sine at half the sampling rate, by a quarter of it. So a quarter of the second difference, less what the
sensor's noise makes of it, is a bound for all that the rate can show. The error is one and the same for the whole gap:
so the variance of each of the parts in which a sample is taken grows by its square (see ``sample_plan``), and in the
force balance, which has a residual each step, that of a pressure counts as white noise of density variance times gap.
"""

from __future__ import annotations

import numpy as np

from ..machine import Machine

SHARE = 1.0 / 16.0      # square of the line's error over that of the second difference
NOISE = 3.0 * 6.0       # of a sample's variance, left out of such a square: 6 on average, by chance 3 times that
KEPT = 0.5              # of such a square, for the next gap: a single one can be near 0 by chance
RARE = 3.0              # standard deviations of a sensor by which the line may be off before its samples are too rare
CHAMBERS = 4.0          # times that density: two chambers push a piston, and neighbouring gaps are alike


def pushes(machine: Machine) -> np.ndarray:
    """Which channels (channels, a) are pressures in each equation of the force balance."""
    needs = machine.pressure_needs
    return np.array([[name.removeprefix('pressure/') in needs[k] for k in machine.weighing]
                     for name in machine.channels], dtype=bool).reshape(len(machine.channels), len(machine.weighing))


def line_errors(samples: np.ndarray, variance: float) -> np.ndarray:
    """By how many standard deviations of a sensor of this ``variance`` the lines beside each but the first and last of
    its ``samples`` (n,) may be off (n - 2,), SI."""
    squares = np.maximum(np.diff(samples, 2) ** 2 - NOISE * variance, 0.0)
    return np.asarray(np.sqrt(SHARE * squares / variance))


class InterpolationError:
    """Of one observer; ``noise`` (channels,), variances of the samples, SI; ``pushes`` (channels, a): pressures in each
    equation of the force balance.

    ``variance`` (channels,), SI, of the lines of the last segment.
    """

    def __init__(self, noise: np.ndarray, pushes: np.ndarray) -> None:
        self._noise, self._pushes = noise, pushes
        self.reset()

    def reset(self) -> None:
        """As at rest: nothing bends."""
        self._square, self._slope = np.zeros_like(self._noise), np.zeros_like(self._noise)
        self._last: np.ndarray | None = None

    @property
    def variance(self) -> np.ndarray:
        """Of the lines (channels,), SI."""
        return SHARE * self._square

    def take(self, values: np.ndarray, repeats: np.ndarray, channels: np.ndarray) -> None:
        """A segment's ``values`` (n, channels), SI, on the grid, with ``repeats`` (channels,) steps from sample to
        sample, of those of the ``channels`` (places) whose samples are rare."""
        before = values[:1] if self._last is None else self._last
        slopes = np.diff(np.concatenate([before, values]), axis=0)
        self._last = values[-1:].copy()
        for k in channels.tolist():
            gap = max(1, round(float(repeats[k])))
            for slope in slopes[(len(values) - 1) % gap::gap, k].tolist():
                if slope == slope:
                    square = max((gap * (slope - self._slope[k])) ** 2 - NOISE * self._noise[k], 0.0)
                    self._square[k], self._slope[k] = max(square, KEPT * self._square[k]), slope

    def density(self, repeats: np.ndarray, dt: float, channels: np.ndarray) -> np.ndarray:
        """Of the noise in each equation of the force balance (a,), Pa^2 s: of the largest of its pressures among the
        ``channels``."""
        own = (self.variance * repeats)[channels, None] * self._pushes[channels]
        return CHAMBERS * dt * own.max(axis=0, initial=0.0)

    def rare(self, channels: np.ndarray) -> tuple[tuple[int, float], ...]:
        """Those of the ``channels`` whose samples are too rare, the worst first, and by how many standard deviations of
        the sensor their lines may be off."""
        off = np.sqrt(self.variance[channels] / self._noise[channels])
        return tuple((int(channels[k]), float(off[k])) for k in np.argsort(-off) if off[k] > RARE)
