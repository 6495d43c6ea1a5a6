# SPDX-License-Identifier: Apache-2.0
"""What the sensors of a mechanism see of its state along a motion, and which other sensor would help most; by the
filters' linearised model, its transition and sensor matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from ...compiled import Kernel
from ...dynamics.model import Model
from ...errors import SettingError, check_choice
from ..ekf import exact_jacobian
from ..parts.model_step import rates
from ..parts.problem import Problem, problem
from ..parts.update import block_matrix
from .information import BLIND, InformationWindow, observability

POSITION, VELOCITY, ACCELERATION = 0.1, 0.5, 5.0    # known before, rad or m: the prior of the information
SHOWN = 0.05        # of the largest component: a direction in words leaves out what is smaller
MODELS = ('simple', 'exact', 'force')


@dataclass(frozen=True)
class SampledMotion:
    """States to look from, every ``dt``: coordinates (k, n), velocities (k, n), times (k,)."""

    q: np.ndarray
    qd: np.ndarray
    t: np.ndarray
    dt: float


@dataclass(frozen=True)
class StateObservability:
    """``windows`` along the motion for a transition ``model`` (``MODELS``); ``names`` and ``prior`` (l,) of
    the state; ``helpers``: least information (median over the windows) with each further sensor, best first."""

    model: str
    names: tuple[str, ...]
    prior: np.ndarray
    windows: list[InformationWindow]
    helpers: dict[str, float]

    @property
    def verdict(self) -> str:
        """'seen', 'blind', or 'blind at times'."""
        full = [window.rank == len(self.names) for window in self.windows]
        return 'seen' if all(full) else 'blind at times' if any(full) else 'blind'

    @property
    def rank(self) -> int:
        """Smallest rank of all windows."""
        return min(window.rank for window in self.windows)

    @property
    def least(self) -> float:
        """Least information, median over the windows."""
        return least_information(self.windows)

    @property
    def blind(self) -> dict[str, int]:
        """Directions that are not seen, in words, and in how many windows."""
        found: dict[str, int] = {}
        for window in self.windows:
            for words in blind_in_words(window, self.names, self.prior):
                found[words] = found.get(words, 0) + 1
        return found


def state_observability(model: Model, sensors: Sequence[str], motion: SampledMotion, kinds: Sequence[str],
                        window: float) -> list[StateObservability]:
    """Observability with each transition model of ``kinds`` over windows of so many seconds. Raises SettingError."""
    if not model.degrees_of_freedom:
        raise SettingError('mechanism', model.description.name, 'a mechanism with degrees of freedom left to estimate')
    everything = [*sensors, *(name for name in model.description.mechanical_sensors if name not in sensors)]
    of = problem(model, everything)
    zd, u = motion.qd[:, of.z], np.zeros((len(motion.t), of.system.u.numel() - of.g))
    length = max(2, int(round(window / motion.dt)))
    prior = prior_of(of, motion)
    return [_analysed(of, linearised(of, motion.q, zd, u, motion.t, motion.dt, kind), kind, sensors, everything, length,
                      prior) for kind in kinds]


def prior_of(of: Problem, motion: SampledMotion) -> np.ndarray:
    """Standard deviations (3 g,) that are taken as known before: of positions, velocities and the forces that would
    accelerate the mechanism at its start by ``ACCELERATION``."""
    u, kernel = np.zeros(of.system.u.numel()), Kernel(of.rates, of.model.backend)
    B = kernel(motion.q[0], motion.qd[0, of.z], u, motion.t[:1], np.asarray(of.model.parameters))[2]
    lift = B.reshape(2 * of.g, -1)[of.g:, -of.g:]
    return np.concatenate([np.full(of.g, POSITION), np.full(of.g, VELOCITY),
                           ACCELERATION * np.sqrt(np.diag(np.linalg.inv(lift)) / np.diag(lift))])


def _analysed(of: Problem, found: Linearised, kind: str, sensors: Sequence[str], everything: Sequence[str], window: int,
              prior: np.ndarray) -> StateObservability:
    owners = [channel.partition('.')[0] for channel in of.channels]
    prior = prior[:len(found.names)]

    def windows(names: Sequence[str]) -> list[InformationWindow]:
        rows = [i for i, owner in enumerate(owners) if owner in names]
        return observability(found.F, found.H[:, rows], of.stddev[rows], prior, window)

    helpers = {name: least_information(windows([*sensors, name])) for name in everything if name not in sensors}
    ordered = dict(sorted(helpers.items(), key=lambda item: -item[1]))
    return StateObservability(kind, found.names, prior, windows(sensors), ordered)


def least_information(windows: Sequence[InformationWindow]) -> float:
    """Information along the direction that is seen worst, median over the windows; 0 where it is blind."""
    least = float(np.median([window.information[0] for window in windows]))
    return least if least > BLIND else 0.0


def blind_in_words(window: InformationWindow, names: Sequence[str], prior: np.ndarray) -> list[str]:
    """Each direction that is not seen: 'theta', or 'theta with theta force' where only both together are determined."""
    return [' with '.join(names[i] for i in np.argsort(-np.abs(column), kind='stable')
                          if abs(column[i]) > SHOWN * np.max(np.abs(column)))
            for column in echelon(window.blind).T]


def echelon(directions: np.ndarray) -> np.ndarray:
    """The same space (l, b) by columns each of which has a component of its own."""
    columns = directions.copy()
    taken: list[int] = []
    for k in range(columns.shape[1]):
        free = np.abs(columns[:, k:]).copy()
        free[taken] = 0.0
        row, column = map(int, np.unravel_index(np.argmax(free), free.shape))
        columns[:, [k, k + column]] = columns[:, [k + column, k]]
        columns[:, k] /= columns[row, k]
        others = [j for j in range(columns.shape[1]) if j != k]
        columns[:, others] -= np.outer(columns[:, k], columns[row, others])
        taken.append(row)
    return columns


@dataclass(frozen=True)
class Linearised:
    """Along k states: ``F`` (k, l, l) over the step after each, ``H`` (k, s, l), of the state named ``names`` (l,)."""

    names: tuple[str, ...]
    F: np.ndarray
    H: np.ndarray


def linearised(problem: Problem, q: np.ndarray, zd: np.ndarray, u: np.ndarray, t: np.ndarray, dt: float,
               model: str = 'exact') -> Linearised:
    """Matrices at coordinates (k, n), independent velocities (k, g), inputs (k, u) and times (k,).

    ``model``: 'simple', ``[[I, dt I], [0, I]]`` of DEKF and errorEKF; 'exact', with the derivatives of the
    accelerations (errorEKF_EJ, exponential DEKF); 'force', the same with an unknown force along z (errorEKF_FE).
    Raises SettingError.
    """
    check_choice('model', model, MODELS)
    kernel, g = Kernel(linearised_function(problem, model), problem.model.backend), problem.g
    p = np.asarray(problem.model.parameters)
    found = [kernel(q[i], zd[i], u[i], [t[i]], [dt], p) for i in range(len(t))]
    size, s = (3 if model == 'force' else 2) * g, len(problem.channels)
    names = [problem.system.names[i] for i in problem.z]
    labels = names + [f'{name} rate' for name in names] + [f'{name} force' for name in names] * (model == 'force')
    return Linearised(tuple(labels), np.array([F.reshape(size, size) for F, _ in found]),
                      np.array([H.reshape(s, size) for _, H in found]))


def linearised_function(problem: Problem, model: str) -> ca.Function:
    """``(q, zd, u, t, dt, p) -> (F, H)``."""
    g, (q, zd, u, t, dt, p) = problem.g, problem.symbols('q zd u t dt p')
    force = problem.zeros(g)
    at = rates(problem, q, zd, u, force, t, p)
    _, H_z, H_zd, H_zdd = problem.sensors(q, zd, at.zdd, ca.vertcat(u, force), t, p)
    H, lift = ca.horzcat(H_z, H_zd), at.B[g:, -g:]
    rows: list[list[ca.SX | float]] = [[1.0, dt], [0.0, 1.0]]
    if model != 'simple':
        rows, H = exact_jacobian(at.a, at.b, dt), H + H_zdd @ ca.horzcat(at.a, at.b)
    if model == 'force':
        rows = [[*rows[0], lift * (dt ** 2 / 2)], [*rows[1], lift * dt], [0.0, 0.0, 1.0]]
        H = ca.horzcat(H, H_zdd @ lift)
    return ca.Function('mbse_linearised', [q, zd, u, t, dt, p], [block_matrix(type(q), rows, g), ca.densify(H)],
                       {'cse': True})
