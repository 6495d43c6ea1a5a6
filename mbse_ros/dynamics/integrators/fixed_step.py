# SPDX-License-Identifier: Apache-2.0
"""Steps of equal length in independent coordinates; the schemes differ in one step.

Forward Euler, plain and augmented, of first order in dt with inputs held at their value at the step's start, and the
classical method of Runge and Kutta, explicit and of fourth order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import casadi as ca
import numpy as np

from ...errors import PositionProblemError
from .compiled_steps import CompiledSteps, Rule, StepSymbols, discord
from .point import Field, Point
from .task import MotionRecord, MotionTask

BEYOND = 3.0        # steps ahead in which a dead point explains a position problem without solution

Step = Callable[[Field, Point, float], Point]     # from a point to the one after dt
STAGES = (0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)      # after the first: shares of the rates before (Kutta, 1901)
WEIGHTS = 1 / 6, 1 / 3, 1 / 3, 1 / 6
HALVINGS = 10           # of a step beside a dead point


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
    return Scheme(_step, lambda A, dt: Rule('euler', _advance))


def augmented_euler_scheme() -> Scheme:
    """Steps of augmented Euler."""
    return Scheme(_augmented_step, lambda A, dt: Rule('augmented', _augmented_advance))


def _step(field: Field, point: Point, t: float) -> Point:
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
    return Scheme(_rk4_step, lambda A, dt: Rule('rk4', _unused, stages=STAGES, weights=WEIGHTS))


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
