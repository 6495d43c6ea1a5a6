# SPDX-License-Identifier: Apache-2.0
"""Sigma-point filters with positions, velocities and accelerations as their state, for any points.

Paper 001, section 4.3, has the accelerations alone, and says that velocities may be added; with all three a correction
reaches each of them at once, and an accelerometer corrects what it measures. Of every point the trapezoidal rule takes
the acceleration that it comes with at the start of a step, and the model's at the end. That is also the point's new
acceleration: the noise is that of the accelerations, and reaches the velocities in the next step.
"""

from __future__ import annotations

from dataclasses import fields, replace

import casadi as ca
import numpy as np

from .motion import rates, trapezoid
from .problem import Problem
from .sigma_acceleration import rated, sensed
from .sigma_filter import CLOSINGS, closed, drawn, gathered, observed, symbols
from .sigma_points import Points
from .square_root import conditioning, square
from .step import Filter, Parts, build_filter


class ExtendedFilter(Filter):
    """Filter whose mean is ``[z, zd, zdd]``."""

    def start(self, q: np.ndarray, qd: np.ndarray, stddev: float | np.ndarray) -> np.ndarray:
        """Flat state at coordinates and velocities (n,); the acceleration is the model's without inputs, ``stddev``
        a number or (3g,)."""
        problem = self.problem
        zd, u = qd[problem.z], np.zeros(problem.system.u.numel())
        zdd = np.array(problem.rates(q, zd, u, 0.0, problem.model.parameters)[0]).ravel()
        variance = np.broadcast_to(np.asarray(stddev, dtype=float) ** 2, (3 * problem.g,))
        return self.state.flat(x=np.concatenate([q[problem.z], zd, zdd]), P=np.diag(variance), q=q)


def extended_filter(name: str, problem: Problem, points: Points) -> Filter:
    """Filter of ``[z, zd, zdd]``. Noise ``acceleration`` (g,): density of the accelerations' white error, rad^2/s^3 or
    m^2/s^3, whose variance over a step, half of which acts, is ``4 q_c / dt``."""
    g, size = problem.g, points.size
    move, sense, rate = moved(problem), sensed(problem), rated(problem)
    draw, gather = drawn(points, [0] * g + [1] * g + [2] * g), gathered(points)
    look = observed(points, len(problem.channels), problem.angular)
    update = conditioning(size, points.number + 1, problem.angular)

    def predict(state: Parts, given: Parts, tuning: Parts) -> Parts:
        u, t, dt, p = given['u'], given['t'], tuning['dt'], tuning['p']
        X, scale = draw(state['x'], state['P'], dt)
        ends = [move(state['q'], x, u, t, dt, p) for x in ca.horzsplit(X)]
        x, S = gather(ca.horzcat(*(x for _, x in ends)), scale)
        white = ca.diag(ca.vertcat(ca.MX.zeros(2 * g), 4 * tuning['acceleration'] / dt))
        return {'x': x, 'P': square(size, points.number + 1)(S) + white,
                'q': closed(problem)(ends[0][0], x[:2 * g], t, p)}

    def correct(state: Parts, given: Parts, tuning: Parts) -> Parts:
        q, u, t, p = state['q'], given['u'], given['t'], tuning['p']
        X, scale = draw(state['x'], state['P'], tuning['dt'])
        seen = [sense(q, x[:2 * g], x[2 * g:], u, t, p) for x in ca.horzsplit(X)]
        h, E = look(ca.horzcat(*seen), scale)
        x, P, innovation, spread, used = update(state['x'], gather(X, scale)[1], given['o'], h, E, tuning['variance'],
                                                tuning['gate'])
        q = closed(problem)(q, x[:2 * g], t, p)
        qd, qdd, force = rate(q, x[:2 * g], x[2 * g:], u, t, p)
        return {'x': x, 'P': P, 'q': q, 'qd': qd, 'qdd': qdd, 'force': force, 'innovation': innovation,
                'spread': spread, 'used': used}

    made = build_filter(name, problem, size, {'acceleration': g}, predict, correct, scalar=False)
    return ExtendedFilter(**{field.name: getattr(made, field.name) for field in fields(made)})


def moved(problem: Problem) -> ca.Function:
    """``(q, [z, zd, zdd], u, t, dt, p) -> (q, [z, zd, zdd])``: a trapezoidal step to ``t`` from that acceleration."""
    q, _, u, t, dt, p = symbols(problem, 'dt')
    g, x, none = problem.g, problem.symbol('x', 3 * problem.g), problem.zeros(problem.g)
    start = problem.close(q, x[:g], t - dt, p, CLOSINGS)
    model = rates(problem, start, x[g:2 * g], u, none, t - dt, p)
    ahead = start + model.qd * dt + model.qdd * (dt ** 2 / 2)
    end, zd, _ = trapezoid(problem, replace(model, zdd=x[2 * g:]), x[:2 * g], ahead, u, none, t, dt, p)
    zdd = rates(problem, end, zd, u, none, t, p).zdd
    x_end = ca.vertcat(*(end[i] for i in problem.z), zd, zdd)
    return ca.Function('moved', [q, x, u, t, dt, p], [end, x_end], {'cse': True})
