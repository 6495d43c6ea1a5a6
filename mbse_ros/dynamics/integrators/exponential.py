# SPDX-License-Identifier: Apache-2.0
"""Exponential integration of the equations linearised at each step: ``X+ = X + G f(X)`` (Pyrhönen et al., state
transition, section 3.2)."""

from __future__ import annotations

from functools import partial

import casadi as ca
import numpy as np

from ...errors import check_choice
from ...transition.exponential import ORDERS, SMALL_STEP, exact_step, halvings_for, psi_series, transition
from .compiled_steps import Rule, StepSymbols
from .fixed_step import Scheme, march
from .point import Field, Point
from .task import MotionRecord, MotionTask


def exponential(task: MotionTask, record: MotionRecord, order: int | str = 'exact') -> None:
    """Fill the record by the exponential scheme, second order in dt from order 1 on.

    ``order`` 0..4 of the series of G (Pyrhönen et al., state transition, Eq. 25) or 'exact'; SettingError for another.
    A truncated order where the system is stiff for this dt is reported once in ``record.warnings``. Where inputs or
    drivers depend on time, f and A are those in the middle of the step, so that the order stays two.
    """
    march(task, record, exponential_scheme(order))


def exponential_scheme(order: int | str = 'exact') -> Scheme:
    """Its steps; SettingError for an unknown order."""
    check_choice('order', str(order), ORDERS)
    return Scheme(partial(_step, str(order)), partial(_rule, str(order)))


def _step(order: str, field: Field, point: Point, t: float) -> Point:
    dt, model = t - point.t, _model_point(field, point, t)
    A = model.A
    if order != 'exact' and not field.record.warnings and stiffness(A) * dt > 1.0:
        field.record.warnings.append(f't = {point.t:.9g} s: the system is stiff for this step, |A dt| = '
                                     f'{stiffness(A) * dt:.3g} > 1: order {order} is not enough, take exact')
    return field.at(point.X + transition(A, dt, order)[1] @ model.f, point.ahead(dt), t)


def _rule(order: str, A: np.ndarray, dt: float) -> Rule:
    """The same for compiled steps; an exact one with as many halvings as A and twice as large a one need."""
    if order == 'exact':
        halvings = 2 * (halvings_for(float(np.linalg.norm(A, 1)) * abs(dt) if A.size else 0.0) // 2 + 1)
        return Rule(f'exact_{halvings}', partial(_exact, halvings), middle=True)
    return Rule(f'order_{order}', partial(_series, int(order)), middle=True)


def _exact(halvings: int, s: StepSymbols) -> tuple[ca.SX, ca.SX]:
    over = ca.norm_1(s.A) * s.dt / (SMALL_STEP * 2 ** halvings)
    return s.X + exact_step(s.A, s.f, s.dt, halvings)[1], over


def _series(order: int, s: StepSymbols) -> tuple[ca.SX, ca.SX]:
    """A step that is stiff is left to the march, which says so."""
    g = s.A.shape[0] // 2
    a, b = (ca.norm_inf(ca.densify(part)) for part in (s.A[g:, :g], s.A[g:, g:]))
    return s.X + psi_series(s.A, s.dt, order) @ (s.f * s.dt), (ca.sqrt(a) + b) * s.dt


def _model_point(field: Field, point: Point, t: float) -> Point:
    """Where the equations are linearised."""
    task, half = field.task, (t - point.t) / 2
    if task.inputs is None and not task.model.system.driven:
        return point
    middle = point.t + half
    u = task.u(middle, point.q + half * point.qd, point.qd + half * point.qdd)
    return field.at(point.X, point.q, middle, u)


def stiffness(A: np.ndarray) -> float:
    """Norm of ``A = [[0, I], [a, b]]`` (2g, 2g), 1/s, with velocities scaled by ``sqrt|a|`` to compare with positions.

    In plain units a vibration of angular frequency w would count as w^2.
    """
    g = len(A) // 2
    a, b = (float(np.abs(part).sum(axis=1).max(initial=0.0)) for part in (A[g:, :g], A[g:, g:]))
    return a ** 0.5 + b
