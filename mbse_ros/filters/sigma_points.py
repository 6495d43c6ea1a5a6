# SPDX-License-Identifier: Apache-2.0
"""Sets of sigma points, and the mean and the square root of the covariance that they give."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..errors import SettingError


@dataclass(frozen=True)
class SigmaPoints:
    """Points round a mean, in standard deviations, without the one at the mean itself.

    ``directions`` (l, N), ``weights`` (N,) positive; of the point at the mean the weight in the mean is what is missing
    to 1, ``centre`` its weight in covariances.
    """

    directions: np.ndarray
    weights: np.ndarray
    centre: float

    @property
    def size(self) -> int:
        """Number l of states."""
        return len(self.directions)

    @property
    def number(self) -> int:
        """Number N of points beside the mean."""
        return len(self.weights)

    def around(self, x: ca.SX, S: ca.SX, farthest: ca.SX) -> tuple[ca.SX, ca.SX]:
        """All points (l, 1 + N), the mean first, and their scale; S (l, l) is a square root of the covariance.

        The scale is 1, or less where a point would lie farther off than ``farthest`` (l,).
        """
        away = S @ ca.DM(self.directions)
        scale = ca.fmin(1, 1 / ca.fmax(ca.mmax(ca.fabs(away) / ca.repmat(farthest, 1, self.number)), 1e-300))
        return ca.horzcat(x, ca.repmat(x, 1, self.number) + scale * away), scale

    def moments(self, deviations: ca.SX, scale: ca.SX | float = 1.0) -> tuple[ca.SX, ca.SX]:
        """Mean (m,) and square root (m, N + 1) of the covariance of values given as deviations (m, N) from that at the
        mean, at points of a ``scale``; below 1 they give slopes only, as in an extended Kalman filter.

        With ``e = sum w d`` the covariance is ``sum w (d - e) (d - e)' + W0 e e'``, and also ``sum w d d' +
        (W0 + sum w - 2) e e'`` (the weights in the mean add up to 1). The one whose weights are all positive is taken:
        a sum of squares, without the difference of large numbers of Naya et al., review, Eq. 39 at small alpha.
        """
        mean = deviations @ ca.DM(self.weights) * ca.if_else(scale < 1, 0.0, 1.0)
        roots = ca.repmat(ca.DM(np.sqrt(self.weights)).T, deviations.shape[0], 1) / scale
        if self.centre >= 0:
            return mean, ca.horzcat(roots * (deviations - ca.repmat(mean, 1, self.number)), np.sqrt(self.centre) * mean)
        return mean, ca.horzcat(roots * deviations, np.sqrt(self._rest) * mean)

    @property
    def _rest(self) -> float:
        return self.centre + float(np.sum(self.weights)) - 2

    def check(self) -> SigmaPoints:
        """The points; raises SettingError where they can give a covariance that is not positive."""
        if self.centre < 0 and self._rest < 0:
            raise SettingError('beta', round(self._rest, 12), 'at least alpha^2, or no negative weight at the mean: '
                                                              'else the covariance need not be positive')
        return self


def symmetric_points(size: int, alpha: float = 0.1, beta: float = 2.0, kappa: float = 0.0) -> SigmaPoints:
    """The 2 l + 1 points of the UKF (Naya et al., review, Eqs. 34 to 39), ``lambda = alpha^2 (l + kappa) - l`` as in
    its source.

    The paper prints ``lambda`` without the ``- l``: the points then lie ``sqrt(l)`` standard deviations off for any
    small alpha, nearly those of ``alpha = 1`` here. The mean carries the model's rounding divided by ``alpha^2``: the
    usual 1e-3 leaves 1e-8 where 0.1, as good in all else, leaves 1e-12. Raises SettingError.
    """
    _check('alpha', alpha, 0 < alpha <= 1, 'above 0 and up to 1')
    _check('kappa', kappa, size + kappa > 0, f'above {-size}')
    spread = alpha ** 2 * (size + kappa)
    centre = 1 - size / spread
    directions = np.sqrt(spread) * np.hstack([np.eye(size), -np.eye(size)])
    return SigmaPoints(directions, np.full(2 * size, 0.5 / spread), centre + 1 - alpha ** 2 + beta).check()


def simplex_points(size: int, w0: float = 0.0) -> SigmaPoints:
    """The l + 2 points of the SSUKF on a sphere (Naya et al., review, Eq. 45) with the weight ``w0`` of the mean.

    The last point's last coordinate is ``j / sqrt(j (j + 1) w1)``: with the 1 that is printed the points would not have
    the mean. The least ``w0`` keeps the points nearest to it. Raises SettingError.
    """
    _check('w0', w0, 0 <= w0 < 1, 'from 0 to below 1')
    w1 = (1 - w0) / (size + 1)
    directions = np.array([[-1, 1]]) / np.sqrt(2 * w1)
    for j in range(2, size + 1):
        last = np.append(np.full(j, -1.0), j) / np.sqrt(j * (j + 1) * w1)
        directions = np.vstack([np.hstack([directions, np.zeros((j - 1, 1))]), last])
    return SigmaPoints(directions, np.full(size + 1, w1), w0)


def _check(name: str, value: float, holds: bool, expected: str) -> None:
    if not (holds and np.isfinite(value)):
        raise SettingError(name, value, expected)
