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


def moves_on(start: np.ndarray, step: np.ndarray, before: np.ndarray, gap: np.ndarray, limit: np.ndarray | float
             ) -> np.ndarray:
    """Whether (k,) a ``step`` of a command from ``start``, V, shows that its valve moved on while it was held:
    ``gap``, s, after the step ``before``; ``limit``, V, of the command."""
    return ((np.abs(step) > RAMP * limit) & (step * before > 0.0) & (gap < ONE_WAY)
            & (np.abs(start) > CLOSED * limit))


class RareCommands:
    """Of one observer: whether commands are too rare for the motion, by those that it gets with its segments."""

    def __init__(self, machine: Machine) -> None:
        limits = [machine.hydraulics.valves[name].command_limit for name in machine.modelled_valves]
        self._limits = np.array([limit.value if limit is not None else inf for limit in limits])
        self.reset()

    def reset(self) -> None:
        """As at rest."""
        self._now, self._until = 0, -inf        # ns, whole: the same however steps come in segments
        self._last: np.ndarray | None = None
        self._changed, self._step = np.full(len(self._limits), -inf), np.zeros(len(self._limits))

    def take(self, commands: np.ndarray, dt: float, repeats: np.ndarray) -> np.ndarray | None:
        """Whether (n, 1) they are, in each step ``dt``, s, of a segment's ``commands`` (n, valves), V, from the step on
        that shows it; None where they are in none. ``repeats`` (channels,): steps from sample to sample."""
        step_ns, begin, before = round(1e9 * dt), self._now, commands[0] if self._last is None else self._last
        self._now, self._last = begin + len(commands) * step_ns, commands[-1].copy()
        changed = not (commands == before).all()
        if not changed and begin >= self._until:
            return None     # nearly always
        stamps = begin + step_ns * np.arange(1, len(commands) + 1)
        rare = stamps <= self._until
        if changed:
            least = max(SELDOM * step_ns * float(np.median(repeats)), 1e9 * WHOLE)
            values = np.concatenate([before[None], commands])
            steps = np.diff(values, axis=0)
            for row in np.flatnonzero(steps.any(axis=1)).tolist():
                step, gap = steps[row], stamps[row] - self._changed
                if (moves_on(values[row], step, self._step, 1e-9 * gap, self._limits) & (gap > least)).any():
                    self._until = stamps[row] + 1e9 * REMEMBERED
                    rare |= (stamps >= stamps[row]) & (stamps <= self._until)
                moved = step != 0.0
                self._changed[moved], self._step[moved] = stamps[row], step[moved]
        return rare[:, None] if rare.any() else None
