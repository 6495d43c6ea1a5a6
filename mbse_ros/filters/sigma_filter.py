# SPDX-License-Identifier: Apache-2.0
"""Sigma-point Kalman filters with the state ``[z, zd]`` (Naya et al., review, sections 4.1, 4.2 and 4.4), for any
points.

The model of one point is one function of scalar operations, called once a point: the step compiles in the time of one.
"""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca

from .parts.model_step import advance, rates
from .parts.problem import Problem
from .parts.square_root import conditioning, factor, square
from .parts.step import Filter, Parts, build_filter
from .parts.update import constant_noise, measured, wrapped
from .sigma_points import SigmaPoints

FARTHEST = 0.5    # rad or m, of a point's coordinates and of what its velocities add in a step
CLOSINGS = 4      # Newton steps of a point's coordinates from the mean's: a point may lie two standard deviations off


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
