# SPDX-License-Identifier: Apache-2.0
"""What filters in dependent coordinates, with the state ``[q, qd]``, need of a mechanism (Naya et al., review, section
6): its constraints, sensors and prediction, with the plant noise along the constraints or as printed, and what takes a
corrected state back to them."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np

from ..dynamics.sensor_equations import state_sensors
from ..errors import SettingError, check_choice
from .cekf_penalty import PenaltyFilter, tangents, velocities
from .parts.model_step import rates
from .parts.problem import Problem
from .parts.step import Parts
from .parts.update import block_matrix, measured, propagation

NOISES = ('along', 'printed')
LOOSEST = 0.1       # norm of what constraints lack, SI: of the four-bar 0.02 of a coordinate, at 0.3 already 0.2
CLOSINGS = 3        # Newton steps after the constraints as measurements


class DependentFilter(PenaltyFilter):
    """Filter of all coordinates and velocities, each uncertain by itself."""

    def start(self, q: np.ndarray, qd: np.ndarray, stddev: float | np.ndarray) -> np.ndarray:
        """Flat state at coordinates and velocities (n,); ``stddev``: a number or (2n,)."""
        variance = np.broadcast_to(np.asarray(stddev, dtype=float) ** 2, (2 * self.problem.n,))
        return self.state.flat(x=np.concatenate([q, qd]), P=np.diag(variance), q=q)


def independent(problem: Problem) -> list[int]:
    """Places of z and zd in x."""
    return [*problem.z, *(problem.n + i for i in problem.z)]


def constraints(problem: Problem) -> ca.Function:
    """``(x, t, p) -> (c, C)``: ``c = [Phi, Phidot]`` (2m,) and its derivative C (2m, 2n), sparse."""
    system = problem.system
    x, rate = ca.vertcat(system.q, system.qd), ca.jacobian(system.Phi, system.q) @ system.qd
    c = ca.vertcat(system.Phi, rate + ca.jacobian(system.Phi, system.t))
    return ca.Function('constraints', [x, system.t, system.values.symbol], [ca.densify(c), ca.jacobian(c, x)],
                       {'cse': True})


def sensed(problem: Problem) -> ca.Function:
    """``(x, u, t, p) -> (h, H)``: sensors (s,) and their derivative (s, 2n).

    Sensors of position and velocity are taken as functions of all coordinates; those that see accelerations or
    constraint forces as functions of z and zd along the constraints, for only there is the model's acceleration meant.
    """
    system, n, g = problem.system, problem.n, problem.g
    model = state_sensors(system)
    x, u, t, p = problem.symbols('x u t p')
    v, sources = ca.vertcat(system.q, system.qd), ca.vertcat(model.qdd, model.lam)
    channels = range(model.output.numel())
    dynamic = [k for k in channels if ca.jacobian(model.output[k], sources).nnz()]
    static = [k for k in channels if k not in dynamic]
    direct = ca.Function('direct', [v, system.u, system.t, system.values.symbol],
                         [ca.densify(model.output[static]), ca.densify(ca.jacobian(model.output[static], v))])
    h, H = direct(x, ca.vertcat(u, problem.zeros(g)), t, p)
    if dynamic:
        zd, free = problem.independent(x[n:]), problem.zeros(g)
        at = rates(problem, x[:n], zd, u, free, t, p)
        found, H_z, H_zd, H_zdd = problem.sensors(x[:n], zd, at.zdd, ca.vertcat(u, free), t, p)
        along = ca.horzcat(H_z, H_zd) + H_zdd @ ca.horzcat(at.a, at.b)
        place = ca.DM.eye(2 * n)[independent(problem), :]
        h, H = ca.vertcat(h, found[dynamic]), ca.vertcat(H, along[dynamic, :] @ place)
    order = [(static + dynamic).index(k) for k in channels]
    return ca.Function('sensed', [x, u, t, p], [h[order], ca.densify(H[order, :])], {'cse': True})


def euler_step(problem: Problem) -> ca.Function:
    """``(x, P, density (g,), u, t, dt, p) -> (x, P)``: forward Euler from ``t - dt`` to t (Eqs. 56 to 58).

    The covariance of z and zd is that of Eq. 58, with the noise ``diag(q_c dt^3/3, q_c dt)``; that of the others
    follows by the constraints at the predicted point. In Eq. 58 it follows by those of the step before, and what it is
    off by the constraints would take for a measurement of z: in 30 s without samples 0.3 rad where 28 are right.
    """
    n, g, places = problem.n, problem.g, independent(problem)
    x, u, t, dt, p = problem.symbols('x u t dt p')
    P, density, zd = problem.symbol('P', 2 * n, 2 * n), problem.symbol('density', g), problem.independent(x[n:])
    at = rates(problem, x[:n], zd, u, problem.zeros(g), t - dt, p)
    ahead = x + dt * ca.vertcat(x[n:], at.qdd)
    F = block_matrix(type(x), [[1.0, dt], [0.0, 1.0]], g)
    P_z = propagation(2 * g)(F, P[places, places], ca.diag(ca.vertcat(density * (dt ** 3 / 3), density * dt)))
    T = tangents(problem)(ahead[:n], problem.independent(ahead[n:]), t, p)
    return ca.Function('euler_step', [x, P, density, u, t, dt, p], [ahead, carried(n, g)(T, P_z)], {'cse': True})


def printed_step(problem: Problem, slack: float) -> ca.Function:
    """As ``euler_step``, with the covariance of all coordinates and velocities by themselves (Eqs. 56 to 58) and the
    noise of Eqs. 108 to 112: of z as there, ``slack``^2 of every other one, and between them what matrix R makes of
    that of z."""
    n, g, z = problem.n, problem.g, ca.DM.eye(problem.n)[:, problem.z]
    x, u, t, dt, p = problem.symbols('x u t dt p')
    P, density, zd = problem.symbol('P', 2 * n, 2 * n), problem.symbol('density', g), problem.independent(x[n:])
    at = rates(problem, x[:n], zd, u, problem.zeros(g), t - dt, p)
    R = tangents(problem)(x[:n], zd, t - dt, p)[:n, :g]

    def block(variance: ca.SX) -> ca.SX:
        both = R @ ca.diag(variance) @ z.T
        return both + both.T - z @ ca.diag(variance) @ z.T + loose(problem, slack)[:n, :n]
    Sigma = ca.diagcat(block(density * (dt ** 3 / 3)), block(density * dt))
    F = block_matrix(type(x), [[1.0, dt], [0.0, 1.0]], n)
    return ca.Function('printed_step', [x, P, density, u, t, dt, p],
                       [x + dt * ca.vertcat(x[n:], at.qdd), propagation(2 * n)(F, P, ca.densify(Sigma))], {'cse': True})


def prediction(problem: Problem, noise: str = 'along', slack: float = 1.0) -> Callable[[Parts, Parts, Parts], Parts]:
    """The prediction of both filters: an ``euler_step``, or a ``printed_step``."""
    step, n = euler_step(problem) if noise == 'along' else printed_step(problem, slack), problem.n

    def predict(state: Parts, given: Parts, tuning: Parts) -> Parts:
        x, P = step(state['x'], state['P'], tuning['acceleration'], given['u'], given['t'], tuning['dt'], tuning['p'])
        return {'x': x, 'P': P, 'q': x[:n]}

    return predict


def carried(n: int, g: int) -> ca.Function:
    """``(T, P_z) -> T P_z T'`` (2n, 2n): the covariance of all along the constraints, which no rounding makes
    indefinite."""
    T, P = ca.SX.sym('T', 2 * n, 2 * g), ca.SX.sym('P_z', 2 * g, 2 * g)
    return ca.Function('carried', [T, P], [ca.tril2symm(ca.tril(ca.densify(T @ (P @ T.T))))], {'cse': True})


def closed(problem: Problem, closings: int = CLOSINGS) -> ca.Function:
    """``(x, P_z, u, t, p) -> (x, P, qdd)``: what the constraints still lack is taken away, z and zd kept.

    By the position and the velocity problem: the more tightly constraints are imposed as measurements the more of their
    nonlinearity goes into z. ``P_z`` (2g, 2g) is the covariance of z and zd, P that of all coordinates; ``qdd`` are the
    model's accelerations.
    """
    n, g = problem.n, problem.g
    x, u, t, p = problem.symbols('x u t p')
    P_z, zd = problem.symbol('P_z', 2 * g, 2 * g), problem.independent(x[n:])
    q = problem.close(x[:n], problem.independent(x), t, p, closings)
    at = rates(problem, q, zd, u, problem.zeros(g), t, p)
    cov = carried(n, g)(tangents(problem)(q, zd, t, p), P_z)
    return ca.Function('closed', [x, P_z, u, t, p], [ca.vertcat(q, at.qd), cov, at.qdd], {'cse': True})


def consistent(problem: Problem) -> ca.Function:
    """``(x, [z, zd], t, p) -> (x, T)`` on the constraints, coordinates near those of x, and its tangents."""
    n, g = problem.n, problem.g
    x, t, p = problem.symbols('x t p')
    state = problem.symbol('state', 2 * g)
    q = problem.close(x[:n], state[:g], t, p)
    T, qd = velocities(problem)(q, state[g:], t, p)
    return ca.Function('consistent', [x, state, t, p], [ca.vertcat(q, qd), T], {'cse': True})


def estimates(problem: Problem, x: ca.SX, P: ca.SX, qdd: ca.SX, *innovations: ca.SX) -> Parts:
    """Parts of the state and of the outputs."""
    n = problem.n
    return {'x': x, 'P': P, 'q': x[:n], 'qd': x[n:], 'qdd': qdd, 'force': ca.MX.zeros(problem.g),
            **measured(*innovations)}


def check_printed(noise: str, tolerance: float) -> None:
    """Raise SettingError for an unknown noise or an impossible tolerance."""
    check_choice('noise', noise, NOISES)
    if not 0 <= tolerance <= LOOSEST:
        raise SettingError('tolerance', tolerance, f'a number from 0 to {LOOSEST:g}: beyond it the other coordinates '
                           'do not follow the independent ones')


def loose(problem: Problem, slack: float) -> ca.DM:
    """Covariance (2n, 2n) that the dependent coordinates and velocities have of their own."""
    return ca.diag(ca.DM([0.0 if i in problem.z else slack ** 2 for i in range(problem.n)] * 2))
