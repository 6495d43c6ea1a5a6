# SPDX-License-Identifier: Apache-2.0
"""Kinematics of a prescribed motion: position, velocity and acceleration problems at every time, on one branch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...errors import PositionProblemError, SettingError, SingularConfigurationError
from ..integrators.task import at_time
from ..model import Model
from ..partition import WORST, alternatives

# t -> (z, zd, zdd), each (g,); or these at all times, each (k, g)
Motion = Callable[[float], Sequence[np.ndarray]] | Sequence[np.ndarray]
Path = Callable[[float], tuple[np.ndarray, float]]      # 0..1 -> independent coordinates, time

LARGEST_STEP = 0.5      # m or rad, of any coordinate between two solutions
LARGEST_ERROR = 0.25    # of a step, between its prediction and its solution; more may be another branch
SMALLEST_ERROR = 1e-3   # m or rad, that is never another branch
DEEPEST = 24            # halvings of a step


def kinematics(model: Model, times: np.ndarray, motion: Motion | None = None) -> tuple[np.ndarray, ...]:
    """Positions, velocities and accelerations (k, n) of all coordinates at times (k,), s.

    Drivers move their coordinates; ``motion`` prescribes the model's independent ones. The branch of the model's start
    is followed. Raises SettingError, and with the time in their texts PositionProblemError, SingularConfigurationError.
    """
    prescribed = _prescribed(model, times, motion)
    partition, z = model.partition(), model.z
    q, found = partition.close(model.start.q), []       # the parameters may have changed since it was assembled
    path = _straight(q[z], 0.0, prescribed(times[0])[0], times[0])
    for i, t in enumerate(times):
        _, zd, zdd = prescribed(t)
        try:
            q = _walk(model, q, path, 0.0, 1.0)
            _check_regular(model, q, t)
            qd = partition.velocity(q, zd, t)
        except (PositionProblemError, SingularConfigurationError) as error:
            raise at_time(error, t) from error.__cause__
        found.append((q, qd, all_accelerations(model, q, qd, zdd, t)))
        if i + 1 < len(times):
            path = _between(prescribed, t, times[i + 1])
    return tuple(np.array(items).reshape(len(times), len(model.names)) for items in zip(*found))


def checked_times(times: Sequence[float] | np.ndarray) -> np.ndarray:
    """The times (k,), s, ascending, at least one; raises SettingError."""
    array = np.atleast_1d(np.asarray(times, dtype=float))
    if array.ndim != 1 or not array.size or not np.isfinite(array).all() or (np.diff(array) <= 0).any():
        raise SettingError('times', times, 'finite times in ascending order, s')
    return array


def _prescribed(model: Model, times: np.ndarray, motion: Motion | None) -> Callable[[float], tuple[np.ndarray, ...]]:
    """Motion of the independent coordinates at any time; between arrays by straight lines."""
    g = len(model.z)
    if motion is None:
        if g:
            raise SettingError('motion', None, f'the motion of {", ".join(model.independent)}, which no driver moves')
        motion = tuple(np.zeros((3, len(times), 0)))
    if callable(motion):
        return lambda t: _checked(motion(t), (g,))
    arrays = _checked(motion, (len(times), g))
    return lambda t: tuple(np.array([np.interp(t, times, column) for column in item.T]) for item in arrays)


def _checked(values: Sequence[np.ndarray], shape: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Three arrays of the shape; a single coordinate may be given without its axis."""
    expected = f'positions, velocities and accelerations, each {shape}, finite'
    try:
        arrays = [np.asarray(value, dtype=float) for value in values]
    except (TypeError, ValueError):
        raise SettingError('motion', values, expected) from None
    fits = [a.shape == shape or shape[-1] == 1 and a.shape == shape[:-1] for a in arrays]
    if len(arrays) != 3 or not all(fits) or not all(np.isfinite(a).all() for a in arrays):
        raise SettingError('motion', [a.shape for a in arrays], expected)
    return tuple(a.reshape(shape) for a in arrays)


def _straight(z0: np.ndarray, t0: float, z1: np.ndarray, t1: float) -> Path:
    return lambda s: (z0 + s * (z1 - z0), t0 + s * (t1 - t0))


def _between(prescribed: Callable[[float], tuple[np.ndarray, ...]], t0: float, t1: float) -> Path:
    return lambda s: (prescribed(t0 + s * (t1 - t0))[0], t0 + s * (t1 - t0))


def _walk(model: Model, q: np.ndarray, path: Path, s0: float, s1: float, depth: int = 0) -> np.ndarray:
    """Configuration at ``path(s1)`` from the one at ``path(s0)``; a step that might leave the branch is halved."""
    partition = model.partition()
    (z0, t0), (z1, t1) = path(s0), path(s1)
    rest = partition.velocity(q, np.zeros(len(z0)), t0)
    step = partition.velocity(q, z1 - z0, t0) - rest + rest * (t1 - t0)
    size, failure = float(np.max(np.abs(step), initial=0.0)), None
    if size <= LARGEST_STEP:
        try:
            found = partition.position(z1, q + step, t1)
            error = float(np.max(np.abs(found - q - step), initial=0.0))
            if error <= LARGEST_ERROR * size + SMALLEST_ERROR:
                return found
        except (PositionProblemError, SingularConfigurationError) as raised:
            failure = raised
    if depth == DEEPEST:
        raise failure or PositionProblemError(size, DEEPEST, q)
    middle = (s0 + s1) / 2
    return _walk(model, _walk(model, q, path, s0, middle, depth + 1), path, middle, s1, depth + 1)


def _check_regular(model: Model, q: np.ndarray, t: float) -> None:
    """Raise SingularConfigurationError at a dead point of the drivers and independent coordinates."""
    worst = model.partition().condition(q, t)
    if worst > WORST:
        J = model.residual(q, t)[1][model.active]
        driven = [driver.coordinate for driver in model.description.drivers.values()]
        would_do = [[model.names[i] for i in choice] for choice in alternatives(J, model.z)]
        raise SingularConfigurationError([*driven, *model.independent], worst, would_do)


def all_accelerations(model: Model, q: np.ndarray, qd: np.ndarray, zdd: np.ndarray, t: float) -> np.ndarray:
    """Accelerations (n,) of the acceleration problem ``J qdd = c``."""
    terms = model.terms(q, qd, None, t).take(model.active)
    dependent = [i for i in range(len(q)) if i not in model.z]
    qdd = np.zeros(len(q))
    qdd[model.z] = zdd
    qdd[dependent] = np.linalg.solve(terms.J[:, dependent], terms.c - terms.J[:, model.z] @ zdd)
    return qdd
