# SPDX-License-Identifier: Apache-2.0
"""What the filters in dependent coordinates need of a mechanism, ``x = [q, qd]``, and the parts that they share."""

from __future__ import annotations

import casadi as ca

from ...dynamics.sensor_equations import state_sensors
from .cekf_penalty import tangents
from .motion import rates
from .problem import Problem
from .step import Parts
from .update import correction

SCALAR = 2_000      # multiplications of a correction up to which it is written out in scalar operations
CLOSINGS = 3        # Newton steps after the constraints as measurements


def symbols(problem: Problem, *names: str) -> tuple[ca.SX, ...]:
    """Symbols of the problem's kind: 'x' (2n,), 'u' (the mechanism's inputs), 't', 'p', 'o' and 'variance' (s,), ..."""
    s, n = len(problem.channels), problem.n
    shapes = {'x': (2 * n, 1), 'prior': (2 * n, 1), 'P': (2 * n, 2 * n), 'o': (s, 1), 'variance': (s, 1),
              'u': (problem.system.u.numel() - problem.g, 1), 'p': (problem.system.values.symbol.numel(), 1)}
    return tuple(problem.symbol(name, *shapes.get(name, (1, 1))) for name in names)


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
    x, u, t, p = symbols(problem, 'x', 'u', 't', 'p')
    v, sources = ca.vertcat(system.q, system.qd), ca.vertcat(model.qdd, model.lam)
    channels = range(model.output.numel())
    dynamic = [k for k in channels if ca.jacobian(model.output[k], sources).nnz()]
    static = [k for k in channels if k not in dynamic]
    direct = ca.Function('direct', [v, system.u, system.t, system.values.symbol],
                         [ca.densify(model.output[static]), ca.densify(ca.jacobian(model.output[static], v))])
    h, H = direct(x, ca.vertcat(u, problem.zeros(g)), t, p)
    if dynamic:
        zd, free = ca.vertcat(*(x[n + i] for i in problem.z)), problem.zeros(g)
        at = rates(problem, x[:n], zd, u, free, t, p)
        found, H_z, H_zd, H_zdd = problem.sensors(x[:n], zd, at.zdd, ca.vertcat(u, free), t, p)
        along = ca.horzcat(H_z, H_zd) + H_zdd @ ca.horzcat(at.a, at.b)
        place = ca.DM.eye(2 * n)[independent(problem), :]
        h, H = ca.vertcat(h, found[dynamic]), ca.vertcat(H, along[dynamic, :] @ place)
    order = [(static + dynamic).index(k) for k in channels]
    return ca.Function('sensed', [x, u, t, p], [h[order], ca.densify(H[order, :])], {'cse': True})


def euler_step(problem: Problem, slack: float) -> ca.Function:
    """``(x, P, acceleration (g,), u, t, dt, p) -> (x, P)``: forward Euler from ``t - dt`` to t (Eqs. 56 to 58).

    The noise enters z and zd along the constraints, ``R diag(q_c dt^3/3) R'`` and ``R diag(q_c dt) R'``, and the
    dependent ones have ``slack^2`` more of their own: the constraints, not the prediction, say where they are.
    """
    n, g = problem.n, problem.g
    x, P, u, t, dt, p = symbols(problem, 'x', 'P', 'u', 't', 'dt', 'p')
    density, zd = problem.symbol('density', g), ca.vertcat(*(x[n + i] for i in problem.z))
    at = rates(problem, x[:n], zd, u, problem.zeros(g), t - dt, p)
    R = tangents(problem)(x[:n], zd, t - dt, p)[:n, :g]
    ahead = x + dt * ca.vertcat(x[n:], at.qdd)
    eye = type(x).eye(n)
    F = ca.vertcat(ca.horzcat(eye, eye * dt), ca.horzcat(type(x)(n, n), eye))
    own = ca.DM([0.0 if i in problem.z else slack ** 2 for i in range(n)])
    blocks = [R @ ca.diag(density * amount) @ R.T + ca.diag(own) for amount in (dt ** 3 / 3, dt)]
    spread = ca.tril2symm(ca.tril(ca.densify(F @ P @ F.T + ca.diagcat(*blocks))))
    return ca.Function('euler_step', [x, P, density, u, t, dt, p], [ahead, spread], {'cse': True})


def imposed(size: int, C: ca.Sparsity) -> ca.Function:
    """``(x, P, c, C, N) -> (x, P)``: a correction by constraints ``c + C dx = 0`` with the covariance N of their noise.

    N is the column of its diagonal where that is all it has: where ``is_small``, scalar operations, which leave the
    zeros of C out; else N (rows, rows), and matrices."""
    rows = C.size1()
    if is_small(size, rows):
        x, P, c, N = (ca.SX.sym(name, *shape) for name, shape in _shapes(size, rows, 1))
        slope = ca.SX.sym('C', C)
        ahead = correction(size, (False,) * rows)(x, P, ca.SX.zeros(rows), c, slope, N, 1e300)[:2]
        return ca.Function('imposed', [x, P, c, slope, N], ahead, {'cse': True})
    x, P, c, N = (ca.MX.sym(name, *shape) for name, shape in _shapes(size, rows, rows))
    slope = ca.MX.sym('C', C)
    crossed = ca.densify(slope @ P)
    gain = ca.solve(ca.densify(slope @ crossed.T) + N, crossed, 'qr').T
    return ca.Function('imposed', [x, P, c, slope, N], [x - gain @ c, ca.tril2symm(ca.tril(P - gain @ crossed))])


def is_small(size: int, rows: int) -> bool:
    """Whether a correction is written out in scalar operations."""
    return size ** 2 * rows <= SCALAR


def _shapes(size: int, rows: int, columns: int) -> list[tuple[str, tuple[int, int]]]:
    return [('x', (size, 1)), ('P', (size, size)), ('c', (rows, 1)), ('N', (rows, columns))]


def closed(problem: Problem) -> ca.Function:
    """``(x, P, u, t, p) -> (x, P, qdd)``: what the constraints still lack is taken away, z and zd kept.

    By the position and the velocity problem: the more tightly constraints are imposed as measurements the more of their
    nonlinearity goes into z. The covariance of z and zd is carried to all coordinates along the constraints, ``T P_z
    T'``, which no rounding makes indefinite; ``qdd`` are the model's accelerations.
    """
    n, places = problem.n, independent(problem)
    x, P, u, t, p = symbols(problem, 'x', 'P', 'u', 't', 'p')
    zd = ca.vertcat(*(x[n + i] for i in problem.z))
    q = problem.close(x[:n], ca.vertcat(*(x[i] for i in problem.z)), t, p, CLOSINGS)
    T = tangents(problem)(q, zd, t, p)
    at = rates(problem, q, zd, u, problem.zeros(problem.g), t, p)
    cov = ca.tril2symm(ca.tril(T @ P[places, places] @ T.T))
    return ca.Function('closed', [x, P, u, t, p], [ca.vertcat(q, at.qd), cov, at.qdd], {'cse': True})


def estimates(problem: Problem, x: ca.SX, P: ca.SX, qdd: ca.SX) -> Parts:
    """Parts of the state and of the outputs."""
    n = problem.n
    return {'x': x, 'P': P, 'q': x[:n], 'qd': x[n:], 'qdd': qdd, 'force': ca.MX.zeros(problem.g)}
