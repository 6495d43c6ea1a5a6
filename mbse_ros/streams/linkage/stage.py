# SPDX-License-Identifier: Apache-2.0
"""``LinkageStage``: stamped samples of a mechanism's sensors in, estimates on a grid out, by any filter.

The grid stands at the first sample plus multiples of the step; a sample counts at the nearest instant. A new instant is
estimated at once with what is there; a sample that comes later, but within the window, corrects it: the filter goes
back and runs again, so that the order of arrival does not matter. Time is that of the stamps: without samples nothing
moves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isinf, isnan

import numpy as np

from ...dynamics.model import Model
from ...errors import DivergenceError, SampleError, SettingError
from ..records import ObserverStatus
from .cells import Cell, Cells
from .channels import Channels
from .clock import Clock, Verdict
from .engine import Engine
from .entries import start_stddev, started, transferred
from .health import HealthWatch
from .judge import judged
from .records import Health, LinkageEstimate, Measured
from .settings import LinkageSettings
from .start import encoded, moved_to

INPUT = 'input/'
FIRST, FASTER = 2.0, 4.0
WIDEST = 64.0           # by how much the start's uncertainty grows at most while nothing is accepted


class LinkageStage:
    """Filter of ``settings`` on a model with ``sensors`` (default: all of its file), step in seconds.

    ``channels`` (s,) and ``inputs`` (k,), as ``input/<name>``, are what ``add`` takes. ``engines``: compiled filters,
    of which those that ``prepare`` was asked for make a change of the estimator immediate. Raises SettingError.
    """

    def __init__(self, model: Model, settings: LinkageSettings = LinkageSettings(), sensors: Sequence[str] = (),
                 step: float = 0.005, backend: str = 'auto') -> None:
        self.model, self.backend, self.step_ns = model, backend, round(step * 1e9)
        self.sensors = tuple(sensors) or tuple(model.description.sensors)
        if not self.sensors:
            raise SettingError('sensors', '', 'a mechanism with sensors')
        self._engines: dict[tuple[str, str], tuple[Engine, HealthWatch]] = {}
        self._dropped: Counter[str] = Counter()
        self._refusals: list[SampleError] = []
        self.settings = settings
        self._engine, self._watch = self._made(settings)
        self._tuned = self._engine.tuned(settings)
        self.channels = self._engine.channels
        self.inputs = tuple(INPUT + name for name in model.inputs)
        self._places = {name: i for i, name in enumerate(self.channels)}
        self._input_places = {name: i for i, name in enumerate(self.inputs)}
        self._sensors = Channels(self.channels)
        self._clock = Clock(self.step_ns)
        self._last_q, self._last_qd = model.start.q, model.start.qd
        self.reset()

    # State and tuning

    def reset(self) -> None:
        """Forget state and samples; the next sample starts anew."""
        self._cells: Cells | None = None
        self._held = np.zeros(len(self.inputs))
        self._waiting: list[tuple[int, int, float]] = []
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
            self._made(replace(self.settings, estimator=estimator, options='', noises=''))

    def configure(self, settings: LinkageSettings) -> None:
        """Take other settings from the next sample on; the state stays, also in another filter. Raises SettingError and
        changes nothing then."""
        engine, watch = self._made(settings)
        tuned = engine.tuned(settings)
        if engine is not self._engine and self._cells is not None:
            last = self._cells.last
            out = self._engine.filter.outputs.arrays(last.output)
            t = last.index * engine.dt
            state = transferred(self._engine.filter, last.state, out, engine.filter, t, settings)
            self._cells = Cells(len(self.channels), len(self.inputs), replace(last, state=state))
            watch.reset()
        self.settings, self._engine, self._watch, self._tuned = settings, engine, watch, tuned

    def health(self) -> Health:
        """Health now; costs a millisecond or two. The estimates carry what was told last."""
        self._health = self._watch.tell(self._tuned.stddev)
        return self._health

    # Samples

    def add(self, stamp_ns: int, samples: Mapping[str, float]) -> tuple[LinkageEstimate, ...]:
        """Take samples of one instant by channel, SI, NaN where missing; the estimates of new instants, or of the
        newest one, revised. What cannot be used is dropped, counted and told by ``refusals``."""
        values = {name: float(value) for name, value in samples.items() if self._usable(stamp_ns, name, float(value))}
        if not values or not self._timely(stamp_ns, values):
            return ()
        index = self._clock.index(stamp_ns)
        before = self._cells.last.index
        changed = [self._place(index, name, value) for name, value in values.items()]
        first = min([place for place in changed if place <= self._cells.last.index], default=index + 1)
        first = min(first, before + 1)
        if first > self._cells.last.index:
            return ()
        return self._advance(first, before)

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

    def _timely(self, stamp_ns: int, values: Mapping[str, float]) -> bool:
        """Whether the samples lie in the grid's reach; starts it."""
        measured = any(name in self._places and value == value for name, value in values.items())
        if self._cells is None:
            if measured:
                self._start(stamp_ns, values)
                return True
            for name in values.keys() & self._input_places.keys():
                self._held[self._input_places[name]] = values[name]
            return False
        reach = round(self.settings.restart_after * 1e9)
        verdict = self._clock.judge(stamp_ns, self._cells.base.index, self._cells.last.index, reach)
        if verdict is Verdict.RESTART and measured:
            self.reset()
            self._start(stamp_ns, values)
        elif verdict is not Verdict.USE:
            for name, value in values.items():
                self._refuse(verdict.value, name, stamp_ns, value,
                             f'a stamp after {self._clock.stamp(self._cells.base.index)} ns')
            return False
        return True

    def _start(self, stamp_ns: int, values: Mapping[str, float]) -> None:
        o = np.array([values.get(name, np.nan) for name in self.channels])
        found = moved_to(self.model, encoded(self.model, self.channels, o))
        if found is not None and self.settings.start_at == 'sensors':
            self._last_q = found
        state = started(self._engine.filter, self._last_q, self._last_qd, self.settings)
        base = Cell(0, np.full(len(self.channels), np.nan), np.full(len(self.inputs), np.nan), state, None, self._held)
        self._cells, self._started = Cells(len(self.channels), len(self.inputs), base), 0.0
        self._clock.start(stamp_ns)

    def _place(self, index: int, name: str, value: float) -> int:
        """Put a sample into its instant; the first one that it changes."""
        cells = self._cells
        if name in self._input_places:      # in force from its instant on: over the step after it
            self._waiting.append((index + 1, self._input_places[name], value))
            return self._place_inputs()
        cells.extend(index)
        return min(self._place_inputs(), self._place_sample(index, self._places[name], value))

    def _place_sample(self, index: int, place: int, value: float) -> int:
        if self._sensors.accepts(place, value):
            self._cells[index].o[place] = value
        else:
            self._dropped['constant sensor'] += 1
        return index

    def _place_inputs(self) -> int:
        """Put the inputs into those of their instants that are there; the first one that it changes, or the next."""
        last, base = self._cells.last.index, self._cells.base.index
        ready = [item for item in self._waiting if item[0] <= last]
        self._waiting = [item for item in self._waiting if item[0] > last]
        for index, place, value in ready:
            self._cells[max(index, base + 1)].u[place] = value
        return min((max(index, base + 1) for index, _, _ in ready), default=last + 1)

    # Estimates

    def _advance(self, first: int, before: int) -> tuple[LinkageEstimate, ...]:
        """Run the filter from an instant on; estimates of those after ``before``, or of the newest one."""
        cells = self._cells.since(first)
        rows = self._cells.rows(cells, self._engine.dt)
        try:
            states, outputs = self._engine.run(self._cells[first - 1].state, rows, self._tuned)
        except DivergenceError:
            states = outputs = np.full((len(cells), 1), np.nan)
        if not (np.isfinite(states).all() and np.isfinite(outputs).all()):
            return self._diverged(cells[-1])
        for cell, state, output in zip(cells, states, outputs):
            cell.state, cell.output, cell.revision = state, output, cell.revision + 1
        new = [(cell, row) for cell, row in zip(cells, rows) if cell.index > before]
        for cell, row in new:
            self._noted(cell, row)
        told = [cell for cell, _ in new] or cells[-1:]
        if len(told) * self._engine.dt > self.settings.lost_after:
            told = told[-1:]
        estimates = tuple(self._estimate(cell) for cell in told)
        self._cells.trim(round(self.settings.delay_window / self._engine.dt))
        if estimates[-1].status is ObserverStatus.LOST:
            self._widen(estimates[-1])
        return estimates

    def _noted(self, cell: Cell, row: np.ndarray) -> None:
        """Health of the channels at an instant that is new."""
        out = self._engine.outputs(cell.output)
        used = out['used'] > 0.5
        self._sensors.take(row[-1], cell.o, out['innovation'], out['spread'], used, self._tuned.stddev, self.settings)
        ratio = np.where(used, out['innovation'] / np.sqrt(np.fmax(out['spread'], 1e-300)), np.nan)
        self._watch.take(ratio, out['q'], out['qd'], row)

    def _estimate(self, cell: Cell) -> LinkageEstimate:
        engine, t = self._engine, cell.index * self._engine.dt
        out, P = engine.outputs(cell.output), engine.covariance(cell.state)
        status, reason = judged(t, self._started, engine.names, P, self._sensors, self._tuned.threshold, self.settings)
        restart, self._restart = self._restart, False
        self._last_q, self._last_qd = out['q'], out['qd']
        there, used = np.isfinite(cell.o), out['used'] > 0.5
        rejected = self._sensors.rejected(self._tuned.threshold)
        if not rejected:
            self._wide = 0.0
        elif self._wide:
            status, reason = ObserverStatus.LOST, f'rejected: {"; ".join(rejected)}'
        measured = tuple(Measured.USED if a and b else Measured.REJECTED if a else Measured.MISSING
                         for a, b in zip(there, used))
        innovation = np.where(there, out['innovation'], np.nan)
        return LinkageEstimate(
            self._clock.stamp(cell.index), cell.index, cell.revision, restart, engine.filter.name, engine.names,
            out['x'], P, out['q'], out['qd'], out['qdd'], out['force'], self._force_stddev(P), innovation,
            np.sqrt(np.fmax(out['spread'], 0.0)), measured, status, reason, self._health, self._dropped.total())

    def _force_stddev(self, P: np.ndarray) -> np.ndarray:
        """Of a force that is in the filter's state; NaN else."""
        of, names = self._engine.problem, self._engine.names
        places = [names.index(name) if (name := f'force/{of.system.names[k]}') in names else -1 for k in of.z]
        return np.array([np.sqrt(max(P[i, i], 0.0)) if i >= 0 else np.nan for i in places])

    def _widen(self, estimate: LinkageEstimate) -> None:
        """Where most sensors were refused: the uncertainty of a start, wider each time, to take them up again."""
        t = estimate.sequence * self._engine.dt
        if not self._sensors.contradicted(t, self._started, self.settings.lost_after):
            return
        of, cell = self._engine.filter, self._cells.last
        places = encoded(self.model, self.channels, cell.o)
        q = moved_to(self.model, places) if places else None
        self._wide = min(FASTER * self._wide, WIDEST) or FIRST
        wide = self._wide * start_stddev(self._engine.names, self.settings)
        state = of.start(estimate.q if q is None else q, estimate.qd, wide)
        self._cells = Cells(len(self.channels), len(self.inputs), replace(cell, state=state))
        self._started = t

    def _diverged(self, cell: Cell) -> tuple[LinkageEstimate, ...]:
        """An estimate that says so; the next sample starts anew."""
        engine, s, g, n = self._engine, len(self.channels), self._engine.problem.g, self._engine.problem.n
        size, none = len(engine.names), np.full
        estimate = LinkageEstimate(
            self._clock.stamp(cell.index), cell.index, 0, self._restart, engine.filter.name, engine.names,
            none(size, np.nan), none((size, size), np.nan), *(none(n, np.nan) for _ in range(3)), none(g, np.nan),
            none(g, np.nan), none(s, np.nan), none(s, np.nan), (Measured.MISSING,) * s, ObserverStatus.LOST,
            'the state left the finite numbers', self._health, self._dropped.total())
        self.reset()
        self._last_q, self._last_qd = self.model.start.q, self.model.start.qd
        return (estimate,)

    def _made(self, settings: LinkageSettings) -> tuple[Engine, HealthWatch]:
        key = settings.estimator, settings.options
        if key not in self._engines:
            engine = Engine(self.model, self.sensors, settings, self.step_ns * 1e-9, self.backend)
            prior = settings.start_position, settings.start_velocity, settings.start_other
            self._engines[key] = engine, HealthWatch(engine, prior, settings.options)
        return self._engines[key]
