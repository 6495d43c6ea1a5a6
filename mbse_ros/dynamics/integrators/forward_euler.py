# SPDX-License-Identifier: Apache-2.0
"""Forward Euler: ``X+ = X + dt f(X)`` (paper 000 Eq. 42)."""

from __future__ import annotations

from .fixed_step import march
from .point import Field, Point
from .task import Record, Task


def forward_euler(task: Task, record: Record) -> None:
    """Fill the record by forward Euler, first order in dt; inputs are held at their value at the step's start."""
    march(task, record, _step)


def _step(field: Field, point: Point, t: float) -> Point:
    dt = t - point.t
    return field.at(point.X + dt * point.f, point.ahead(dt), t)
