# SPDX-License-Identifier: Apache-2.0
"""Transition and sensor matrices of the filters' linearised model along a motion."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from ...compiled import Kernel
from ...errors import check_choice
from ..ekf import exact_jacobian
from .model_step import rates
from .problem import Problem
from .update import block_matrix

MODELS = ('simple', 'exact', 'force')


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
