# SPDX-License-Identifier: Apache-2.0
"""ALI3P: augmented Lagrangian of index 3 with projections of velocities and accelerations, trapezoidal rule."""

from __future__ import annotations

import numpy as np

from ...compiled import Kernel
from ...errors import SettingError
from ..formulations.by_name import accelerations
from .ali3p_functions import iteration_function, projection_function
from .task import Record, Task

ITERATIONS = 60
PATIENCE = 10       # iterations after which the penalty of the step is raised
RAISE = 100.0


def ali3p(task: Task, record: Record, penalty: float = 1e9, tolerance: float = 1e-10) -> None:
    """Fill the record by ALI3P on all coordinates, second order in dt (Naya et al., review, section 12.1).

    Redundant constraints, singular positions and masses that are zero do no harm. ``penalty`` alpha > 0;
    ``tolerance`` of the correction of q. An iteration divides the violation by about ``dt^2 alpha J J' / 4 M``;
    where that is little (beside a singular position, in very short steps) alpha is raised for the step: it changes the
    speed of the iteration, not where it ends. DivergenceError where it does not end.
    """
    if not (0 < penalty < np.inf and tolerance > 0):
        raise SettingError('penalty, tolerance', (penalty, tolerance), 'positive numbers')
    if task.independent not in (None, 'auto'):
        raise SettingError('independent', task.independent, 'none: ali3p takes all coordinates')
    steps, step = _Steps(task, penalty), 0
    try:
        steps.begin(record)
        for step in range(1, len(task.times)):
            steps.advance(step, task.times[step], tolerance)
            steps.write(record, step)
    except ArithmeticError as error:
        raise task.diverged(step, str(error)) from error
    finally:
        record.evaluations += steps.iterations


class _Steps:
    """Both functions, bound to arrays in place; ``q0, qd0, qdd0`` (n,) at the end of the last step, ``q`` ahead."""

    def __init__(self, task: Task, penalty: float) -> None:
        self.task, self.iterations, model = task, 0, task.model
        n, m = len(model.names), len(model.rows)
        self.q, self._q, self.qd, self.qdd, self._ahead, self.q0, self.qd0, self.qdd0 = np.zeros((8, n))
        self.lam, self._lam = np.zeros((2, m))
        self.u, self.t, self.dt, self._size = np.zeros(len(model.inputs)), np.zeros(1), np.zeros(1), np.zeros(1)
        self.penalty, self.alpha = penalty, np.array([penalty])
        arguments = [self.q, self.lam, self.u, self.t, self.dt, self.alpha,
                     np.array(model.parameters, dtype=float), self.q0, self.qd0, self.qdd0]
        self._iterate = Kernel(iteration_function(model.system), model.backend).bind(
            arguments, [self._q, self._lam, self._size])
        self._project = Kernel(projection_function(model.system), model.backend).bind(
            arguments, [self.qd, self.qdd, self._ahead, self._lam])

    def begin(self, record: Record) -> None:
        """The start, with accelerations and multipliers that redundant rows do not disturb."""
        start, model, dt = self.task.start, self.task.model, self.task.dt
        self.u[:] = self.task.u(start.t, start.q, start.qd)
        found = accelerations('udwadia_kalaba', model.terms(start.q, start.qd, self.u, start.t))
        self.q0[:], self.qd0[:], self.qdd0[:], self.lam[:] = start.q, start.qd, found.qdd, found.multipliers
        self.q[:] = start.q + dt * (start.qd + dt / 2 * found.qdd)
        self.write(record, 0)

    def advance(self, step: int, t: float, tolerance: float) -> None:
        """One step to t: iterations, then projections."""
        self.dt[0] = t - self.task.times[step - 1]
        self.t[0] = t
        if self.task.inputs is not None:
            self.u[:] = self.task.u(t, self.q, self.qd0 + self.dt[0] * self.qdd0)
        for sweep in range(1, ITERATIONS + 1):
            self._iterate()
            self.iterations += 1
            self.q[:], self.lam[:] = self._q, self._lam
            if not self._size[0] > tolerance:       # NaN ends it too
                break
            if sweep % PATIENCE == 0:
                self.alpha[0] = min(self.alpha[0] * RAISE, self.penalty * RAISE ** 3)
        if not self._size[0] <= tolerance:
            raise self.task.diverged(step, f'correction of q {self._size[0]:.3g}; take a shorter step')
        self._project()
        self.alpha[0] = self.penalty
        self.q0[:], self.qd0[:], self.qdd0[:] = self.q, self.qd, self.qdd
        self.q[:], self.lam[:] = self._ahead, self._lam

    def write(self, record: Record, step: int) -> None:
        """Keep the end of the step in the record."""
        record.q[step], record.qd[step], record.qdd[step] = self.q0, self.qd0, self.qdd0
        record.lam[step], record.u[step] = self.lam, self.u
        record.last = step
