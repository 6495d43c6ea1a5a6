# SPDX-License-Identifier: Apache-2.0
"""What the filters in dependent coordinates need of a mechanism, ``x = [q, qd]``, and the parts that they share."""

from __future__ import annotations

import casadi as ca

from ....dynamics.sensor_equations import state_sensors
from ..cekf_penalty import tangents, velocities
from .model_step import rates
from .problem import Problem
from .step import Parts
from .update import block_matrix, measured, propagation

SCALAR = 5_000      # multiplications of a correction up to which it is written out in scalar operations
CLOSINGS = 3        # Newton steps after the constraints as measurements


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


def carried(n: int, g: int) -> ca.Function:
    """``(T, P_z) -> T P_z T'`` (2n, 2n): the covariance of all along the constraints, which no rounding makes
    indefinite."""
    T, P = ca.SX.sym('T', 2 * n, 2 * g), ca.SX.sym('P_z', 2 * g, 2 * g)
    return ca.Function('carried', [T, P], [ca.tril2symm(ca.tril(ca.densify(T @ (P @ T.T))))], {'cse': True})


def is_small(size: int, rows: int) -> bool:
    """Whether a correction is written out in scalar operations."""
    return size * rows ** 2 <= SCALAR


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
