# SPDX-License-Identifier: Apache-2.0
"""Many runs of a mechanism, each with its own start and parameters, in compiled steps over threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from inspect import signature
from numbers import Integral
from threading import Lock

import numpy as np

from ..compiled import Runs
from ..errors import CompilationError, MbseError, SettingError, check_choice
from ..workers import processors
from .forcing import Forcing, RunForcing
from .integrators import COMPILED
from .integrators.compiled_steps import Begin, Rule, affordable_step, step_inputs, steps_function
from .integrators.fixed_step import Scheme, stepped
from .integrators.point import Field, Point
from .integrators.task import MotionRecord, MotionTask
from .model import Model, State
from .motion import step_count
from .partitioned import Partitioned
from .singular import check_regular


@dataclass(frozen=True)
class Batch:
    """Runs of a mechanism at the times ``t`` (k,), s; SI.

    ``q, qd`` (runs, k, n) of the coordinates ``names`` (n,), NaN from where a run ended early. ``failures`` (runs,):
    the error that ended it, or None; ``steps`` (runs,) of ``dt``, s, that were made; ``parameters`` (runs, p) by
    ``parameter_names``.
    """

    names: tuple[str, ...]
    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    steps: np.ndarray
    failures: tuple[MbseError | None, ...]
    parameter_names: tuple[str, ...]
    parameters: np.ndarray
    dt: float


def simulate_runs(model: Model, duration: float, dt: float, scheme: str = 'exponential', *, z: np.ndarray,
                  zd: np.ndarray, parameters: np.ndarray, every: int = 1, jobs: int | None = None,
                  forcing: Forcing | None = None, **options: object) -> Batch:
    """Motions over ``duration``, s, in steps of ``dt``, s, of which every ``every``-th is kept.

    ``z, zd`` (runs, g): starts, ``model.independent`` coordinates and velocities, on the branch of the model's start;
    ``parameters`` (runs, p) as ``Model.parameters``. ``scheme``: one of ``COMPILED`` with its options. ``jobs``:
    threads, default the processors of this machine; the results do not depend on their number. ``forcing``: inputs
    over time and random forces, by the names of ``model.inputs``; None: inputs are zero. A run that fails is
    marked, the others go on. Raises SettingError; CompilationError where the mechanism is too large for the compiler,
    or there is none.
    """
    check_choice('scheme', scheme, COMPILED)
    steps = step_count(duration, dt)
    if not (isinstance(every, Integral) and every >= 1 and steps % every == 0 and steps > 0):
        raise SettingError('every', every, f'a whole number that divides the {steps} steps')
    if jobs is not None and (isinstance(jobs, bool) or not isinstance(jobs, Integral) or jobs < 1):
        raise SettingError('jobs', jobs, 'a whole number of threads from 1 on')
    runner = _Runner(model, dt, steps, every, scheme, options, forcing)
    runs, rows, n = len(z), steps // every + 1, len(model.names)
    kept, made, failures = np.full((runs, rows, 2 * n), np.nan), np.zeros(runs, int), [None] * runs

    def one(i: int) -> None:
        made[i], failures[i] = runner.run(i, z[i], zd[i], parameters[i], kept[i])
    pool = ThreadPoolExecutor(jobs or processors())
    try:
        for _ in pool.map(one, range(runs)):
            pass
    finally:
        pool.shutdown(cancel_futures=True)
    return Batch(model.names, runner.times[::every], kept[:, :, :n], kept[:, :, n:], made, tuple(failures),
                 tuple(model.system.values.names), np.array(parameters, dtype=float), dt)


def start_of(model: Model, z: np.ndarray, zd: np.ndarray) -> State:
    """The state of independent coordinates and velocities (g,) on the branch of the model's start.

    Raises SettingError, PositionProblemError, SingularConfigurationError.
    """
    partition, start = model.partition(), model.start
    if not (np.isfinite(z).all() and np.isfinite(zd).all() and np.isfinite(partition.parameters).all()):
        raise SettingError('start, parameters', [*z, *zd, *partition.parameters], 'finite numbers')
    position = partition.position(z, start.q, start.t)
    return State(position, partition.velocity(position, zd, start.t), start.t)


class _Runner:
    """What all runs share; nothing of it changes but the compiled steps that are added."""

    def __init__(self, model: Model, dt: float, steps: int, every: int, scheme: str, options: dict[str, object],
                 forcing: Forcing | None) -> None:
        if not set(options) <= set(known := list(signature(COMPILED[scheme]).parameters)):
            raise SettingError('options', sorted(options), f'options of {scheme}: {", ".join(known) or "none"}')
        self.model, self.dt, self.every, self.name = model, dt, every, scheme
        self.scheme: Scheme = COMPILED[scheme](**options)
        self.times = model.start.t + dt * np.arange(steps + 1)
        self.inputs = step_inputs(self.times, 0.0)
        self.forcing = forcing if forcing is not None or not model.system.driven else Forcing(model.inputs, {}, {})
        self.auto = not model.description.independent
        self._lock = Lock()
        partition, start = model.partition(), model.start
        self.first = self.scheme.rule(partition.rates(start.q, start.qd[partition.independent]).A, dt)
        self.compiled(partition, self.first)
        check_regular(model, start)
        start_of(model, start.q[model.z], start.qd[model.z])     # what it takes is built once, for all runs

    def begin(self, rule: Rule) -> Begin | None:
        """Where a rule's steps take f and A from."""
        if self.forcing is None:
            return None
        return Begin.MIDDLE if rule.middle else Begin.AGAIN if self.forcing.intensities else Begin.KEPT

    def compiled(self, partition: Partitioned, rule: Rule) -> Runs:
        """The step of a rule, for any parameters."""
        kept, begin = partition.kept, self.begin(rule)
        key = f'runs {rule.key} {begin}'
        with self._lock:
            if key not in kept:
                if not affordable_step(partition, rule, begin or Begin.KEPT):
                    raise CompilationError(rule.key, 'cc', 'the mechanism is too large for a compiled step')
                kept[key] = Runs(steps_function(partition, rule, begin), in_lanes=False)
            return kept[key]

    def rows(self, given: RunForcing | None, least: float) -> np.ndarray:
        """Series of all steps of a run."""
        begin = self.begin(self.first)
        rows = self.inputs if not least else step_inputs(self.times, least)
        return rows if given is None or begin is None else np.hstack([rows, given.rows(begin.share)])

    def run(self, i: int, z: np.ndarray, zd: np.ndarray, parameters: np.ndarray, kept: np.ndarray
            ) -> tuple[int, MbseError | None]:
        """Run ``i`` into ``kept`` (k, 2n): the steps made, and what ended it early."""
        model = self.model.with_parameters(np.array(parameters, dtype=float))
        try:
            run = _BatchRun(self, i, model, start_of(model, z, zd), kept)
        except MbseError as error:
            return 0, error
        try:
            with np.errstate(over='ignore', invalid='ignore'):      # a run that leaves the numbers is marked
                run.complete()
        except CompilationError:
            raise
        except MbseError as error:
            return max(run.k - 1, 0), error
        except (ArithmeticError, np.linalg.LinAlgError) as error:
            return max(run.k - 1, 0), run.task.diverged(run.k, str(error))
        return run.k - 1, None


class _BatchRun:
    """A run with ``k`` the number of its next step, 0 the start: steps in C, and one by one in the manner of ``march``
    where something has to be decided."""

    def __init__(self, runner: _Runner, i: int, model: Model, start: State, kept: np.ndarray) -> None:
        self._runner, self._model, self._kept, self.k = runner, model, kept, 0
        forcing = runner.forcing
        self._given = None if forcing is None else RunForcing(forcing, i, runner.times, runner.dt)
        self._partition, self._rule, self._inputs = model.partition(), runner.first, runner.rows(self._given, 0.0)
        g = len(self._partition.independent)
        self._x = np.concatenate([start.q, start.qd, np.zeros(len(start.q) + 2 * g * g + 1)])
        self.task = MotionTask(model, start, runner.times, runner.dt, runner.name,
                               None if self._given is None or not model.inputs else self._given_now)
        self._field: Field | None = None
        self._settled = True        # the distance from a dead point is known

    def complete(self) -> None:
        """All steps."""
        if self._runner.auto:
            self._decide()
        while self.k < len(self._runner.times):
            self._sweep()
            if self.k < len(self._runner.times) and not self._other_rule():
                self._decide()

    def _sweep(self) -> None:
        """As far as the compiled steps hold."""
        step = self._runner.compiled(self._partition, self._rule)
        p, rows = self._partition.parameters, self._inputs[self.k:]
        if not self._settled:
            stay = self._inputs[self.k - 1:self.k].copy()
            stay[0, 1] = 0.0
            self._settled = step(self._x, stay, p, np.empty((1, 0))) == 1
        if self._settled:
            self.k += step(self._x, rows, p, self._kept, self._runner.every, self.k)

    def _other_rule(self) -> bool:
        """Whether the scheme takes another form from here on."""
        if not self.k:
            return False
        rule = self._runner.scheme.rule(self._A, self._runner.dt)
        other, self._rule = rule.key != self._rule.key, rule
        return other

    @property
    def _A(self) -> np.ndarray:
        """df/dX (2g, 2g) at the state."""
        g, n = len(self._partition.independent), len(self._model.names)
        return np.vstack([np.eye(g, 2 * g, g), self._x[3 * n:-1].reshape(2 * g, g).T])

    def _decide(self) -> None:
        """A step of the march, and the choice of coordinates that it leaves."""
        times, n = self._runner.times, len(self._model.names)
        q, qd = self._x[:n].copy(), self._x[n:2 * n].copy()
        if self._field is None:
            self.task = replace(self.task, start=State(q, qd, float(times[max(self.k - 1, 0)])))
            self._field = Field(self.task, MotionRecord.of(self._model, times[:1]))
        choice = self._field.choice
        point = self._field.restart(q, qd, float(times[max(self.k - 1, 0)]))
        if self.k:
            t = times[self.k]
            if choice.check(point.q, point.ahead(t - point.t), point.t, t):
                point = self._field.restart(point.q, point.qd, point.t)
            point = stepped(self._field, point, t, self._runner.scheme.step)
        self._take(point)
        if choice.partition.independent != self._partition.independent or choice.auto:
            self._partition, self._inputs = choice.partition, self._runner.rows(self._given, 1.0 / choice.limit)

    def _given_now(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Inputs within the step that is made."""
        assert self._given is not None
        return self._given.during(self.k, t)

    def _take(self, point: Point) -> None:
        """The state after a step of the march."""
        g = len(point.f) // 2
        self._x[...] = np.concatenate([point.q, point.qd, point.qdd, point.A[g:].T.ravel(), [0.0]])
        if self.k % self._runner.every == 0:
            self._kept[self.k // self._runner.every] = self._x[:self._kept.shape[1]]
        self.k, self._settled = self.k + 1, False
