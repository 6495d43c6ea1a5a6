# SPDX-License-Identifier: Apache-2.0
"""Observer and payload estimator as stages: a record in, a record out; the nodes and the command line drive both."""

from __future__ import annotations

from math import nan

import numpy as np

from ..errors import PositionProblemError, SampleError, SingularConfigurationError
from ..estimators.hydraulic_observer import HydraulicObserver, SegmentResult
from ..estimators.settings import ObserverSettings
from ..machine import Machine
from ..payload.estimator import Mass, PayloadEstimator
from ..payload.settings import PayloadSettings
from .records import ObserverStatus, PayloadEstimate, PayloadStatus, Segment, StateEstimate

LOST_SHARE = 0.1     # a position that far out of its stroke, or known no better, in shares of it, is no position
GATES = {
    'open': (PayloadStatus.UPDATING, ''),
    'too slow': (PayloadStatus.TOO_SLOW, 'piston too slow: friction is not known near standstill'),
    'not observable': (PayloadStatus.NOT_OBSERVABLE, 'the mass does not show in the cylinder force here'),
    'outside the stroke': (PayloadStatus.OUTSIDE_STROKE, 'piston at or beyond an end of its stroke'),
    'accelerating': (PayloadStatus.ACCELERATING, 'machine accelerates too much'),
}


class ObserverStage:
    """Segments in, state estimates out; starts by itself from the first samples."""

    def __init__(self, machine: Machine, settings: ObserverSettings = ObserverSettings(),
                 backend: str = 'auto') -> None:
        self.machine = machine
        self._observer = HydraulicObserver(machine, settings, backend)
        self._stroke = machine.stroke.tolist()
        self.reset()

    @property
    def settings(self) -> ObserverSettings:
        """The tuning in force."""
        return self._observer.settings

    @property
    def note(self) -> str:
        """What is wrong with the tuning in force; '' when nothing is."""
        return self._observer.note

    def configure(self, settings: ObserverSettings) -> None:
        """Take new tuning from the next segment on; the state stays."""
        self._observer.configure(settings)

    def reset(self) -> None:
        """Forget the state; the next segment starts it anew."""
        self._observer.reset()
        self._age = 0.0

    def process(self, segment: Segment) -> StateEstimate:
        """State over a segment. Raises SampleError when its channels are not those of the machine."""
        self._check(segment)
        restart = segment.restart or not self._observer.started
        dt = segment.step_ns * 1e-9
        if restart:
            self.reset()
            self._observer.start(segment.values[0], segment.command_values[0])
        result = self._observer.process(segment.values, segment.command_values, segment.repeats, dt)
        measured = segment.values[-1].tolist()
        status, reason = self._judge(result, measured)
        self._age += dt * len(segment.values)       # a segment that began while settling is STARTING as a whole
        if status is ObserverStatus.LOST:
            self._observer.reset()
        return self._estimate(segment, result, measured, restart, status, reason)

    def _check(self, segment: Segment) -> None:
        for got, expected in ((segment.channels, self.machine.channels), (segment.commands, self.machine.commands)):
            if tuple(got) != expected:
                raise SampleError('segment', segment.stamp_ns, tuple(got), f'the channels {expected}')
        if len(segment.values) == 0:
            raise SampleError('segment', segment.stamp_ns, 'no steps', 'at least one step')

    def _judge(self, result: SegmentResult, measured: list[float]) -> tuple[ObserverStatus, str]:
        if not result.finite:
            return ObserverStatus.LOST, 'the state left the finite numbers'
        missing = [c for c, value in zip(self.machine.channels, measured) if value != value]
        if len(missing) == len(measured):
            return ObserverStatus.LOST, 'nothing is measured'
        for i, (low, high) in enumerate(self._stroke):
            position, room = float(result.mean[-1, i]), LOST_SHARE * (high - low)
            if not low - room <= position <= high + room:
                return ObserverStatus.LOST, f'piston of {self.machine.cylinders[i]} at {position:.3f} m, far outside'
            if result.covariance[i, i] > room ** 2:
                return ObserverStatus.LOST, f'position of {self.machine.cylinders[i]} not known to {room:.3f} m'
        if missing:
            return ObserverStatus.COASTING, 'missing: ' + ', '.join(missing)
        if self._age < self.settings.settle_time:
            return ObserverStatus.STARTING, 'settling after a start'
        return ObserverStatus.OK, ''

    def _estimate(self, segment: Segment, result: SegmentResult, measured: list[float], restart: bool,
                  status: ObserverStatus, reason: str) -> StateEstimate:
        """The record; the innovations are those of the samples at the last step."""
        innovation, stddev = result.innovation, np.sqrt(result.innovation_variance)
        if any(value != value for value in measured):
            innovation = np.where(np.isnan(segment.values[-1]), nan, innovation)
        ratios = [ratio for ratio in (innovation / stddev).tolist() if ratio == ratio]
        nis, count = sum(ratio * ratio for ratio in ratios), len(ratios)
        return StateEstimate(segment.sequence, segment.stamp_ns, segment.step_ns, restart, self._observer.names,
                             result.mean, result.covariance, segment.channels, segment.values[-1], innovation, stddev,
                             nis, count, status, reason)


class PayloadStage:
    """State estimates in, payload masses out; holds the mass, and says why, where a sample cannot be trusted."""

    def __init__(self, machine: Machine, settings: PayloadSettings = PayloadSettings(), backend: str = 'auto') -> None:
        self._estimator = PayloadEstimator(machine, settings, backend)

    @property
    def settings(self) -> PayloadSettings:
        """The tuning in force."""
        return self._estimator.settings

    def configure(self, settings: PayloadSettings) -> None:
        """Take new tuning from the next segment on."""
        self._estimator.configure(settings)

    def reset(self) -> None:
        """Forget the mass: another load."""
        self._estimator.reset()

    def process(self, state: StateEstimate) -> PayloadEstimate:
        """Mass after a state estimate."""
        if state.restart:
            self._estimator.restart()
        if state.status is not ObserverStatus.OK:
            return self._record(state, self._estimator.hold(), PayloadStatus.NO_DATA,
                                f'observer {state.status.name.lower()}: {state.reason}')
        try:
            mass = self._estimator.process(state.mean, state.covariance, state.step_ns * 1e-9)
        except (PositionProblemError, SingularConfigurationError) as error:
            self._estimator.restart()
            return self._record(state, self._estimator.hold(), PayloadStatus.OUTSIDE_STROKE, str(error))
        return self._record(state, mass, *GATES[mass.gate])

    @staticmethod
    def _record(state: StateEstimate, mass: Mass, status: PayloadStatus, reason: str) -> PayloadEstimate:
        return PayloadEstimate(state.sequence, state.stamp_ns, mass.mass, mass.stddev, mass.mass - mass.half_width,
                               mass.mass + mass.half_width, mass.raw, mass.low_passed, mass.samples, status, reason)
