# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs along a motion, by the virtual machine: what the exported C has to reproduce."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import SettingError
from .functions import TOLERANCE, ExportedFunctions

COUNT = 6           # recorded states
BETWEEN = 5         # steps from one to the next
SPEED = 0.5         # m/s or rad/s, added to the start's, so that no term is zero
LOAD = 10.0         # N or N m, the largest input
ASIDE = 1e-3        # m or rad, of the guess of the position problem
SMALLEST = 1e-3     # outputs smaller than this are compared as if they were as large


@dataclass(frozen=True)
class Record:
    """``inputs``: t, X, q, u and a guess of q in one row; ``outputs``: f, A, B, qdd, qd, energy, h, H, q, X_next,
    q_next, F in one row, in the order of the test program."""

    inputs: np.ndarray
    outputs: np.ndarray


def records(functions: ExportedFunctions, dt: float) -> list[Record]:
    """Records along a motion from the start with steps ``dt``, s; raises SettingError where a step fails."""
    model, g = functions.model, len(functions.model.z)
    q, t = model.start.q, model.start.t
    X = np.concatenate([q[model.z], model.start.qd[model.z] + SPEED * np.sin(1.0 + np.arange(g))])
    model.partition().rates(q, X[g:])       # at a dead point: the error that says so
    found = []
    for k in range(COUNT * BETWEEN):
        u = LOAD * np.sin(0.3 * k + np.arange(len(model.inputs)))
        with np.errstate(over='ignore', invalid='ignore'):      # of a step that is much too long
            fresh, q_next, residual, F = functions.step(X, q, u, t, dt)
        scale = max(1.0, float(np.max(np.abs(q_next))) ** 2)
        if not (np.isfinite(fresh).all() and residual <= TOLERANCE * scale):
            raise SettingError('dt', dt, f'a step that the mechanism can take at t = {t:.6g} s, X = {X.tolist()}')
        if k % BETWEEN == 0:
            found.append(_record(functions, X, q, u, t, [fresh, q_next, F]))
        X, q, t = fresh, q_next, t + dt
    return found


def _record(functions: ExportedFunctions, X: np.ndarray, q: np.ndarray, u: np.ndarray, t: float,
            step: list[np.ndarray]) -> Record:
    g = len(functions.z)
    guess = q + ASIDE * np.sin(2.0 + np.arange(len(q)))
    guess[functions.z] = X[:g]
    f, A, B, qd, qdd = functions.rates(q, X[g:], u, t)
    energy, = functions.call('energy', q, X[g:], u, [t])
    sensors = functions.call('sensors', q, X[g:], u, [t]) if 'sensors' in functions.functions else ()
    closed, _ = functions.position(guess, t)
    outputs = [f, A, B, qdd, qd, energy, *sensors, closed, *step]
    return Record(np.concatenate([[t], X, q, u, guess]), np.concatenate([item.ravel() for item in outputs]))
