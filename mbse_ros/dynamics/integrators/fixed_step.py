# SPDX-License-Identifier: Apache-2.0
"""Steps of equal length in independent coordinates; the schemes differ in one step."""

from __future__ import annotations

from collections.abc import Callable

from ...errors import PositionProblemError
from .point import Field, Point
from .task import Record, Task

BEYOND = 3.0        # steps ahead in which a dead point explains a position problem without solution

Step = Callable[[Field, Point, float], Point]     # from a point to the one after dt


def march(task: Task, record: Record, step: Step) -> None:
    """Fill the record, step after step.

    Raises DivergenceError with the step where the numbers end; PositionProblemError and SingularConfigurationError
    with the time in their texts.
    """
    field, k = Field(task, record), 0
    try:
        point = field.start()
        field.write(0, point)
        for k in range(1, len(task.times)):
            t = task.times[k]
            if field.choice.check(point.q, point.ahead(t - point.t), point.t, t):
                point = field.restart(point.q, point.qd, point.t)
            point = _stepped(field, point, t, step)
            field.write(k, point)
    except ArithmeticError as error:
        raise task.diverged(k, str(error)) from error


def _stepped(field: Field, point: Point, t: float, step: Step) -> Point:
    """One step; where z went beyond what the mechanism reaches, the dead point at its end is reported or avoided."""
    try:
        return step(field, point, t)
    except PositionProblemError:
        beyond = point.t + BEYOND * (t - point.t)
        if not field.choice.check(point.q, point.ahead(beyond - point.t), point.t, beyond):
            raise
        return step(field, field.restart(point.q, point.qd, point.t), t)
