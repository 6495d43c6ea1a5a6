# SPDX-License-Identifier: Apache-2.0
"""Observer and payload estimator as stages: a record in, a record out; the nodes and the command line drive both."""

from __future__ import annotations

from collections import deque
from math import isnan, nan, sqrt

import numpy as np

from ..errors import PositionProblemError, SampleError, SingularConfigurationError
from ..estimators.hydraulic_observer import HydraulicObserver
from ..estimators.hydraulic_sensors import variances
from ..estimators.hydraulic_state import SegmentResult
from ..estimators.mass_information import columns
from ..estimators.observer_settings import ObserverSettings
from ..estimators.whiteness import innovation_health
from ..machine import Machine
from ..machine.equations import missing_pressures
from ..monitor.faults import DOUBTS, NONE, Fault, reason_of, together
from ..payload.estimator import PayloadEstimator
from ..payload.exchanged import Exchanged
from ..payload.gates import too_slow
from ..payload.joint import JointEstimator
from ..payload.load_change import LoadChange
from ..payload.mass import Cause, Mass
from ..payload.paper import PaperEstimator
from ..payload.payload_settings import PayloadSettings
from ..payload.trust import WANDERED, Alarm, Drift, OneWay, Trust
from .channel_monitor import NoiseWatch
from .elapsed import Elapsed
from .faint import Faint
from .limits import Limits, StateBounds
from .rates import LASTS_NS, LOOK_BACK, REMEMBERED_NS, SHARE, Lately, too_rare
from .records import JUDGED, ObserverStatus, PayloadEstimate, PayloadStatus, Segment, StateEstimate
from .recovery import CUT, Recovery
from .verdict import FIRST_WEIGHED, Verdict, vague, verdict_of

OR_SENSOR = ', or a sensor is wrong'     # where positions do not follow the forces either
WINDOW = 200         # innovations from which the health is computed
RETURN_NS = 1_000_000_000    # after a doubt, until what the observer has learnt of the mass meanwhile is forgotten


class ObserverStage:
    """Segments in, state estimates out; starts by itself from the first samples."""

    def __init__(self, machine: Machine, settings: ObserverSettings = ObserverSettings(),
                 backend: str = 'auto') -> None:
        self.machine, self._observer = machine, HydraulicObserver(machine, settings, backend)
        self._stddev = np.sqrt(variances(machine)).tolist()
        self._bounds = StateBounds(machine, self._observer.names, settings)
        # values between two samples are no multiples of a step: the file's is taken
        self._watch = NoiseWatch(machine.channels, [item.sensor.resolution for item in machine.all_channels])
        self._recovery = Recovery(machine, self._observer)
        self._limits, self._faint = Limits(machine), Faint(machine)
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
        self._bounds = StateBounds(self.machine, self._observer.names, settings)

    def reset(self) -> None:
        """Forget the state; the next segment starts it again."""
        self._observer.reset()
        self._last_ns = 0       # stamp of the last segment with a state
        self._begin()
        self._limits.reset()
        self._faint.reset()
        self._recovery.reset()

    def _begin(self, start: float = 0.0) -> None:
        self._watch.reset()
        self._start = start
        self._ratios: deque[list[float]] = deque(maxlen=WINDOW)

    @property
    def health(self) -> tuple[float, float]:
        """Of the last innovations: mean NIS per measurement and whiteness (p-value of Ljung-Box), NaN while few."""
        return innovation_health(np.array(self._ratios))

    def process(self, segment: Segment) -> StateEstimate:
        """State over a segment. Raises SampleError when its channels are not those of the machine."""
        self._check(segment)
        restart = segment.restart or not self._observer.started
        dt = segment.step_ns * 1e-9
        if segment.independent(self._last_ns):
            self.reset()
        if segment.restart:
            self._limits.reset()
            self._faint.reset()
        if restart:
            self._begin(segment.start_ns * 1e-9)
            self._recovery.begin()
        values, back, cut = self._accepted(segment)
        if cut >= 0 and not restart:
            restart = True
            self._begin(segment.start_ns * 1e-9)
            self._recovery.begin(*CUT)
        if restart:
            first = segment.values[max(cut, 0)].copy()
            for fault, places in self._refused.items():     # a position far outside loses the state
                jumped = fault is Fault.JUMPED
                first[[i for i in places if jumped or self.machine.channels[i].startswith('pressure/')]] = nan
            first[back] = segment.values[-1, back]
            # a stream is taken to begin at rest; where it starts again the machine may be in motion
            self._observer.start(first, segment.command_values[0], moving=not segment.begins,
                                 pause=(segment.start_ns - self._last_ns) * 1e-9)
        elif back or self._recovery.due:
            values = self._start_again(segment, values, back)
        result = self._observer.process(values, segment.command_values, segment.repeats, dt)
        measured = values[-1].tolist()
        ratios = self._take(segment, measured, result)
        status, reason, faults = self._judge(result, measured, segment)
        self._last_ns = segment.stamp_ns
        self._recovery.age += dt * len(segment.values)      # what began while settling is STARTING as a whole
        if status is ObserverStatus.LOST:
            self._observer.reset()
        return self._estimate(segment, result, measured, ratios, restart, status, reason, faults)

    def _start_again(self, segment: Segment, values: np.ndarray, back: list[int]) -> np.ndarray:
        """Start coordinates again at the newest samples; ``values`` (n, channels) without those before."""
        try:
            places = self._recovery.start_again(segment.stamp_ns * 1e-9, back, values[-1])
        except PositionProblemError:
            return values
        if not places:
            return values
        values = values.copy()
        values[:-1, places] = nan
        self._watch.begin()
        self._start = segment.start_ns * 1e-9
        return values

    def _check(self, segment: Segment) -> None:
        for got, expected in ((segment.channels, self.machine.channels), (segment.commands, self.machine.commands)):
            if tuple(got) != expected:
                raise SampleError('segment', segment.stamp_ns, tuple(got), f'the channels {expected}')
        if len(segment.values) == 0:
            raise SampleError('segment', segment.stamp_ns, 'no steps', 'at least one step')

    def _accepted(self, segment: Segment) -> tuple[np.ndarray, list[int], int]:
        """Samples (n, channels) without those that measure nothing, and of sensors found constant; places of channels
        that are believed again; the row from which on the log is another one, -1 for none.

        Periods that are joined are looked at one by one, by the samples of the positions.
        """
        values, n, back, cut = segment.values, len(segment.values), [], -1
        repeats = segment.repeats.tolist()
        every = max(1, int(min([repeats[k] for k in self._limits.jumps.places], default=n)))
        unusable: dict[Fault, set[int]] = {}
        for row in range((n - 1) % every, n, every):
            t = segment.stamp_ns * 1e-9 - (n - 1 - row) * segment.step_ns * 1e-9
            found = self._limits.take(t, segment.values[row], self.settings, self._watch.constant)
            back += self._limits.jumps.back
            if found or self._limits.jumps.cut:
                values = values.copy() if values is segment.values else values
            if self._limits.jumps.cut:
                values[:row], cut, back, unusable = nan, row, [], {}
            for fault, places in found.items():
                values[max(0, row - every + 1):row + 1, places] = nan
                unusable.setdefault(fault, set()).update(places)
        self._refused = {fault: sorted(places) for fault, places in unusable.items()}
        if self._faint.found:
            self._refused[Fault.UNIT] = list(self._faint.found)
        if any(self._watch.constant) or self._faint.found:
            out = [i for i, constant in enumerate(self._watch.constant)
                   if constant and not self._watch.accepts(i, float(values[-1, i]))]
            values = values.copy()
            values[:, [*out, *self._faint.found]] = nan
        return values, back, cut

    def _take(self, segment: Segment, measured: list[float], result: SegmentResult) -> list[float]:
        """Remember what became of the last samples; innovations of those used over their deviations, else NaN."""
        innovation, variance = result.innovation.tolist(), result.innovation_variance.tolist()
        used = [not refused for refused in result.rejected.tolist()]
        measured = [value if v == v else nan for value, v in zip(measured, innovation)]     # values between samples
        ratios = [v / sqrt(s) if use and m == m and s > 0 else nan
                  for v, s, use, m in zip(innovation, variance, used, measured)]
        if result.finite:
            self._faint.take(measured, segment.values[-1])
            self._watch.take(segment.stamp_ns * 1e-9, measured, innovation, variance, used, self._stddev, self.settings)
            self._ratios.append(ratios)
        return ratios

    def _judge(self, result: SegmentResult, measured: list[float], segment: Segment
               ) -> tuple[ObserverStatus, str, Fault]:
        if not result.finite:
            return ObserverStatus.LOST, reason_of(Fault.NOT_FINITE), Fault.NOT_FINITE
        t, variance = segment.stamp_ns * 1e-9, result.covariance.diagonal()
        if all(map(isnan, measured)):
            return ObserverStatus.LOST, reason_of(Fault.UNMEASURED), Fault.UNMEASURED
        found, refused = self._unusable(measured), ''
        if lost := self._bounds.broken(result.mean[-1], variance):
            return ObserverStatus.LOST, *together({lost[1]: lost[0], Fault.JUMPED: found.get(Fault.JUMPED, '')})
        if rejected := self._watch.rejected(self._observer.threshold):
            refused = f'{reason_of(Fault.REJECTED)}: {"; ".join(rejected)}'
            if self._watch.contradicted(t, self._start, self.settings.lost_after):
                return ObserverStatus.LOST, refused, Fault.REJECTED
            if self._watch.refused(t, self._start, self.settings.doubt_after):
                found[Fault.REJECTED] = refused
                self._recovery.judge(t, self._start, self._watch)
        if found:
            return ObserverStatus.COASTING, *together({**found, Fault.REJECTED: refused})
        if not self._recovery.settled(variance):
            return ObserverStatus.STARTING, *self._recovery.why
        if not (result.outside or result.rare or refused):
            return ObserverStatus.OK, '', NONE      # nearly always
        outside = reason_of(Fault.OUTSIDE_FORCE) + OR_SENSOR if result.outside else ''
        return ObserverStatus.OK, *together({
            Fault.OUTSIDE_FORCE: outside, Fault.RARE: too_rare(segment, result.rare), Fault.REJECTED: refused})

    def _unusable(self, measured: list[float]) -> dict[Fault, str]:
        """What is wrong with last samples that are missing or cannot be used, and of which channels."""
        if not (self._refused or any(self._watch.constant) or any(map(isnan, measured))):
            return {}       # nearly always
        channels = self.machine.channels
        constant = [name for name, found in zip(channels, self._watch.constant) if found]
        unusable = {fault: [channels[i] for i in places] for fault, places in self._refused.items()}
        missing = [c for c, value in zip(channels, measured)
                   if value != value and not any(c in names for names in (constant, *unusable.values()))]
        found = {Fault.MISSING: missing, Fault.STUCK: constant, **unusable}
        return {fault: reason_of(fault, *names) for fault, names in found.items() if names}

    def _estimate(self, segment: Segment, result: SegmentResult, measured: list[float], ratios: list[float],
                  restart: bool, status: ObserverStatus, reason: str, faults: Fault) -> StateEstimate:
        """The record; the innovations are those of the samples at the last step."""
        innovation = result.innovation
        if any(map(isnan, measured)):
            innovation = np.where(np.isnan(measured), nan, innovation)
        squares = [ratio * ratio for ratio in ratios if ratio == ratio]
        return StateEstimate(segment.sequence, segment.stamp_ns, segment.step_ns, restart, self._observer.names,
                             result.mean, result.covariance, segment.channels, segment.values[-1], innovation,
                             np.sqrt(result.innovation_variance), sum(squares), len(squares), status, reason,
                             result.weighing, faults)


class PayloadStage:
    """State estimates in, payload masses out; holds the mass, and says why, where a sample cannot be trusted."""

    def __init__(self, machine: Machine, settings: PayloadSettings = PayloadSettings(), backend: str = 'auto') -> None:
        self._machine, self._columns, self._weighs = machine, columns(len(machine.parameters.consider)), True
        self._joint, self._paper = (kind(machine, settings, backend) for kind in (JointEstimator, PaperEstimator))
        self._estimator: PayloadEstimator = self._joint
        self._limits, self._exchanged = machine.payload_data.limits, Exchanged(machine)
        self.reset()

    @property
    def settings(self) -> PayloadSettings:
        """The tuning in force."""
        return self._estimator.settings

    @property
    def note(self) -> str:
        """What is wrong with the tuning in force; '' when nothing is."""
        return too_slow(self._machine, 'payload.min_speed', self.settings.min_speed)

    def configure(self, settings: PayloadSettings) -> None:
        """Take new tuning from the next segment on."""
        for estimator in self._joint, self._paper:
            estimator.configure(settings)

    def reset(self) -> None:
        """Forget the mass: another load."""
        self._estimator.reset()
        self._exchanged.reset()
        self._doubted_ns, self._rare_ns, self._rare = -RETURN_NS, -REMEMBERED_NS, ('', NONE)
        self._trust, self._drift, self._one_way = Trust(), Drift(self._difference), OneWay()
        machine = self._machine
        whole = len(machine.weighing) == len(machine.actuated)      # else nothing contradicts a jerk
        self._unseen = ' and '.join(missing_pressures(machine)) or 'cylinders with silent sensors'
        self._change = LoadChange(self._limits[1] - self._limits[0], self._difference,
                                  0.0 if whole else FIRST_WEIGHED)
        self._mass: Mass | None = None
        self._elapsed, self._lately = Elapsed(), Lately(self._limits[1] - self._limits[0])

    @property
    def budget(self) -> tuple[Cause, ...]:
        """What makes the mass uncertain, the largest first."""
        return self._estimator.budget(self._mass.noise) if self._mass is not None else ()

    @property
    def distrust(self) -> str:
        """How long ago the last alarm was, and what is left until the mass counts again; '' while it counts."""
        return self._trust.left_words(self._elapsed.total * 1e-9)

    def process(self, state: StateEstimate) -> PayloadEstimate:
        """Mass after a state estimate. Raises SampleError where it is for another machine's uncertain numbers."""
        if state.weighs and state.weighing.shape[1] != self._columns:
            raise SampleError('state.weighing', state.stamp_ns, state.weighing.shape[1],
                              f'{self._columns} columns, as of this machine')
        self._choose(state.weighs)
        before, length = self._elapsed.total, len(state.mean) * state.step_ns
        now = self._elapsed.add(state.stamp_ns - length, state.stamp_ns, state.restart)
        if state.restart:
            pause = (now - before - length) * 1e-9
            self._estimator.restart(pause)
            if pause > 0.0:
                self._change.pause()
        faults = state.faults
        rare, outside = (Fault.RARE in faults, Fault.OUTSIDE_FORCE in faults) if faults else (False, False)
        if rare:
            self._rare_ns, self._rare = now, (state.reason, state.faults)
        if state.status is ObserverStatus.OK and not (rare or outside or state.restart):
            self._exchanged.take(length * 1e-9, state.mean[-1], state.covariance, (
                state.measured, state.innovation, state.innovation_stddev), self._mass.mass if self._mass else nan)
        else:
            self._exchanged.interrupt()
        if state.status is not ObserverStatus.OK:
            if state.faults == Fault.MISSING:
                self._change.pause()
            if state.faults & DOUBTS:
                self._doubted_ns = now
                self._estimator.doubt()
            return self._record(state, self._estimator.hold(state.weighing), (
                PayloadStatus.NO_DATA, f'observer {state.status.name.lower()}: {state.reason}', state.faults))
        if outside or self._exchanged.touches:
            self._doubted_ns = now
            self._estimator.doubt()
            return self._record(state, self._estimator.hold(state.weighing),
                                (PayloadStatus.CONTACT, reason_of(Fault.OUTSIDE_FORCE) + OR_SENSOR * outside,
                                 Fault.OUTSIDE_FORCE))
        if state.weighs and now - self._doubted_ns < RETURN_NS:
            return self._record(state, self._estimator.hold(state.weighing), (
                PayloadStatus.NO_DATA, f'{reason_of(Fault.DOUBTED)} within the last {RETURN_NS * 1e-9:g} s',
                Fault.DOUBTED))
        try:
            mass = self._estimator.process(state.mean, state.covariance, state.step_ns * 1e-9, state.weighing,
                                           SHARE if rare else 1.0)
        except (PositionProblemError, SingularConfigurationError) as error:
            self._estimator.restart()
            return self._record(state, self._estimator.hold(),
                                (PayloadStatus.OUTSIDE_STROKE, str(error), Fault.SINGULAR))
        return self._record(state, mass)

    def _choose(self, weighs: bool) -> None:
        """The estimator for what the observer gives; one that had been left begins from nothing."""
        if weighs is self._weighs:
            return
        self._weighs, self._estimator = weighs, self._joint if weighs else self._paper
        self._estimator.reset()

    def _difference(self, new: Mass, old: Mass) -> tuple[float, float]:
        return self._estimator.difference(new, old)

    def _trusted(self, state: StateEstimate, mass: Mass, verdict: Verdict) -> Verdict:
        """The same, but for a mass that looks well soon after one that cannot be."""
        status, why, faults = verdict
        dt, updating = state.step_ns * 1e-9 * len(state.mean), status is PayloadStatus.UPDATING
        known, contact, implausible = (self._change.found, status is PayloadStatus.CONTACT,
                                       status is PayloadStatus.IMPLAUSIBLE)
        doubted = self._doubted_ns == self._elapsed.total
        # samples that are missing speak against nothing
        missing = (state.status is not ObserverStatus.OK and not doubted
                   or status is PayloadStatus.NO_DATA and self._change.unknown_again)
        alarm = (contact or self._change.changing
                 or status in (PayloadStatus.CHANGING, PayloadStatus.NO_DATA)) and not (
            missing or self._change.unseen or Fault.RARE in faults      # rare: it is not said what else there is
            or mass.settling and not self._change.changing)
        refused = state.status is not ObserverStatus.OK and Fault.REJECTED in state.faults
        hidden = self._elapsed.total - self._rare_ns < REMEMBERED_NS     # by the rate: the mass settles for longer
        wanders = self._drift.take(dt, mass, updating and mass.taken > 0,
                                   alarm or implausible or hidden or self._change.just_paused)
        why = WANDERED if updating else '' if faults == Fault.DOUBTED else why      # the doubt has its own
        self._trust.take(dt, implausible, alarm and known, mass.taken > 0, contact, refused, wanders,
                         doubted and not (known or hidden), Alarm(why, self._elapsed.total * 1e-9),
                         self._drift.direction, self._one_way.take(mass, self._change.changing))
        if updating and self._trust.lost:
            return PayloadStatus.IMPLAUSIBLE, reason_of(Fault.NOT_TRUSTED, self._trust.words), Fault.NOT_TRUSTED
        return verdict

    def _record(self, state: StateEstimate, mass: Mass, held: Verdict | None = None) -> PayloadEstimate:
        self._mass, since_rare = mass, self._elapsed.total - self._rare_ns
        self._lately.take(self._elapsed.total, state.weighing, mass, Fault.RARE in state.faults)
        looks_back = (LOOK_BACK,) if since_rare < REMEMBERED_NS else ()
        self._change.take(self._elapsed.total * 1e-9, mass, self._estimator.kept, *looks_back)
        verdict = held or verdict_of(mass, self._change, self._limits, self._unseen, state.weighs)
        if held is None and (
                verdict[0] in (PayloadStatus.CHANGING, PayloadStatus.IMPLAUSIBLE) and since_rare < LASTS_NS
                or verdict[0] is PayloadStatus.UPDATING and looks_back and not self._lately.shows(mass)):
            verdict = (PayloadStatus.NO_DATA, *self._rare)
        if state.weighs:
            verdict = self._trusted(state, mass, verdict)
        if verdict[0] in JUDGED and (said := self._exchanged.said(verdict[0] is PayloadStatus.UPDATING)):
            verdict = (PayloadStatus.IMPLAUSIBLE if Fault.EXCHANGED in said[1] else PayloadStatus.NO_DATA), *said
        if verdict[0] is PayloadStatus.UPDATING:
            verdict = vague(mass, self._limits, self.settings.max_interval_share) or verdict
        lower, upper = mass.bounds
        return PayloadEstimate(state.sequence, state.stamp_ns, mass.mass, mass.stddev, lower, upper, mass.raw,
                               mass.low_passed, mass.samples, *verdict)
