# SPDX-License-Identifier: Apache-2.0
"""Commands of valves and drives, each by its name."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence


class ValveCommands:
    """The commands in force of ``controls``: V of a valve, m/s or rad/s of a drive; 0 until one comes.

    Each stays in force until another one for the same name comes. ``refuse`` gets a line about what cannot be used.
    """

    def __init__(self, controls: Sequence[str], refuse: Callable[[str], None]) -> None:
        self.values = dict.fromkeys(controls, 0.0)
        self._refuse = refuse

    def take(self, names: Sequence[str], values: Sequence[float]) -> None:
        """Commands of a message; of a bad one those that are right count, unless its lengths differ."""
        if len(names) != len(values):
            self._refuse(f'valve_command dropped: {len(names)} names and {len(values)} positions')
            return
        for name, value in zip(names, values):
            if name in self.values and math.isfinite(value):
                self.values[name] = float(value)
            else:
                self._refuse(f'valve_command {name} dropped: got {value}, expected a finite value for one of '
                             + ', '.join(self.values))
