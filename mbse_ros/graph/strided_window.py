# SPDX-License-Identifier: Apache-2.0
"""``StridedWindow``: the smoother's window that takes several instants at once, for a solver that runs less often."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import DivergenceError
from .chain import Gaussian, Points
from .smoother import FEWEST, LAGGED, LARGE, SMALL, LinkageSmoother, Window

Row = tuple[float, np.ndarray, np.ndarray]      # t, samples (s,), inputs (u,)


class StridedWindow(Window):
    """As ``Window``, which solves with each new instant; here a solution serves all that came since the last one.

    ``lag``, s; starts at q, qd (n,), default the model's.
    """

    def __init__(self, smoother: LinkageSmoother, lag: float, q: np.ndarray | None = None,
                 qd: np.ndarray | None = None) -> None:
        like = smoother.window(lag, q, qd)
        super().__init__(smoother, like.start, smoother.model.start.q if q is None else np.asarray(q, dtype=float),
                         like.width)
        self._ahead = 0     # instants since the last solution

    def extend(self, step: int, rows: Sequence[Row]) -> list[tuple[np.ndarray, ...]]:
        """Take instants that follow each other, ``step`` the first one's; the estimates of those that leave the window.

        One row: as ``add``. Raises DivergenceError with the step, also where it does not converge for half of a window.
        """
        if self._points is None and len(rows) > 1:      # nothing to continue from yet
            return self.extend(step, rows[:1]) + self.extend(step + 1, rows[1:])
        for row in rows:
            self._append(*row)
        leaving = max(0, len(self._points.t) - self.width)
        try:
            base, ratio = self._solve(leaving + 1)
            self._judge(step, len(rows), ratio)
            for i in range(leaving):
                self._forget(_part(base, slice(i, i + 2)))
        except DivergenceError as error:
            raise DivergenceError('smoother', step, error.detail) from error
        out = [self._estimate(i) for i in range(leaving)]
        self._points = _part(self._points, slice(leaving, None))
        return out

    def _append(self, t: float, y: np.ndarray, u: np.ndarray) -> None:
        """A new instant, by the Taylor series from the last solution."""
        super()._append(t, y, u)
        if self._swept is not None:
            self._ahead += 1
            dt, last = self._ahead * self.smoother.dt, self._swept
            self._points.q[-1] = last.q[-1] + dt * last.qd[-1] + dt ** 2 / 2 * last.qdd[-1]

    def _solve(self, kept: int) -> tuple[Points, float]:
        """Gauss-Newton steps, twice as many where several are new: the first points ``kept`` at the last
        linearisation, and the largest last step in squared standard deviations."""
        points = self._points
        for _ in range(2 * LAGGED if self._ahead > 1 else LAGGED):
            swept = self._swept = self.smoother.chain.sweep(points, self.start)
            base = Points(*(value[:kept].copy() for value in _values(points)))
            self.smoother._move(points, swept)
            ratio = (swept.step ** 2 / np.diagonal(swept.covariance, axis1=1, axis2=2)).max()
            if ratio <= SMALL ** 2:
                break
        self._ahead = 0
        return base, ratio

    def _judge(self, step: int, count: int, ratio: float) -> None:
        """Raise DivergenceError where it has not converged for too long."""
        self._astray = self._astray + count if not ratio <= LARGE ** 2 else 0
        if self._astray > max(FEWEST * count, self.width // 2):
            raise DivergenceError('smoother', step, f'no convergence for {self._astray} samples, the last step is '
                                  f'{np.sqrt(ratio):.3g} standard deviations')

    def _forget(self, pair: Points) -> None:
        """Turn the first of two instants into a prior of the second one."""
        ahead = self.smoother.chain.sweep(pair, self.start).ahead
        self.start = Gaussian(pair.x[1] + ahead.mean, ahead.covariance)


def _values(points: Points) -> tuple[np.ndarray, ...]:
    return points.q, points.x, points.y, points.u, points.t


def _part(points: Points, part: slice) -> Points:
    return Points(*(value[part] for value in _values(points)))
