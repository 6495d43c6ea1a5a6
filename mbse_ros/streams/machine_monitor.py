# SPDX-License-Identifier: Apache-2.0
"""Which samples of a machine are used, and how far the state that follows from them is to be trusted."""

from __future__ import annotations

from math import isnan, nan, sqrt
from typing import NamedTuple

import numpy as np

from ..errors import PositionProblemError
from ..estimators.hydraulic_observer import HydraulicObserver
from ..estimators.hydraulic_sensors import variances
from ..estimators.hydraulic_state import SegmentResult
from ..estimators.observer_settings import ObserverSettings
from ..estimators.whiteness import InnovationWatch
from ..machine import Machine
from ..monitor.bounds import StateBounds
from ..monitor.channels import ChannelWatch
from ..monitor.faults import NONE, Fault, reason_of, together
from ..monitor.rates import too_rare
from ..monitor.recovery import CUT, Recovery
from ..monitor.samples import RangeCheck
from ..monitor.units import UnitCheck
from .records import ObserverStatus, Segment

OR_SENSOR = ', or a sensor is wrong'     # where positions do not follow the forces either


class UsableSamples(NamedTuple):
    """``values`` (n, channels) without those that measure nothing, NaN there; ``back``: places of channels that are
    believed again; ``cut``: the row from which on the log is another one, -1 for none; ``refused``: places of the
    channels whose last samples cannot be used, by fault."""

    values: np.ndarray
    back: list[int]
    cut: int
    refused: dict[Fault, list[int]]


class MachineMonitor:
    """Watches the samples of a machine's channels, and the states that its observer makes of them."""

    def __init__(self, machine: Machine, observer: HydraulicObserver) -> None:
        self.machine, self._observer = machine, observer
        self._stddev = np.sqrt(variances(machine)).tolist()
        # values between two samples are no multiples of a step: the file's is taken
        self._watch = ChannelWatch(machine.channels, [item.sensor.resolution for item in machine.all_channels])
        self._recovery = Recovery(machine, observer)
        self._limits, self._faint, self._innovations = RangeCheck(machine), UnitCheck(machine), InnovationWatch()
        self.configure()
        self.reset()

    def configure(self) -> None:
        """The observer's tuning is another."""
        self._bounds = StateBounds(self.machine, self._observer.names, self._settings)

    @property
    def _settings(self) -> ObserverSettings:
        return self._observer.settings

    def reset(self) -> None:
        """As before the first sample."""
        self.begin(0.0)
        self.forget_samples()
        self._recovery.reset()

    def forget_samples(self) -> None:
        """What was read before is of another time."""
        self._limits.reset()
        self._faint.reset()

    def begin(self, start: float, why: str = '', faults: Fault = Fault.SETTLING) -> None:
        """A state starts, at a time, s; ``why``, ``faults``: unless it is as usual."""
        self._watch.reset()
        self._start = start
        self._innovations.reset()
        self._recovery.begin(why, faults)

    @property
    def health(self) -> tuple[float, float]:
        """Of the last innovations: mean NIS per measurement and whiteness (p-value of Ljung-Box), NaN while few."""
        return self._innovations.health

    def judge_samples(self, segment: Segment) -> UsableSamples:
        """Leave out samples that measure nothing, and those of sensors found constant or in another unit."""
        samples = self._within_limits(segment)
        faint, refused, values = self._faint.found, samples.refused, samples.values
        if faint:
            refused[Fault.UNIT] = list(faint)
        if any(self._watch.constant) or faint:
            out = [i for i, constant in enumerate(self._watch.constant)
                   if constant and not self._watch.accepts(i, float(values[-1, i]))]
            values = values.copy()
            values[:, [*out, *faint]] = nan
        self._refused = refused
        return samples._replace(values=values)

    def _within_limits(self, segment: Segment) -> UsableSamples:
        """Periods that are joined are looked at one by one, by the samples of the positions."""
        values, n, back, cut = segment.values, len(segment.values), [], -1
        repeats = segment.repeats.tolist()
        every = max(1, int(min([repeats[k] for k in self._limits.jumps.places], default=n)))
        unusable: dict[Fault, set[int]] = {}
        for row in range((n - 1) % every, n, every):
            t = segment.stamp_ns * 1e-9 - (n - 1 - row) * segment.step_ns * 1e-9
            found = self._limits.take(t, segment.values[row], self._settings, self._watch.constant)
            back += self._limits.jumps.back
            if found or self._limits.jumps.cut:
                values = values.copy() if values is segment.values else values
            if self._limits.jumps.cut:
                values[:row], cut, back, unusable = nan, row, [], {}
            for fault, places in found.items():
                values[max(0, row - every + 1):row + 1, places] = nan
                unusable.setdefault(fault, set()).update(places)
        return UsableSamples(values, back, cut, {fault: sorted(places) for fault, places in unusable.items()})

    def starts(self, segment: Segment, samples: UsableSamples, restart: bool) -> bool:
        """Whether a state starts with a segment: it is to, or the log is cut within."""
        if samples.cut < 0 or restart:
            return restart
        self.begin(segment.start_ns * 1e-9, *CUT)
        return True

    def first_samples(self, segment: Segment, samples: UsableSamples) -> np.ndarray:
        """Samples (channels,) from which a state starts: also a position far outside, which loses it, but no jump."""
        first = segment.values[max(samples.cut, 0)].copy()
        for fault, places in samples.refused.items():
            jumped = fault is Fault.JUMPED
            first[[i for i in places if jumped or self.machine.channels[i].startswith('pressure/')]] = nan
        first[samples.back] = segment.values[-1, samples.back]
        return first

    def start_again(self, segment: Segment, samples: UsableSamples) -> np.ndarray:
        """Start coordinates again, where sensors show that they are elsewhere, at the newest samples; values
        (n, channels) without the ones before."""
        values = samples.values
        if not (samples.back or self._recovery.due):
            return values
        try:
            places = self._recovery.start_again(segment.stamp_ns * 1e-9, samples.back, values[-1])
        except PositionProblemError:
            return values
        if not places:
            return values
        values = values.copy()
        values[:-1, places] = nan
        self._watch.begin()
        self._start = segment.start_ns * 1e-9
        return values

    def learn(self, segment: Segment, measured: list[float], result: SegmentResult) -> list[float]:
        """Remember what became of the last samples ``measured`` (channels,); innovations of those used over their
        deviations, else NaN."""
        innovation, variance = result.innovation.tolist(), result.innovation_variance.tolist()
        used = [not refused for refused in result.rejected.tolist()]
        measured = [value if v == v else nan for value, v in zip(measured, innovation)]     # values between samples
        ratios = [v / sqrt(s) if use and m == m and s > 0 else nan
                  for v, s, use, m in zip(innovation, variance, used, measured)]
        if result.finite:
            self._faint.take(measured, segment.values[-1])
            self._watch.take(segment.stamp_ns * 1e-9, measured, innovation, variance, used, self._stddev,
                             self._settings)
            self._innovations.take(ratios)
        return ratios

    def judge_state(self, segment: Segment, measured: list[float], result: SegmentResult
                    ) -> tuple[ObserverStatus, str, Fault]:
        """Status, reason and faults of the state at the end of a segment, by its last samples."""
        found = self._status(segment, measured, result)
        # after it: what began while settling is STARTING as a whole
        self._recovery.age += segment.step_ns * 1e-9 * len(segment.values)
        return found

    def _status(self, segment: Segment, measured: list[float], result: SegmentResult
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
            if self._watch.contradicted(t, self._start, self._settings.lost_after):
                return ObserverStatus.LOST, refused, Fault.REJECTED
            if self._watch.refused(t, self._start, self._settings.doubt_after):
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
            Fault.OUTSIDE_FORCE: outside, Fault.RARE: too_rare(
                result.rare, segment.channels, segment.repeats.tolist(), segment.step_ns), Fault.REJECTED: refused})

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
