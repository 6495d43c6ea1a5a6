# SPDX-License-Identifier: Apache-2.0
"""Estimated parameters of a model: numbers without bounds for the filter, values inside their bounds for the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from ...errors import SettingError
from .problem import Problem

LIMIT = 6.0      # of an exponent: positive numbers stay within a factor 403, others 0.25 % of their range off its ends

Bounds = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class ParameterSpace:
    """Parameters ``names`` (r,) at ``places`` of the model's parameters p, strictly between ``low`` and ``high`` (r,).

    The filter's ``theta`` (r,) is zero at the value v0 that the model had when the filter was built, and, near it, the
    change as a share of it: ``low + d exp(theta v0/d)`` with ``d = v0 - low`` where only the lower bound is finite
    (``v0 exp(theta)`` of positive numbers), its mirror image where only the upper one is, a logistic curve between
    two, ``v0 + theta |v0|`` without bounds. Of v0 = 0 theta is the change itself.
    """

    names: tuple[str, ...]
    places: tuple[int, ...]
    low: np.ndarray
    high: np.ndarray
    start: np.ndarray

    @cached_property
    def function(self) -> ca.Function:
        """``(theta, p) -> (p with the estimated values, their derivative by theta (r,))``."""
        theta, p = ca.SX.sym('theta', len(self.names)), ca.SX.sym('p', self._all)
        entries, slopes = ca.vertsplit(p), []
        for k, place in enumerate(self.places):
            value = _value(theta[k], float(self.start[k]), float(self.low[k]), float(self.high[k]))
            entries[place] = value
            slopes.append(ca.jacobian(value, theta[k]))
        return ca.Function('estimated', [theta, p], [ca.vertcat(*entries), ca.vertcat(*slopes)])

    @cached_property
    def limit(self) -> np.ndarray:
        """Largest |theta| (r,), beyond which the filter's mean does not go."""
        below, above = self.start - self.low, self.high - self.start
        with np.errstate(invalid='ignore', divide='ignore'):
            room = np.where(np.isfinite(below) & np.isfinite(above), below * above / (below + above),
                            np.minimum(below, above))
        at = np.abs(np.where(np.isfinite(room), _logit(self.start, self.low, self.high), 0.0))
        return np.where(np.isfinite(room), (LIMIT - np.minimum(at, LIMIT - 1)) * room / _scale(self.start), np.inf)

    def limited(self, theta: ca.SX) -> ca.SX:
        """Expression ``theta`` kept within its limit."""
        return ca.fmin(ca.fmax(theta, -ca.DM(np.minimum(self.limit, 1e6))), ca.DM(np.minimum(self.limit, 1e6)))

    def values(self, theta: np.ndarray) -> np.ndarray:
        """Values (..., r), SI, of means theta (..., r)."""
        return self._evaluate(theta)[0]

    def stddev(self, theta: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """Standard deviations (..., r), SI, of the values, to first order, from the variances of theta (..., r)."""
        return self._evaluate(theta)[1] * np.sqrt(variance)

    def _evaluate(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        theta = np.asarray(theta, dtype=float)
        flat = theta.reshape(-1, len(self.names))
        values, slopes = self.function.map(len(flat))(flat.T, np.zeros((self._all, len(flat))))
        places = list(self.places)
        return values.full()[places].T.reshape(theta.shape), slopes.full().T.reshape(theta.shape)

    @property
    def _all(self) -> int:
        return max(self.places, default=-1) + 1 if self.total is None else self.total

    total: int | None = None


def parameter_space(problem: Problem, names: Sequence[str] | None = None, bounds: Bounds | None = None
                    ) -> ParameterSpace:
    """Space of a model's free parameters (default: all), from the model's values; ``bounds`` name -> (low, high), inf
    where there is none; default: positive stays positive, else none. Raises SettingError."""
    values, bounds = problem.system.values, dict(bounds or {})
    known = tuple(values.names)
    names = known if names is None else tuple(names)
    for name in (*names, *bounds):
        if name not in known or not names:
            raise SettingError('parameters', name, 'one of the free numbers: ' + (', '.join(known) or 'none is free'))
    if not names:
        raise SettingError('parameters', [], 'at least one free number of the model')
    places = tuple(known.index(name) for name in names)
    start = np.asarray(problem.model.parameters, dtype=float)[list(places)]
    ends = [bounds.get(name, (0.0, np.inf) if value > 0 else (-np.inf, np.inf)) for name, value in zip(names, start)]
    low, high = np.array(ends, dtype=float).T
    for name, value, least, most in zip(names, start, low, high):
        if not least < value < most:
            raise SettingError(f'bounds.{name}', [float(least), float(most)], f'bounds round the value {value:g}')
    return ParameterSpace(names, places, low, high, start, len(known))


def _value(theta: ca.SX, start: float, low: float, high: float) -> ca.SX:
    scale = float(_scale(start))
    if np.isfinite(low) and np.isfinite(high):
        slope = scale * (high - low) / ((start - low) * (high - start))
        return low + (high - low) / (1 + ca.exp(-_logit(start, low, high) - slope * theta))
    if np.isfinite(low):
        return low + (start - low) * ca.exp(theta * (scale / (start - low)))
    if np.isfinite(high):
        return high - (high - start) * ca.exp(-theta * (scale / (high - start)))
    return start + scale * theta


def _scale(start: float | np.ndarray) -> np.ndarray:
    return np.where(start == 0, 1.0, np.abs(start))


def _logit(start: float | np.ndarray, low: float | np.ndarray, high: float | np.ndarray) -> np.ndarray:
    """Place of the start on the logistic curve, 0 where one of the bounds is infinite."""
    both = np.isfinite(low) & np.isfinite(high)
    with np.errstate(invalid='ignore', divide='ignore'):
        return np.where(both, np.log((start - low) / (high - start)), 0.0)
