# SPDX-License-Identifier: Apache-2.0
"""Motions in all coordinates at once, by the accelerations of any formulation, its own constraints or not.

The state is ``[q, qd]``. A formulation with exact constraints keeps the accelerations on them, not the positions, which
drift; so each step ends with a correction of least size, ``q - J^+ Phi`` and ``qd - J^+ dPhi/dt``. One that lets the
constraints give way (``penalty``, a ``clearance``) keeps what it finds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING

import numpy as np

from ...errors import MbseError, PositionProblemError, SettingError, check_choice
from ..formulations.by_name import FORMULATIONS
from ..formulations.decomposition import decompose
from ..formulations.terms_arrays import JointWork, Terms
from ..partition import choose_independent
from .fixed_step import ITERATIONS, STAGES, WEIGHTS
from .task import MotionRecord, MotionTask, at_time

if TYPE_CHECKING:
    from scipy.integrate import OdeSolver

NOT_OPTIONS = 'terms', 'use_sparse', 'independent', 'redundant'     # arguments that are decided here
EXACT_ROWS = 'kkt', 'kkt_sparse', 'matrix_r'    # which need rows that do not depend on each other
CLOSED = 1e-12          # of the largest coordinate: violation that counts as none
CLOSINGS = 20           # corrections of a position
IMPLICIT = 1e-12        # of the largest entry of the state: change at which the trapezoidal rule has converged
STEADY = 2.0            # rate of friction times dt, above which a joint that friction has stopped does not rest
RESTING = 10            # steps within which a joint that only turns round has gone on
CREEP = 3.0             # of its speed, from which friction is whole: tanh is 0.995
SWEEPS = 4 * ITERATIONS     # of the trapezoidal rule, which repeats itself here instead of Newton's method

Rates = Callable[[float, np.ndarray], np.ndarray]
Found = tuple[np.ndarray, np.ndarray, np.ndarray]       # accelerations, multipliers, inputs


class AllCoordinates:
    """Accelerations of a task by a formulation with its ``options``; writes into a record."""

    def __init__(self, task: MotionTask, record: MotionRecord, formulation: str, options: dict[str, object]) -> None:
        check_choice('formulation', formulation, FORMULATIONS)
        known = [name for name in signature(FORMULATIONS[formulation]).parameters if name not in NOT_OPTIONS]
        if not set(options) <= set(known):
            raise SettingError('options', sorted(options), f'options of {formulation}: {", ".join(known) or "none"}')
        for option, value in options.items():
            if isinstance(value, bool):
                raise SettingError(option, value, 'a number, or several')
        self.task, self.record, self.n = task, record, len(task.model.names)
        self._solve, self._options = partial(FORMULATIONS[formulation], **options), options
        self._rows = list(task.model.moving if formulation in EXACT_ROWS else range(len(task.model.rows)))
        self._last: tuple[float, np.ndarray, Found] | None = None
        self._reduced, self._independent = formulation == 'matrix_r', list[int]()
        self._work: JointWork | None = None         # of the last evaluation, and its decelerations
        self._slowing: np.ndarray | None = None
        self._fast = [deque[bool](maxlen=RESTING) for _ in task.model.description.friction]
        self._creeping = np.zeros(len(self._fast))  # highest rates, 1/s
        self._yields = formulation == 'penalty' or _any(options.get('clearance'))

    def accelerations(self, t: float, y: np.ndarray) -> Found:
        """Accelerations (n,), multipliers (m,) and inputs (k,) at a state (2n,). Raises what the formulation raises;
        ArithmeticError for a state that is out of numbers."""
        if self._last is None or t != self._last[0] or not np.array_equal(y, self._last[1]):
            self._last = t, y.copy(), self._evaluated(t, y)     # a step begins where the one before was written
        return self._last[2]

    def _evaluated(self, t: float, y: np.ndarray) -> Found:
        if not np.isfinite(y).all():
            raise ArithmeticError('the state left the finite numbers')
        q, qd = y[:self.n], y[self.n:]
        u, multipliers = self.task.u(t, q, qd), np.zeros(len(self.task.model.rows))
        terms = self._terms(t, q, qd, u)
        self.record.evaluations += 1
        try:
            found = self._solve(terms.take(self._rows), **self._chosen(terms))
        except (TypeError, ValueError) as error:
            raise SettingError('options', self._options, str(error)) from error
        except MbseError as error:
            raise at_time(error, t) from None
        multipliers[self._rows] = found.multipliers
        self._work, self._slowing = terms.phi, found.slowing
        return found.qdd, multipliers, u

    def _chosen(self, terms: Terms) -> dict[str, list[int]]:
        """Of matrix-R: its independent coordinates, chosen once a step."""
        if not self._reduced:
            return {}
        self._independent = self._independent or choose_independent(terms.J[self._rows])
        return {'independent': self._independent}

    def rates(self, t: float, y: np.ndarray) -> np.ndarray:
        """Derivative (2n,) of a state by time."""
        return np.concatenate([y[self.n:], self.accelerations(t, y)[0]])

    def closed(self, t: float, y: np.ndarray) -> np.ndarray:
        """The state back on its constraints; as it is where these give way. Raises PositionProblemError."""
        if self._yields:
            return y
        q, qd = y[:self.n].copy(), y[self.n:].copy()
        least = CLOSED * max(1.0, float(np.abs(q).max()))
        for _ in range(CLOSINGS):
            terms = self._terms(t, q, qd)
            violation = float(np.abs(terms.Phi).max(initial=0.0))
            if violation <= least:
                return np.concatenate([q, qd - decompose(terms.J).solve(terms.Phidot)])
            q -= decompose(terms.J).solve(terms.Phi)
        raise at_time(PositionProblemError(violation, CLOSINGS, q), t)

    def _terms(self, t: float, q: np.ndarray, qd: np.ndarray, u: np.ndarray | None = None) -> Terms:
        try:
            return self.task.model.terms(q, qd, u, t)
        except ValueError as error:
            raise ArithmeticError(str(error)) from error

    def write(self, step: int, y: np.ndarray) -> None:
        """Keep a state in the record."""
        record, t = self.record, self.task.times[step]
        record.qdd[step], record.lam[step], record.u[step] = self.accelerations(t, y)
        record.q[step], record.qd[step] = y[:self.n], y[self.n:]
        record.last, self._independent = step, []
        if self._work is not None and self._slowing is not None:
            self._watch(self._work, self._slowing)

    def _watch(self, work: JointWork, slowing: np.ndarray) -> None:
        """Keep the rates of the joints that friction holds, but not below their speed."""
        for i, rate in enumerate(work.stopping_rates(slowing, self.task.dt)):
            if rate * self.task.dt <= STEADY:
                self._fast[i].clear()
                continue
            self._fast[i].append(abs(work.sliding[i]) > CREEP * work.speeds[i])
            if 2 * sum(self._fast[i]) > RESTING:
                self._creeping[i] = max(self._creeping[i], rate)

    def warn(self) -> None:
        """Say of which joints the steps are too long for a rest."""
        dt = self.task.dt
        for item, rate in zip(self.task.model.description.friction.values(), self._creeping.tolist()):
            if rate:
                self.record.warnings.append(
                    f'friction.{item.name}: {item.joint}, which it holds, creeps faster than its speed, '
                    f'{item.speed.value:.3g} m/s: a dt below {STEADY / rate:.2g} s, or with a dt of {dt:g} s a speed '
                    f'of at least {item.speed.value * rate * dt / STEADY:.2g} m/s')


def _any(clearance: object) -> bool:
    """Whether a clearance, a number or one for each group, has an entry that is not 0; wrong ones are refused later."""
    if isinstance(clearance, Sequence) and not isinstance(clearance, str):
        return any(map(_any, clearance))
    return clearance is not None and bool(np.any(np.asarray(clearance) != 0))


def euler(rates: Rates, t: float, y: np.ndarray, dt: float) -> np.ndarray:
    """One step of forward Euler."""
    return y + dt * rates(t, y)


def runge_kutta(rates: Rates, t: float, y: np.ndarray, dt: float) -> np.ndarray:
    """One step of the classical method of fourth order."""
    found = [rates(t, y)]
    for shares in STAGES:
        found.append(rates(t + sum(shares) * dt, y + dt * sum(c * k for c, k in zip(shares, found))))
    return y + dt * sum(w * k for w, k in zip(WEIGHTS, found))


def trapezoidal(rates: Rates, t: float, y: np.ndarray, dt: float) -> np.ndarray:
    """One step of the trapezoidal rule, repeated until it does not change. Raises ArithmeticError."""
    before = rates(t, y)
    after = y + dt * before
    for _ in range(SWEEPS):
        last, after = after, y + dt / 2 * (before + rates(t + dt, after))
        if np.abs(after - last).max() <= IMPLICIT * max(1.0, float(np.abs(after).max())):
            return after
    raise ArithmeticError(f'the trapezoidal rule does not converge within {SWEEPS} repetitions: a shorter step')


STEPS: dict[str, Callable[[Rates, float, np.ndarray, float], np.ndarray]] = {
    'forward_euler': euler, 'rk4': runge_kutta, 'trapezoid': trapezoidal}
ADAPTIVE = {'dop853': ('DOP853', 1e-12), 'radau': ('Radau', 1e-9)}      # names of SciPy, tolerances


def all_coordinates(task: MotionTask, record: MotionRecord, formulation: str, **options: object) -> None:
    """Fill the record by a formulation of ``FORMULATIONS`` and the task's scheme, one of ``STEPS`` or ``ADAPTIVE``.

    Raises SettingError for another scheme and for wrong options, DivergenceError with the step, and what the
    formulation raises, with the time in its text.
    """
    if task.scheme not in (*STEPS, *ADAPTIVE):
        raise SettingError('scheme', task.scheme, f'{", ".join((*STEPS, *ADAPTIVE))} with the formulation '
                           f'{formulation}, which is in all coordinates{task.model.why_unreduced(formulation)}')
    field, k = AllCoordinates(task, record, formulation, options), 0
    y = np.concatenate([task.start.q, task.start.qd])
    try:
        y = field.closed(task.times[0], y)
        field.write(0, y)
        solver = _solver(task, field, y) if task.scheme in ADAPTIVE and len(task.times) > 1 else None
        for k in range(1, len(task.times)):
            t, dt = task.times[k - 1], task.times[k] - task.times[k - 1]
            y = (_reached(solver, field, task.times[k]) if solver is not None
                 else field.closed(task.times[k], STEPS[task.scheme](field.rates, t, y, dt)))
            field.write(k, y)
    except ArithmeticError as error:
        raise task.diverged(k, str(error)) from error
    finally:
        if task.scheme in STEPS:
            field.warn()


def _solver(task: MotionTask, field: AllCoordinates, y: np.ndarray) -> OdeSolver:
    """SciPy's solver, whose longest step is dt where inputs could change in between."""
    from scipy import integrate  # here: slow to import
    method, tolerance = ADAPTIVE[task.scheme]
    return getattr(integrate, method)(field.rates, task.times[0], y, task.times[-1], rtol=tolerance, atol=tolerance,
                                      max_step=np.inf if task.inputs is None else task.dt)


def _reached(solver: OdeSolver, field: AllCoordinates, t: float) -> np.ndarray:
    """The state at a time, after as many steps as it takes, each put back on the constraints."""
    while solver.t < t:
        message = solver.step()
        if solver.status == 'failed':
            raise ArithmeticError(f'at {solver.t:.9g} s: {message}')
        curve = solver.dense_output()
        solver.kept = curve
        solver.y = field.closed(solver.t, solver.y)
        solver.f = field.rates(solver.t, solver.y)
    return solver.y if solver.t == t else field.closed(t, solver.kept(t))
