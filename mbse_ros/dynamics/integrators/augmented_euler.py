# SPDX-License-Identifier: Apache-2.0
"""Augmented forward Euler: ``z+ = z + dt zd + dt^2/2 zdd``, ``zd+ = zd + dt zdd`` (paper 000 Eq. 43)."""

from __future__ import annotations

import numpy as np

from .fixed_step import march
from .point import Field, Point
from .task import Record, Task


def augmented_euler(task: Task, record: Record) -> None:
    """Fill the record by augmented forward Euler, first order in dt; inputs as in forward Euler."""
    march(task, record, _step)


def _step(field: Field, point: Point, t: float) -> Point:
    dt, g = t - point.t, len(point.X) // 2
    zd, zdd = point.f[:g], point.f[g:]
    change = np.concatenate([dt * zd + (dt ** 2 / 2) * zdd, dt * zdd])
    return field.at(point.X + change, point.ahead(dt), t)
