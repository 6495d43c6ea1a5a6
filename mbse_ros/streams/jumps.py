# SPDX-License-Identifier: Apache-2.0
"""Positions that jump: no piston or joint is elsewhere from one sample to the next.

A filter that follows an outside force finds a position again wherever its sensor says that it is. So a sensor whose
zero slips by 50 mm would be believed, and the mass with it. What no machine can move from sample to sample is a jump;
the samples are refused until as much is jumped back.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from ..machine import Machine

FASTEST = 1.5           # m/s of a piston
TURNS = 4.0             # rad/s, or m/s, of any other coordinate
NOISE = 8.0             # standard deviations of a sample


class Jumps:
    """Watches the channels of the positions of one machine; ``limits``: place, fastest change, SI/s, noise of each."""

    def __init__(self, machine: Machine) -> None:
        self.limits = [(k, (FASTEST if channel.name.partition('/')[2] in machine.cylinders else TURNS)
                         * abs(channel.nominal[0]), NOISE * channel.sensor.noise)
                        for k, channel in enumerate(machine.all_channels)
                        if channel.kind == 'position' and not channel.sensor.wraps]
        self.reset()

    def reset(self) -> None:
        """Forget the samples: another time, or another sensor."""
        self._last: dict[int, tuple[float, float]] = {}     # time, s, and sample
        self._jumped: dict[int, float] = {}                 # how far, in all

    def take(self, t: float, samples: Sequence[float]) -> list[int]:
        """Places of the channels that have jumped and not come back; ``samples`` (channels,) at ``t``, s."""
        for place, speed, noise in self.limits:
            sample = float(samples[place])
            if not isfinite(sample):
                continue
            before, self._last[place] = self._last.get(place), (t, sample)
            if before is None:
                continue
            allowed, moved = speed * abs(t - before[0]) + noise, sample - before[1]
            far = self._jumped.get(place, 0.0) + (moved if abs(moved) > allowed else 0.0)
            self._jumped[place] = far
            if abs(far) <= allowed:
                self._jumped[place] = 0.0
        return [place for place, far in self._jumped.items() if far]
