# SPDX-License-Identifier: Apache-2.0
"""The state equations of independent coordinates along a motion, with the position problem in one compiled call."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from ...compiled import Kernel
from ...errors import PositionProblemError, SingularConfigurationError
from ..partitioned import Partitioned, newton_function
from ..state_equations import is_small, state_symbols
from .choice import CoordinateChoice
from .task import MotionRecord, MotionTask, at_time

LARGEST = 1e60      # of a state; beyond it the equations would overflow
TOLERANCE = 1e-13       # of Phi after both Newton steps; beyond it the position problem goes on by itself


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


class Arrival:
    """State equations at the position that belongs to z, near a guess: two Newton steps, always taken, then the rates.

    ``run()`` reads ``guess`` (n,) (with z in it), ``zd`` (g,), ``u``, ``t`` (1,) and writes ``q``, ``residual`` (1,),
    ``zdd``, ``A`` (2g, 2g), ``qdd``, ``lam``, ``qd``.
    """

    def __init__(self, partition: Partitioned, backend: str) -> None:
        system = partition.system
        n, m, g = system.n, system.m, len(partition.independent)
        kernel = partition.kept.get('arrival')
        if kernel is None:
            kernel = partition.kept['arrival'] = Kernel(arrival_function(partition), backend)
        self.guess, self.zd, self.u, self.t = np.zeros(n), np.zeros(g), np.zeros(system.u.numel()), np.zeros(1)
        self.q, self.residual, self.zdd, self.A = np.zeros(n), np.zeros(1), np.zeros(g), np.zeros((2 * g, 2 * g))
        self.qdd, self.lam, self.qd = np.zeros(n), np.zeros(m), np.zeros(n)
        parameters = np.array(partition.parameters, dtype=float)
        self.run = kernel.bind([self.guess, self.zd, self.u, self.t, parameters],
                               [self.q, self.residual, self.zdd, self.A, self.qdd, self.lam, self.qd])

    @property
    def arrived(self) -> bool:
        """Whether the last run solved the position problem and all its numbers are finite."""
        scale = max(1.0, float(np.abs(self.q).max()))
        return bool(self.residual[0] <= TOLERANCE * scale and np.isfinite(self.qdd).all() and np.isfinite(self.A).all())


def arrival_function(partition: Partitioned) -> ca.Function:
    """Function ``(guess, zd, u, t, p) -> (q, max |Phi|, zdd, A, qdd, lam, qd)``."""
    system, p_ = partition.system, partition.system.values.symbol
    kind = ca.SX if is_small(system) else ca.MX
    guess, zd, u, t, p = state_symbols(system, p_, kind)
    newton = newton_function(system)
    residual = ca.Function('residual', [system.q, system.t, p_], [system.Phi])
    q = newton(newton(guess, t, p)[0], t, p)[0]
    size = ca.norm_inf(residual(q, t, p)) if system.m else kind(0)
    zdd, A, _, qdd, lam, qd = partition.function(q, zd, u, t, p)
    return ca.Function('mbse_arrival', [guess, zd, u, t, p], [q, size, zdd, A, qdd, lam, qd], {'cse': True})


class Field:
    """Evaluates points of a task; counts the evaluations; all errors carry the time."""

    def __init__(self, task: MotionTask, record: MotionRecord) -> None:
        self.task, self.record = task, record
        self.choice = CoordinateChoice(task, record)
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
        """From a guess that is far, or with the error that says why not."""
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
