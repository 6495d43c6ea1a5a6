# SPDX-License-Identifier: Apache-2.0
"""Independent coordinates along a motion: kept, or chosen again before they fail; singular positions on the way."""

from __future__ import annotations

import casadi as ca
import numpy as np

from ...compiled import Kernel
from ...errors import MbseError, SettingError, SingularConfigurationError
from ..model import Model
from ..partition import WORST, alternatives, choose_independent, condition
from ..partitioned import Partitioned
from .task import MotionRecord, MotionTask, at_time

HYSTERESIS = 2.0        # a choice may be so many times worse than the best before it is changed
NEAR = 1e4              # volume that is a dead point to a solver with error control
REVIEW = 64             # steps after which the best choice is looked for anyway
RANK_LOST = 1e-3        # smallest singular value of the rows, by their scales, at a singular position


class CoordinateChoice:
    """The partition in use at each step of a motion, and the guard of its dead points.

    A choice fails where the determinant of the dependent block of J changes its sign. ``volume`` is
    ``sqrt(det(R'R)) = sqrt(det(J J')) / |det J_d|`` >= 1, for one degree of freedom the condition ``|R|``.
    """

    def __init__(self, task: MotionTask, record: MotionRecord) -> None:
        self.task, self.record, self.model = task, record, task.model
        chosen = task.independent == 'auto' or task.independent is None and not self.model.description.independent
        self.auto = chosen and bool(self.model.active)      # without constraints there is nothing to choose
        self._steps, self._sign, self._limit = 0, 0.0, np.inf
        self._read_jacobian()
        J = self._jacobian(task.start.q, task.start.t)
        self._take(self._best(J) if self.auto else self._wanted(), task.start.q, task.start.t)
        if not condition(J, self.partition.independent) < WORST:
            raise self.refuse(task.start.q, task.start.t)

    @property
    def limit(self) -> float:
        """Volume from which another choice is looked for; infinite where it is fixed."""
        return float(self._limit)

    def _wanted(self) -> list[int]:
        """Places of the coordinates asked for."""
        names = self.task.independent
        if names is None or names == 'auto' and not self.model.active:
            return self.model.z
        if isinstance(names, str) or len(set(names)) != self.model.degrees_of_freedom:
            raise SettingError('independent', names, f'auto, or {self.model.degrees_of_freedom} names, the degrees of '
                                                     'freedom of the mechanism')
        return self.model.system.indices(names)

    def check(self, q: np.ndarray, ahead: np.ndarray, t: float, t_ahead: float) -> bool:
        """Look at the step from q (n,) to its prediction ``ahead``; True where another partition is used from now on.

        Raises SingularConfigurationError where fixed coordinates pass a dead point in this step.
        """
        J = self._jacobian(ahead, t_ahead)
        sign, size = np.linalg.slogdet(J[:, self._dependent])
        if sign != self._sign:
            if np.linalg.slogdet(self._jacobian(q, t)[:, self._dependent])[0] != sign:
                return self._pass(q, ahead, t, t_ahead)
            self._sign = sign
        return self.auto and self._review(J, size, q, t)

    def stop_near_dead_point(self, q: np.ndarray, t: float) -> None:
        """Raise SingularConfigurationError beside a dead point or the end of a driver's reach.

        Steps under error control only creep to them.
        """
        J = self._jacobian(q, t)
        if self._volume(J, self.partition.independent) > NEAR or self._rank(J) < 3 / NEAR:
            raise self.refuse(q, t)

    def refuse(self, q: np.ndarray, t: float) -> MbseError:
        """The error of fixed coordinates at a dead point near q."""
        J, names = self._jacobian(q, t), self.model.names
        lost = self.partition.independent and self._rank(J) < RANK_LOST
        would_do = [] if lost else [[names[i] for i in found] for found in alternatives(J, self.partition.independent)]
        if lost:
            kept, worst = self.partition.names, np.inf
        elif self.partition.independent:
            kept, worst = self.partition.names, condition(J, self.partition.independent)
        else:
            kept, worst = tuple(self.model.rows[i] for i in self.model.system.driven), 1 / self._rank(J)
        return at_time(SingularConfigurationError(kept, worst, would_do), t)

    def _pass(self, q: np.ndarray, ahead: np.ndarray, t: float, t_ahead: float) -> bool:
        """The determinant changes its sign within the step: a dead point of the choice, or a singular position."""
        at = self._crossing(q, ahead, t, t_ahead)
        between, t_between = q + at * (ahead - q), t + at * (t_ahead - t)
        J = self._jacobian(between, t_between)
        if self._rank(J) < RANK_LOST:       # no choice would do: inertia carries on
            self.record.singular_times.append(float(t_between))
            self._sign = -self._sign
            return False
        if not self.auto:
            raise self.refuse(between, t_between)
        self._take(self._best(J), q, t)
        return True

    def _crossing(self, q: np.ndarray, ahead: np.ndarray, t: float, t_ahead: float) -> float:
        """Share of the step after which the determinant is zero, by bisection."""
        low, high = 0.0, 1.0
        for _ in range(40):
            s = (low + high) / 2
            J = self._jacobian(q + s * (ahead - q), t + s * (t_ahead - t))
            if np.linalg.slogdet(J[:, self._dependent])[0] == self._sign:
                low = s
            else:
                high = s
        return (low + high) / 2

    def _review(self, J: np.ndarray, size: float, q: np.ndarray, t: float) -> bool:
        """Change to the best choice where this one is much worse."""
        self._steps += 1
        volume = np.exp(np.linalg.slogdet(J @ J.T)[1] / 2 - size)
        if volume <= self._limit and self._steps % REVIEW:
            return False
        best = self._best(J)
        self._limit = HYSTERESIS * self._volume(J, best)
        if volume <= self._limit:
            return False
        self._take(best, q, t)
        return True

    def _take(self, places: list[int], q: np.ndarray, t: float) -> None:
        """Use the independent coordinates at these places of q from now on."""
        self.partition: Partitioned = self.task.partition(places)
        self._dependent = self.partition.system.dependent
        J = self._jacobian(q, t)
        self._sign = np.linalg.slogdet(J[:, self._dependent])[0]
        self._limit = HYSTERESIS * self._volume(J, self._best(J)) if self.auto else np.inf
        self.record.choices.append((float(t), self.partition.names))

    def _rank(self, J: np.ndarray) -> float:
        return smallest(J, self.model.row_scale[self.model.active])

    def _best(self, J: np.ndarray) -> list[int]:
        return choose_independent(J, names=self.model.names)

    def _volume(self, J: np.ndarray, independent: list[int]) -> float:
        dependent = [i for i in range(J.shape[1]) if i not in independent]
        if len(dependent) != len(J):    # rows that lose their rank: no choice is better than another
            return np.inf
        return float(np.exp(np.linalg.slogdet(J @ J.T)[1] / 2 - np.linalg.slogdet(J[:, dependent])[1]))

    def _jacobian(self, q: np.ndarray, t: float) -> np.ndarray:
        self._q[:], self._t[0] = q, t
        self._run()
        return self._J.copy()

    def _read_jacobian(self) -> None:
        """The Jacobian of the active rows, bound to arrays in place: it is read in every step."""
        system = self.model.system
        J = ca.jacobian(system.Phi[list(self.model.active)], system.q)
        kernel = Kernel(ca.Function('mbse_jacobian', [system.q, system.t, system.values.symbol], [J]), 'vm')
        self._q, self._t, self._J = np.zeros(system.n), np.zeros(1), np.zeros(J.shape)
        out = self._J[:, 0] if J.shape[1] == 1 else self._J
        self._run = kernel.bind([self._q, self._t, np.array(self.model.parameters, dtype=float)], [out])


def smallest(J: np.ndarray, scale: np.ndarray) -> float:
    """Smallest singular value of rows (m, n), each by its scale (m,) (``Model.row_scale``); 1 without rows, 0 of rows
    that are not finite."""
    if not np.isfinite(J).all():
        return 0.0
    return float(np.linalg.svd(J / scale[:, None], compute_uv=False)[-1]) if J.size else 1.0


def next_singular(model: Model, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, t: float,
                  horizon: float) -> float | None:
    """Time, s, until the motion predicted from (q, qd, qdd) (n,) passes a singular position; None within the horizon.

    A rank can only be lost where J changes by more than the smallest singular values at both ends together.
    """
    from scipy.optimize import minimize_scalar  # here: slow to import
    def jacobian(s: float) -> np.ndarray:
        return model.residual(q + s * (qd + s / 2 * qdd), t + s)[1][model.active]

    here, there, scale = jacobian(0.0), jacobian(horizon), model.row_scale[model.active]
    if not here.size or not np.isfinite(there).all():
        return None
    change = np.linalg.norm((there - here) / scale[:, None], 2)
    if smallest(here, scale) + smallest(there, scale) > 1.2 * change:
        return None
    found = minimize_scalar(lambda s: smallest(jacobian(s), scale), bounds=(0.0, horizon), method='bounded',
                            options={'xatol': 1e-7 * horizon})
    inside = 1e-3 * horizon < found.x < (1 - 1e-6) * horizon
    return float(found.x) if inside and found.fun < RANK_LOST else None
