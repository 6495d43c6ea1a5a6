# SPDX-License-Identifier: Apache-2.0
"""Steps of equal length in independent coordinates; the schemes differ in one step.

Forward Euler, plain and augmented, of first order in dt with inputs held at their value at the step's start, and the
classical method of Runge and Kutta, explicit and of fourth order.

The trapezoidal rule is implicit, solved by Newton's method with the exact Jacobian. Exponential integration is that of
the equations linearised at each step: ``X+ = X + G f(X)`` (Pyrhönen et al., state transition, section 3.2).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import casadi as ca
import numpy as np

from ...errors import PositionProblemError, check_choice
from ...transition.exponential import ORDERS, SMALL_STEP, exact_step, halvings_for, psi_series, transition
from .compiled_steps import CompiledSteps, Iterate, Rule, StepSymbols, discord
from .point import Field, Point
from .task import MotionRecord, MotionTask

BEYOND = 3.0        # steps ahead in which a dead point explains a position problem without solution

Step = Callable[[Field, Point, float], Point]     # from a point to the one after dt
STAGES = (0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)      # after the first: shares of the rates before (Kutta, 1901)
WEIGHTS = 1 / 6, 1 / 3, 1 / 3, 1 / 6
HALVINGS = 10           # of a step beside a dead point
ITERATIONS = 25
CORRECTIONS = 2     # of a compiled step; the error falls from 1e-8 to rounding with the first
ROUNDING = 1e-7     # corrections below it that no longer fall are rounding errors, as beside a singular position


class Scheme(NamedTuple):
    """One step; ``rule(A, dt)`` is the same scheme for compiled steps."""

    step: Step
    rule: Callable[[np.ndarray, float], Rule]


def march(task: MotionTask, record: MotionRecord, scheme: Scheme) -> None:
    """Fill the record, step after step, many in one compiled call where that can be.

    Raises DivergenceError with the step where the numbers end; PositionProblemError and SingularConfigurationError
    with the time in their texts.
    """
    field, k, (step, rule) = Field(task, record), 0, scheme
    compiled = CompiledSteps(field, rule) if CompiledSteps.serve(field) else None
    try:
        point = field.start()
        field.write(0, point)
        k = 1
        while k < len(task.times):
            if compiled is not None:
                point, k = compiled.advance(point, k)
                if k == len(task.times):
                    break
            t = task.times[k]
            if field.choice.check(point.q, point.ahead(t - point.t), point.t, t):
                point = field.restart(point.q, point.qd, point.t)
            point = stepped(field, point, t, step)
            field.write(k, point)
            k += 1
    except ArithmeticError as error:
        raise task.diverged(k, str(error)) from error


def stepped(field: Field, point: Point, t: float, step: Step) -> Point:
    """One step; where z went beyond what the mechanism reaches, the dead point at its end is reported or avoided."""
    try:
        return step(field, point, t)
    except PositionProblemError:
        beyond = point.t + BEYOND * (t - point.t)
        if not field.choice.check(point.q, point.ahead(beyond - point.t), point.t, beyond):
            raise
        return step(field, field.restart(point.q, point.qd, point.t), t)


def forward_euler(task: MotionTask, record: MotionRecord) -> None:
    """Fill the record by ``X+ = X + dt f(X)`` (Pyrhönen et al., state transition, Eq. 42)."""
    march(task, record, forward_euler_scheme())


def augmented_euler(task: MotionTask, record: MotionRecord) -> None:
    """Fill the record by ``z+ = z + dt zd + dt^2/2 zdd``, ``zd+ = zd + dt zdd`` (Pyrhönen et al., state transition,
    Eq. 43)."""
    march(task, record, augmented_euler_scheme())


def forward_euler_scheme() -> Scheme:
    """Steps of forward Euler."""
    return Scheme(_euler_step, lambda A, dt: Rule('euler', _advance, tangents=False))


def augmented_euler_scheme() -> Scheme:
    """Steps of augmented Euler."""
    return Scheme(_augmented_step, lambda A, dt: Rule('augmented', _augmented_advance, tangents=False))


def _euler_step(field: Field, point: Point, t: float) -> Point:
    dt = t - point.t
    return field.at(point.X + dt * point.f, point.ahead(dt), t)


def _augmented_step(field: Field, point: Point, t: float) -> Point:
    dt, g = t - point.t, len(point.X) // 2
    zd, zdd = point.f[:g], point.f[g:]
    change = np.concatenate([dt * zd + (dt ** 2 / 2) * zdd, dt * zdd])
    return field.at(point.X + change, point.ahead(dt), t)


def _advance(s: StepSymbols) -> tuple[ca.SX, ca.SX]:
    return s.X + s.dt * s.f, ca.SX(0)


def _augmented_advance(s: StepSymbols) -> tuple[ca.SX, ca.SX]:
    g = s.X.shape[0] // 2
    zd, zdd = s.f[:g], s.f[g:]
    return s.X + ca.vertcat(s.dt * zd + (s.dt ** 2 / 2) * zdd, s.dt * zdd), ca.SX(0)


def rk4(task: MotionTask, record: MotionRecord) -> None:
    """Fill the record by the classical method of order 4; the position problem is solved in each of its stages.

    Where inputs are functions of Python they are read in each stage. A step whose velocities do not go with its
    accelerations is halved, and each half looks for a dead point: beside one the stages could throw the motion back.
    Not for stiff systems: with ``w`` the largest angular frequency ``w dt`` must stay below 2.8.
    """
    march(task, record, rk4_scheme())


def rk4_scheme() -> Scheme:
    """Its steps."""
    return Scheme(_rk4_step, lambda A, dt: Rule('rk4', _unused, stages=STAGES, weights=WEIGHTS, tangents=False))


def _rk4_step(field: Field, point: Point, t: float, halvings: int = 0) -> Point:
    try:
        new = _whole(field, point, t)
        if discord(np, point.qd, point.qdd, new.qd, new.qdd, t - point.t) <= 1.0:
            return new
    except PositionProblemError:
        if halvings == HALVINGS:
            raise
    if halvings == HALVINGS:
        raise field.choice.refuse(point.q, point.t)
    for end in ((point.t + t) / 2, t):
        if field.choice.check(point.q, point.ahead(end - point.t), point.t, end):
            point = field.restart(point.q, point.qd, point.t)
        point = _rk4_step(field, point, end, halvings + 1)
    return point


def _whole(field: Field, point: Point, t: float) -> Point:
    """The step as it is."""
    dt, rates = t - point.t, [point.f]
    for shares in STAGES:
        part = sum(shares)
        X = point.X + dt * _mixed(shares, rates)
        rates.append(field.at(X, point.ahead(part * dt), point.t + part * dt).f)
    return field.at(point.X + dt * _mixed(WEIGHTS, rates), point.ahead(dt), t)


def _mixed(shares: tuple[float, ...], rates: list[np.ndarray]) -> np.ndarray:
    return np.asarray(sum(share * rate for share, rate in zip(shares, rates)))


def _unused(s: StepSymbols) -> tuple[ca.SX, ca.SX]:
    return s.X, ca.SX(0)


def trapezoid(task: MotionTask, record: MotionRecord, tolerance: float = 1e-12) -> None:
    """Fill the record by ``X+ = X + dt/2 (f(X) + f(X+))``, second order in dt, stable at any dt for linear systems.

    Newton's method ends with a correction below ``tolerance`` times max(1, |X|); DivergenceError where it does not.
    """
    march(task, record, trapezoid_scheme(tolerance))


def trapezoid_scheme(tolerance: float = 1e-12) -> Scheme:
    """Its steps; compiled ones have ``CORRECTIONS``, and are left to the march where these are too few."""
    key = f'trapezoid_{np.float64(tolerance).tobytes().hex()}'
    rule = Rule(key, _predicted, partial(_corrected, tolerance), CORRECTIONS)
    return Scheme(partial(_trapezoid_step, tolerance), lambda A, dt: rule)


def _trapezoid_step(tolerance: float, field: Field, point: Point, t: float) -> Point:
    dt, f = t - point.t, point.f
    X, guess = point.X + transition(point.A, dt, '1')[1] @ f, point.ahead(dt)
    last = np.inf
    for _ in range(ITERATIONS):
        new = field.at(X, guess, t)
        residual = X - point.X - (dt / 2) * (f + new.f)
        change = np.linalg.solve(np.eye(len(X)) - (dt / 2) * new.A, residual)
        size, scale = np.abs(change).max(initial=0.0), max(1.0, np.abs(X).max(initial=0.0))
        if size <= tolerance * scale or last / 2 < size <= ROUNDING * scale:
            return new
        X, guess, last = X - change, new.q, size
    raise ArithmeticError(f'Newton: correction {size:.3g} after {ITERATIONS} iterations; take a shorter step')


def _predicted(s: StepSymbols) -> tuple[ca.SX, ca.SX]:
    """The first X of the iteration."""
    return s.X + psi_series(s.A, s.dt, 1) @ (s.f * s.dt), ca.SX(0)


def _corrected(tolerance: float, s: Iterate) -> tuple[ca.SX, ca.SX]:
    """A step of Newton's method with ``I - dt/2 A``, ``A = [[0, I], [a, b]]``, its velocities first."""
    g, h = s.X.shape[0] // 2, s.dt / 2
    a, b, residual = s.A[g:, :g], s.A[g:, g:], s.X - s.X0 - h * (s.f0 + s.f)
    matrix, right = ca.SX.eye(g) - h * b - h ** 2 * a, residual[g:] + h * (a @ residual[:g])
    velocity = right / matrix if g == 1 else ca.solve(ca.densify(matrix), right)
    change = ca.vertcat(residual[:g] + h * velocity, velocity)
    return s.X - change, ca.norm_inf(change) / (tolerance * ca.fmax(1, ca.norm_inf(s.X)))


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
    return Scheme(partial(_exponential_step, str(order)), partial(_rule, str(order)))


def _exponential_step(order: str, field: Field, point: Point, t: float) -> Point:
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
