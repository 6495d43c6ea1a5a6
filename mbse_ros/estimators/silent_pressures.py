# SPDX-License-Identifier: Apache-2.0
"""Pressures whose sensor has fallen silent: their equations of the force balance carry no information until it is back.

Between two samples a pressure follows from the valve's model or from a random walk. That is good for a sample or a few;
for longer neither is a measurement, and nothing bounds where it leads.
"""

from __future__ import annotations

import numpy as np

from ..machine import Machine
from .hydraulic_model import HydraulicModel, largest_pressure
from .observer_settings import ObserverSettings
from .sample_plan import SamplePlan

UNKNOWN_FLOW = 1e-4         # m3/s, of an unknown valve at the start
FLOW_AGAIN = 1e-3           # m3/s, where it was not watched


class SilentPressures:
    """Of one observer: for how long each measured pressure has had no sample; ``full`` (nx, nx) and ``slopes`` (nx, k):
    places of its covariance and derivatives in its packed state."""

    def __init__(self, machine: Machine, model: HydraulicModel, full: np.ndarray, slopes: np.ndarray) -> None:
        self._machine, self._model, self._full, self._slopes = machine, model, full, slopes
        self.volumes, needs = machine.measured_volumes, machine.pressure_needs
        self._columns = np.array([machine.channels.index(f'pressure/{volume}') for volume in self.volumes], dtype=int)
        self._needs = np.array([[volume in needs[k] for k in machine.weighing] for volume in self.volumes],
                               dtype=bool).reshape(len(self.volumes), len(machine.weighing))
        self.reset()

    def reset(self) -> None:
        """All have just had a sample."""
        self._age, self._oldest = np.zeros(len(self.volumes)), 0.0

    def over(self, u: np.ndarray, dt: float, plan: SamplePlan, whole: bool, settings: ObserverSettings
             ) -> np.ndarray | None:
        """Whether (n, pressures) each is silent in the steps ``dt``, s, of a segment with the inputs ``u`` (n, channels
        or more), NaN without a sample; None where none is, nor was, or the observer does not weigh. A sample counts
        from its own step on. ``whole``: whether each channel has one where the ``plan`` takes the last."""
        after = settings.silent_after
        if settings.weighing != 'joint':
            return None
        if whole and self._oldest + len(u) * dt <= after:
            self.reset()
            if not plan.at_the_end:
                self._age = plan.since[self._columns] * dt
                self._oldest = max(self._age.tolist(), default=0.0)
            return None
        before, silent = self._oldest, self._take(u, dt, after)
        return silent if before > after or silent.any() else None

    def _take(self, u: np.ndarray, dt: float, after: float) -> np.ndarray:
        there, steps = ~np.isnan(u[:, self._columns]), np.arange(len(u))[:, None]
        last = np.maximum.accumulate(np.where(there, steps, -1), axis=0)
        age = np.where(last < 0, self._age + (steps + 1) * dt, (steps - last) * dt)
        if len(age):
            self._age = age[-1]
            self._oldest = float(age[-1].max(initial=0.0))
        return age > after

    def released(self, packed: np.ndarray, silent: np.ndarray) -> np.ndarray:
        """The packed state with those ``silent`` (pressures,), and unknown flows to them, of which nothing is known but
        their bounds: 0 and the largest supply."""
        x, names, valves = packed.copy(), self._model.names, self._machine.hydraulics.valves
        owned = {volume for volume, is_silent in zip(self.volumes, silent) if is_silent}
        flows = [f'flow/{valve}.{port}' for valve in self._machine.unknown_valves for port in 'ab'
                 if getattr(valves[valve], port) in owned]
        largest = largest_pressure(self._machine)
        for name in [*(f'pressure/{volume}' for volume in sorted(owned)), *flows]:
            i = names.index(name)
            x[self._full[i]] = x[self._slopes[i]] = 0.0
            x[i] = 0.0 if name in flows else largest / 2
            stddev = FLOW_AGAIN if name in flows else largest / 2
            x[self._full[i, i]] = (stddev / self._model.scale[i]) ** 2
        return x

    def closed(self, silent: np.ndarray) -> np.ndarray:
        """Whether (a,) an equation needs one of the pressures that are ``silent`` (pressures,)."""
        return (self._needs & silent[:, None]).any(axis=0)
