# SPDX-License-Identifier: Apache-2.0
"""The state equations of independent coordinates along a motion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import PositionProblemError, SingularConfigurationError
from .arrival import Arrival
from .choice import Choice
from .task import Record, Task, at_time

LARGEST = 1e60      # of a state; beyond it the equations would overflow


@dataclass(frozen=True)
class Point:
    """A state ``X = [z, zd]`` (2g,) at ``t`` with inputs ``u`` (k,), and what the equations say there.

    ``q, qd, qdd`` (n,); ``lam`` (m,) of the active constraints; ``f`` (2g,) = dX/dt, ``A`` (2g, 2g) = df/dX.
    """

    t: float
    X: np.ndarray
    u: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    lam: np.ndarray
    f: np.ndarray
    A: np.ndarray

    def ahead(self, dt: float) -> np.ndarray:
        """Coordinates (n,) after dt, to second order: the guess of the position problem."""
        return self.q + dt * (self.qd + (dt / 2) * self.qdd)


class Field:
    """Evaluates points of a task; counts the evaluations; all errors carry the time."""

    def __init__(self, task: Task, record: Record) -> None:
        self.task, self.record = task, record
        self.choice = Choice(task, record)
        self._arrivals: dict[int, Arrival] = {}

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
        arrival = self._arrive(X, guess, t, u)
        if u is None and self.task.inputs is not None:
            arrival = self._arrive(X, arrival.q.copy(), t, self.task.u(t, arrival.q.copy(), arrival.qd.copy()))
        f = np.concatenate([arrival.zd, arrival.zdd])
        return Point(t, X, arrival.u.copy(), arrival.q.copy(), arrival.qd.copy(), arrival.qdd.copy(),
                     arrival.lam.copy(), f, arrival.A.copy())

    def _arrive(self, X: np.ndarray, guess: np.ndarray, t: float, u: np.ndarray | None) -> Arrival:
        """Solve at a state with inputs u (zero for None)."""
        partition, g = self.choice.partition, len(X) // 2
        arrival = self._arrivals.get(id(partition))
        if arrival is None:
            arrival = self._arrivals[id(partition)] = Arrival(partition, self.task.model.backend)
        arrival.guess[:] = guess
        arrival.guess[partition.independent] = X[:g]
        arrival.zd[:], arrival.u[:], arrival.t[0] = X[g:], 0.0 if u is None else u, t
        arrival.run()
        self.record.evaluations += 1
        return arrival if arrival.arrived else self._arrive_slowly(arrival, t)

    def _arrive_slowly(self, arrival: Arrival, t: float) -> Arrival:
        """From a guess that is far, or with the error that tells why not."""
        partition = self.choice.partition
        try:
            arrival.guess[:] = partition.close(arrival.guess, t)
            arrival.run()
            if not arrival.arrived:
                partition.rates(arrival.guess, arrival.zd, arrival.u, t)
        except (PositionProblemError, SingularConfigurationError) as error:
            raise at_time(error, t) from None
        return arrival

    def write(self, step: int, point: Point) -> None:
        """Keep a point in the record."""
        record = self.record
        record.q[step], record.qd[step], record.qdd[step], record.u[step] = point.q, point.qd, point.qdd, point.u
        record.lam[step, self.task.model.active] = point.lam
        record.last = step
