# SPDX-License-Identifier: Apache-2.0
"""Pressures near zero with hardly any noise: a transducer in another unit, or without supply.

20 MPa in bar read as Pa are 200 Pa: a rod chamber at the tank's pressure looks much like it. What tells them apart is
the noise, which shrinks with the unit, too. A sensor that repeats one value is not looked at here: a coarse one does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import sqrt
from statistics import median

from ..machine import Machine

SAMPLES = 20            # the last ones that are looked at
LARGEST = 40e3          # Pa: the largest reading that can be one in kPa, of 40 MPa
FAINT = 0.005           # of the stated noise: in kPa it is 0.001, in bar 0.00001
MEDIAN = 0.6745 * sqrt(6.0)     # of the absolute second differences of white noise, in its standard deviations
LOUD = 10.0             # times that limit, by which a sample must differ before the sensor is believed again


class Faint:
    """Watches the pressures of one machine, by their samples."""

    def __init__(self, machine: Machine) -> None:
        self._noise = {k: channel.sensor.noise for k, channel in enumerate(machine.all_channels)
                       if channel.kind == 'pressure' and not channel.sensor.resolution}
        self.reset()

    def reset(self) -> None:
        """Forget the samples before."""
        self._last: dict[int, deque[float]] = {place: deque([], SAMPLES) for place in self._noise}
        self.found: tuple[int, ...] = ()

    def take(self, samples: Sequence[float], read: Sequence[float]) -> None:
        """Newest samples (channels,), SI, NaN where none was used, and all as they were ``read``."""
        for place, noise in self._noise.items():
            value = float(read[place]) if place in self.found else samples[place]
            if abs(value) > LARGEST and place not in self.found:        # nearly always
                self._last[place].clear()
            elif value == value:
                self._take(place, value, noise)

    def _take(self, place: int, value: float, noise: float) -> None:
        last, large = self._last[place], abs(value) > LARGEST
        if place in self.found and (large or abs(value - last[-1]) > LOUD * FAINT * noise):
            self.found = tuple(k for k in self.found if k != place)
            last.clear()
        if large:
            return
        last.append(value)
        if len(last) == SAMPLES and place not in self.found and _faint(list(last), noise):
            self.found = *self.found, place


def _faint(values: list[float], noise: float) -> bool:
    """Whether samples vary, but next to nothing: the second difference does not see a pressure that rises."""
    bends = [abs(a - 2.0 * b + c) for a, b, c in zip(values, values[1:], values[2:])]
    middle = median(bends)
    return 0.0 < middle < FAINT * MEDIAN * noise
