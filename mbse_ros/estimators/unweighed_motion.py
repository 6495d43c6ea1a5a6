# SPDX-License-Identifier: Apache-2.0
"""Motion that no equation weighs: while only cylinders without pressure sensors move, a load changes unseen.

A scale with the boom's pressures alone learns of it when the boom moves again. Until then the mass is held; then it may
be that of another load, and what was known of it before counts for little.
"""

from __future__ import annotations

import numpy as np

from ..machine import Machine
from .hydraulic_model import HydraulicModel

UNSEEN = 0.03       # of the range of a coordinate, moved while nothing weighs, from which the load may be another
RESTING = 0.01      # of that range in a second: slower is rest


class UnweighedMotion:
    """Of one observer; ``moved``: where its packed state says in which equations the pistons move."""

    def __init__(self, machine: Machine, model: HydraulicModel, moved: slice) -> None:
        self._moved = moved
        places = [k for k in machine.actuated if k not in machine.weighed] if model.weighs else []
        self._velocities = [model.names.index(f'velocity/{machine.coordinates[k]}') for k in places]
        self._range = np.array([machine.range[k, 1] - machine.range[k, 0] for k in places])
        self.reset()

    def reset(self) -> None:
        """Nothing has moved."""
        self._way = np.zeros(len(self._range))

    def may_change_the_load(self, packed: np.ndarray, duration: float) -> bool:
        """Whether equations weigh again, after others have moved; ``packed`` state after ``duration``, s, more."""
        if not self._velocities:
            return False
        if (packed[self._moved] > 0.5).any():
            unseen = bool((self._way > UNSEEN).any())
            self._way[:] = 0.0
            return unseen
        rates = np.abs(packed[self._velocities]) / self._range
        self._way += np.where(rates > RESTING, rates, 0.0) * duration
        return False
