# SPDX-License-Identifier: Apache-2.0
"""Payload estimator: samples by inverse dynamics, gates, filters, and a mass with its 95 % interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..machine import Machine
from .filter import BatchScatter, LowPass, TriangularWindow, t_quantile
from .inverse_dynamics import InverseDynamics, MassSamples
from .quarantine import Quarantine
from .settings import PayloadSettings

UPDATING, TOO_SLOW, NOT_OBSERVABLE, OUTSIDE_STROKE, ACCELERATING = 'updating', 'too slow', 'not observable', \
    'outside the stroke', 'accelerating'


@dataclass(frozen=True)
class Mass:
    """Result after a segment, kg; ``verdict`` says what became of the segment's last sample."""

    mass: float
    stddev: float
    half_width: float
    raw: float
    low_passed: float
    samples: int
    verdict: str


class PayloadEstimator:
    """Mass of the payload of one machine from states of the observer, segment by segment."""

    def __init__(self, machine: Machine, settings: PayloadSettings, backend: str = 'auto') -> None:
        self.machine = machine
        self._dynamics = InverseDynamics(machine, backend)
        self._count = len(machine.cylinders)
        self._stroke = machine.stroke
        self._parameter_variance = machine.parameters.stddev ** 2
        self.settings = settings
        self.reset()

    def configure(self, settings: PayloadSettings) -> None:
        """Take new tuning from the next segment on; the mass so far stays where its filters keep their shape."""
        kept = ('low_pass_gain', 'window', 'batch_time')
        same = all(getattr(settings, name) == getattr(self.settings, name) for name in kept)
        old, self.settings = self._low_pass, settings
        if not same:
            self._make_filters()
            self._low_pass.total, self._low_pass.sums = old.total, old.sums
            if old.total > 0:
                self._window_value = self._window.update(old.value[None, :])

    def reset(self) -> None:
        """Forget the mass: another load."""
        self._dynamics.reset()
        self._make_filters()
        self._quarantine = Quarantine()
        self._samples = 0
        self._window_value: np.ndarray | None = None

    def _make_filters(self) -> None:
        s, size = self.settings, 1 + len(self._parameter_variance)
        self._low_pass, self._window = LowPass(s.low_pass_gain, size), TriangularWindow(s.window, size)
        self._scatter: BatchScatter | None = None

    def restart(self) -> None:
        """The state starts anew after a gap: the joint angles are solved afresh, the mass stays."""
        self._dynamics.reset()
        self._quarantine.clear()

    def process(self, mean: np.ndarray, covariance: np.ndarray, dt: float) -> Mass:
        """Take the states (n, nx), SI, of a segment with the covariance (nx, nx) of its last; step ``dt``, s.

        Raises PositionProblemError where the cylinders cannot reach.
        """
        samples = self._dynamics.process(mean, covariance)
        clean, verdict = self._gate(mean, samples)
        rows = np.column_stack([samples.information, samples.mass, samples.sensitivity])
        taken = self._quarantine.pass_through(rows, clean, round(self.settings.guard_time / dt))
        if len(taken):
            self._take(taken, dt)
        return self._result(float(samples.mass[-1]), verdict)

    def hold(self) -> Mass:
        """The mass so far, when there is no state to use."""
        self._quarantine.clear()
        return self._result(float('nan'), '')

    def _gate(self, mean: np.ndarray, samples: MassSamples) -> tuple[np.ndarray, str]:
        """Which samples (n,) may go into the mass, and what became of the last one."""
        s, c = self.settings, self._count
        z, speed = mean[:, :c], np.abs(mean[:, c:2 * c])
        gates = (
            ((z > self._stroke[:, 0] + s.stroke_margin) & (z < self._stroke[:, 1] - s.stroke_margin), OUTSIDE_STROKE),
            (samples.information[:, None] * s.max_sample_stddev ** 2 >= 1.0, NOT_OBSERVABLE),
            (speed >= s.min_speed, TOO_SLOW),
            (samples.share[:, None] <= s.max_acceleration_share, ACCELERATING))
        passed = [(gate.all(axis=1), word) for gate, word in gates]
        verdict = next((word for gate, word in passed if not gate[-1]), UPDATING)
        return np.logical_and.reduce([gate for gate, _ in passed]), verdict

    def _take(self, rows: np.ndarray, dt: float) -> None:
        """Send samples (n, 2 + parameters): information, mass, sensitivities, through the filters."""
        weights, vectors = rows[:, 0], rows[:, 1:]
        self._samples += len(weights)
        self._window_value = self._window.update(self._low_pass.update(weights, vectors))
        if self._scatter is None:
            self._scatter = BatchScatter(self.settings.low_pass_gain, max(1, round(self.settings.batch_time / dt)))
        self._scatter.update(weights, vectors[:, 0])

    def _result(self, raw: float, verdict: str) -> Mass:
        if self._window_value is None:
            nan = float('nan')
            return Mass(nan, nan, nan, raw, nan, self._samples, verdict)
        mass, sensitivity = float(self._window_value[0]), self._window_value[1:]
        variance, freedom = self._scatter.variance(mass, self._low_pass.total) if self._scatter else (np.inf, 0.0)
        if not np.isfinite(variance):      # not two batches yet: as uncertain as one sample
            variance, freedom = self._samples / self._low_pass.total, 1e9
        systematic = float(sensitivity ** 2 @ self._parameter_variance)
        half = np.sqrt(t_quantile(freedom) ** 2 * variance + 1.959964 ** 2 * systematic)
        return Mass(mass, float(np.sqrt(variance + systematic)), float(half), raw, float(self._low_pass.value[0]),
                    self._samples, verdict)
