# SPDX-License-Identifier: Apache-2.0
"""Steps of equal length in independent coordinates; the schemes differ in one step."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...errors import PositionProblemError
from .point import Field, Point
from .stretch import Rule, Stretches
from .task import Record, Task

BEYOND = 3.0        # steps ahead in which a dead point explains a position problem without solution

Step = Callable[[Field, Point, float], Point]     # from a point to the one after dt


class Scheme(NamedTuple):
    """One step; ``rule(A, dt)`` is the same scheme for compiled steps."""

    step: Step
    rule: Callable[[np.ndarray, float], Rule]


def march(task: Task, record: Record, scheme: Scheme) -> None:
    """Fill the record, step after step, in compiled stretches where that can be.

    Raises DivergenceError with the step where the numbers end; PositionProblemError and SingularConfigurationError
    with the time in their texts.
    """
    field, k, (step, rule) = Field(task, record), 0, scheme
    stretches = Stretches(field, rule) if Stretches.serve(field) else None
    try:
        point = field.start()
        field.write(0, point)
        k = 1
        while k < len(task.times):
            if stretches is not None:
                point, k = stretches.advance(point, k)
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
