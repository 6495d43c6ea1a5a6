# SPDX-License-Identifier: Apache-2.0
"""Samples that measure nothing: of a pressure below vacuum, at an end of the sensor's range, of a position far outside
the machine's, and those that jumped."""

from __future__ import annotations

from math import inf, nextafter

import numpy as np

from ..machine import Machine
from ..machine.channels import Channel
from .jumps import Jumps

DEEPEST = 6.0           # standard deviations below vacuum, or below a range, that noise may reach
FAR = 'far outside its range'
JUMPED = 'jumped'


class Limits:
    """Looks at the newest samples of a machine's channels; ``share``: of a position's range, beyond which it is far
    outside. ``ends``: by reason, place of a channel and the samples, SI, below and above which it measures nothing."""

    def __init__(self, machine: Machine, share: float) -> None:
        channels = list(enumerate(machine.all_channels))
        self.ends = {
            'below vacuum': [(i, _vacuum(c), inf) for i, c in channels if c.kind == 'pressure'],
            'at the end of its range': [(i, *_range(found, c.sensor.noise)) for i, c in channels
                                        if (found := c.sensor.range) is not None],
            FAR: _reach(machine, share)}
        self._jumps = Jumps(machine)

    def reset(self) -> None:
        """Forget the samples before."""
        self._jumps.reset()

    def take(self, t: float, values: np.ndarray) -> dict[str, list[int]]:
        """Places, by reason, of those of the newest samples (channels,), SI, that cannot be used."""
        numbers = values.tolist()
        jumped = self._jumps.take(t, numbers)
        found = {reason: [i for i, low, high in ends if numbers[i] < low or numbers[i] > high]
                 for reason, ends in self.ends.items()}
        found[JUMPED] = [i for i in jumped if i not in found[FAR]]
        return {reason: places for reason, places in found.items() if places}


def _vacuum(channel: Channel) -> float:
    """Sample below which there is no pressure, Pa."""
    gain, offset, zero = channel.nominal
    return offset - gain * zero - DEEPEST * channel.sensor.noise


def _range(ends: tuple[float, float], noise: float) -> tuple[float, float]:
    """Lowest and highest sample that says something: at the upper end every larger value reads the same."""
    low, high = ends
    return low - DEEPEST * noise, nextafter(high, -inf)


def _reach(machine: Machine, share: float) -> list[tuple[int, float, float]]:
    """Place of each channel of a position, and samples below and above which it cannot be one, SI."""
    found = []
    for coordinate, (low, high) in zip(machine.coordinates, machine.range.tolist()):
        name = f'position/{coordinate}'
        place = machine.channels.index(name) if name in machine.channels else None
        if place is not None and not machine.all_channels[place].sensor.wraps:
            room = share * (high - low)
            gain, offset, zero = machine.all_channels[place].nominal
            ends = sorted(offset + gain * (end - zero) for end in (low - room, high + room))
            found.append((place, *ends))
    return found
