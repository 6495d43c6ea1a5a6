# SPDX-License-Identifier: Apache-2.0
"""The classical method of Runge and Kutta in independent coordinates: explicit, fourth order in dt."""

from __future__ import annotations

import casadi as ca
import numpy as np

from ...errors import PositionProblemError
from .fixed_step import Scheme, march
from .point import Field, Point
from .stretch import Rule, Symbols, discord
from .task import Record, Task

STAGES = (0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)      # after the first: shares of the rates before (Kutta, 1901)
WEIGHTS = 1 / 6, 1 / 3, 1 / 3, 1 / 6
HALVINGS = 10           # of a step beside a dead point


def rk4(task: Task, record: Record) -> None:
    """Fill the record by the classical method of order 4; the position problem is solved in each of its stages.

    Where inputs are functions of Python they are read in each stage. A step whose velocities do not go with its
    accelerations is halved, and each half looks for a dead point: beside one the stages could throw the motion back.
    Not for stiff systems: with ``w`` the largest angular frequency ``w dt`` must stay below 2.8.
    """
    march(task, record, rk4_scheme())


def rk4_scheme() -> Scheme:
    """Its steps."""
    return Scheme(_step, lambda A, dt: Rule('rk4', _unused, stages=STAGES, weights=WEIGHTS))


def _step(field: Field, point: Point, t: float, halvings: int = 0) -> Point:
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
        point = _step(field, point, end, halvings + 1)
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


def _unused(s: Symbols) -> tuple[ca.SX, ca.SX]:
    return s.X, ca.SX(0)
