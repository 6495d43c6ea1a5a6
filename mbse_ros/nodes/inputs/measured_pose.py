# SPDX-License-Identifier: Apache-2.0
"""The measured position of a machine, out of the same message as the estimated one."""

from __future__ import annotations

import numpy as np

from ...filters.hydraulic_sensors import direct
from ...machine import Machine
from ...streams.records import StateEstimate


class MeasuredPosition:
    """The measured value of each independent coordinate.

    ``possible``: whether a sensor measures each of them itself, none only through others.
    """

    def __init__(self, machine: Machine) -> None:
        channels = direct(machine)
        found = [channels.get(f'position/{name}') for name in machine.coordinates]
        self.possible = all(channel is not None for channel in found)
        self._names = tuple(channel.name for channel in found if channel is not None)
        self._nominal = np.array([channel.nominal for channel in found if channel is not None]).reshape(-1, 3)

    def of(self, state: StateEstimate) -> np.ndarray | None:
        """Independent coordinates (g,), m or rad, as the samples of the last step have them; None where one is
        missing."""
        if not self.possible or not set(self._names) <= set(state.channels):
            return None
        samples = state.measured[[state.channels.index(name) for name in self._names]]
        gain, offset, zero = self._nominal.T
        return (samples - offset) / gain + zero if np.isfinite(samples).all() else None
