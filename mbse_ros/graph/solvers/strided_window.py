# SPDX-License-Identifier: Apache-2.0
"""``StridedWindow``: the last instants of a log; one that leaves gives its estimate and stays as a prior of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...errors import DivergenceError
from .chain import Gaussian, Points

if TYPE_CHECKING:
    from ..smoother import LinkageSmoother

LAGGED = 3              # Gauss-Newton steps of the window with each solution, at most
SMALL = 1e-2            # of a standard deviation: a step in a window that is small enough
LARGE = 1.0             # of a standard deviation: a last step that is too large where it comes again and again:
FEWEST = 5              # for so many samples, or half of the window

Row = tuple[float, np.ndarray, np.ndarray]      # t, samples (s,), inputs (u,)


class StridedWindow:
    """Takes instants one by one, or several at once for a solver that runs less often: a solution serves all that came
    since the last one.

    ``lag``, s; starts at q, qd (n,), default the model's.
    """

    def __init__(self, smoother: LinkageSmoother, lag: float, q: np.ndarray | None = None,
                 qd: np.ndarray | None = None) -> None:
        first = smoother.model.start
        self._first_q = np.asarray(first.q if q is None else q, dtype=float)
        self.smoother, self.width = smoother, max(1, round(lag / smoother.dt))
        self.start = smoother.prior(self._first_q, first.qd if qd is None else qd)
        self._points = Points(*[np.zeros(0)] * 5)       # none yet
        self._astray = 0    # samples without convergence
        self._ahead = 0     # instants since the last solution

    def extend(self, step: int, rows: Sequence[Row]) -> list[tuple[np.ndarray, ...]]:
        """Take instants that follow each other, ``step`` the first one's; the estimates of those that leave the window:
        t, q, qd, qdd, mean, covariance, s of data after it.

        Raises DivergenceError with the step, also where it does not converge for half of a window.
        """
        if not len(self._points.t) and len(rows) > 1:      # nothing to continue from yet
            return self.extend(step, rows[:1]) + self.extend(step + 1, rows[1:])
        for row in rows:
            self._append(*row)
        leaving = max(0, len(self._points.t) - self.width)
        try:
            base, ratio = self._solve(leaving + 1)
            self._judge(step, len(rows), ratio)
            for i in range(leaving):        # the first of two instants becomes a prior of the second one
                pair = self._swept if i == 0 else self.smoother.chain.sweep(base.part(slice(i, i + 2)), self.start)
                self.start = Gaussian(base.x[i + 1] + pair.ahead.mean, pair.ahead.covariance)
        except DivergenceError as error:
            raise DivergenceError('smoother', step, error.detail) from error
        out = [self._estimate(i) for i in range(leaving)]
        self._points = self._points.part(slice(leaving, None))
        return out

    def rest(self) -> list[tuple[np.ndarray, ...]]:
        """Estimates of the instants that are left."""
        shift = len(self._swept.step) - len(self._points.t)
        return [self._estimate(i + shift) for i in range(len(self._points.t))]

    def _append(self, t: float, y: np.ndarray, u: np.ndarray) -> None:
        """A new instant, by the Taylor series from the last solution."""
        if not len(self._points.t):
            self._points = Points(self._first_q[None].copy(), self.start.mean[None].copy(), y[None], u[None],
                                  np.array([t]))
            return
        p, dt, g = self._points, self.smoother.dt, self.smoother.problem.g
        last, z = self._swept, self.smoother.problem.z
        self._ahead += 1
        x, ahead = p.x[-1].copy(), self._ahead * dt
        x[:g] += dt * x[g:2 * g] + dt ** 2 / 2 * last.qdd[-1, z]
        x[g:2 * g] += dt * last.qdd[-1, z]
        q = last.q[-1] + ahead * last.qd[-1] + ahead ** 2 / 2 * last.qdd[-1]
        self._points = Points(np.vstack([p.q, q]), np.vstack([p.x, x]), np.vstack([p.y, y]), np.vstack([p.u, u]),
                              np.append(p.t, t))

    def _solve(self, kept: int) -> tuple[Points, float]:
        """Gauss-Newton steps, twice as many where several are new: the first points ``kept`` at the last
        linearisation, and the largest last step in squared standard deviations."""
        points = self._points
        for _ in range(2 * LAGGED if self._ahead > 1 else LAGGED):
            swept = self._swept = self.smoother.chain.sweep(points, self.start)
            base = points.part(slice(kept), copy=True)
            self.smoother.move(points, swept)
            with np.errstate(divide='ignore', invalid='ignore'):     # `_judge` takes infinity and NaN as astray
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

    def _estimate(self, i: int) -> tuple[np.ndarray, ...]:
        swept, p = self._swept, self._points
        at = i - (len(swept.step) - len(p.t))
        return p.t[at], swept.q[i], swept.qd[i], swept.qdd[i], p.x[at], swept.covariance[i], p.t[-1] - p.t[at]
