# SPDX-License-Identifier: Apache-2.0
"""The state equations of independent coordinates along a motion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import PositionProblemError, SingularConfigurationError
from ..partitioned import StateRates
from .choice import Choice
from .task import Record, Task, at_time

LARGEST = 1e60      # of a state; beyond it the equations would overflow


@dataclass(frozen=True)
class Point:
    """A state ``X = [z, zd]`` (2g,) at ``t``, the coordinates ``q`` (n,) and inputs ``u`` (k,), and its ``rates``."""

    t: float
    X: np.ndarray
    q: np.ndarray
    u: np.ndarray
    rates: StateRates

    @property
    def f(self) -> np.ndarray:
        """``dX/dt`` (2g,)."""
        return np.concatenate([self.X[len(self.X) // 2:], self.rates.zdd])

    def ahead(self, dt: float) -> np.ndarray:
        """Coordinates (n,) after dt, to second order: the guess of the position problem."""
        return self.q + dt * (self.rates.qd + (dt / 2) * self.rates.qdd)


class Field:
    """Evaluates points of a task; counts the evaluations; all errors carry the time."""

    def __init__(self, task: Task, record: Record) -> None:
        self.task, self.record = task, record
        try:
            self.choice = Choice(task, record)
        except SingularConfigurationError as error:
            raise at_time(error, task.start.t) from None

    def start(self) -> Point:
        """The first point."""
        return self.restart(self.task.start.q, self.task.start.qd, self.task.start.t)

    def restart(self, q: np.ndarray, qd: np.ndarray, t: float) -> Point:
        """The point at given coordinates and velocities, in the partition in use."""
        z = self.choice.partition.independent
        return self.at(np.concatenate([q[z], qd[z]]), q, t)

    def at(self, X: np.ndarray, guess: np.ndarray, t: float, u: np.ndarray | None = None) -> Point:
        """The point of a state near a guess (n,) of q; ``u`` holds the inputs, default: those of the task there.

        Raises PositionProblemError, SingularConfigurationError; ArithmeticError for a state that is out of numbers.
        """
        if not (np.abs(X) < LARGEST).all():
            raise ArithmeticError('the state left the finite numbers')
        partition, g = self.choice.partition, len(X) // 2
        self.record.evaluations += 1
        try:
            q = partition.position(X[:g], guess, t)
            if u is None:
                moving = self.task.inputs is not None
                u = self.task.u(t, q, partition.velocity(q, X[g:], t) if moving else q)
            return Point(t, X, q, u, partition.rates(q, X[g:], u, t))
        except (PositionProblemError, SingularConfigurationError) as error:
            raise at_time(error, t) from None

    def write(self, step: int, point: Point) -> None:
        """Keep a point in the record."""
        record, rates = self.record, point.rates
        record.q[step], record.qd[step], record.qdd[step] = point.q, rates.qd, rates.qdd
        record.lam[step, self.task.model.active] = rates.lam
        record.u[step] = point.u
        record.last = step
