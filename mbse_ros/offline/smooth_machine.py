# SPDX-License-Identifier: Apache-2.0
"""A filtered log of a machine, smoothed: all at once, or with a lag."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from ..graph.machines.machine_lag import lag_machine
from ..graph.machines.machine_log import MachineLog, unused
from ..graph.machines.machine_settings import MachineGraphSettings
from ..graph.machines.machine_smoother import MachineSmoothed, smooth_machine
from ..machine import Machine
from ..payload.gates import too_slow
from .bag import Estimate, truth_at


@dataclass(frozen=True)
class SmoothedBag:
    """A bag through filter and smoother; ``seconds`` the smoother took, ``true`` payload, kg, or NaN."""

    estimate: Estimate
    smoothed: MachineSmoothed
    seconds: float
    true: float

    @property
    def machine(self) -> Machine:
        """The machine of the bag."""
        return self.estimate.machine


def smooth_estimate(estimate: Estimate, lag: float | None = None,
                    settings: MachineGraphSettings = MachineGraphSettings()) -> SmoothedBag:
    """Smooth what was filtered, all at once or with a lag, s: its segments are the smoother's samples. Errors are those
    of ``graph.machines.machine_smoother.smooth_machine``."""
    machine, begin, log = estimate.machine, time.perf_counter(), log_of(estimate)
    smoothed = smooth_machine(machine, log, settings) if lag is None else lag_machine(machine, log, lag, settings)
    seconds = time.perf_counter() - begin
    truth = truth_at(estimate.truth, machine, estimate.stamps_ns)
    true = float('nan') if truth is None else float(np.nanmedian(truth.payload))
    return SmoothedBag(estimate, smoothed, seconds, true)


def log_of(estimate: Estimate) -> MachineLog:
    """Samples at the ends of the segments; each one's information once, also of a sensor slower than the segments."""
    measured = estimate.states.measured
    total = np.cumsum(estimate.states.share, axis=0) + 1e-6
    fresh = np.floor(total) > np.floor(np.vstack([np.full((1, total.shape[1]), 1e-6), total[:-1]]))
    return MachineLog(estimate.track.with_pauses, np.where(fresh, measured, np.nan))


def notes(machine: Machine, settings: MachineGraphSettings) -> list[str]:
    """What the smoother makes no use of, and what is wrong with the tuning."""
    left, slow = unused(machine), too_slow(machine, 'graph.min_speed', settings.min_speed)
    return [*([f'{", ".join(left)}: the smoother makes no use of it: it takes what measures a coordinate of the '
               f'machine ({", ".join(machine.coordinates)}), a volume or an inclination of the base'] if left else []),
            *([slow] if slow else [])]


def owners(machine: Machine, kind: str) -> tuple[str, ...]:
    """Names of the columns of a kind of results."""
    if kind == 'pressure':
        return machine.volumes
    if kind == 'unknown_force':
        return tuple(machine.coordinates[k] for k in machine.weighed)
    return machine.coordinates
