# SPDX-License-Identifier: Apache-2.0
"""Configurations that satisfy the constraints: from a guess, and others near one, to judge ranks away from luck."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..errors import PositionProblemError
from .partition import lstsq, null_space

Residual = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]    # q -> Phi (m,), Phi_q (m, n)

TOLERANCE = 1e-12
LARGEST_STEP = 0.5     # of any coordinate in one iteration; a longer step may leave the branch of the guess
LEAD = 0.2             # of a coordinate that is led from the guess to its given value, m or rad
DESCENT = 100          # iterations of a search for the place where least is open
SAMPLES = 6
DISTANCE = 0.05        # how far the samples lie from a configuration, m or rad


def assemble(residual: Residual, guess: np.ndarray, fixed: Sequence[int] = (), iterations: int = 60) -> np.ndarray:
    """Configuration (n,) with ``Phi = 0`` near the guess, by Gauss-Newton with the shortest steps.

    The coordinates ``fixed`` keep their values. Redundant rows do no harm. Raises PositionProblemError.
    """
    q, free = np.array(guess, dtype=float), [i for i in range(len(guess)) if i not in set(fixed)]
    best = np.inf
    for _ in range(iterations):
        phi, J = residual(q)
        size = float(np.max(np.abs(phi), initial=0.0))
        scale = max(1.0, float(np.max(np.abs(q), initial=0.0)) ** 2)
        if not np.isfinite(size):
            break
        if size <= TOLERANCE * scale and size >= 0.25 * best or size == 0.0:
            return q
        best = min(best, size)
        step = lstsq(J[:, free], phi, cond=1e-10) if free else np.zeros(0)
        q[free] -= step * min(1.0, LARGEST_STEP / max(np.max(np.abs(step), initial=0.0), 1e-300))
    raise PositionProblemError(size, iterations, q)


def nearest(residual: Residual, guess: np.ndarray, fixed: Sequence[int], values: np.ndarray) -> np.ndarray:
    """Configuration (n,) downhill from the guess with the least sum of squares of ``Phi``, for where nothing closes.

    By Levenberg and Marquardt: Gauss-Newton wanders there, and ends elsewhere on each processor.
    """
    q, free, damping = np.array(guess, dtype=float), [i for i in range(len(guess)) if i not in set(fixed)], 1e-3
    q[list(fixed)] = values
    phi, J = residual(q)
    for _ in range(DESCENT if np.isfinite(phi).all() and np.isfinite(J).all() else 0):
        rows, right = np.vstack([J[:, free], damping * np.eye(len(free))]), np.append(phi, np.zeros(len(free)))
        there = q.copy()
        there[free] -= np.linalg.lstsq(rows, right, rcond=None)[0]
        phi_there, J_there = residual(there)
        if phi_there @ phi_there < phi @ phi and np.isfinite(J_there).all():
            q, phi, J, damping = there, phi_there, J_there, 0.4 * damping
        else:
            damping *= 2.0
    return q


def assemble_towards(residual: Residual, guess: np.ndarray, fixed: Sequence[int], values: np.ndarray) -> np.ndarray:
    """Configuration (n,) in which the coordinates ``fixed`` have the given values, on the branch of the guess.

    The guess is assembled as it is, then its coordinates are led to the values in small steps. Raises
    PositionProblemError.
    """
    direct, fixed = np.array(guess, dtype=float), list(fixed)
    direct[fixed] = values
    if not fixed:
        return assemble(residual, direct)
    try:
        q = assemble(residual, guess)
    except PositionProblemError:
        return assemble(residual, direct, fixed)
    away = values - q[fixed]
    steps = max(1, int(np.ceil(np.max(np.abs(away)) / LEAD)))
    for left in range(steps - 1, -1, -1):
        step = np.zeros(len(q))
        step[fixed] = values - away * (left / steps) - q[fixed]
        q = assemble(residual, q + _along(residual(q)[1], step, fixed), fixed)
    return q


def _along(J: np.ndarray, step: np.ndarray, fixed: list[int]) -> np.ndarray:
    """A step (n,) of the fixed coordinates with what the others do to first order."""
    free = [i for i in range(len(step)) if i not in fixed]
    moved = step.copy()
    if free:
        moved[free] = -lstsq(J[:, free], J @ step, cond=1e-8)
    return moved


def neighbours(residual: Residual, q: np.ndarray, seed: int = 0) -> list[np.ndarray]:
    """Configurations near ``q`` along the motion that the constraints allow, ``q`` first."""
    generator, found = np.random.default_rng(seed), [q]
    directions = null_space(residual(q)[1], rcond=1e-8)
    for _ in range(SAMPLES):
        weights = generator.uniform(-1.0, 1.0, directions.shape[1])
        try:
            found.append(assemble(residual, q + DISTANCE * directions @ weights))
        except PositionProblemError:       # a direction that a singular position only seems to allow
            continue
    return found


def slowest(rows: np.ndarray, values: np.ndarray, metric: np.ndarray) -> np.ndarray:
    """Velocities (n,) with ``rows qd = values`` of the smallest ``qd' metric qd``; metric (n, n) semi-definite."""
    qd = lstsq(rows, values, cond=1e-10)
    free = null_space(rows, rcond=1e-10)
    if not free.size:
        return qd
    return qd - free @ lstsq(free.T @ metric @ free, free.T @ metric @ qd, cond=1e-10)
