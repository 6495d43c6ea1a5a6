# SPDX-License-Identifier: Apache-2.0
"""Forward Euler, plain and augmented: first order in dt, inputs held at their value at the step's start."""

from __future__ import annotations

import casadi as ca
import numpy as np

from .fixed_step import Scheme, march
from .point import Field, Point
from .stretch import Rule, Symbols
from .task import Record, Task


def forward_euler(task: Task, record: Record) -> None:
    """Fill the record by ``X+ = X + dt f(X)`` (Pyrhönen et al., state transition, Eq. 42)."""
    march(task, record, forward_euler_scheme())


def augmented_euler(task: Task, record: Record) -> None:
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


def _advance(s: Symbols) -> tuple[ca.SX, ca.SX]:
    return s.X + s.dt * s.f, ca.SX(0)


def _augmented_advance(s: Symbols) -> tuple[ca.SX, ca.SX]:
    g = s.X.shape[0] // 2
    zd, zdd = s.f[:g], s.f[g:]
    return s.X + ca.vertcat(s.dt * zd + (s.dt ** 2 / 2) * zdd, s.dt * zdd), ca.SX(0)
