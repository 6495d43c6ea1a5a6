# SPDX-License-Identifier: Apache-2.0
"""Sigma-point Kalman filters with the state ``[z, zd]`` (Naya et al., review, sections 4.1, 4.2 and 4.4), for any
points; sets of points, and the mean and the square root of the covariance that they give.

The model of one point is one function of scalar operations, called once a point: the step compiles in the time of one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..errors import SettingError
from .parts.model_step import advance, rates
from .parts.problem import Problem
from .parts.step import Filter, Parts, build_filter
from .parts.update import conditioning, constant_noise, factor, measured, square, wrapped

FARTHEST = 0.5    # rad or m, of a point's coordinates and of what its velocities add in a step
CLOSINGS = 4      # Newton steps of a point's coordinates from the mean's: a point may lie two standard deviations off


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


def sigma_filter(name: str, problem: Problem, points: SigmaPoints, reuse: bool = False,
                 transition: str = 'trapezoid') -> Filter:
    """Filter with points that the model moves by a ``transition`` (``model_step.TRANSITIONS``).

    Noise ``acceleration`` (g,): its density, rad^2/s^3 or m^2/s^3. The points are drawn again for the measurements,
    from the covariance with its noise; with ``reuse`` those that the model moved are taken (Naya et al., review, end of
    4.1), at most one correction to a prediction.
    """
    g, noise = problem.g, constant_noise(problem.g, 2)
    functions = moved(problem, transition), sensed(problem), rated(problem)
    return pointwise(name, problem, points, [0] * g + [1] * g, functions,
                     lambda tuning: noise(tuning['acceleration'], tuning['dt']), reuse)


def pointwise(name: str, problem: Problem, points: SigmaPoints, orders: list[int],
              functions: tuple[ca.Function, ca.Function, ca.Function], noise: Callable[[Parts], ca.MX],
              reuse: bool = False, made: type[Filter] = Filter) -> Filter:
    """Filter of a state x (l,) that begins with z; ``orders`` as in ``drawn``, ``noise (tuning)`` (l, l) of a step.

    ``functions``: of one point, ``(q, x, u, t, dt, p) -> (q, x)`` moved by the model, ``(q, x, u, t, p) -> h`` seen by
    the sensors, ``(q, x, u, t, p) -> (qd, qdd, force)`` of the mean. ``reuse`` as in ``sigma_filter``.
    """
    size, (move, sense, rate) = points.size, functions
    draw, gather, close = drawn(points, orders), gathered(points), closed(problem, size)
    look = observed(points, len(problem.channels), problem.angular)
    update = conditioning(size, points.number + 1 + size * reuse, problem.angular)

    def predict(state: Parts, given: Parts, tuning: Parts) -> Parts:
        u, t, dt, p = given['u'], given['t'], tuning['dt'], tuning['p']
        X, scale = draw(state['x'], state['P'], dt)
        ends = [move(state['q'], x, u, t, dt, p) for x in ca.horzsplit(X)]
        X = ca.horzcat(*(x for _, x in ends))
        x, S = gather(X, scale)
        P = square(size, points.number + 1)(S) + noise(tuning)
        return {'x': x, 'P': P, 'q': close(ends[0][0], x, t, p), **({'points': X, 'scale': scale} if reuse else {})}

    def correct(state: Parts, given: Parts, tuning: Parts) -> Parts:
        q, u, t, p = state['q'], given['u'], given['t'], tuning['p']
        X, scale = (state['points'], state['scale']) if reuse else draw(state['x'], state['P'], tuning['dt'])
        h, E = look(ca.horzcat(*(sense(q, x, u, t, p) for x in ca.horzsplit(X))), scale)
        S = gather(X, scale)[1]
        if reuse:
            S, E = ca.horzcat(S, factor(size)(noise(tuning))), ca.horzcat(E, ca.MX(E.shape[0], size))
        x, P, *found = update(state['x'], S, given['o'], h, E, tuning['variance'], tuning['gate'])
        q = close(q, x, t, p)
        qd, qdd, force = rate(q, x, u, t, p)
        return {'x': x, 'P': P, 'q': q, 'qd': qd, 'qdd': qdd, 'force': force, **measured(*found),
                **({'points': X, 'scale': scale} if reuse else {})}

    memory = {'points': (size, points.number + 1), 'scale': (1, 1)} if reuse else {}
    return build_filter(name, problem, size, {'acceleration': problem.g}, predict, correct, memory, scalar=False,
                        made=made)


def moved(problem: Problem, transition: str) -> ca.Function:
    """``(q, x, u, t, dt, p) -> (q, x)``: the model's step to ``t`` from ``x = [z, zd]``, coordinates near ``q``."""
    g, (q, x, u, t, dt, p) = problem.g, problem.symbols('q X u t dt p')
    start = problem.close(q, x[:g], t - dt, p, CLOSINGS)
    end, zd, _ = advance(problem, transition, start, x[g:], u, problem.zeros(g), t, dt, p)
    return ca.Function('moved', [q, x, u, t, dt, p], [end, ca.vertcat(problem.independent(end), zd)], {'cse': True})


def sensed(problem: Problem) -> ca.Function:
    """``(q, x, u, t, p) -> h`` (s,) at ``x = [z, zd]``, coordinates near ``q``."""
    g, (q, x, u, t, p) = problem.g, problem.symbols('q X u t p')
    q_x = problem.close(q, x[:g], t, p, CLOSINGS)
    zdd = rates(problem, q_x, x[g:], u, problem.zeros(g), t, p).zdd
    h = problem.sensors(q_x, x[g:], zdd, ca.vertcat(u, problem.zeros(g)), t, p)[0]
    return ca.Function('sensed', [q, x, u, t, p], [h], {'cse': True})


def rated(problem: Problem) -> ca.Function:
    """``(q, x, u, t, p) -> (qd, qdd, force)`` of the model at closed coordinates; no force."""
    g, (q, x, u, t, p) = problem.g, problem.symbols('q X u t p')
    now = rates(problem, q, x[g:], u, problem.zeros(g), t, p)
    return ca.Function('rated', [q, x, u, t, p], [now.qd, now.qdd, problem.zeros(g)], {'cse': True})


def closed(problem: Problem, size: int) -> ca.Function:
    """``(q, x, t, p) -> q`` at the independent coordinates with which x (size,) begins."""
    (q, t, p), x = problem.symbols('q t p'), problem.symbol('x', size)
    return ca.Function('closed', [q, x, t, p], [problem.close(q, x[:problem.g], t, p, CLOSINGS)], {'cse': True})


def drawn(points: SigmaPoints, orders: list[int]) -> ca.Function:
    """``(x, P, dt) -> (points (l, 1 + N), scale)``; ``orders`` (l,) of the states as derivatives of coordinates."""
    x, P, dt = ca.SX.sym('x', points.size), ca.SX.sym('P', points.size, points.size), ca.SX.sym('dt')
    farthest = ca.vertcat(*(FARTHEST / dt ** order for order in orders))
    X, scale = points.around(x, factor(points.size)(P), farthest)
    return ca.Function('drawn', [x, P, dt], [X, scale], {'cse': True})


def gathered(points: SigmaPoints) -> ca.Function:
    """``(X (l, 1 + N), scale) -> (mean, square root of the covariance (l, N + 1))``."""
    X, scale = ca.SX.sym('X', points.size, points.number + 1), ca.SX.sym('scale')
    mean, S = points.moments(X[:, 1:] - ca.repmat(X[:, 0], 1, points.number), scale)
    return ca.Function('gathered', [X, scale], [X[:, 0] + mean, ca.densify(S)], {'cse': True})


def observed(points: SigmaPoints, s: int, angular: tuple[bool, ...]) -> ca.Function:
    """``(Y (s, 1 + N), scale) -> (mean (s,), square root of the covariance (s, N + 1))`` of predicted measurements;
    angles by the shorter way from that at the mean."""
    Y, scale = ca.SX.sym('Y', s, points.number + 1), ca.SX.sym('scale')
    away = Y[:, 1:] - ca.repmat(Y[:, 0], 1, points.number)
    rows = [wrapped(away[k, :]) if angular[k] else away[k, :] for k in range(s)]
    mean, E = points.moments(ca.vertcat(*rows) if s else away, scale)
    return ca.Function('observed', [Y, scale], [Y[:, 0] + mean, ca.densify(E)], {'cse': True})
