# SPDX-License-Identifier: Apache-2.0
"""UKF with 2 l + 1 points and SSUKF, spherical simplex, with l + 2 (Naya et al., review, sections 4.1 to 4.4).

All take the noise ``acceleration`` (g,) and raise SettingError. The state is ``[z, zd]``; of those named after the
accelerations ``[z, zd, zdd]``, or as published (section 4.3) the accelerations ``alone``: the noise is then that of
``extended_filter``, or of the accelerations' random walk.

Accelerations in the state: the paper has the accelerations ``zdd`` alone; the trapezoidal rule makes velocities and
positions of them: ``z = z0 + dt^2/4 zdd``, ``zd = zd0 + dt/2 zdd``, where ``z0, zd0`` follow from the step before. A
correction ``k`` of the acceleration moves the position by ``dt^2/4 k`` and the velocity by ``dt/2 k``: an encoder's is
a spring without a damper, and the paper finds it less accurate.

It says that velocities may be added. With positions too a correction reaches each of the three at once, and an
accelerometer corrects what it measures. Of every point the trapezoidal rule takes the acceleration that it comes with
at the start of a step, and the model's at the end. That is also the point's new acceleration: the noise is that of the
accelerations, and reaches the velocities in the next step.
"""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np

from .parts.model_step import rates, trapezoid
from .parts.problem import Problem
from .parts.step import Filter, Parts, build_filter
from .parts.update import conditioning, constant_noise, measured, square
from .sigma_filter import (
    CLOSINGS,
    SigmaPoints,
    closed,
    drawn,
    gathered,
    observed,
    pointwise,
    sigma_filter,
    simplex_points,
    symmetric_points,
)


class AccelerationFilter(Filter):
    """Filter whose mean is ``zdd`` (g,)."""

    @property
    def held(self) -> list[int]:
        """None: positions and velocities are not in the mean."""
        return []

    def start(self, q: np.ndarray, qd: np.ndarray, stddev: float | np.ndarray) -> np.ndarray:
        """Flat state at coordinates and velocities (n,); the mean is the model's acceleration without inputs,
        ``stddev`` that of the accelerations."""
        g, zd = self.problem.g, qd[self.problem.z]
        variance = np.broadcast_to(np.asarray(stddev, dtype=float) ** 2, (g,))
        return self.state.flat(x=_acceleration(self.problem, q, zd), P=np.diag(variance), q=q, zd=zd,
                               base=np.zeros(2 * g))


class ExtendedFilter(Filter):
    """Filter whose mean is ``[z, zd, zdd]``."""

    def start(self, q: np.ndarray, qd: np.ndarray, stddev: float | np.ndarray) -> np.ndarray:
        """Flat state at coordinates and velocities (n,); the acceleration is the model's without inputs, ``stddev``
        a number or (3g,)."""
        z, zd = q[self.problem.z], qd[self.problem.z]
        variance = np.broadcast_to(np.asarray(stddev, dtype=float) ** 2, (3 * len(z),))
        return self.state.flat(x=np.concatenate([z, zd, _acceleration(self.problem, q, zd)]), P=np.diag(variance), q=q)


def _acceleration(problem: Problem, q: np.ndarray, zd: np.ndarray) -> np.ndarray:
    """The model's acceleration (g,) without inputs."""
    u = np.zeros(problem.system.u.numel())
    return np.array(problem.rates(q, zd, u, 0.0, problem.model.parameters)[0]).ravel()


def acceleration_filter(name: str, problem: Problem, points: SigmaPoints) -> Filter:
    """Filter of the accelerations. Noise ``acceleration`` (g,): density of their random walk, rad^2/s^5 or m^2/s^5."""
    g = problem.g
    move, sense, draw, gather = _moved(problem), sensed(problem), drawn(points, [2] * g), gathered(points)
    close = closed(problem, 2 * g)
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
                'q': close(state['q'], now, t, p), 'zd': now[g:]}

    def correct(state: Parts, given: Parts, tuning: Parts) -> Parts:
        q, u, t, dt, p = state['q'], given['u'], given['t'], tuning['dt'], tuning['p']
        X, scale = draw(state['x'], state['P'], dt)
        seen = [sense(q, ca.vertcat(built(state['base'], x, dt), x), u, t, p) for x in ca.horzsplit(X)]
        h, E = look(ca.horzcat(*seen), scale)
        x, P, *found = update(state['x'], gather(X, scale)[1], given['o'], h, E, tuning['variance'], tuning['gate'])
        now = built(state['base'], x, dt)
        q = close(q, now, t, p)
        qd, qdd, force = rate(q, ca.vertcat(now, x), u, t, p)
        return {'x': x, 'P': P, 'q': q, 'base': state['base'], 'zd': now[g:], 'qd': qd, 'qdd': qdd, 'force': force,
                **measured(*found)}

    return build_filter(name, problem, g, {'acceleration': g}, predict, correct, {'zd': (g, 1), 'base': (2 * g, 1)},
                        scalar=False, made=AccelerationFilter)


def extended_filter(name: str, problem: Problem, points: SigmaPoints) -> Filter:
    """Filter of ``[z, zd, zdd]``. Noise ``acceleration`` (g,): density of the accelerations' white error, rad^2/s^3 or
    m^2/s^3, whose variance over a step, half of which acts, is ``4 q_c / dt``."""
    g = problem.g

    def noise(tuning: Parts) -> ca.MX:
        return ca.diag(ca.vertcat(ca.MX.zeros(2 * g), 4 * tuning['acceleration'] / tuning['dt']))

    return pointwise(name, problem, points, [0] * g + [1] * g + [2] * g,
                     (_extended_moved(problem), sensed(problem), rated(problem)), noise, made=ExtendedFilter)


def built(base: ca.SX, zdd: ca.SX, dt: ca.SX) -> ca.SX:
    """``[z, zd]`` of the trapezoidal rule with the acceleration at its end."""
    return base + ca.vertcat(zdd * (dt ** 2 / 4), zdd * (dt / 2))


def _moved(problem: Problem) -> ca.Function:
    """``(q, zd, zdd, u, t, dt, p) -> zdd`` of the model at ``t``, after a trapezoidal step from that acceleration."""
    q, zd, zdd, u, t, dt, p = problem.symbols('q zd zdd u t dt p')
    z, none = problem.independent(q), problem.zeros(problem.g)
    now = replace(rates(problem, q, zd, u, none, t - dt, p), zdd=zdd)
    ahead = q + now.qd * dt + now.qdd * (dt ** 2 / 2)
    end, zd_end, _ = trapezoid(problem, now, ca.vertcat(z, zd), ahead, u, none, t, dt, p)
    at = rates(problem, end, zd_end, u, none, t, p)
    return ca.Function('moved', [q, zd, zdd, u, t, dt, p], [at.zdd], {'cse': True})


def _extended_moved(problem: Problem) -> ca.Function:
    """``(q, [z, zd, zdd], u, t, dt, p) -> (q, [z, zd, zdd])``: a trapezoidal step to ``t`` from that acceleration."""
    q, u, t, dt, p = problem.symbols('q u t dt p')
    g, x, none = problem.g, problem.symbol('x', 3 * problem.g), problem.zeros(problem.g)
    start = problem.close(q, x[:g], t - dt, p, CLOSINGS)
    model = rates(problem, start, x[g:2 * g], u, none, t - dt, p)
    ahead = start + model.qd * dt + model.qdd * (dt ** 2 / 2)
    end, zd, _ = trapezoid(problem, replace(model, zdd=x[2 * g:]), x[:2 * g], ahead, u, none, t, dt, p)
    zdd = rates(problem, end, zd, u, none, t, p).zdd
    x_end = ca.vertcat(problem.independent(end), zd, zdd)
    return ca.Function('moved', [q, x, u, t, dt, p], [end, x_end], {'cse': True})


def sensed(problem: Problem) -> ca.Function:
    """``(q, x, u, t, p) -> h`` (s,) at ``x = [z, zd, zdd]``, coordinates near ``q``."""
    (q, u, t, p), g, x = problem.symbols('q u t p'), problem.g, problem.symbol('x', 3 * problem.g)
    q_x = problem.close(q, x[:g], t, p, CLOSINGS)
    h = problem.sensors(q_x, x[g:2 * g], x[2 * g:], ca.vertcat(u, problem.zeros(g)), t, p)[0]
    return ca.Function('sensed', [q, x, u, t, p], [h], {'cse': True})


def rated(problem: Problem) -> ca.Function:
    """``(q, x, u, t, p) -> (qd, qdd, force)`` at ``x = [z, zd, zdd]``, and the force along z that the model lacks."""
    (q, u, t, p), g, x = problem.symbols('q u t p'), problem.g, problem.symbol('x', 3 * problem.g)
    model = rates(problem, q, x[g:2 * g], u, problem.zeros(g), t, p)
    force = ca.solve(model.B[g:, -g:], x[2 * g:] - model.zdd)
    now = rates(problem, q, x[g:2 * g], u, force, t, p)
    return ca.Function('rated', [q, x, u, t, p], [now.qd, now.qdd, force], {'cse': True})


def ukf(problem: Problem, alpha: float = 0.1, beta: float = 2.0, kappa: float = 0.0, reuse: bool = False,
        transition: str = 'trapezoid') -> Filter:
    """UKF; spread ``alpha``, weight ``beta`` of the mean, scaling ``kappa``; else as ``sigma_filter``."""
    return sigma_filter('UKF', problem, symmetric_points(2 * problem.g, alpha, beta, kappa), reuse, transition)


def ssukf(problem: Problem, w0: float = 0.0, reuse: bool = False, transition: str = 'trapezoid') -> Filter:
    """SSUKF with the weight ``w0`` of the mean; else as ``sigma_filter``."""
    return sigma_filter('SSUKF', problem, simplex_points(2 * problem.g, w0), reuse, transition)


def ukf_acceleration(problem: Problem, alpha: float = 0.1, beta: float = 2.0, kappa: float = 0.0,
                     alone: bool = False) -> Filter:
    """UKF of the accelerations; options as in ``ukf``."""
    points = symmetric_points(problem.g * (1 if alone else 3), alpha, beta, kappa)
    return (acceleration_filter if alone else extended_filter)('UKF_acceleration', problem, points)


def ssukf_acceleration(problem: Problem, w0: float = 0.0, alone: bool = False) -> Filter:
    """SSUKF of the accelerations; options as in ``ssukf``."""
    points = simplex_points(problem.g * (1 if alone else 3), w0)
    return (acceleration_filter if alone else extended_filter)('SSUKF_acceleration', problem, points)
