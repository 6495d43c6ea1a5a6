# SPDX-License-Identifier: Apache-2.0
"""The filter of a machine with hydraulics behind ``Observer``, judged as ``mbse_ros.estimate`` judges it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from ..compiled.of_scipy import exceeded
from ..dynamics.forces.prescribed import all_accelerations
from ..errors import PositionProblemError, SingularConfigurationError, check_choice
from ..filters.observer_settings import ObserverSettings
from ..machine import Machine
from ..offline.motion_estimate import MotionEstimate
from ..streams.interpolation import InterpolationSettings
from ..streams.records import Segment, StateEstimate
from ..streams.stages import ObserverStage

STEP = InterpolationSettings().step     # s, at most, of the filter between two samples


class MachineFilter:
    """An ``ObserverStage`` of a machine with any of its settings; each row of samples ends one segment."""

    def __init__(self, machine: Machine, settings: Mapping[str, Any], backend: str) -> None:
        for name in settings:
            check_choice('options', name, [item.name for item in fields(ObserverSettings)])
        self.machine, self.stage = machine, ObserverStage(machine, ObserverSettings(**settings), backend)
        self.channels, self.names = machine.channels, self.stage.names
        self.start()

    def start(self, *_: object) -> None:
        """Forget: the state starts from the first samples."""
        self.stage.reset()
        self._t, self._sequence, self._ns, self._q = 0.0, 0, 0, self.machine.model.start.q
        self._commands = np.zeros(len(self.machine.commands))

    def run(self, t: np.ndarray, measured: np.ndarray, inputs: np.ndarray) -> MotionEstimate:
        """Over a log."""
        dt = float(t[1] - t[0]) if len(t) > 1 else float(t[0]) - self._t
        states = [self._processed(row, commands, dt) for row, commands in zip(measured, inputs)]
        self._t = float(t[-1])
        mean = np.array([state.mean[-1] for state in states])
        stddev = np.sqrt(np.maximum([state.covariance.diagonal() for state in states], 0.0))
        innovation, spread = (np.array([getattr(state, name) for state in states])
                              for name in ('innovation', 'innovation_stddev'))
        gate = self.stage.settings.gate
        used = innovation ** 2 <= (np.inf if gate >= 1 else exceeded(1, 1 - gate)) * spread ** 2
        q, qd, qdd = (np.array(column) for column in zip(*map(self._motion, mean)))
        warnings = [f'{state.status.name} at {at:.3f} s: {state.reason}' for state, at, before in zip(
            states, t.tolist(), [None, *states]) if state.faults and (before is None or state.faults & ~before.faults)]
        return MotionEstimate(self.machine.model, self.stage.settings.estimator, t, self.names, mean, stddev, q, qd,
                              qdd, (), np.zeros((len(t), 0)), self.channels, innovation, spread, used,
                              status=tuple(state.status.name.lower() for state in states), warnings=tuple(warnings))

    def _processed(self, row: np.ndarray, commands: np.ndarray, dt: float) -> StateEstimate:
        """Over the step ``dt``, s, to samples and ``commands`` at its end; those before hold until then."""
        steps = max(1, round(dt / STEP))
        values = np.full((steps, len(row)), np.nan)
        values[-1] = row
        given = np.tile(self._commands if self._sequence else commands, (steps, 1))
        given[-1] = self._commands = commands
        self._sequence += 1
        segment = Segment(self._sequence, self._ns, round(dt / steps * 1e9), False, self.channels, values,
                          np.full(len(row), steps), self.machine.commands, given)
        self._ns = segment.stamp_ns
        return self.stage.process(segment)

    def _motion(self, mean: np.ndarray) -> Sequence[np.ndarray]:
        """All coordinates of the mechanism, velocities and accelerations (n,) at a state; NaN where it cannot be."""
        model, g = self.machine.model, len(self.machine.coordinates)
        try:
            q = self.machine.position(mean[:g], self._q)
        except (PositionProblemError, SingularConfigurationError):
            return [np.full(len(self._q), np.nan)] * 3
        self._q, qd = q, model.partition().velocity(q, mean[g:2 * g])
        return q, qd, all_accelerations(model, q, qd, mean[2 * g:3 * g], 0.0)
