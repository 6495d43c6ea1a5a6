# SPDX-License-Identifier: Apache-2.0
"""CVODES of SUNDIALS, which CasADi brings along, with the exact Jacobian of the equations."""

from __future__ import annotations

import casadi as ca
import numpy as np

from ...errors import DivergenceError, PositionProblemError, SettingError, SingularConfigurationError
from ..partitioned import Partitioned
from ..state_equations import Maps, Pieces, is_small, state_symbols
from .point import Field, Point
from .task import MotionRecord, MotionTask

ATTRACTION = 10.0       # 1/s, at which dependent coordinates come back to the constraints
CHUNK = 512             # instants of a call: each call begins at order one again
APART = 5e-3            # s between instants at which a dead point is looked for
MOST_STEPS = 5_000      # ... and internal steps up to the next; beside a dead point they creep


def cvodes(task: MotionTask, record: MotionRecord, rtol: float = 1e-12, atol: float = 1e-12) -> None:
    """Fill the record by backward differentiation formulas of order 1 to 5, for stiff systems; ``dt`` only spaces the
    output (Hindmarsh et al., SUNDIALS).

    Newton's method has the exact Jacobian. The error after some seconds is 1e3 to 2e5 times the tolerances. It stops
    (DivergenceError) beside a singular position of the mechanism, which dop853 and ali3p pass. SettingError where
    inputs are functions of Python, which dop853 takes.
    """
    if not (rtol > 0 and atol > 0):
        raise SettingError('rtol, atol', (rtol, atol), 'numbers above zero')
    if task.inputs is not None:
        raise SettingError('inputs', 'a function of Python', 'none: cvodes takes no inputs, dop853 does')
    field = Field(task, record)
    point = field.start()
    field.write(0, point)
    k = 1
    while k < len(task.times):
        point, k = _advance(field, point, k, {'reltol': rtol, 'abstol': atol})


def _advance(field: Field, point: Point, k: int, tolerances: dict[str, float]) -> tuple[Point, int]:
    """From the point at step k - 1 as far as a call and the choice of coordinates go."""
    times, between = field.task.times, max(1, int(np.ceil(field.task.dt / APART - 1e-9)))
    stop = min(k + max(1, CHUNK // between), len(times))
    ends = np.concatenate([[point.t], times[k:stop]])
    grid = np.linspace(ends[:-1], ends[1:], between + 1, axis=1)[:, 1:].ravel()
    try:
        states = _called(field, point, grid, tolerances)
    except RuntimeError:
        states = _called_one_by_one(field, point, grid, tolerances, k)
    n, z = len(point.q), field.choice.partition.independent
    for i, (t, y) in enumerate(zip(grid, states)):
        new = field.at(np.concatenate([y[:n][z], y[n:]]), y[:n], t)
        if field.choice.check(point.q, new.q, point.t, t):     # from before the old choice fails
            return field.restart(point.q, point.qd, point.t), k
        field.choice.stop_near_dead_point(new.q, t)
        point = new
        if (i + 1) % between == 0:
            field.write(k, point)
            k += 1
    return point, k


def _called(field: Field, point: Point, grid: np.ndarray, tolerances: dict[str, float]) -> np.ndarray:
    """States ``[q, zd]`` (k, n + g) at the instants of a grid (k,), s; RuntimeError where CVODES fails."""
    partition, g = field.choice.partition, len(point.X) // 2
    after = tuple(np.round(grid - point.t, 12).tolist())
    key = f'cvodes {after} {tolerances}'
    if key not in partition.kept:
        options = {**tolerances, 'max_num_steps': MOST_STEPS, 'disable_internal_warnings': True,
                   'show_eval_warnings': False}
        partition.kept[key] = ca.integrator('mbse_cvodes', 'cvodes', _equations(partition), 0.0, list(after), options)
    solver = partition.kept[key]
    found = solver(x0=np.concatenate([point.q, point.X[g:]]), p=np.concatenate([[point.t], partition.parameters]))
    field.record.evaluations += int(solver.stats()['nfevals'])
    return np.asarray(found['xf'].full().T)


def _called_one_by_one(field: Field, point: Point, grid: np.ndarray, tolerances: dict[str, float],
                       k: int) -> np.ndarray:
    """As far as it goes, instant by instant; at least one, or the error."""
    found: list[np.ndarray] = []
    n, z = len(point.q), field.choice.partition.independent
    for t in grid:
        try:
            y = _called(field, point, np.array([t]), tolerances)[0]
            point = field.at(np.concatenate([y[:n][z], y[n:]]), y[:n], t)
        except (RuntimeError, PositionProblemError, SingularConfigurationError):
            break
        found.append(y)
    if not found:
        raise _failure(field, point, k)
    return np.array(found)


def _failure(field: Field, point: Point, k: int) -> DivergenceError:
    """What to raise where CVODES gives up; SingularConfigurationError beside a dead point."""
    field.choice.stop_near_dead_point(point.q, point.t)
    return field.task.diverged(k, 'CVODES gives up; a dead point or a singular position may be near')


def _equations(partition: Partitioned) -> dict[str, ca.SX | ca.MX]:
    """``y = [q, zd]``: ``q' = R zd + S (b - a Phi)``, ``zd' = zdd``; inputs are zero."""
    system, p_ = partition.system, partition.system.values.symbol
    scalar = is_small(system)
    kind = ca.SX if scalar else ca.MX
    q, zd, p = state_symbols(system, p_, kind, 'q zd p')
    t, start = kind.sym('t'), kind.sym('start')
    now, no_inputs = start + t, kind.zeros(system.u.numel(), 1)
    J, b = Pieces(system, p_).constraints(q, now, p)
    maps = Maps.of(system, J, scalar)
    phi = ca.Function('residual', [system.q, system.t, p_], [system.Phi])(q, now, p)
    qd = maps.R @ zd + (maps.S(b - ATTRACTION * phi) if system.m else 0.0)
    zdd = partition.rates_function(q, zd, no_inputs, now, p)
    return {'x': ca.vertcat(q, zd), 't': t, 'p': ca.vertcat(start, p), 'ode': ca.vertcat(qd, zdd)}
