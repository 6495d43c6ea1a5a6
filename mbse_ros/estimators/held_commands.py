# SPDX-License-Identifier: Apache-2.0
"""Commands that come, or change, more rarely than the sensors: they are held, while the valves move on.

With sensors every 10 ms and commands every 100 ms a valve that opens is up to 100 ms ahead of its model. The pressures
that the model predicts are then wrong, and so would be the mass, a sensor, or the oil's bulk modulus. Such commands
show in their steps: large ones, each a while after the one before, in the same direction. A valve that is switched
steps from closed, and back. Pressures then follow their samples, as with valves that are unknown, and what was weighed
before is forgotten.
"""

from __future__ import annotations

from math import inf

import numpy as np

from ..machine import Machine

SELDOM, WHOLE = 2.5, 0.025      # times the sensors' usual interval, and s, between changes of a rare command
RAMP, ONE_WAY = 0.1, 0.5        # of its limit: changes that matter; s after one the same way, else a valve is switched
CLOSED = 0.02                   # of its limit, up to which a valve is closed
REMEMBERED = 30.0               # s for which commands are taken to be rare after such a change
DENSITY = 100.0     # MPa^2/s, of the pressures then: a valve off by a tenth changes one by 30 MPa/s for 0.1 s


class HeldCommands:
    """Of one observer: whether commands are too rare for the motion, by those that it gets with its segments."""

    def __init__(self, machine: Machine) -> None:
        limits = [machine.hydraulics.valves[name].command_limit for name in machine.modelled_valves]
        self._limits = np.array([limit.value if limit is not None else inf for limit in limits])
        self.reset()

    def reset(self) -> None:
        """As at rest."""
        self._now, self._until = 0.0, -1.0
        self._last: np.ndarray | None = None
        self._changed, self._step = np.full(len(self._limits), -inf), np.zeros(len(self._limits))

    def take(self, commands: np.ndarray, dt: float, repeats: np.ndarray) -> bool:
        """Whether they are, after a segment's ``commands`` (n, valves), V, each ``dt``, s.

        ``repeats`` (channels,): steps from sample to sample.
        """
        begin, before = self._now, self._last
        self._now, self._last = begin + len(commands) * dt, commands[-1].copy()
        if before is not None and not (commands == before).all():
            least = max(SELDOM * dt * float(np.median(repeats)), WHOLE)
            values = np.concatenate([before[None], commands])
            for row, k in zip(*np.nonzero(np.diff(values, axis=0))):
                step, now = float(values[row + 1, k] - values[row, k]), begin + (row + 1) * dt
                ramp = abs(step) > RAMP * self._limits[k] and step * self._step[k] > 0.0
                if (ramp and least < now - self._changed[k] < ONE_WAY
                        and abs(values[row, k]) > CLOSED * self._limits[k]):
                    self._until = now + REMEMBERED
                self._changed[k], self._step[k] = now, step
        return begin < self._until
