# SPDX-License-Identifier: Apache-2.0
"""The measured position of a machine, gathered from the messages of its sensors."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..estimators.hydraulic_sensors import direct
from ..machine import Machine

FRESH_NS = 500_000_000      # older values are none


class MeasuredPosition:
    """The newest measured value of each independent coordinate.

    ``possible``: whether a sensor measures each of them itself, none only through others.
    """

    def __init__(self, machine: Machine) -> None:
        channels = direct(machine)
        found = [channels.get(f'position/{name}') for name in machine.coordinates]
        self.possible = all(channel is not None for channel in found)
        self._names = tuple(channel.name.partition('/')[2] for channel in found if channel is not None)
        self._nominal = np.array([channel.nominal for channel in found if channel is not None]).reshape(-1, 3)
        self.forget()

    def forget(self) -> None:
        """Begin again."""
        self._samples = np.full(len(self._names), np.nan)
        self._stamps: list[int | None] = [None] * len(self._names)

    def take(self, stamp_ns: int, names: Iterable[str], values: Iterable[float]) -> bool:
        """Keep the values of a message; whether it alone has all coordinates."""
        given = dict(zip(names, values))
        for place, name in enumerate(self._names):
            if name in given:
                self._samples[place], self._stamps[place] = given[name], stamp_ns
        return all(name in given for name in self._names)

    def at(self, stamp_ns: int) -> np.ndarray | None:
        """Independent coordinates (g,), m or rad, None where one is missing or old."""
        fresh = all(stamp is not None and abs(stamp_ns - stamp) < FRESH_NS for stamp in self._stamps)
        if not fresh or not np.isfinite(self._samples).all():
            return None
        gain, offset, zero = self._nominal.T
        return (self._samples - offset) / gain + zero
