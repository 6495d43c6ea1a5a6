# SPDX-License-Identifier: Apache-2.0
"""Sensors that send in another unit than their map or the file says.

Of a pressure: 20 MPa in bar read as Pa are 200 Pa: a rod chamber at the tank's pressure looks much like it. What
distinguishes them is the noise, which shrinks with the unit, too. A sensor that repeats one value is not looked at
here: a coarse one does.

Of a mechanism's sensor that the gate refuses: its samples are the factor of a unit times what is predicted, or change
by that factor times what the prediction changes by.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import degrees, isnan, nan, pi, sqrt
from statistics import median

from ..machine import Machine

SAMPLES = 20            # the last ones that are looked at
LARGEST = 40e3          # Pa: the largest reading that can be one in kPa, of 40 MPa
FAINT = 0.005           # of the stated noise: in kPa it is 0.001, in bar 0.00001
MEDIAN = 0.6745 * sqrt(6.0)     # of the absolute second differences of white noise, in its standard deviations
LOUD = 10.0             # times that limit, by which a sample must differ before the sensor is believed again


class UnitCheck:
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


FACTORS = {'rad': {'degrees': degrees(1.0)}, 'rad/s': {'degrees': degrees(1.0), 'turns a minute': 30.0 / pi},
           'm': {'millimetres': 1e3, 'centimetres': 1e2}, 'm/s': {'millimetres': 1e3, 'kilometres an hour': 3.6},
           'm/s^2': {'g': 1.0 / 9.80665}}
EARLY = 0.25            # of lost_after, for which samples are refused in a row, or used in a row until it is over:
                        # coordinates start again by them after twice that
FEWEST = 3              # samples at least
LIKE = 0.1              # of a factor, by which what is found may differ from it
TIED = 0.95             # of the square of the changes, which the prediction explains


class UnitRatio:
    """Watches a channel with samples in ``unit``; ``angular``: differences of predictions wrap at +-pi. ``found``: what
    its samples are in instead, '' as long as that is not known."""

    def __init__(self, unit: str = '', angular: bool = False) -> None:
        self._factors, self._angular = FACTORS.get(unit, {}), angular
        self.reset()

    def reset(self) -> None:
        """As before the first sample."""
        self.found, self._used = '', nan        # since when samples are used, s
        self.begin()

    def begin(self) -> None:
        """What is predicted starts again."""
        self._count = 0
        self._since = self._level = nan         # since when samples are refused, and have the factor, s
        self._first = self._moved = self._before = 0.0
        self._sums = [0.0] * 5

    def take(self, t: float, value: float, predicted: float, variance: float, refused: bool, lost_after: float) -> None:
        """A sample at a time, s, what was predicted, the variance of their difference, and whether the gate refused
        it."""
        enough = EARLY * lost_after
        if not refused:
            self._used = t if isnan(self._used) else self._used
            if self._count:
                self.begin()
            if t - self._used >= enough:
                self.found = ''
            return
        self._used = nan
        if not self._factors:
            return
        if not self._count:
            self._since, self._first, self._before = t, value, predicted
        step = predicted - self._before
        self._moved += (step + pi) % (2.0 * pi) - pi if self._angular else step
        self._before = predicted
        o, h, sums = value - self._first, self._moved, self._sums
        self._sums = [sums[0] + o, sums[1] + h, sums[2] + o * o, sums[3] + h * h, sums[4] + o * h]
        self._count += 1
        sure = 0.0 <= variance and sqrt(variance) < LIKE * abs(predicted)     # else a ratio says nothing
        unit = _named(value / predicted, self._factors) if sure else ''
        self._level = nan if not unit else t if isnan(self._level) else self._level
        if t - self._since >= enough and self._count >= FEWEST and not self.found:
            self.found = unit if t - self._level >= enough else self._by_changes()

    def _by_changes(self) -> str:
        """By the slope of the samples over the predictions, where these explain them."""
        n, (o, h, oo, hh, oh) = self._count, self._sums
        oo, hh, oh = oo - o * o / n, hh - h * h / n, oh - o * h / n
        return _named(oh / hh, self._factors) if hh > 0.0 and oh * oh > TIED * oo * hh else ''


def _named(ratio: float, factors: dict[str, float]) -> str:
    """The unit with such a factor; '' for none."""
    return next((name for name, factor in factors.items() if abs(ratio / factor - 1.0) < LIKE), '')
