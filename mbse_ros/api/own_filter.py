# SPDX-License-Identifier: Apache-2.0
"""A filter of your own beside ours: what it must have, the equations that it gets, and what runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from ..compiled import Kernel
from ..dynamics.model import Model
from ..errors import DivergenceError, SettingError
from ..estimators.filters.defaults import START
from ..estimators.filters.parts.problem import problem
from ..estimators.filters.sigma_filter import closed, moved, rated, sensed
from .results.motion_estimate import MotionEstimate

Gaussian = tuple[np.ndarray, np.ndarray]


class FilterProtocol(Protocol):
    """What ``Observer`` asks of a filter: two functions of a mean (l,) and a covariance (l, l); NumPy, SI.

    The mean begins with the independent coordinates and their velocities, ``[z, zd]`` (2g,); what follows is yours.
    A class of it is made with ``Equations`` first. ``names`` (l,) of all entries: an attribute, needed only where
    there are more than ``equations.names``. Nothing else is asked: no base class, no registration.
    """

    def predict(self, mean: np.ndarray, covariance: np.ndarray, u: np.ndarray, t: float, dt: float) -> Gaussian:
        """Mean and covariance at time ``t``, s, one step ``dt`` later, with inputs ``u`` over the step."""

    def correct(self, mean: np.ndarray, covariance: np.ndarray, y: np.ndarray, u: np.ndarray, t: float
                ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Mean and covariance with the measurements ``y`` (s,), NaN where missing; then the innovation (s,) and its
        covariance (s, s), for which any value will do where a sample is missing. Not called where all are missing."""


class Equations:
    """A mechanism for filters in NumPy: the state is ``x = [z, zd]`` (2g,) of the independent coordinates, SI.

    ``names`` (2g,) of its entries; ``channels`` (s,) of the sensors, their ``stddev`` (s,), and whether they are
    ``angular`` (s,), so that differences wrap at +-pi. The other coordinates follow by the constraints, on the branch
    of the last start. Raises SettingError.
    """

    def __init__(self, model: Model, sensors: Sequence[str], stddev: Sequence[float] | None = None,
                 backend: str = 'auto') -> None:
        of = problem(model, sensors)
        if not of.g:
            raise SettingError('mechanism', model.description.name, 'one that can move')
        self.model, self.channels, self.angular = model, of.channels, np.array(of.angular, dtype=bool)
        self.stddev = np.array(of.stddev if stddev is None else stddev, dtype=float)
        if self.stddev.shape != of.stddev.shape or not np.all(self.stddev > 0):
            raise SettingError('stddev', list(self.stddev), f'positive numbers for {", ".join(of.channels)}')
        self.names = tuple(f'{kind}/{name}' for kind in ('position', 'velocity') for name in model.independent)
        functions = moved(of, 'trapezoid'), sensed(of), closed(of, 2 * of.g), rated(of)
        self._move, self._sense, self._close, self._rate = (Kernel(function, backend) for function in functions)
        self._size, self._q = 2 * of.g, model.start.q

    @property
    def _p(self) -> np.ndarray:
        return np.asarray(self.model.parameters)

    def at(self, q: np.ndarray) -> None:
        """Take up the branch of these coordinates (n,)."""
        self._q = np.asarray(q, dtype=float)

    def step(self, x: np.ndarray, u: np.ndarray, t: float, dt: float) -> np.ndarray:
        """State (2g,) at ``t``, from ``x`` at ``t - dt``, by the trapezoidal rule; u: inputs (k,) over the step."""
        return self._move(self._q, x, u, [t], [dt], self._p)[1]

    def sensors(self, x: np.ndarray, u: np.ndarray, t: float) -> np.ndarray:
        """What the sensors would give (s,) at a state, without noise."""
        return self._sense(self._q, x, u, [t], self._p)[0]

    def motion(self, x: np.ndarray, u: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Coordinates, velocities and accelerations (n,) of the whole mechanism at a state."""
        self._q = self._close(self._q, x, [t], self._p)[0]
        qd, qdd, _ = self._rate(self._q, x, u, [t], self._p)
        return self._q, qd, qdd

    def difference(self, y: np.ndarray, h: np.ndarray) -> np.ndarray:
        """``y - h`` (..., s), of angles the shorter way round."""
        error = np.asarray(y) - h
        return np.where(self.angular, (error + np.pi) % (2 * np.pi) - np.pi, error)


class OwnFilter:
    """Runs a filter of this protocol over logs, as ``Observer`` runs ours."""

    def __init__(self, equations: Equations, make: Callable[..., FilterProtocol], options: dict[str, object]) -> None:
        self.equations, self.filter = equations, make(equations, **options)
        for name in ('predict', 'correct'):
            if not callable(getattr(self.filter, name, None)):
                raise SettingError('estimator', type(self.filter).__name__,
                                   f'a class with the functions predict and correct; it has no {name}')
        self.channels = equations.channels
        self.names = tuple(getattr(self.filter, 'names', equations.names))
        if self.names[:len(equations.names)] != equations.names:
            raise SettingError('names', self.names, f'entries that begin with {", ".join(equations.names)}')
        self._t = 0.0

    def start(self, q: np.ndarray, qd: np.ndarray, stddev: float | Sequence[float] | None) -> None:
        """Start at coordinates and velocities (n,)."""
        z, size = self.equations.model.z, len(self.names)
        own = np.concatenate([q[z], qd[z]])
        try:
            spread = np.broadcast_to(np.asarray(START if stddev is None else stddev, dtype=float), (size,))
        except ValueError:
            raise SettingError('stddev', stddev, f'a number, or one for each of {", ".join(self.names)}') from None
        self.equations.at(q)
        self._now, self._t = (np.concatenate([own, np.zeros(size - len(own))]), np.diag(spread ** 2)), 0.0

    def run(self, t: np.ndarray, measured: np.ndarray, inputs: np.ndarray) -> MotionEstimate:
        """Over a log; raises DivergenceError with the step."""
        dt = float(t[1] - t[0]) if len(t) > 1 else float(t[0]) - self._t
        rows = [self._row(k, *row, dt) for k, row in enumerate(zip(t.tolist(), measured, inputs))]
        self._t = float(t[-1])
        mean, stddev, q, qd, qdd, innovation, spread = (np.array(column) for column in zip(*rows))
        here = np.isfinite(measured)
        of, name = self.equations.model, type(self.filter).__name__
        return MotionEstimate(of, name, t, self.names, mean, stddev, q, qd, qdd, of.independent,
                              np.zeros((len(t), len(of.z))), self.channels, np.where(here, innovation, np.nan), spread,
                              here)

    def _row(self, k: int, t: float, y: np.ndarray, u: np.ndarray, dt: float) -> tuple[np.ndarray, ...]:
        """One step, and what is kept of it."""
        s, g = len(self.channels), len(self.equations.model.z)
        mean, P = self._checked(k, t, *self.filter.predict(*self._now, u, t, dt))
        innovation, S = np.full(s, np.nan), np.full((s, s), np.nan)
        if np.isfinite(y).any():
            mean, P, innovation, S = self.filter.correct(mean, P, y, u, t)
            mean, P = self._checked(k, t, mean, P)
        self._now = mean, P
        spread = np.sqrt(np.diagonal(np.reshape(S, (s, s))))
        motion = self.equations.motion(mean[:2 * g], u, t)
        return mean, np.sqrt(np.maximum(np.diag(P), 0.0)), *motion, innovation, spread

    def _checked(self, k: int, t: float, mean: np.ndarray, P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of the right shapes and finite."""
        size, what = len(self.names), type(self.filter).__name__
        mean, P = np.asarray(mean, dtype=float), np.asarray(P, dtype=float)
        if mean.shape != (size,) or P.shape != (size, size):
            raise SettingError(what, (mean.shape, P.shape), f'a mean {(size,)} and a covariance {(size, size)}')
        if not (np.isfinite(mean).all() and np.isfinite(P).all()):
            raise DivergenceError(what, k, f'at t = {t:.6g} s')
        return mean, P


__all__ = ['Equations', 'FilterProtocol', 'OwnFilter']
