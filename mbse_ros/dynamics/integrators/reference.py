# SPDX-License-Identifier: Apache-2.0
"""Reference solutions by SciPy's solvers with error control, kept on the constraints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from ...errors import MbseError, PositionProblemError, SettingError, SingularConfigurationError
from ..observation import power
from .choice import next_singular
from .point import Field, Point
from .task import MotionRecord, MotionTask

if TYPE_CHECKING:
    from scipy.integrate import OdeSolver

DIFFERENCE = 1e-6
RETRIES = 12        # shorter steps tried where a step hits a position at which the equations fail
CENTRE = {'DOP853': 0.4667, 'Radau': 0.4}       # share of a step in the widest gap between stages
WIDER = 1e3


def dop853(task: MotionTask, record: MotionRecord, rtol: float = 1e-12, atol: float = 1e-12) -> None:
    """Fill the record by the explicit Runge-Kutta method of order 8 (5, 3); ``dt`` only spaces the output."""
    from scipy.integrate import DOP853  # here: slow to import
    _Reference(task, record, rtol, atol).run(DOP853)


def radau(task: MotionTask, record: MotionRecord, rtol: float = 1e-9, atol: float = 1e-9) -> None:
    """Fill the record by the implicit method of Radau IIA, order 5, for stiff systems; ``dt`` only spaces the output.

    It stops (DivergenceError) beside a singular position of the mechanism, which dop853 and ali3p pass.
    """
    from scipy.integrate import Radau  # here: slow to import
    _Reference(task, record, rtol, atol).run(Radau)


class _Reference:
    """State ``[q, qd, work]`` (2n + 1,): the equations read z and zd from it, the rest keeps the branch.

    All of q is integrated, so that the position problem begins where it ends, even beside a singular position; after
    each step the state is put back on the constraints. Coordinates can be re-chosen without a break.
    """

    def __init__(self, task: MotionTask, record: MotionRecord, rtol: float, atol: float) -> None:
        if not (rtol >= 0 and atol >= 0 and rtol + atol > 0):
            raise SettingError('rtol, atol', (rtol, atol), 'numbers above zero')
        self.task, self.record, self.field = task, record, Field(task, record)
        self.tolerances = {'rtol': rtol, 'atol': atol}
        self.power = power(task.model)
        record.has_work = True
        self.n = len(task.model.names)

    def run(self, method: type[OdeSolver]) -> None:
        """Fill the record. The longest step is dt where inputs could change in between."""
        task, step = self.task, 0
        longest = np.inf if task.inputs is None else task.dt
        y0 = np.concatenate([task.start.q, task.start.qd, [0.0]])
        try:
            self._keep(0, y0)
            if len(task.times) == 1:
                return
            jacobian = {'jac': self._jacobian} if method.__name__ == 'Radau' else {}
            solver = method(self._rates, task.times[0], y0, task.times[-1], max_step=longest, **self.tolerances,
                            **jacobian)
            while solver.status == 'running':
                self._advance(solver, step)
                step = self._output(solver, step)
                self._project(solver)
        except ArithmeticError as error:
            raise task.diverged(step, str(error)) from error

    def _point(self, t: float, y: np.ndarray) -> Point:
        n = self.n
        return self.field.restart(y[:n], y[n:2 * n], t)

    def _rates(self, t: float, y: np.ndarray) -> np.ndarray:
        point = self._point(t, y)
        return np.concatenate([point.qd, point.qdd, [self._power(point)]])

    def _jacobian(self, t: float, y: np.ndarray) -> np.ndarray:
        """Derivative of the rates by differences in z and zd, which alone act.

        SciPy's own differences lengthen without bound the steps in coordinates that do not act.
        """
        J = np.zeros((len(y), len(y)))
        for place in (i + shift for shift in (0, self.n) for i in self.field.choice.partition.independent):
            h = np.zeros(len(y))
            h[place] = DIFFERENCE * max(1.0, abs(y[place]))
            J[:, place] = (self._rates(t, y + h) - self._rates(t, y - h)) / (2 * h[place])
        return J

    def _power(self, point: Point) -> float:
        lam = np.zeros(len(self.task.model.rows))
        lam[self.task.model.active] = point.lam
        return self.power(point.q, point.qd, lam, point.u, point.t)

    def _advance(self, solver: OdeSolver, step: int) -> None:
        """One step; a shorter one where the equations fail inside of it."""
        with self._across(solver):
            message = self._step(solver)
        if solver.status == 'failed':
            raise self.task.diverged(step, f'at {solver.t:.9g} s: {message}')
        self.field.choice.check(solver.y_old[:self.n], solver.y[:self.n], solver.t_old, solver.t)
        self.field.choice.stop_near_dead_point(solver.y[:self.n], solver.t)

    @contextmanager
    def _across(self, solver: OdeSolver) -> Iterator[None]:
        """Put a singular position far from all stages of a step that goes over it.

        Beside it the equations lose as many digits as twice its distance has zeros, which the error control would
        take for errors of the step; so it is wider there for one step.
        """
        n, centre, h = self.n, CENTRE[type(solver).__name__], solver.h_abs
        s = next_singular(self.task.model, solver.y[:n], solver.f[:n], solver.f[n:2 * n], solver.t, (1 + centre) * h)
        over = s is not None and s <= 1.0001 * centre * h
        if s is not None:
            solver.h_abs = s / centre if over else s - centre * h
        if over:
            self.record.singular_times.append(float(solver.t + s))
            solver.rtol, solver.atol = WIDER * solver.rtol, WIDER * solver.atol
        yield
        if over:
            solver.rtol, solver.atol, solver.h_abs = solver.rtol / WIDER, solver.atol / WIDER, h

    def _step(self, solver: OdeSolver) -> str | None:
        for _ in range(RETRIES):
            try:
                return solver.step()
            except (PositionProblemError, SingularConfigurationError) as error:
                failure: MbseError = error
                solver.h_abs *= 0.37
        raise failure

    def _output(self, solver: OdeSolver, step: int) -> int:
        """Keep the states at the times that the step reached."""
        times, last = self.task.times, len(self.task.times) - 1
        curve = None
        while step < last and times[step + 1] <= solver.t:
            curve = solver.dense_output() if curve is None else curve
            step += 1
            self._keep(step, solver.y if times[step] == solver.t else curve(times[step]))
        return step

    def _keep(self, step: int, y: np.ndarray) -> None:
        self.field.write(step, self._point(self.task.times[step], y))
        self.record.work[step] = y[-1]

    def _project(self, solver: OdeSolver) -> None:
        """Put the state of a solver back on the constraints."""
        point = self._point(solver.t, solver.y)
        solver.y = np.concatenate([point.q, point.qd, solver.y[-1:]])
        solver.f = np.concatenate([point.qd, point.qdd, [self._power(point)]])
