# SPDX-License-Identifier: Apache-2.0
"""ALI3P: augmented Lagrangian of index 3 with projections of velocities and accelerations, trapezoidal rule."""

from __future__ import annotations

import numpy as np

from ...compiled import Scan
from ...errors import DivergenceError, SettingError
from ..formulations.by_name import accelerations
from ..model import Model
from .ali3p_functions import ali3p_step
from .task import Record, Task

LONGEST = 256       # steps of a compiled call


def ali3p(task: Task, record: Record, penalty: float = 1e9, tolerance: float = 1e-10) -> None:
    """Fill the record by ALI3P on all coordinates, second order in dt (Naya et al., review, section 12.1).

    Redundant constraints, singular positions and masses that are zero do no harm. ``penalty`` alpha > 0;
    ``tolerance`` of the correction of q. An iteration divides the violation by about ``dt^2 alpha J J' / 4 M``;
    where that is little (beside a singular position, in very short steps) alpha is raised for the step: it changes the
    speed of the iteration, not where it ends. All steps run in compiled code, one by one where ``inputs`` are functions
    of Python. DivergenceError where a step does not end.
    """
    if not (0 < penalty < np.inf and tolerance > 0):
        raise SettingError('penalty, tolerance', (penalty, tolerance), 'positive numbers')
    if task.independent not in (None, 'auto'):
        raise SettingError('independent', task.independent, 'none: ali3p takes all coordinates')
    times, longest = task.times, LONGEST if task.inputs is None else 1
    rows = np.zeros((len(times), 4 + len(task.model.inputs)))
    rows[:, 0], rows[1:, 1], rows[:, 2:4] = times, np.diff(times), (penalty, tolerance)
    k = 0
    try:
        x = _begin(task, record, penalty)
        scan, n, p = _scan(task.model), len(task.model.names), np.array(task.model.parameters, dtype=float)
        for k in range(1, len(times), longest):
            stop = min(k + longest, len(times))
            if task.inputs is not None:
                rows[k, 4:] = task.u(times[k], x[:n].copy(), x[-2 * n:-n] + rows[k, 1] * x[-n:])
            x, found = scan(x, rows[k:stop], p)
            _write(task, record, k, found, rows[k:stop, 4:])
    except ArithmeticError as error:
        raise task.diverged(k, str(error)) from error


def _scan(model: Model) -> Scan:
    """The compiled step, made once for a mechanism."""
    kept = model.partition().kept
    if 'ali3p' not in kept:
        kept['ali3p'] = Scan(ali3p_step(model.system), model.backend, in_lanes=False)
    scan: Scan = kept['ali3p']
    return scan


def _begin(task: Task, record: Record, penalty: float) -> np.ndarray:
    """State of the scan at the start, with accelerations and multipliers that redundant rows do not disturb."""
    start, model, dt = task.start, task.model, task.dt
    u = task.u(start.t, start.q, start.qd)
    found = accelerations('udwadia_kalaba', model.terms(start.q, start.qd, u, start.t))
    record.q[0], record.qd[0], record.qdd[0], record.lam[0], record.u[0] = (start.q, start.qd, found.qdd,
                                                                            found.multipliers, u)
    record.last = 0
    ahead = start.q + dt * (start.qd + dt / 2 * found.qdd)
    return np.concatenate([ahead, found.multipliers, [penalty, 0.0, 1.0], start.q, start.qd, found.qdd])


def _write(task: Task, record: Record, k: int, found: np.ndarray, u: np.ndarray) -> None:
    """Keep the steps from k on (k, 3n + m + 2) as far as they hold; DivergenceError where they do not."""
    n, holds = record.q.shape[1], found[:, -1] <= 0.0       # NaN does not
    count = len(holds) if holds.all() else int(np.argmin(holds))
    rows, done = slice(k, k + count), found[:count]
    record.q[rows], record.qd[rows], record.qdd[rows] = (done[:, i * n:(i + 1) * n] for i in range(3))
    record.lam[rows], record.u[rows] = done[:, 3 * n:-2], u[:count]
    record.evaluations += int(np.nansum(found[:count + 1, -2]))
    record.last = k + count - 1
    if count < len(found):
        raise _unfinished(task, k + count, float(found[count, -1]))


def _unfinished(task: Task, step: int, left: float) -> DivergenceError:
    return task.diverged(step, f'correction of q {left:.3g} above the tolerance; take a shorter step')
