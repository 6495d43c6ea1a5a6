# SPDX-License-Identifier: Apache-2.0
"""Which samples of a machine are used, how far the state that follows from them is to be trusted, when it has settled,
and when coordinates start again by the sensors that alone see them."""

from __future__ import annotations

from collections import deque
from math import inf, isnan, nan, pi, sqrt
from typing import NamedTuple

import numpy as np

from ..errors import PositionProblemError
from ..filters.activity import moved_actuators
from ..filters.hydraulic_observer import HydraulicObserver
from ..filters.hydraulic_state import ModelError, SegmentResult, variances
from ..filters.observer_settings import ObserverSettings
from ..filters.whiteness import InnovationWatch
from ..machine import Machine
from ..machine.actuators import SPAN
from ..monitor.bounds import StateBounds, machine_ends
from ..monitor.channels import LASTING, PATIENCE, ChannelMonitor
from ..monitor.faults import Fault, ObserverStatus, reason_of
from ..monitor.rates import too_rare
from ..monitor.state import Assessment, StateMonitor
from ..monitor.steps import PressureSteps, StepCheck
from ..monitor.units import UnitCheck
from .records import Segment

OR_SENSOR = ', or a sensor is wrong'     # where positions do not follow the forces either
FOLLOWED = 'valves, hoses or pump do not fit the sensors: pressures follow their samples alone'
OSCILLATES = 'the mass oscillates at {:.1f} Hz, as where a boom bends or the base sways'
FALLS = 0.9          # of a speed's deviation ``settle_time`` before: it still falls
CUT = 'all samples jumped at once, as where a log was cut: settling after a start', Fault.JUMPED | Fault.SETTLING
STARTS = Fault.JUMPED | Fault.REJECTED | Fault.RESTARTED


class UsableSamples(NamedTuple):
    """``values`` (n, channels) without those that measure nothing, NaN there; ``back``: places of channels that are
    believed again; ``cut``: the row from which on the log is another one, -1 for none; ``refused``: places of the
    channels whose last samples cannot be used, by fault."""

    values: np.ndarray
    back: list[int]
    cut: int
    refused: dict[Fault, list[int]]


class MachineState(NamedTuple):
    """What became of a segment and its last samples ``measured`` (channels,)."""

    segment: Segment
    measured: list[float]
    result: SegmentResult
    restart: bool


class MachineMonitor(StateMonitor[MachineState]):
    """Watches the samples of a machine's channels, and the states that its observer makes of them."""

    def __init__(self, machine: Machine, observer: HydraulicObserver) -> None:
        self.machine, self._observer = machine, observer
        self._stddev = np.sqrt(variances(machine)).tolist()
        # values between two samples are no multiples of a step: the file's is taken
        watch = ChannelMonitor(machine.channels, machine_ends(machine),
                               [item.sensor.resolution for item in machine.all_channels])
        super().__init__(watch, self._lost, self._doubtful, self._settling, self._disturbed)
        self._recovery = Recovery(machine, observer)
        self._positions, self._pressures = StepCheck(machine), PressureSteps(machine)
        self._forces = _forces(machine)
        self._faint, self._innovations = UnitCheck(machine), InnovationWatch()
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
        self._positions.reset()
        self._pressures.reset()
        self._faint.reset()

    def begin(self, start: float, why: str = '', faults: Fault = Fault.SETTLING) -> None:
        """A state starts, at a time, s; ``why``, ``faults``: unless it is as usual."""
        self.watch.reset()
        self.start = start
        self._innovations.reset()
        self._recovery.begin(why, faults)

    @property
    def health(self) -> tuple[float, float]:
        """Of the last innovations: mean NIS per measurement and whiteness (p-value of Ljung-Box), NaN while few."""
        return self._innovations.health

    def judge_samples(self, segment: Segment) -> UsableSamples:
        """Leave out samples that measure nothing, and those of sensors found constant or in another unit."""
        samples = self._row_by_row(segment)
        faint, refused, values = self._faint.found, samples.refused, samples.values
        if faint:
            refused[Fault.UNIT] = list(faint)
        if any(self.watch.constant) or faint:
            stuck = self.watch.stuck(dict(enumerate(values[-1].tolist())))
            values = values.copy()
            values[:, [*stuck, *faint]] = nan
        self._refused = refused
        return samples._replace(values=values)

    def _row_by_row(self, segment: Segment) -> UsableSamples:
        """Periods that are joined are looked at one by one, by the samples of the positions."""
        values, n, back, cut = segment.values, len(segment.values), [], -1
        repeats = segment.repeats.tolist()
        every = max(1, int(min([repeats[k] for k in self._positions.places], default=n)))
        unusable: dict[Fault, set[int]] = {}
        for row in range((n - 1) % every, n, every):
            t = segment.stamp_ns * 1e-9 - (n - 1 - row) * segment.step_ns * 1e-9
            found = self._unusable(t, segment.values[row].tolist())
            back += self._positions.back
            if found or self._positions.cut:
                values = values.copy() if values is segment.values else values
            if self._positions.cut:
                values[:row], cut, back, unusable = nan, row, [], {}
            for fault, places in found.items():
                values[max(0, row - every + 1):row + 1, places] = nan
                unusable.setdefault(fault, set()).update(places)
        return UsableSamples(values, back, cut, {fault: sorted(places) for fault, places in unusable.items()})

    def _unusable(self, t: float, samples: list[float]) -> dict[Fault, list[int]]:
        """Places, by fault, of those of the samples (channels,) at ``t``, s, that are beyond their range or jumped."""
        jumped = self._positions.take(t, samples, self._settings, self.watch.constant)
        if self._positions.cut:
            self._pressures.reset()
        return self.watch.unusable(samples, (*jumped, *self._pressures.take(t, samples)))

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
        self.watch.begin()
        self.start = segment.start_ns * 1e-9
        return values

    def learn(self, state: MachineState) -> None:
        """Remember what became of the last samples; ``ratios`` (channels,): innovations of those used over their
        deviations, else NaN."""
        segment, measured, result, _ = state
        innovation, variance = result.innovation.tolist(), result.innovation_variance.tolist()
        used = [not refused for refused in result.rejected.tolist()]
        measured = [value if v == v else nan for value, v in zip(measured, innovation)]     # values between samples
        self.ratios = [v / sqrt(s) if use and m == m and s > 0 else nan
                       for v, s, use, m in zip(innovation, variance, used, measured)]
        if result.finite:
            self._faint.take(measured, segment.values[-1])
            self.watch.take(segment.stamp_ns * 1e-9, measured, innovation, variance, used, self._stddev,
                            self._settings)
            self._innovations.take(self.ratios)

    def judge_state(self, state: MachineState, threshold: float) -> Assessment:
        """Of the state at the end of a segment, by its last samples."""
        found = super().judge_state(state, threshold)
        # after it: what began while settling is STARTING as a whole
        self._recovery.age += state.segment.step_ns * 1e-9 * len(state.segment.values)
        return found

    def _lost(self, state: MachineState, refused: str) -> Assessment | None:
        """Whether a state cannot be, or is contradicted by its samples."""
        result, said = state.result, []
        if not result.finite:
            said = [(reason_of(Fault.NOT_FINITE), Fault.NOT_FINITE)]
        elif all(map(isnan, state.measured)):
            said = [(reason_of(Fault.UNMEASURED), Fault.UNMEASURED)]
        elif lost := self._bounds.broken(result.mean[-1], result.variance):
            said = [lost, (self._said(state.measured).get(Fault.JUMPED, ''), Fault.JUMPED)]
        elif refused and self.watch.contradicted(state.segment.stamp_ns * 1e-9, self.start, self._settings.lost_after):
            said = [(refused, Fault.REJECTED)]
        return Assessment.of(ObserverStatus.LOST, said, broken=True) if said else None

    def _doubtful(self, state: MachineState, refused: str) -> Assessment | None:
        """Whether samples are missing or wrong."""
        found, t = self._said(state.measured), state.segment.stamp_ns * 1e-9
        if refused and self.watch.refused(t, self.start, self._settings.doubt_after):
            found[Fault.REJECTED] = refused
            self._recovery.judge(t, self.start, self.watch)
        if not found:
            return None
        found[Fault.REJECTED] = refused
        return Assessment.of(ObserverStatus.COASTING, ((text, fault) for fault, text in found.items()))

    def _settling(self, state: MachineState, refused: str) -> Assessment | None:
        if self._recovery.settled(state.result.variance):
            return None
        reason, faults = self._recovery.why
        return Assessment(ObserverStatus.STARTING, reason, faults=faults)

    def _disturbed(self, state: MachineState, refused: str) -> Assessment | None:
        """What does not speak against a state, but against its mass."""
        segment, result = state.segment, state.result
        if not (result.outside or result.rare or result.force_error is not None):
            return None     # nearly always
        outside = reason_of(Fault.OUTSIDE_FORCE) + OR_SENSOR if result.outside else ''
        rare = too_rare(result.rare, segment.channels, segment.repeats.tolist(), segment.step_ns)
        return Assessment.of(ObserverStatus.OK, ((outside, Fault.OUTSIDE_FORCE), (rare, Fault.RARE),
                                                 (self._unbalanced(result.force_error), Fault.FORCE_BALANCE),
                                                 (refused, Fault.REJECTED)))

    def _unbalanced(self, error: ModelError | None) -> str:
        """Where in the force balance an ``error`` was found, whether the mass oscillated, and whether there
        is an error of the pressures."""
        if error is None:
            return ''
        found = [f'{self.machine.coordinates[k]} {size * self._forces[k][0]:.2g} {self._forces[k][1]}'
                 for k, size in zip(self.machine.weighed, error.balance.tolist()) if size > 0.0]
        balance = f'{reason_of(Fault.FORCE_BALANCE, *found)} (1 sigma)' if found else ''
        swings = OSCILLATES.format(error.frequency) if found and error.frequency else ''
        return '; '.join(filter(None, [balance, swings, FOLLOWED * (error.pressures > 0.0)]))

    def _said(self, measured: list[float]) -> dict[Fault, str]:
        """What is wrong with last samples that are missing or cannot be used, and of which channels."""
        if not (self._refused or any(self.watch.constant) or any(map(isnan, measured))):
            return {}       # nearly always
        channels = self.machine.channels
        constant = [name for name, found in zip(channels, self.watch.constant) if found]
        unusable = {fault: [channels[i] for i in places] for fault, places in self._refused.items()}
        missing = [c for c, value in zip(channels, measured)
                   if value != value and not any(c in names for names in (constant, *unusable.values()))]
        found = {Fault.MISSING: missing, Fault.STUCK: constant, **unusable}
        return {fault: reason_of(fault, *names) for fault, names in found.items() if names}


def _forces(machine: Machine) -> list[tuple[float, str]]:
    """By coordinate what 1 MPa is on the largest piston that it moves, kN, or on its drive, and the unit."""
    found = [(0.0, 'kN')] * len(machine.coordinates)
    cylinders = [(1e3 * pi * item.bore.value ** 2 / 4, 'kN') for item in machine.description.cylinders.values()]
    drives = [(item.largest / SPAN, item.effort) for item in machine.description.drives.values()]
    for own, moves in zip([*cylinders, *drives], moved_actuators(machine)):
        found = [max(before, own) if some else before for before, some in zip(found, moves)]
    return found


class Recovery:
    """Of one observer: ``age``, s, and ``why`` of its last start, as reason and faults."""

    def __init__(self, machine: Machine, observer: HydraulicObserver) -> None:
        self._channels, self._observer, names = machine.channels, observer, observer.names
        self._shown = [names.index(f'velocity/{c}') for c in machine.coordinates if f'position/{c}' in machine.channels]
        self.reset()

    def reset(self) -> None:
        """Nothing has started."""
        self._restarts: deque[float] = deque(maxlen=PATIENCE)       # times, s, of those by refused samples
        self.begin()

    def begin(self, why: str = '', faults: Fault = Fault.SETTLING) -> None:
        """A state starts, or some of its coordinates."""
        self.age, self.why = 0.0, (why or reason_of(Fault.SETTLING), faults)
        self._settled, self._looked = False, (0.0, inf)
        self.due: list[int] = []        # places of channels by which coordinates are to start again

    def judge(self, t: float, start: float, watch: ChannelMonitor) -> None:
        """Look for sensors of positions, each alone with its coordinate, all of whose samples have been refused for so
        long, since ``start``, s, that the estimate is what is wrong; not again and again: then it is the sensor."""
        longest = self._observer.settings.lost_after
        if len(self._restarts) == PATIENCE and t - self._restarts[0] < PATIENCE * LASTING * longest:
            return
        refused = watch.refused(t, start, longest)
        self.due = [i for i, name in enumerate(self._channels)
                    if name in refused and name.startswith('position/') and self._alone(i)]

    def _alone(self, place: int) -> bool:
        """Whether the sensor of a position is the only one that sees its coordinate."""
        measured, names = self._observer.model.measured, self._observer.names
        index = measured[place].index
        if index is None:
            return False
        seen = [names.index(f'{kind}/{names[index].partition("/")[2]}')
                for kind in ('position', 'velocity', 'acceleration')]
        return not any(any(item.H[:, i].nnz() for i in seen) if item.index is None else item.index in seen
                       for k, item in enumerate(measured) if k != place)

    def start_again(self, t: float, back: list[int], sample: np.ndarray) -> list[int]:
        """Places of the channels by whose ``sample`` (channels,) coordinates have started again: those ``due``, and
        those that are ``back``. Raises PositionProblemError where the machine cannot be so."""
        places = [i for i in sorted({*back, *self.due}) if sample[i] == sample[i]]
        if places and self.due:
            self._restarts.append(t)
        self.due = []
        if places:
            self._observer.start_again({i: float(sample[i]) for i in places})
            self.begin('jumped or rejected, alone with its coordinate, which starts again by it: '
                       f'{", ".join(self._channels[i] for i in places)}', STARTS)
        return places

    def settled(self, variance: np.ndarray) -> bool:
        """Whether a state with variances (nx,), SI, is known as well as it will be: after ``settle_time``, and once the
        speeds that sensors of positions show are as well known as at a start, or no better any more."""
        settings = self._observer.settings
        if not self._settled and self.age >= settings.settle_time:
            worst, (since, before) = sqrt(max(variance[self._shown].tolist(), default=0.0)), self._looked
            later = self.age - since >= settings.settle_time
            self._settled = worst <= settings.start_velocity or later and worst > FALLS * before
            self._looked = (self.age, worst) if later else (since, before)
        return self._settled and self.age >= settings.settle_time
