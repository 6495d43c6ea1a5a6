# SPDX-License-Identifier: Apache-2.0
"""The measured position of a machine, gathered from the messages of its sensors."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...estimators.hydraulic_sensors import direct
from ...machine import Machine

FRESH_NS = 500_000_000      # older values are ignored


class MeasuredPosition:
    """The newest measured value of each independent coordinate.

    ``possible``: whether a sensor measures each of them itself, none only through others; ``channels`` are these.
    """

    def __init__(self, machine: Machine) -> None:
        channels = direct(machine)
        found = [channels.get(f'position/{name}') for name in machine.coordinates]
        self.possible = all(channel is not None for channel in found)
        self.channels = tuple(channel.name for channel in found if channel is not None)
        self._names = tuple(name.partition('/')[2] for name in self.channels)
        self._nominal = np.array([channel.nominal for channel in found if channel is not None]).reshape(-1, 3)
        self.forget()

    def forget(self) -> None:
        """Begin again."""
        self._newest: dict[str, tuple[int, float]] = {}

    def take(self, stamp_ns: int, names: Iterable[str], values: Iterable[float]) -> None:
        """Keep the values of a message."""
        self._newest |= {name: (stamp_ns, value) for name, value in zip(names, values) if name in self._names}

    def at(self, stamp_ns: int) -> np.ndarray | None:
        """Independent coordinates (g,), m or rad, None where one is missing or old."""
        newest = [self._newest.get(name, (stamp_ns, np.nan)) for name in self._names]
        samples = np.array([value if abs(stamp_ns - stamp) < FRESH_NS else np.nan for stamp, value in newest])
        gain, offset, zero = self._nominal.T
        return (samples - offset) / gain + zero if np.isfinite(samples).all() else None
