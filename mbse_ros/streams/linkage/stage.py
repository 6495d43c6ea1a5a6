# SPDX-License-Identifier: Apache-2.0
"""``LinkageStage``: stamped samples of a mechanism's sensors in, estimates on a grid out, by any filter.

The grid is at the first sample plus multiples of the step; a sample counts at the nearest instant. A new instant is
estimated at once with what is there; a sample that comes later, but within the window, corrects it: the filter goes
back and runs again, so that the order of arrival does not matter. Time is that of the stamps: without samples nothing
moves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isinf, isnan, nan, sqrt

import numpy as np

from ...dynamics.model import Model
from ...errors import DivergenceError, SampleError, SettingError
from ..records import Health, LinkageEstimate, Measured, ObserverStatus, Sampled
from .channels import Channels, judged
from .entries import start_stddev, started, transferred
from .grid import NONE, Cell, Cells, Clock, Verdict, Work
from .settings import LinkageSettings
from .start import encoded, moved_to
from .workshop import Workshop

INPUT = 'input/'
FIRST, FASTER = 2.0, 4.0
MOST_BRIDGED = 20_000   # instants without a sample, of a second or so to compute: one wrong stamp must not cost hours
WIDEST = 64.0           # by how much the start's uncertainty grows at most while nothing is accepted


class LinkageStage:
    """Filter of ``settings`` on a model with ``sensors`` (default: all of its file), step in seconds.

    ``channels`` (s,) and ``inputs`` (k,), as ``input/<name>``, are what ``add`` takes. Raises SettingError.
    """

    _cells: Cells

    def __init__(self, model: Model, settings: LinkageSettings = LinkageSettings(), sensors: Sequence[str] = (),
                 step: float = 0.005, backend: str = 'auto') -> None:
        self.model, self.step_ns = model, round(step * 1e9)
        self.sensors = tuple(sensors) or tuple(model.description.mechanical_sensors)
        if not self.sensors:
            raise SettingError('sensors', '', 'a mechanism with sensors')
        self._workshop = Workshop(model, self.sensors, self.step_ns * 1e-9, backend)
        self._dropped: Counter[str] = Counter()
        self._refusals: list[SampleError] = []
        self.settings = settings
        self.ordered: LinkageSettings | None = None
        self._engine, self._watch = self._workshop.made(settings)
        self._tuned = self._engine.tuned(settings)
        self._work = Work(self._engine, self._tuned)
        self.channels = self._engine.channels
        self.inputs = tuple(INPUT + name for name in model.inputs)
        self._places = {name: i for i, name in enumerate(self.channels)}
        self._input_places = {name: i for i, name in enumerate(self.inputs)}
        self._sensors = Channels(self.channels)
        self._clock = Clock(self.step_ns)
        self._last_q, self._last_qd = model.start.q, model.start.qd
        moved_to(model, {place: model.start.q[place] + 1e-3 for place in model.z})      # its first call takes longer
        self.reset()

    # State and tuning

    def reset(self) -> None:
        """Forget state and samples; the next sample starts again."""
        self._running = False       # whether there are cells
        self._held = np.zeros(len(self.inputs))
        self._waiting: list[tuple[int, int, float]] = []        # instant, place, value of inputs
        self._health, self._restart, self._wide = Health(), True, 0.0
        self._sensors.reset()
        self._watch.reset()

    @property
    def names(self) -> tuple[str, ...]:
        """Entries of the mean."""
        return self._engine.names

    @property
    def estimator(self) -> str:
        """The filter at work."""
        return self._engine.filter.name

    @property
    def dropped(self) -> dict[str, int]:
        """Samples not used, by reason."""
        return dict(self._dropped)

    def refusals(self) -> list[SampleError]:
        """Samples dropped since the last call, with the reason."""
        refusals, self._refusals = self._refusals, []
        return refusals

    def prepare(self, *estimators: str) -> None:
        """Compile filters that are to be switched to without delay; raises SettingError."""
        for estimator in estimators:
            self._workshop.made(replace(self.settings, estimator=estimator, options='', noises=''))

    def configure(self, settings: LinkageSettings, wait: bool = True) -> None:
        """Take other settings from the next sample on; the state stays, also in another filter. Raises SettingError and
        changes nothing then. Without ``wait`` a filter that is not compiled is made in the background: ``ordered``
        holds the settings until ``take_up``, and those before go on."""
        if not wait and not self._workshop.is_ready(settings):
            self._workshop.order(settings)
            self.ordered = settings
            return
        engine, watch = self._workshop.made(settings)
        tuned = engine.tuned(settings)
        if engine is not self._engine:
            watch.reset()
        self.settings, self.ordered, self._engine, self._watch, self._tuned = settings, None, engine, watch, tuned
        self._work = Work(engine, tuned)

    def take_up(self) -> bool:
        """Change to the settings that were ordered, if their filter is ready. Raises what was wrong with them; the
        order is forgotten then."""
        settings = self.ordered
        if settings is None or not self._workshop.is_ready(settings):
            return False
        self.ordered = None
        self.configure(settings)
        return True

    def health(self) -> Health:
        """Health now; costs a millisecond or two. The estimates carry the health computed last."""
        self._health = self._watch.health(self._tuned.stddev)
        return self._health

    # Samples

    def add(self, stamp_ns: int, samples: Mapping[str, float]) -> tuple[LinkageEstimate, ...]:
        """Take samples of one instant by channel, SI, NaN where missing; the estimates of new instants, or of the
        newest one, revised. What cannot be used is dropped, counted and reported by ``refusals``."""
        usable = {name: float(value) for name, value in samples.items() if self._usable(stamp_ns, name, float(value))}
        values = self._timely(stamp_ns, usable) if usable else usable
        if not values:
            return ()
        index, before = self._clock.index(stamp_ns), self._cells.last.index
        changed = self._place(index, values)
        if changed > self._cells.last.index:
            return ()
        return self._advance(min(changed, before + 1), before, values if index == before else {})

    def _usable(self, stamp_ns: int, name: str, value: float) -> bool:
        """Whether a sample is of this stage and finite; counted where not."""
        if name not in self._places and name not in self._input_places:
            self._refuse('unknown channel', name, stamp_ns, value, 'one of ' + ', '.join(self.channels + self.inputs))
        elif isinf(value) or isnan(value) and name in self._input_places:
            self._refuse('not finite', name, stamp_ns, value, 'a finite number')
        else:
            return True
        return False

    def _refuse(self, reason: str, name: str, stamp_ns: int, value: float, expected: str) -> None:
        self._dropped[reason] += 1
        self._refusals.append(SampleError(name, stamp_ns, value, expected))

    def _timely(self, stamp_ns: int, values: Mapping[str, float]) -> Mapping[str, float]:
        """Those samples that lie in the grid's reach; starts it."""
        measured = any(name in self._places and value == value for name, value in values.items())
        if not self._running:
            if measured:
                self._start(stamp_ns, values)
                return values
            for name in values.keys() & self._input_places.keys():
                self._held[self._input_places[name]] = values[name]
            return {}
        reach = min(round(self.settings.restart_after * 1e9), MOST_BRIDGED * self.step_ns)
        oldest = self._cells.base.index
        verdict = self._clock.judge(stamp_ns, oldest, self._cells.last.index, reach)
        if verdict is Verdict.USE:
            return values
        if verdict is Verdict.RESTART and measured:
            self.reset()
            self._start(stamp_ns, values)
            return values
        # An input acts on the step after its instant, so the oldest one of the window still takes it.
        acting = verdict is Verdict.LATE and self._clock.index(stamp_ns) == oldest
        timely = {name: value for name, value in values.items() if acting and name in self._input_places}
        for name in values.keys() - timely.keys():
            self._refuse(verdict.value, name, stamp_ns, values[name], f'a stamp after {self._clock.stamp(oldest)} ns')
        return timely

    def _start(self, stamp_ns: int, values: Mapping[str, float]) -> None:
        o = np.array([values.get(name, np.nan) for name in self.channels])
        found = moved_to(self.model, encoded(self.model, self.channels, o))
        if found is not None and self.settings.start_at == 'sensors':
            self._last_q = found
        state = started(self._engine.filter, self._last_q, self._last_qd, self.settings)
        base = Cell(0, np.full(len(self.channels), np.nan), self._work, {}, state, NONE, self._held)
        self._cells, self._running, self._started = Cells(len(self.channels), len(self.inputs), base), True, 0.0
        self._clock.start(stamp_ns)

    def _place(self, index: int, values: Mapping[str, float]) -> int:
        """Put samples into their instant; the first one that they change, or one that is not there yet."""
        changed, measured = index + 1, {}
        for name, value in values.items():
            place = self._input_places.get(name)
            if place is None:
                measured[self._places[name]] = value
            else:       # in force from its instant on: over the step after it
                self._waiting.append((index + 1, place, value))
        if measured:
            self._cells.extend(index, self._work)
            changed = index
        for place, value in measured.items():
            if self._sensors.accepts(place, value):
                self._cells[index].o[place] = value
            else:
                self._dropped['constant sensor'] += 1
        return min(changed, self._place_inputs()) if self._waiting else changed

    def _place_inputs(self) -> int:
        """Put the inputs into those of their instants that are there; the first one that it changes, or the next."""
        first = after = self._cells.last.index + 1
        ahead = []
        for item in self._waiting:
            index, place, value = item
            if index < after:
                index = max(index, self._cells.base.index + 1)
                self._cells[index].u[place] = value
                first = min(first, index)
            else:
                ahead.append(item)
        self._waiting = ahead
        return first

    # Estimates

    def _advance(self, first: int, before: int, joined: Mapping[str, float]) -> tuple[LinkageEstimate, ...]:
        """Run the filter from an instant on; estimates of those after ``before``, or of the newest one, which samples
        ``joined``."""
        cells = self._cells.since(first)
        rows = self._cells.rows(cells, self._engine.dt)
        if not self._run(cells, rows):
            return self._diverged(cells[-1])
        new = [(cell, row) for cell, row in zip(cells, rows) if cell.index > before]
        for cell, row in new:
            self._noted(cell, row)
        if joined:
            self._watched(cells[-1], [value if name in joined else nan
                                      for name, value in zip(self.channels, cells[-1].o.tolist())])
        changed = [cell for cell, _ in new] or cells[-1:]
        if len(changed) * self._engine.dt > self.settings.lost_after:
            changed = changed[-1:]
        estimates = tuple(self._estimate(cell) for cell in changed)
        self._cells.trim(round(self.settings.delay_window / self._engine.dt))
        if estimates[-1].status is ObserverStatus.LOST:
            self._widen(estimates[-1])
        return estimates

    def _run(self, cells: Sequence[Cell], rows: np.ndarray) -> bool:
        """Give cells their states, each by the filter of its time; False where they are not finite."""
        before = self._cells[cells[0].index - 1]
        start = 0
        while start < len(cells):
            work = cells[start].work
            stop = start + 1
            while stop < len(cells) and cells[stop].work is work:
                stop += 1
            try:
                states, outputs = work.engine.run(self._handed(before, work), rows[start:stop], work.tuned)
            except DivergenceError:
                return False
            if not (np.isfinite(states).all() and np.isfinite(outputs).all()):
                return False
            for cell, state, output in zip(cells[start:stop], states, outputs):
                cell.state, cell.output, cell.revision = state, output, cell.revision + 1
            before, start = cells[stop - 1], stop
        return True

    def _handed(self, cell: Cell, work: Work) -> np.ndarray:
        """State of an instant for the filter of the next one."""
        old, new = cell.work.engine, work.engine
        if old is new:
            return cell.state
        out = old.filter.outputs.arrays(cell.output)
        return transferred(old.filter, cell.state, out, new.filter, cell.index * new.dt, self.settings, new.tangents)

    def _noted(self, cell: Cell, row: np.ndarray) -> None:
        """Health of the channels at an instant that is new."""
        self._watched(cell, cell.o.tolist())
        engine = cell.work.engine
        out = engine.outputs(cell.output)
        used = [item > 0.5 for item in out['used'].tolist()]
        innovation, spread = out['innovation'].tolist(), out['spread'].tolist()
        if engine is self._engine:
            ratio = [v / sqrt(max(s, 1e-300)) if use else nan for v, s, use in zip(innovation, spread, used)]
            self._watch.take(ratio, out['q'], out['qd'], row)

    def _watched(self, cell: Cell, o: list[float]) -> None:
        """What the filter made of samples of an instant, NaN where there is none."""
        out, tuned = cell.work.engine.outputs(cell.output), cell.work.tuned
        self._sensors.take(cell.index * self._engine.dt, o, out['innovation'].tolist(), out['spread'].tolist(),
                           [item > 0.5 for item in out['used'].tolist()], tuned.stddev.tolist(), self.settings)

    def _estimate(self, cell: Cell) -> LinkageEstimate:
        engine, tuned, t = cell.work.engine, cell.work.tuned, cell.index * self._engine.dt
        out, P = engine.outputs(cell.output), engine.covariance(cell.state)
        status, reason = judged(t, self._started, engine.names, P, self._sensors, tuned.threshold, self.settings)
        restart, self._restart = self._restart, False
        self._last_q, self._last_qd = out['q'], out['qd']
        rejected = self._sensors.rejected(tuned.threshold)
        if not rejected:
            self._wide = 0.0
        elif self._wide:
            status, reason = ObserverStatus.LOST, f'rejected: {"; ".join(rejected)}'
        at = self._sampled(cell)
        force_stddev = np.array([nan if i is None else sqrt(max(P[i, i], 0.0)) for i in engine.force_places])
        return LinkageEstimate(
            self._clock.stamp(cell.index), cell.index, cell.revision, restart, engine.filter.name, engine.names,
            out['x'], P, out['q'], out['qd'], out['qdd'], engine.filter.forces, out['force'], force_stddev,
            engine.parameters(out['x'], P.diagonal(), tuned), at.innovation, at.innovation_stddev, at.measured, status,
            reason, self._health, self._dropped.total())

    def sampled(self, index: int) -> Sampled | None:
        """What is known by now of the samples of an instant, ``sequence`` of its estimate; None where it is not kept
        any longer."""
        if not self._running or not self._cells.base.index <= index <= self._cells.last.index:
            return None
        cell = self._cells[index]
        return self._sampled(cell) if cell.output.size else None

    def _sampled(self, cell: Cell) -> Sampled:
        out = cell.work.engine.outputs(cell.output)
        measured = tuple(Measured.MISSING if o != o else Measured.USED if used > 0.5 else Measured.REJECTED
                         for o, used in zip(cell.o.tolist(), out['used'].tolist()))
        after = self._cells[cell.index + 1].held if cell.index < self._cells.last.index else cell.held
        return Sampled(cell.o, measured, np.where(np.isnan(cell.o), np.nan, out['innovation']),
                       np.sqrt(np.fmax(out['spread'], 0.0)), (cell.held + after) / 2)

    def _widen(self, estimate: LinkageEstimate) -> None:
        """Where most sensors were refused: the uncertainty of a start, wider each time, to take them up again."""
        t = estimate.sequence * self._engine.dt
        if not self._sensors.contradicted(t, self._started, self.settings.lost_after):
            return
        cell = self._cells.last
        engine = cell.work.engine
        places = encoded(self.model, self.channels, cell.o)
        q = moved_to(self.model, places) if places else None
        self._wide = min(FASTER * self._wide, WIDEST) or FIRST
        wide = self._wide * start_stddev(engine.names, self.settings)
        state = engine.filter.start(estimate.q if q is None else q, estimate.qd, wide)
        self._cells = Cells(len(self.channels), len(self.inputs), replace(cell, state=state))     # settled by this
        self._started = t

    def _diverged(self, cell: Cell) -> tuple[LinkageEstimate, ...]:
        """An estimate that says so; the next sample starts again."""
        of, none = cell.work.engine.filter, np.full(len(self.channels), np.nan)
        cell.state, cell.output = np.full(of.state.size, np.nan), np.full(of.outputs.size, np.nan)
        estimate = replace(
            self._estimate(cell), revision=0, parameters={}, innovation=none, innovation_stddev=none,
            measured=(Measured.MISSING,) * len(none), status=ObserverStatus.LOST,
            reason='the state left the finite numbers')
        self.reset()
        self._last_q, self._last_qd = self.model.start.q, self.model.start.qd
        return (estimate,)
