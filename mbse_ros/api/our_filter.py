# SPDX-License-Identifier: Apache-2.0
"""One of the filters of ``filters`` behind ``Observer``, of a mechanism or of a machine with hydraulics, judged as
``mbse_ros.estimate`` judges it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ..compiled.of_scipy import gate_limit
from ..dynamics.forces.prescribed import all_accelerations
from ..dynamics.model import Model
from ..errors import DivergenceError, PositionProblemError, SettingError, SingularConfigurationError, check_choice
from ..filters.filters import check_options, default_stddev, noises_of
from ..filters.hydraulic_state import MASS
from ..filters.linkage_settings import LinkageSettings
from ..filters.observer import LinkageEstimates, LinkageObserver, Noises
from ..filters.observer_settings import ObserverSettings
from ..filters.whiteness import overstated
from ..machine import Machine
from ..monitor.channels import MISFIT
from ..monitor.faults import NONE, Fault, reason_of
from ..monitor.mechanism import MechanismMonitor, MechanismState
from ..monitor.state import Assessment
from ..offline.advice import advice
from ..offline.estimate import state_series
from ..offline.filtered_motion import filtered_motion, no_sample, step_of, wrong_units
from ..offline.motion_estimate import MotionEstimate
from ..report.result import ResultSeries, entry_unit
from ..streams.interpolation import InterpolationSettings
from ..streams.linkage import LinkageStage
from ..streams.records import ObserverStatus, Segment, StateEstimate
from ..streams.stages import ObserverStage
from ..streams.start import begin_state, restart_pose, restarted_state, start_stddev

DOUBTFUL = ObserverStatus.COASTING, ObserverStatus.LOST
RARE = 0.25             # share of large squares of innovations: more than that is looked at one by one
AFTER = 50              # instants that are run at once after a restart, then twice as many: others may follow
TAIL = 2.5              # times lost_after: what is remembered of a log for the next one
OFF_GRID = 0.01         # of a step, by which a call that goes on may be off
STEP = InterpolationSettings().step     # s, at most, of the filter between two samples


class OurFilter:
    """A ``LinkageObserver``, in ``observer``, with the noises and the start's uncertainty that suit its mechanism."""

    def __init__(self, model: Model, estimator: str, sensors: Sequence[str], noises: Noises | None,
                 stddev: Sequence[float] | None, gate: float, backend: str, options: dict[str, Any]) -> None:
        check_options(estimator, options)
        self.observer = of = LinkageObserver(model, estimator, sensors, noises, stddev, gate, backend, states=True,
                                             **options)
        self._deviations = of.stddev.tolist()
        self.noises, self.gate = dict(noises_of(of.filter) if noises is None else noises), gate
        self.channels, self.names = of.channels, of.names
        self.monitor, self.settings = MechanismMonitor(of.problem), LinkageSettings()
        self._stage: LinkageStage | None = None
        self._last_stamp: int | None = None
        self._last, self._origin, self._options = 0.0, 0.0, options

    def follow(self, t: np.ndarray, measured: np.ndarray, inputs: np.ndarray) -> MotionEstimate | None:
        """Over a log, by the stage of ``mbse_ros.estimate``, which starts from its samples; times that go back begin
        another log. None where that stage cannot tell its step or its start: by the first call. Raises SettingError
        for times that do not go on in its steps."""
        first = self._stage is None or t[0] <= self._last
        if first:
            if len(t) < 2 or not np.isfinite(measured[0]).any() or self.observer.model.description.drivers:
                return None
            self._origin, self._last_stamp = min(0.0, float(t[0])), None
        stamps = np.rint((t - self._origin) * 1e9).astype(np.int64)
        if first:
            self._stage = self._made_stage(step_of(np.diff(stamps)))
        assert self._stage is not None
        if not first and abs((float(t[0]) - self._last) * 1e9 / self._stage.step_ns % 1.0 - 0.5) < 0.5 - OFF_GRID:
            raise SettingError('t', float(t[0]), f'a time whole steps of {self._stage.step_ns * 1e-9:g} s after '
                               f'{self._last:g} s, the last one; call start() before a log with other steps')
        rows = logged(stamps, self._last_stamp, measured, inputs, self._stage.channels, self._stage.inputs)
        self._last, self._last_stamp = float(t[-1]), int(stamps[-1])
        found = filtered_motion(self._stage, rows, (float(t[0]), int(stamps[0])), no_sample, since=int(stamps[0]))
        return replace(found, t=t) if len(found.t) == len(t) else found

    def _made_stage(self, step: float) -> LinkageStage:
        of, tuned = self.observer, {name: ','.join(map(repr, np.atleast_1d(np.asarray(value, dtype=float)).tolist()))
                                    for name, value in self.noises.items()}
        settings = LinkageSettings(estimator=of.filter.name, noises=worded(tuned), gate=self.gate,
                                   options=worded({name: str(value).replace(' ', '') for name, value
                                                   in self._options.items()}),
                                   stddev=worded({sensor: ','.join(
                                       repr(sigma) for sigma, channel in zip(self._deviations, self.channels)
                                       if channel.partition('.')[0] == sensor) for sensor in of.sensors}))
        return LinkageStage(of.model, settings, of.sensors, step, of.backend, of)

    def start(self, q: np.ndarray, qd: np.ndarray, stddev: float | Sequence[float] | None) -> None:
        """Start at coordinates and velocities (n,)."""
        self._stage, of = None, self.observer
        known = default_stddev(of.filter, of.model.description.name) if stddev is None else stddev
        self.started = q, qd, np.asarray(known, dtype=float)
        of.start(*self.started)
        self._reset(0.0)

    def _reset(self, t: float) -> None:
        self.monitor.reset()
        self.monitor.begin(t, self.settings.settle_time)
        self._last = t

    def run(self, t: np.ndarray, measured: np.ndarray, inputs: np.ndarray) -> MotionEstimate:
        """Over a log. A coordinate that a sensor alone sees, and whose samples are refused for long, starts again from
        them; so do all where the numbers end. Raises DivergenceError where they end at once, with the doubts before."""
        of = self.observer
        before = float(t[0]) - (float(t[1] - t[0]) if len(t) > 1 else float(t[0]) - self._last)
        if t[0] <= self._last:
            self._reset(before)
        values = np.array([self._within_ends(row) for row in measured.tolist()])
        runs: list[LinkageEstimates] = []
        said: list[Assessment] = []
        begin, length = 0, len(t)
        while begin < len(t):
            state = of.flat[0]
            last, failure = min(begin + length, len(t)), None
            try:
                found = self._ran(t, values, inputs, begin, last, before)
            except DivergenceError as error:    # what comes before it may have to start again
                last, failure = begin + error.step, error
                of.resume(state, before)
                if last == begin:
                    raise self._diverged(t, begin, said, failure) from error
                found = self._ran(t, values, inputs, begin, last, before)
            assessments = self._assessments(t[begin:last], values[begin:last], found)
            end = begin + len(assessments)
            if failure is not None and not assessments[-1].again:       # from the samples before it, if there are some
                seen = tuple(np.flatnonzero(np.isfinite(values[end - 1])).tolist())
                if not seen:
                    raise self._diverged(t, last, said + assessments, failure) from failure
                assessments[-1] = Assessment(ObserverStatus.LOST, reason_of(Fault.NOT_FINITE), broken=True,
                                             again=tuple(range(of.problem.g)), by=seen, faults=Fault.NOT_FINITE)
            length = AFTER if assessments[-1].again else 2 * length
            if assessments[-1].again:        # again from the samples, from the state that it had here
                of.resume(state, before)
                found = self._ran(t, values, inputs, begin, end, before)
                self._start_again(assessments[-1], values[end - 1], float(t[end - 1]), found)
            runs.append(found)
            said += assessments
            begin, before = end, float(t[end - 1])
        self._last = float(t[-1])
        return self._estimate(t, measured, runs, said)

    def _diverged(self, t: np.ndarray, step: int, said: Sequence[Assessment], failure: DivergenceError
                  ) -> DivergenceError:
        """At a step of the log, with the first doubt of each kind before it."""
        return DivergenceError(self.observer.estimator, step, '; '.join([failure.detail, *self._doubts(t, said)]))

    @staticmethod
    def _doubts(t: np.ndarray, said: Sequence[Assessment]) -> list[str]:
        """The first of each kind of fault that cast doubt on the state."""
        found, known = [], NONE
        for k, item in enumerate(said):
            if item.status in DOUBTFUL and item.faults & ~known:
                found.append(f'{item.status.name} at {t[k]:.3f} s: {item.reason}')
                known |= item.faults
        return found

    def _within_ends(self, row: list[float]) -> list[float]:
        """Samples (s,), NaN where a sensor cannot read so."""
        beyond = {place for places in self.monitor.watch.unusable(row).values() for place in places}
        return [np.nan if i in beyond else value for i, value in enumerate(row)]

    def _ran(self, t: np.ndarray, values: np.ndarray, inputs: np.ndarray, begin: int, end: int, before: float
             ) -> LinkageEstimates:
        """The filter over instants from ``begin`` to ``end`` of a log, the first one step after ``before``."""
        with np.errstate(all='ignore'):
            if end - begin == 1:        # its step is that from the last time
                self.observer.resume(self.observer.flat[0], before)
            return self.observer.run(t[begin:end], values[begin:end], inputs[begin:end])

    def _assessments(self, t: np.ndarray, values: np.ndarray, run: LinkageEstimates) -> list[Assessment]:
        """Of each instant, up to one at which coordinates start again."""
        of, settings = self.observer, self.settings
        clean = len(t) - self._watched(t) if self._is_clean(values, run) else 0
        found = [Assessment(ObserverStatus.OK)] * clean
        covariances, threshold = run.covariances, of.threshold
        assert covariances is not None      # the observer keeps them
        for k in range(clean, len(t)):
            now, o = float(t[k]), values[k].tolist()
            q, qd = run.q[k], run.qd[k]
            self.monitor.take(now, q, qd, o, run.innovation[k].tolist(), run.innovation_variance[k].tolist(),
                              (run.used[k] > 0.5).tolist(), of.stddev.tolist(), settings)
            assessment = self.monitor.assess(MechanismState(now, self.names, q, qd, covariances[k], o), threshold,
                                             settings)
            if assessment.broken:
                seen = tuple(i for i, value in enumerate(o) if value == value)
                assessment = replace(assessment, again=tuple(range(of.problem.g)) if seen else (), by=seen)
            found.append(assessment)
            if assessment.again:
                break
        return found

    def _watched(self, t: np.ndarray) -> int:
        """Instants at the end of a log that are judged one by one, for what comes after it."""
        dt = float(t[1] - t[0]) if len(t) > 1 else 1.0
        return min(len(t), int(np.ceil(TAIL * self.settings.lost_after / dt)) + 1)

    def _is_clean(self, values: np.ndarray, run: LinkageEstimates) -> bool:
        """Whether nothing in a log can give cause for doubt: all samples there and used, none repeated."""
        if len(values) < 2 or not np.isfinite(values).all() or (np.diff(values, axis=0) == 0.0).any():
            return False
        assert run.covariances is not None
        variance = np.diagonal(run.covariances, axis1=1, axis2=2)
        places = [k for k, name in enumerate(self.names) if name.startswith('position/')]
        with np.errstate(over='ignore'):
            large = (run.innovation ** 2 > MISFIT * run.innovation_variance).mean(axis=0)
        checked = run.innovation_variance[:, self.monitor.observed.places] < self.settings.lost_stddev ** 2
        return bool((run.used > 0.5).all() and (variance >= 0.0).all() and (large < RARE).all() and checked.all() and (
            variance[:, places] < self.settings.lost_stddev ** 2).all())

    def _start_again(self, assessment: Assessment, values: np.ndarray, t: float, run: LinkageEstimates) -> None:
        """Coordinates at what the channels say that were refused and alone see them, with an unknown speed; of a state
        that cannot be nothing stays, as in ``LinkageStage``."""
        of, settings = self.observer, self.settings
        if assessment.broken:
            self.monitor.reset()
            of.resume(begin_state(of.filter, self.monitor, values, of.stddev, self.started[:2], t, settings,
                                  assessment), t)
            return
        q, qd = restart_pose(self.monitor, assessment, values, of.stddev, (run.q[-1], run.qd[-1]), t,
                             settings.lost_after)
        again = [of.model.independent[k] for k in assessment.again]
        start = start_stddev(self.names, settings, again)
        of.resume(restarted_state(of.filter, of.flat[0], q, qd, again, start, t, of.tangents, True), t)
        self.monitor.bounds.know(t, q, qd)
        self.monitor.begin(t, settings.lost_after, 'settling: ' + assessment.reason, assessment.faults)

    def _estimate(self, t: np.ndarray, measured: np.ndarray, runs: Sequence[LinkageEstimates],
                  said: Sequence[Assessment]) -> MotionEstimate:
        of, here = self.observer, np.isfinite(measured)
        columns = {name: np.concatenate([getattr(run, name) for run in runs]) for name in (
            'mean', 'q', 'qd', 'qdd', 'force', 'innovation', 'innovation_variance', 'used', 'covariances')}
        unknown = self.monitor.bounds.unknown(self.names, self.settings.start_velocity) ** 2
        variance = np.maximum(np.diagonal(columns['covariances'], axis1=1, axis2=2), 0.0)
        stddev = np.sqrt(variance + np.outer([item.astray for item in said], unknown))
        used, spread = columns['used'] > 0.5, np.sqrt(np.maximum(columns['innovation_variance'], 0.0))
        innovation = np.where(here, columns['innovation'], np.nan)
        tried = advice(self.channels, t, innovation, spread, used,
                       np.array([item.status is ObserverStatus.LOST for item in said]))
        warnings = [*wrong_units(of.model, self.channels, t, measured), *self._doubts(t, said), *tried] if (
            tried or self._doubts(t, said)) else []
        for column, samples, name, sigma in zip(columns['innovation'].T, measured.T, self.channels, self._deviations):
            with np.errstate(over='ignore'):
                warnings += overstated(name, column[np.isfinite(samples)], samples, sigma)
        return MotionEstimate(of.model, of.estimator, t, self.names, columns['mean'], stddev, columns['q'],
                              columns['qd'], columns['qdd'], of.filter.forces, columns['force'], self.channels,
                              innovation, spread, used,
                              status=tuple(item.status.name.lower() for item in said), warnings=tuple(warnings),
                              covariances=columns['covariances'] + np.array([item.astray * np.diag(unknown)
                                                                             for item in said]))


def worded(pairs: Mapping[str, str]) -> str:
    """Pairs as texts of ``LinkageSettings`` have them."""
    return ' '.join(f'{name}={value}' for name, value in pairs.items())


def logged(stamps: np.ndarray, before: int | None, measured: np.ndarray, inputs: np.ndarray, channels: Sequence[str],
           names: Sequence[str]) -> list[tuple[int, dict[str, float]]]:
    """A log as the stage takes it: stamps (k,), ns, measurements (k, s), inputs (k, u) of the step before each, which
    begins at the stamp ``before`` of the log before, default one step earlier."""
    start = max(0, 2 * int(stamps[0]) - int(stamps[1])) if before is None else before
    rows: list[tuple[int, dict[str, float]]] = []
    for begin, stamp, values, u in zip([start, *stamps.tolist()], stamps.tolist(), measured.tolist(), inputs.tolist()):
        rows += [(begin, dict(zip(names, u)))] if names else []
        here = {name: value for name, value in zip(channels, values) if value == value}
        rows.append((stamp, here or dict.fromkeys(channels, np.nan)))     # an instant without samples is one, too
    return rows


@dataclass(frozen=True, repr=False)
class MachineMotion(MotionEstimate):
    """Of a machine with hydraulics: series under the names of ``mbse_ros.estimate``, too, the mass first."""

    machine: Machine | None = None

    def main_series(self) -> list[ResultSeries]:
        """The mass, then the state's entries, with their deviations; pressures in one panel."""
        assert self.machine is not None
        mass = [ResultSeries('mass', 'kg', self.mean[:, k], self.stddev[:, k])
                for k, name in enumerate(self.names) if name == MASS]
        return mass + state_series(self.machine, self.names, self.mean, self.stddev)

    def _unit(self, entry: str) -> str:
        assert self.machine is not None
        return entry_unit(self.machine.description, entry)


class MachineFilter:
    """An ``ObserverStage`` of a machine with any of its settings; each row of samples ends one segment."""

    def __init__(self, machine: Machine, settings: Mapping[str, Any], backend: str) -> None:
        for name in settings:
            check_choice('options', name, [item.name for item in fields(ObserverSettings)])
        self.machine, self.stage = machine, ObserverStage(machine, ObserverSettings(**settings), backend)
        self.channels, self.names = machine.channels, self.stage.names
        self.start()

    def follow(self, *_: object) -> None:
        """None: it starts from the first samples anyway."""

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
        used = innovation ** 2 <= gate_limit(self.stage.settings.gate) * spread ** 2
        q, qd, qdd = (np.array(column) for column in zip(*map(self._motion, mean)))
        warnings = [f'{state.status.name} at {at:.3f} s: {state.reason}' for state, at, before in zip(
            states, t.tolist(), [None, *states]) if state.faults and (before is None or state.faults & ~before.faults)]
        warnings += [self.stage.note] if self.stage.note else []
        return MachineMotion(self.machine.model, self.stage.settings.estimator, t, self.names, mean, stddev, q, qd,
                             qdd, (), np.zeros((len(t), 0)), self.channels, innovation, spread, used,
                             status=tuple(state.status.name.lower() for state in states), warnings=tuple(warnings),
                             machine=self.machine)

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
