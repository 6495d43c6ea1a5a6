# SPDX-License-Identifier: Apache-2.0
"""Steps of equal length in independent coordinates; the schemes differ in one step."""

from __future__ import annotations

from collections.abc import Callable

from .point import Field, Point
from .task import Record, Task

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
                point = field.restart(point.q, point.rates.qd, point.t)
            point = step(field, point, t)
            field.write(k, point)
    except ArithmeticError as error:
        raise task.diverged(k, str(error)) from error
