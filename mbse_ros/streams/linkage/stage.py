# SPDX-License-Identifier: Apache-2.0
"""``LinkageStage``: stamped samples of a mechanism's sensors in, estimates on a grid out, by any filter.

The grid is at the first sample plus multiples of the step; a sample counts at the nearest instant. A new instant is
estimated at once with what is there; a sample that comes later, but within the window, corrects it: the filter goes
back and runs again, so that the order of arrival does not matter. Time is that of the stamps: without samples nothing
moves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import nan, sqrt

import numpy as np

from ...dynamics.model import Model
from ...errors import SampleError, SettingError
from ...monitor.faults import Fault, reason_of
from ..records import Health, LinkageEstimate, Measured, ObserverStatus, Sampled
from .choice import Choice
from .engine import Engine
from .entries import restarted, start_stddev, started
from .grid import NONE, Cell, Cells, StampStatus, TimeGrid
from .held_inputs import HeldInputs
from .judge import Judge, Judgement
from .linkage_settings import LinkageSettings
from .march import march, sampled
from .refusals import Refusals
from .start import first_pose, moved_to, restart_pose

Made = tuple[dict[str, np.ndarray], list[float], list[float], list[bool]]
INPUT = 'input/'
MOST_BRIDGED = 20_000   # instants without a sample, of a second or so to compute: one wrong stamp must not cost hours


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
        self._choice = Choice(model, self.sensors, self.step_ns * 1e-9, settings, backend)
        self.channels = self._engine.channels
        self.inputs = tuple(INPUT + name for name in model.inputs)
        self._refusals = Refusals(self.channels, self.inputs)
        self._places = {name: i for i, name in enumerate(self.channels)}
        self._input_places = {name: i for i, name in enumerate(self.inputs)}
        self._judge = Judge(self._engine.problem)
        self._clock = TimeGrid(self.step_ns)
        self._last_q = model.start.q
        moved_to(model, {place: model.start.q[place] + 1e-3 for place in model.z})      # its first call takes longer
        self.reset()

    # State and tuning

    def reset(self) -> None:
        """Forget state and samples; the next sample starts again."""
        self._running, self._last_qd = False, self.model.start.qd       # whether there are cells; no speed is known
        self._inputs = HeldInputs(len(self.inputs))
        self._health, self._restart = Health(), True
        self._broken: Judgement | None = None
        if self._judge.raised > 1.0:
            self._choice.raise_noise(1.0)
        self._judge.reset()
        self._choice.watch.reset()

    @property
    def _engine(self) -> Engine:
        return self._choice.work.engine

    @property
    def settings(self) -> LinkageSettings:
        """Those in force."""
        return self._choice.settings

    @property
    def ordered(self) -> LinkageSettings | None:
        """Those whose filter is being made."""
        return self._choice.ordered

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
        return dict(self._refusals.dropped)

    def refusals(self) -> list[SampleError]:
        """Samples dropped since the last call, with the reason."""
        return self._refusals.taken()

    def prepare(self, *estimators: str) -> None:
        """Compile filters that are to be switched to without delay; raises SettingError."""
        self._choice.prepare(*estimators)

    def configure(self, settings: LinkageSettings, wait: bool = True) -> None:
        """Take other settings from the next sample on; the state stays, also in another filter. Raises SettingError and
        changes nothing then. Without ``wait`` a filter that is not compiled is made in the background: ``ordered``
        holds the settings until ``take_up``, and those before go on."""
        self._choice.configure(settings, wait)

    def take_up(self) -> bool:
        """Change to the settings that were ordered, if their filter is ready. Raises what was wrong with them; the
        order is forgotten then."""
        return self._choice.take_up()

    def health(self) -> Health:
        """Health now; costs a millisecond or two. The estimates carry the health computed last."""
        self._health = self._choice.watch.health(self._choice.work.tuned.stddev)
        return self._health

    # Samples

    def add(self, stamp_ns: int, samples: Mapping[str, float]) -> tuple[LinkageEstimate, ...]:
        """Take samples of one instant by channel, SI, NaN where missing; the estimates of new instants, or of the
        newest one, revised. What cannot be used is dropped, counted and reported by ``refusals``."""
        usable = self._refusals.usable(stamp_ns, samples)
        values = self._timely(stamp_ns, usable) if usable else usable
        if not values:
            return ()
        index, before = self._clock.index(stamp_ns), self._cells.last.index
        changed = self._place(index, values)
        if changed > self._cells.last.index:
            return ()
        return self._advance(min(changed, before + 1), before, values if index == before else {})

    def _timely(self, stamp_ns: int, values: Mapping[str, float]) -> Mapping[str, float]:
        """Those samples that lie in the grid's reach; starts it."""
        measured = any(name in self._places and value == value for name, value in values.items())
        if not self._running:
            if measured:
                self._start(stamp_ns, values)
                return values
            for name in values.keys() & self._input_places.keys():
                self._inputs.start[self._input_places[name]] = values[name]
            return {}
        reach = min(round(self.settings.restart_after * 1e9), MOST_BRIDGED * self.step_ns)
        oldest = self._cells.base.index
        verdict = self._clock.judge(stamp_ns, oldest, self._cells.last.index, reach)
        if verdict is StampStatus.USE:
            return values
        if verdict is StampStatus.RESTART and measured:
            self.reset()
            self._start(stamp_ns, values)
            return values
        # An input acts on the step after its instant, so the oldest one of the window still takes it.
        acting = verdict is StampStatus.LATE and self._clock.index(stamp_ns) == oldest
        timely = {name: value for name, value in values.items() if acting and name in self._input_places}
        for name in values.keys() - timely.keys():
            self._refusals.add(verdict.value, name, stamp_ns, values[name],
                               f'a stamp after {self._clock.stamp(oldest)} ns')
        return timely

    def _start(self, stamp_ns: int, values: Mapping[str, float]) -> None:
        """Begin a grid where the sensors say, the rest as it was; ``_broken``: why the last state could not be kept."""
        tuned, names = self._choice.work.tuned, self.model.independent
        o = np.array([value if self._judge.usable(i, value, stddev) else nan for i, (value, stddev) in enumerate(zip(
            (values.get(name, nan) for name in self.channels), tuned.stddev.tolist()))])
        if self.settings.start_at == 'sensors':
            self._last_q = first_pose(self._judge.seen, o, tuned.stddev, self._last_q)
        shown = self._judge.seen.shown(self._last_q)
        unknown = [name for name, is_so in zip(names, shown.tolist()) if is_so]
        state = started(self._engine.filter, self._last_q, self._last_qd, self.settings, unknown)
        base = Cell(0, np.full(len(self.channels), np.nan), self._choice.work, {}, state, NONE, self._inputs.start)
        self._cells, self._running = Cells(len(self.channels), len(self.inputs), base), True
        settling = max(self.settings.settle_time, self.settings.lost_after if self._broken else 0.0)
        why = (f'started again: {self._broken.reason}', self._broken.faults) if self._broken else ()
        self._judge.begin(0.0, settling, *why)
        self._judge.bounds.know(0.0, self._last_q, self._last_qd)
        self._broken = None
        self._clock.start(stamp_ns)

    def _place(self, index: int, values: Mapping[str, float]) -> int:
        """Put samples into their instant; the first one that they change, or one that is not there yet."""
        changed, measured = index + 1, {}
        for name, value in values.items():
            place = self._input_places.get(name)
            if place is None:
                measured[self._places[name]] = value
            else:
                self._inputs.add(index, place, value)
        deviations = self._choice.work.tuned.deviations
        if measured:
            self._cells.extend(index, self._choice.work)
            changed = index
        for place, value in measured.items():
            if self._judge.usable(place, value, deviations[place]):
                self._cells[index].o[place] = value
            else:
                constant = self._judge.watch.constant[place]
                self._refusals.dropped['constant sensor' if constant else 'beyond the limits of its joint'] += 1
        first = self._inputs.placed(self._cells)
        return changed if first is None else min(changed, first)

    # Estimates

    def _advance(self, first: int, before: int, joined: Mapping[str, float]) -> tuple[LinkageEstimate, ...]:
        """Run the filter from an instant on; estimates of those after ``before``, or of the newest one, which samples
        ``joined``."""
        cells = self._cells.since(first)
        rows = self._cells.rows(cells, self._engine.dt)
        if not march(self._cells[cells[0].index - 1], cells, rows, self.settings):
            return (self._broken_off(cells[-1], Judgement(ObserverStatus.LOST, reason_of(Fault.NOT_FINITE),
                                                          faults=Fault.NOT_FINITE)),)
        new = [(cell, row) for cell, row in zip(cells, rows) if cell.index > before]
        for cell, row in new:
            self._noted(cell, row)
        if joined:
            self._watched(cells[-1], [value if name in joined else nan
                                      for name, value in zip(self.channels, cells[-1].o.tolist())])
        changed = [cell for cell, _ in new] or cells[-1:]
        if len(changed) * self._engine.dt > self.settings.lost_after:
            changed = changed[-1:]
        judgement = Judgement(ObserverStatus.OK)
        estimates: list[LinkageEstimate] = []
        for cell in changed:
            out = cell.work.engine.outputs(cell.output)
            judgement = self._judged(cell, out)
            if judgement.broken:
                return (*estimates, self._broken_off(cell, judgement))
            estimates.append(self._estimate(cell, out, judgement))
        self._cells.trim(round(self.settings.delay_window / self._engine.dt))
        if judgement.again:
            if self._judge.raise_noise(judgement.by):
                self._choice.raise_noise(self._judge.raised)
            self._start_again(judgement)
        elif self._judge.lower_noise(cells[-1].index * self._engine.dt):
            self._choice.raise_noise(self._judge.raised)
        return tuple(estimates)

    def _noted(self, cell: Cell, row: np.ndarray) -> None:
        """Health of the channels at an instant that is new."""
        out, innovation, spread, used = self._watched(cell, cell.o.tolist())
        if cell.work.engine is self._engine:
            ratio = [v / sqrt(max(s, 1e-300)) if use else nan for v, s, use in zip(innovation, spread, used)]
            self._choice.watch.take(ratio, out['q'], out['qd'], row)

    def _watched(self, cell: Cell, o: list[float]) -> Made:
        """What the filter made of samples of an instant, NaN where there is none: its outputs, innovations, their
        spread, and whether they were used."""
        out = cell.work.engine.outputs(cell.output)
        innovation, spread = out['innovation'].tolist(), out['spread'].tolist()
        used = [item > 0.5 for item in out['used'].tolist()]
        self._judge.take(cell.index * self._engine.dt, out['q'], out['qd'], o, innovation, spread, used,
                         cell.work.tuned.deviations, self.settings)
        return out, innovation, spread, used

    def _judged(self, cell: Cell, out: dict[str, np.ndarray]) -> Judgement:
        engine = cell.work.engine
        return self._judge.judged(cell.index * self._engine.dt, engine.names, out['q'], out['qd'],
                                  engine.covariance(cell.state), cell.o.tolist(), cell.work.tuned.threshold,
                                  self.settings)

    def _estimate(self, cell: Cell, out: dict[str, np.ndarray], judgement: Judgement) -> LinkageEstimate:
        engine, tuned = cell.work.engine, cell.work.tuned
        P = self._judge.stated(engine.names, engine.covariance(cell.state), judgement, self.settings)
        restart, self._restart = self._restart, False
        self._last_q, self._last_qd = out['q'], out['qd']
        at = sampled(self._cells, cell)
        force_stddev = np.array([nan if i is None else sqrt(max(P[i, i], 0.0)) for i in engine.force_places])
        return LinkageEstimate(
            self._clock.stamp(cell.index), cell.index, cell.revision, restart, engine.filter.name, engine.names,
            out['x'], P, out['q'], out['qd'], out['qdd'], engine.filter.forces, out['force'], force_stddev,
            engine.parameters(out['x'], P.diagonal(), tuned), at.innovation, at.innovation_stddev, at.measured,
            judgement.status, judgement.reason, self._health, self._refusals.dropped.total(), judgement.faults)

    def sampled(self, index: int) -> Sampled | None:
        """What is known by now of the samples of an instant, ``sequence`` of its estimate; None where it is not kept
        any longer."""
        if not self._running or not self._cells.base.index <= index <= self._cells.last.index:
            return None
        cell = self._cells[index]
        return sampled(self._cells, cell) if cell.output.size else None

    def _start_again(self, judgement: Judgement) -> None:
        """Coordinates start at what the channels say that were refused and alone see them, with an unknown speed."""
        cell, settings, model = self._cells.last, self.settings, self.model
        engine, stddev, t = cell.work.engine, cell.work.tuned.stddev, cell.index * self._engine.dt
        out, names = engine.outputs(cell.output), [model.independent[k] for k in judgement.again]
        q, qd = restart_pose(self._judge, judgement, cell.o, stddev, (out['q'], out['qd']), t, settings.lost_after)
        spread = start_stddev(engine.names, settings, names)
        state = restarted(engine.filter, cell.state, q, qd, names, spread, t, engine.tangents, self._judge.in_row < 2)
        self._cells = Cells(len(self.channels), len(self.inputs), replace(cell, state=state))     # settled by this
        self._last_q, self._last_qd = q, qd
        self._judge.bounds.know(t, q, qd)
        self._judge.begin(t, settings.lost_after, 'settling: ' + judgement.reason, judgement.faults)

    def _broken_off(self, cell: Cell, judgement: Judgement) -> LinkageEstimate:
        """An estimate that says so, without values; the next sample starts again."""
        of, none = cell.work.engine.filter, np.full(len(self.channels), np.nan)
        cell.state, cell.output = np.full(of.state.size, np.nan), np.full(of.outputs.size, np.nan)
        out = cell.work.engine.outputs(cell.output)
        estimate = replace(
            self._estimate(cell, out, judgement), revision=0, parameters={},
            innovation=none, innovation_stddev=none, measured=(Measured.MISSING,) * len(none))
        self.reset()
        self._broken, self._last_q = judgement, self.model.start.q
        return estimate
