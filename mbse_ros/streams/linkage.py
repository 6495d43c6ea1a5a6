# SPDX-License-Identifier: Apache-2.0
"""``LinkageStage``: stamped samples of a mechanism's sensors in, estimates on a grid out, by any filter.

The grid is at the first sample plus multiples of the step; a sample counts at the nearest instant. A new instant is
estimated at once with what is there; a sample that comes later, but within the window, corrects it: the filter goes
back and runs again, so that the order of arrival does not matter. Nor does it where the state starts: a sensor of
positions that joins soon starts it again, and coordinates start again at an instant of which all samples are there.
Time is that of the stamps: without samples nothing moves.

Its steps are those of a machine in ``stages.ObserverStage``: align (``TimeGrid``, ``History``), judge the samples
(``MechanismMonitor.unusable``), start (``start``), predict and correct (``propagate``); then ``Stage._follow``: learn,
judge the state, publish a ``LinkageEstimate``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import nan, sqrt
from typing import NamedTuple

import numpy as np

from ..dynamics.model import Model
from ..errors import SampleError, SettingError
from ..filters.linkage_settings import LinkageSettings
from ..filters.observer import LinkageObserver
from ..monitor.channels import DroppedSamples
from ..monitor.faults import Fault, reason_of
from ..monitor.mechanism import MechanismMonitor, MechanismState
from ..monitor.state import Assessment
from .active_filter import ActiveFilter
from .history import NONE, HeldInputs, History, HistoryEntry, StampStatus, TimeGrid, propagate, sampled
from .records import Health, LinkageEstimate, Measured, ObserverStatus, Sampled
from .stage import Stage
from .start import begin_state, moved_to, restart_pose, restarted_state, start_stddev

__all__ = ['LinkageEstimate', 'LinkageSettings', 'LinkageStage', 'Measured']

INPUT = 'input/'
DROPPED = {Fault.STUCK: 'constant sensor', Fault.FAR: 'beyond the limits of its joint',
           Fault.SATURATED: reason_of(Fault.SATURATED)}
STARTED = 'of an instant before, or at, which the filter started (again)'      # that a start has settled; not late
MOST_BRIDGED = 20_000   # instants without a sample, of a second or so to compute: one wrong stamp must not cost hours
SHORTEST, LONGEST = 1e-6, 1e3       # s, of a step


class FilteredInstant(NamedTuple):
    """An instant, the parts of the filter's ``output``, and its row ``[o, u, t]``."""

    entry: HistoryEntry
    output: dict[str, np.ndarray]
    row: np.ndarray


class LinkageStage(Stage[FilteredInstant, LinkageEstimate]):
    """Filter of ``settings`` on a model with ``sensors`` (default: all of its file), step in seconds.

    ``channels`` (s,) and ``inputs`` (k,), as ``input/<name>``, are what ``add`` takes; ``observer``: the filter of
    these settings, where it has been made, with its ``states``. Raises SettingError.
    """

    _history: History

    def __init__(self, model: Model, settings: LinkageSettings = LinkageSettings(), sensors: Sequence[str] = (),
                 step: float = 0.005, backend: str = 'auto', observer: LinkageObserver | None = None) -> None:
        if not SHORTEST <= step <= LONGEST:
            raise SettingError('step', step, f'from {SHORTEST:g} to {LONGEST:g} s')
        self.model, self.step_ns = model, round(step * 1e9)
        self.sensors = tuple(sensors) or tuple(model.description.mechanical_sensors)
        if not self.sensors:
            raise SettingError('sensors', '', 'a mechanism with sensors')
        self._active = ActiveFilter(model, self.sensors, self.step_ns * 1e-9, settings, backend,
                                    observer)
        self.channels = self._observer.channels
        self.inputs = tuple(INPUT + name for name in model.inputs)
        self._dropped = DroppedSamples(self.channels, self.inputs)
        self._places = {name: i for i, name in enumerate(self.channels)}
        self._input_places = {name: i for i, name in enumerate(self.inputs)}
        self._monitor = MechanismMonitor(self._observer.problem)
        self._grid = TimeGrid(self.step_ns)
        self._last_q = model.start.q
        moved_to(model, {place: model.start.q[place] + 1e-3 for place in model.z})      # its first call takes longer
        self.reset()

    # State and tuning

    def reset(self) -> None:
        """Forget state and samples; the next sample starts again."""
        self._running, self._last_qd = False, self.model.start.qd       # whether there is a history; no speed is known
        self._inputs = HeldInputs(len(self.inputs))
        self._health, self._restart = Health(), True
        self._broken: Assessment | None = None
        self._judged: Assessment | None = None      # what is said of the newest instant, until that is done
        self._forget()

    def _forget(self) -> None:
        """What the filter made of the samples."""
        if self._monitor.raised > 1.0:
            self._active.raise_noise(1.0)
        self._monitor.reset()
        self._active.watch.reset()

    @property
    def _observer(self) -> LinkageObserver:
        return self._active.running.observer

    @property
    def _window(self) -> int:
        """Instants, the newest one and those before, that samples may still change."""
        return round(self.settings.delay_window / self._observer.dt)

    @property
    def settings(self) -> LinkageSettings:
        """Those in force."""
        return self._active.settings

    @property
    def requested(self) -> LinkageSettings | None:
        """Those whose filter is being made."""
        return self._active.requested

    @property
    def names(self) -> tuple[str, ...]:
        """Entries of the mean."""
        return self._observer.names

    @property
    def estimator(self) -> str:
        """The filter that runs."""
        return self._observer.filter.name

    @property
    def stddev(self) -> np.ndarray:
        """Stated deviations of the samples of its ``channels`` (s,)."""
        return self._active.running.tuned.stddev

    @property
    def dropped(self) -> dict[str, int]:
        """Samples not used, by reason."""
        return dict(self._dropped.dropped)

    def refusals(self) -> list[SampleError]:
        """Samples dropped since the last call, with the reason."""
        return self._dropped.drain()

    def prepare(self, *estimators: str) -> None:
        """Compile filters that are to be switched to without delay; raises SettingError."""
        self._active.prepare(*estimators)

    def configure(self, settings: LinkageSettings, wait: bool = True) -> None:
        """Take other settings from the next sample on; the state stays, also in another filter. Raises SettingError and
        changes nothing then. Without ``wait`` a filter that is not compiled is made in the background: ``requested``
        holds the settings until ``activate``, and those before go on."""
        self._active.configure(settings, wait)

    def activate(self) -> bool:
        """Change to the settings that were requested, if their filter is ready. Raises what was wrong with them,
        and forgets the request then."""
        return self._active.activate()

    def health(self) -> Health:
        """Health now; costs a millisecond or two. The estimates carry the health computed last."""
        self._health = self._active.watch.assess(self.stddev)
        return self._health

    # Samples

    def add(self, stamp_ns: int, samples: Mapping[str, float]) -> tuple[LinkageEstimate, ...]:
        """Take samples of one instant by channel, SI, NaN where missing; the estimates of new instants, or of the
        newest one, revised. What cannot be used is dropped, counted and reported by ``refusals``."""
        valid = self._dropped.valid(stamp_ns, samples)
        values = self._timely(stamp_ns, valid) if valid else valid
        if not values:
            return ()
        index, before = self._grid.index(stamp_ns), self._history.last.index
        done = self._act() if index > before else ()
        starts = self._starts(index, values)
        changed = self._place(index, values)
        if changed > self._history.last.index:
            return done
        if starts:
            self._begin(index)
            return *done, *self._advance(index, index - 1)[-1:]
        return *done, *self._advance(min(changed, before + 1), before, index)

    def _timely(self, stamp_ns: int, values: Mapping[str, float]) -> Mapping[str, float]:
        """Those samples that lie in the grid's reach; starts it."""
        measured = any(name in self._places and value == value for name, value in values.items())
        if not self._running:
            if measured:
                self._start(stamp_ns)
                return values
            for name in values.keys() & self._input_places.keys():
                self._inputs.start[self._input_places[name]] = values[name]
            return {}
        reach = min(round(self.settings.restart_after * 1e9), MOST_BRIDGED * self.step_ns)
        oldest = self._history.base.index
        status = self._grid.classify(stamp_ns, oldest, self._history.last.index, reach)
        if status is StampStatus.USE:
            return values
        if status is StampStatus.RESTART and measured:
            self.reset()
            self._start(stamp_ns)
            return values
        # An input acts on the step after its instant, so the oldest one of the window still takes it.
        acting = status is StampStatus.LATE and self._grid.index(stamp_ns) == oldest
        timely = {name: value for name, value in values.items() if acting and name in self._input_places}
        late = self._history.last.index - self._grid.index(stamp_ns) >= self._window
        reason = STARTED if status is StampStatus.LATE and not late else status.value
        for name in values:
            if name not in timely:
                self._dropped.add(reason, name, stamp_ns, values[name], f'a stamp after {self._grid.stamp(oldest)} ns')
        return timely

    def _start(self, stamp_ns: int) -> None:
        """Begin a grid; the state follows with the samples."""
        base = HistoryEntry(0, np.full(len(self.channels), np.nan), self._active.running, {}, NONE, NONE,
                            self._inputs.start)
        self._history, self._running = History(len(self.channels), len(self.inputs), base), True
        self._first, self._shown = (self._last_q, self._last_qd, self._broken), set[int]()
        self._broken = None
        self._grid.start(stamp_ns)

    def _starts(self, index: int, values: Mapping[str, float]) -> bool:
        """Whether the state starts with samples of an instant: with the first ones, and again where the first one of a
        sensor of positions joins them soon; else the order of the topics would decide which pose is believed."""
        fresh = self._seen(values) - self._shown
        self._shown |= fresh
        if not self._history.base.state.size:
            return True
        if not fresh or self.settings.start_at == 'file' or index * self._observer.dt > self.settings.lost_after:
            return False
        self._forget()
        return True

    def _seen(self, values: Mapping[str, float]) -> set[int]:
        """Places of the channels of positions among some samples."""
        return {self._places[name] for name, value in values.items()
                if value == value and name in self._places and self._monitor.observed.places[self._places[name]]}

    def _begin(self, index: int) -> None:
        """Start the state before an instant, where the last samples of positions say, the rest as it was before the
        grid began; what made that impossible to keep is said."""
        (q, qd, broken), running = self._first, self._history[index].running
        state = begin_state(running.observer.filter, self._monitor, self._history.newest(index), running.tuned.stddev,
                            (q, qd), (index - 1) * self._observer.dt, self.settings, broken)
        self._history.begin(index - 1, state, running)

    def _place(self, index: int, values: Mapping[str, float]) -> int:
        """Put samples into their instant; the first one that they change, or one that is not there yet."""
        changed, measured = index + 1, {}
        for name, value in values.items():
            place = self._input_places.get(name)
            if place is None:
                measured[self._places[name]] = value
            else:
                self._inputs.add(index, place, value)
        if measured:
            self._history.extend(index, self._active.running)
            changed = index
        unusable = self._monitor.unusable(measured, self._active.running.tuned.deviations)
        for place, value in measured.items():
            reason = next((why for fault, why in DROPPED.items() if place in unusable.get(fault, ())), '')
            if reason:
                self._dropped.dropped[reason] += 1
            else:
                self._history[index].o[place] = value
        first = self._inputs.placed(self._history)
        return changed if first is None else min(changed, first)

    # Estimates

    def _advance(self, first: int, before: int, joined: int = 0) -> tuple[LinkageEstimate, ...]:
        """Run the filter from an instant on; estimates of those after ``before``, or of the newest one. Samples have
        ``joined`` an instant up to ``before``; 0: none."""
        entries = self._history.since(first)
        rows = self._history.rows(entries, self._observer.dt)
        if not propagate(self._history[entries[0].index - 1], entries, rows, self.settings):
            assessment = Assessment(ObserverStatus.LOST, reason_of(Fault.NOT_FINITE), broken=True,
                                    faults=Fault.NOT_FINITE)
            estimate = self._publish(FilteredInstant(entries[-1], {}, rows[-1]), assessment)
            self._lose(assessment)
            return (estimate,)
        newest = entries[-1].index
        found = {entry.index: FilteredInstant(entry, entry.running.observer.outputs(entry.output), row)
                 for entry, row in zip(entries, rows) if entry.index > before or entry.index in (joined, newest)}
        if joined <= before and joined in found:
            self._watch(found[joined], found[joined].entry.o.tolist())
        instants = [item for k, item in found.items() if k > before or k == newest]
        last = instants[-1:] if len(instants) * self._observer.dt > self.settings.lost_after else instants
        estimates, assessment = self._follow([item for item in instants if item.entry.index > before], last)
        if assessment.broken:
            return estimates
        self._history.trim(self._window)
        self._judged = assessment
        return estimates

    def _act(self) -> tuple[LinkageEstimate, ...]:
        """Do what is said of the newest instant before the next one: not sooner, as each topic brings a part of its
        samples. The newest estimate, where it is another by that."""
        said, self._judged = self._judged, None
        if said and said.again:
            if self._monitor.raise_noise(said.by):
                self._active.raise_noise(self._monitor.raised)
            at = self._start_again(said)
            if at < self._history.last.index:
                return self._advance(at + 1, self._history.last.index)
        elif said and self._monitor.lower_noise(self._history.last.index * self._observer.dt):
            self._active.raise_noise(self._monitor.raised)
        return ()

    def _learn(self, state: FilteredInstant) -> None:
        """Also the health of the filter that runs now."""
        entry, out, row = state
        innovation, variance, used = self._watch(state, entry.o.tolist())
        if entry.running.observer is self._observer:
            self._active.watch.take([v / sqrt(max(s, 1e-300)) if use else nan
                                     for v, s, use in zip(innovation, variance, used)])
            self._active.watch.see(out['q'], out['qd'], row)

    def _watch(self, state: FilteredInstant, o: list[float]) -> tuple[list[float], list[float], list[bool]]:
        """What the filter made of samples of an instant, NaN where there is none: innovations, their variances, and
        whether they were used."""
        entry, out, _ = state
        innovation, variance = out['innovation'].tolist(), out['innovation_variance'].tolist()
        used = [item > 0.5 for item in out['used'].tolist()]
        self._monitor.take(entry.index * self._observer.dt, out['q'], out['qd'], o, innovation, variance, used,
                           entry.running.tuned.deviations, self.settings)
        return innovation, variance, used

    def _judge(self, state: FilteredInstant) -> Assessment:
        entry, out, _ = state
        observer = entry.running.observer
        # of a sensor whose samples come late the newest instant has none yet
        o = self._history.newest(entry.index) if any(self._monitor.watch.offset) else entry.o
        return self._monitor.assess(MechanismState(
            entry.index * self._observer.dt, observer.names, out['q'], out['qd'], observer.covariance(entry.state),
            o.tolist()), entry.running.tuned.threshold, self.settings)

    def _publish(self, state: FilteredInstant, assessment: Assessment) -> LinkageEstimate:
        """The record; without values where nothing can be kept."""
        entry, out, _ = state
        observer = entry.running.observer
        if assessment.broken:
            entry.state = np.full(observer.filter.state.size, np.nan)
            entry.output = np.full(observer.filter.outputs.size, np.nan)
            out = observer.outputs(entry.output)
        P = self._monitor.stated(observer.names, observer.covariance(entry.state), assessment, self.settings)
        restart, self._restart = self._restart, False
        self._last_q, self._last_qd = out['q'], out['qd']
        at = sampled(self._history, entry)
        force_stddev = np.array([nan if i is None else sqrt(max(P[i, i], 0.0)) for i in observer.filter.force_places])
        estimate = LinkageEstimate(
            self._grid.stamp(entry.index), entry.index, entry.revision, restart, observer.filter.name, observer.names,
            out['x'], P, out['q'], out['qd'], out['qdd'], observer.filter.forces, out['force'], force_stddev,
            observer.parameters(out['x'], P.diagonal()), at.innovation, at.innovation_stddev, at.measured,
            assessment.status, assessment.reason, self._health, self._dropped.dropped.total(), assessment.faults)
        if not assessment.broken:
            return estimate
        none = np.full(len(self.channels), np.nan)
        return replace(estimate, revision=0, parameters={}, innovation=none, innovation_stddev=none,
                       measured=(Measured.MISSING,) * len(none))

    def _lose(self, assessment: Assessment) -> None:
        self.reset()
        self._broken, self._last_q = assessment, self.model.start.q

    def sampled(self, index: int) -> Sampled | None:
        """What is known by now of the samples of an instant, ``sequence`` of its estimate; None where it is not kept
        any longer."""
        if not self._running or not self._history.base.index <= index <= self._history.last.index:
            return None
        entry = self._history[index]
        return sampled(self._history, entry) if entry.output.size else None

    def _start_again(self, assessment: Assessment) -> int:
        """Coordinates start at what the channels say that were refused and alone see them, with an unknown speed: at
        the instant, which is returned, up to which all of these have sent."""
        settings, model = self.settings, self.model
        entry = self._history[min(self._history.latest(place) for place in assessment.by)]
        observer, stddev, t = entry.running.observer, entry.running.tuned.stddev, entry.index * self._observer.dt
        out, names = observer.outputs(entry.output), [model.independent[k] for k in assessment.again]
        q, qd = restart_pose(self._monitor, assessment, self._history.newest(entry.index), stddev,
                             (out['q'], out['qd']), t, settings.lost_after)
        start = start_stddev(observer.names, settings, names)
        state = restarted_state(observer.filter, entry.state, q, qd, names, start, t, observer.tangents,
                                self._monitor.in_row < 2)
        self._history.begin(entry.index, state, entry.running)
        self._last_q, self._last_qd = q, qd
        self._monitor.bounds.know(t, q, qd)
        self._monitor.begin(t, settings.lost_after, 'settling: ' + assessment.reason, assessment.faults)
        return entry.index
