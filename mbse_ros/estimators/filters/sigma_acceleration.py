# SPDX-License-Identifier: Apache-2.0
"""Sigma-point filters with the accelerations alone as their state (paper 001, section 4.3), for any points.

The state is ``zdd``; the trapezoidal rule makes velocities and positions of it: ``z = z0 + dt^2/4 zdd``,
``zd = zd0 + dt/2 zdd``, where ``z0, zd0`` follow from the step before. A correction ``k`` of the acceleration moves the
position by ``dt^2/4 k`` and the velocity by ``dt/2 k``: an encoder's is a spring without a damper, and the paper finds
it less accurate. ``sigma_extended`` has positions and velocities in the state too.
"""

from __future__ import annotations

from dataclasses import fields, replace

import casadi as ca
import numpy as np

from .motion import rates, trapezoid
from .problem import Problem
from .sigma_filter import CLOSINGS, closed, drawn, gathered, observed, symbols
from .sigma_points import Points
from .square_root import conditioning, square
from .step import Filter, Parts, build_filter
from .update import constant_noise


class AccelerationFilter(Filter):
    """Filter whose mean is ``zdd`` (g,)."""

    @property
    def held(self) -> list[int]:
        """None: positions and velocities are not in the mean."""
        return []

    def start(self, q: np.ndarray, qd: np.ndarray, stddev: float | np.ndarray) -> np.ndarray:
        """Flat state at coordinates and velocities (n,); the mean is the model's acceleration without inputs,
        ``stddev`` that of the accelerations."""
        problem = self.problem
        g, zd, u = problem.g, qd[problem.z], np.zeros(problem.system.u.numel())
        zdd = np.array(problem.rates(q, zd, u, 0.0, problem.model.parameters)[0]).ravel()
        variance = np.broadcast_to(np.asarray(stddev, dtype=float) ** 2, (g,))
        return self.state.flat(x=zdd, P=np.diag(variance), q=q, zd=zd, base=np.zeros(2 * g))


def acceleration_filter(name: str, problem: Problem, points: Points) -> Filter:
    """Filter of the accelerations. Noise ``acceleration`` (g,): density of their random walk, rad^2/s^5 or m^2/s^5."""
    g = problem.g
    move, sense, draw, gather = _moved(problem), sensed(problem), drawn(points, [2] * g), gathered(points)
    look, rate, noise = observed(points, len(problem.channels), problem.angular), rated(problem), constant_noise(g, 1)
    update = conditioning(g, points.number + 1, problem.angular)

    def predict(state: Parts, given: Parts, tuning: Parts) -> Parts:
        u, t, dt, p, z = given['u'], given['t'], tuning['dt'], tuning['p'], state['q'][problem.z]
        X, scale = draw(state['x'], state['P'], dt)
        X = ca.horzcat(*(move(state['q'], state['zd'], x, u, t, dt, p) for x in ca.horzsplit(X)))
        base = ca.vertcat(z + dt * state['zd'] + dt ** 2 / 4 * state['x'], state['zd'] + dt / 2 * state['x'])
        x, S = gather(X, scale)
        now = built(base, x, dt)
        return {'x': x, 'P': square(g, points.number + 1)(S) + noise(tuning['acceleration'], dt), 'base': base,
                'q': closed(problem)(state['q'], now, t, p), 'zd': now[g:]}

    def correct(state: Parts, given: Parts, tuning: Parts) -> Parts:
        q, u, t, dt, p = state['q'], given['u'], given['t'], tuning['dt'], tuning['p']
        X, scale = draw(state['x'], state['P'], dt)
        h, E = look(ca.horzcat(*(sense(q, built(state['base'], x, dt), x, u, t, p) for x in ca.horzsplit(X))), scale)
        x, P, innovation, spread, used = update(state['x'], gather(X, scale)[1], given['o'], h, E, tuning['variance'],
                                                tuning['gate'])
        now = built(state['base'], x, dt)
        q = closed(problem)(q, now, t, p)
        qd, qdd, force = rate(q, now, x, u, t, p)
        return {'x': x, 'P': P, 'q': q, 'base': state['base'], 'zd': now[g:], 'qd': qd, 'qdd': qdd, 'force': force,
                'innovation': innovation, 'spread': spread, 'used': used}

    made = build_filter(name, problem, g, {'acceleration': g}, predict, correct, {'zd': (g, 1), 'base': (2 * g, 1)},
                        scalar=False)
    return AccelerationFilter(**{field.name: getattr(made, field.name) for field in fields(made)})


def built(base: ca.SX, zdd: ca.SX, dt: ca.SX) -> ca.SX:
    """``[z, zd]`` of the trapezoidal rule with the acceleration at its end."""
    return base + ca.vertcat(zdd * (dt ** 2 / 4), zdd * (dt / 2))


def _moved(problem: Problem) -> ca.Function:
    """``(q, zd, zdd, u, t, dt, p) -> zdd`` of the model at ``t``, after a trapezoidal step from that acceleration."""
    q, _, u, t, dt, p = symbols(problem, 'dt')
    g, zd, zdd = problem.g, problem.symbol('zd', problem.g), problem.symbol('zdd', problem.g)
    z, none = ca.vertcat(*(q[i] for i in problem.z)), problem.zeros(g)
    now = replace(rates(problem, q, zd, u, none, t - dt, p), zdd=zdd)
    ahead = q + now.qd * dt + now.qdd * (dt ** 2 / 2)
    end, zd_end, _ = trapezoid(problem, now, ca.vertcat(z, zd), ahead, u, none, t, dt, p)
    at = rates(problem, end, zd_end, u, none, t, p)
    return ca.Function('moved', [q, zd, zdd, u, t, dt, p], [at.zdd], {'cse': True})


def sensed(problem: Problem) -> ca.Function:
    """``(q, x, zdd, u, t, p) -> h`` (s,) at ``x = [z, zd]`` and an acceleration, coordinates near ``q``."""
    q, x, u, t, p = symbols(problem)
    g, zdd = problem.g, problem.symbol('zdd', problem.g)
    q_x = problem.close(q, x[:g], t, p, CLOSINGS)
    h = problem.sensors(q_x, x[g:], zdd, ca.vertcat(u, problem.zeros(g)), t, p)[0]
    return ca.Function('sensed', [q, x, zdd, u, t, p], [h], {'cse': True})


def rated(problem: Problem) -> ca.Function:
    """``(q, x, zdd, u, t, p) -> (qd, qdd, force)`` at an acceleration, and the force along z that the model lacks."""
    q, x, u, t, p = symbols(problem)
    g, zdd = problem.g, problem.symbol('zdd', problem.g)
    model = rates(problem, q, x[g:], u, problem.zeros(g), t, p)
    force = ca.solve(model.B[g:, -g:], zdd - model.zdd)
    now = rates(problem, q, x[g:], u, force, t, p)
    return ca.Function('rated', [q, x, zdd, u, t, p], [now.qd, now.qdd, force], {'cse': True})
