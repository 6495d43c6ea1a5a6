# SPDX-License-Identifier: Apache-2.0
"""Observer and payload estimator as stages: a record in, a record out; the nodes and the command line drive both."""

from __future__ import annotations

import numpy as np

from ..errors import PositionProblemError, SampleError, SingularConfigurationError
from ..estimators.hydraulic_observer import HydraulicObserver, SegmentResult
from ..estimators.settings import ObserverSettings
from ..machine import Machine
from ..payload import estimator as payload_room
from ..payload.estimator import PayloadEstimator
from ..payload.settings import PayloadSettings
from .records import ObserverStatus, PayloadEstimate, PayloadStatus, Segment, StateEstimate

LOST_STDDEV_SHARE = 0.1     # a position less certain than this share of its stroke is no position
VERDICTS = {
    payload_room.UPDATING: (PayloadStatus.UPDATING, ''),
    payload_room.TOO_SLOW: (PayloadStatus.TOO_SLOW, 'piston too slow: friction is not known near standstill'),
    payload_room.NOT_OBSERVABLE: (PayloadStatus.NOT_OBSERVABLE, 'the mass does not show in the cylinder force here'),
    payload_room.OUTSIDE_STROKE: (PayloadStatus.OUTSIDE_STROKE, 'piston at or beyond an end of its stroke'),
    payload_room.ACCELERATING: (PayloadStatus.ACCELERATING, 'machine accelerates too much'),
}


class ObserverStage:
    """Segments in, state estimates out; starts by itself from the first samples."""

    def __init__(self, machine: Machine, settings: ObserverSettings = ObserverSettings(), backend: str = 'auto') -> None:
        self.machine = machine
        self._observer = HydraulicObserver(machine, settings, backend)
        self._stroke = machine.stroke
        self._sample_variance = self._observer.sample_variance
        self.reset()

    @property
    def settings(self) -> ObserverSettings:
        """The tuning in force."""
        return self._observer.settings

    def configure(self, settings: ObserverSettings) -> None:
        """Take new tuning from the next segment on; the state stays."""
        self._observer.configure(settings)

    def reset(self) -> None:
        """Forget the state; the next segment starts it anew."""
        self._observer.reset()
        self._age, self._command = 0.0, None

    def process(self, segment: Segment) -> StateEstimate:
        """State over a segment. Raises SampleError when its channels are not those of the machine."""
        self._check(segment)
        restart = segment.restart or not self._observer.started
        dt = segment.step_ns * 1e-9
        if restart:
            self.reset()
            self._observer.start(segment.values[0], segment.command_values[0])
        commands = self._commands_in_force(segment)
        with np.errstate(over='ignore', invalid='ignore'):
            result = self._observer.process(segment.values, commands, segment.repeats, dt)
        self._age += dt * len(segment.values)
        status, reason = self._judge(segment, result)
        if status is ObserverStatus.LOST:
            self._observer.reset()
        return self._estimate(segment, result, restart, status, reason)

    def _check(self, segment: Segment) -> None:
        for got, expected in ((segment.channels, self.machine.channels), (segment.commands, self.machine.commands)):
            if tuple(got) != expected:
                raise SampleError('segment', segment.stamp_ns, tuple(got), f'the channels {expected}')
        if len(segment.values) == 0:
            raise SampleError('segment', segment.stamp_ns, 'no steps', 'at least one step')

    def _commands_in_force(self, segment: Segment) -> np.ndarray:
        """Commands (n, valves) at the beginning of each step: the valve sees a command from its stamp on."""
        given = segment.command_values
        shifted = np.empty_like(given)
        shifted[0] = given[0] if self._command is None else self._command
        shifted[1:] = given[:-1]
        self._command = given[-1].copy()
        return shifted

    def _judge(self, segment: Segment, result: SegmentResult) -> tuple[ObserverStatus, str]:
        count = len(self._stroke)
        position, last = result.mean[-1, :count], segment.values[-1]
        if not (np.isfinite(result.mean[-1]).all() and np.isfinite(result.covariance).all()):
            return ObserverStatus.LOST, 'the state left the finite numbers'
        if not np.isfinite(segment.values).any():
            return ObserverStatus.LOST, 'nothing is measured'
        length = self._stroke[:, 1] - self._stroke[:, 0]
        beyond = np.maximum(self._stroke[:, 0] - position, position - self._stroke[:, 1])
        if (beyond > LOST_STDDEV_SHARE * length).any():
            return ObserverStatus.LOST, f'piston at {position} m, far outside the stroke'
        stddev = np.sqrt(np.diag(result.covariance)[:count])
        if (stddev > LOST_STDDEV_SHARE * length).any():
            return ObserverStatus.LOST, f'position known to {stddev} m only'
        missing = [c for c, value in zip(segment.channels, last) if not np.isfinite(value)]
        if missing:
            return ObserverStatus.COASTING, 'missing: ' + ', '.join(missing)
        if self._age < self.settings.settle_time:
            return ObserverStatus.STARTING, 'settling after a start'
        return ObserverStatus.OK, ''

    def _estimate(self, segment: Segment, result: SegmentResult, restart: bool, status: ObserverStatus,
                  reason: str) -> StateEstimate:
        measured = segment.values[-1]
        present = np.isfinite(measured)
        variance = result.prior_variance[-1] + self._sample_variance
        innovation = np.where(present, result.innovation[-1], np.nan)
        stddev = np.sqrt(variance)
        nis = float(np.sum(innovation[present] ** 2 / variance[present]))
        return StateEstimate(segment.sequence, segment.stamp_ns, segment.step_ns, restart, self._observer.names,
                             result.mean, result.covariance, segment.channels, measured, innovation, stddev, nis,
                             int(present.sum()), status, reason)


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
        return self._record(state, mass, *VERDICTS[mass.verdict])

    @staticmethod
    def _record(state: StateEstimate, mass: payload_room.Mass, status: PayloadStatus, reason: str) -> PayloadEstimate:
        return PayloadEstimate(state.sequence, state.stamp_ns, mass.mass, mass.stddev, mass.mass - mass.half_width,
                               mass.mass + mass.half_width, mass.raw, mass.low_passed, mass.samples, status, reason)
