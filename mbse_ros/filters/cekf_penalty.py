# SPDX-License-Identifier: Apache-2.0
"""CEKF in dependent coordinates by the penalty formulation (Naya et al., review, Eqs. 27 to 33), state ``[q, qd]``.

As ``CEKF`` it has the exact Jacobian, the density ``sigma^2 dt`` and a covariance that cannot leave the positive cone.
The paper's Jacobian and covariance let corrections break the constraints, which the penalty then works against. Here
the covariance starts along the constraints, the noise enters along them and the exact Jacobian keeps it there, so that
corrections break them to second order only; the penalty takes that away at the rate ``omega``.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from ..dynamics.sensor_equations import state_sensors
from ..dynamics.state_equations import Maps, Pieces
from ..errors import check_positive
from .parts.model_step import ITERATIONS, rates
from .parts.problem import Problem
from .parts.step import Filter, Parts, build_filter
from .parts.update import conditioning, constant_noise, factor, measured, square
from .sigma_filter import CLOSINGS


class PenaltyFilter(Filter):
    """Filter of all coordinates and velocities."""

    @property
    def held(self) -> list[int]:
        """All places in q."""
        return list(range(self.problem.n))

    def start(self, q: np.ndarray, qd: np.ndarray, stddev: float | np.ndarray) -> np.ndarray:
        """Flat state at coordinates and velocities (n,); of ``stddev``, a number or (2n,), that of the independent
        coordinates and velocities counts, the others follow by the constraints."""
        problem = self.problem
        places = [*problem.z, *(problem.n + i for i in problem.z)]
        T = np.array(tangents(problem)(q, qd[problem.z], 0.0, problem.model.parameters))
        T = T * np.broadcast_to(np.asarray(stddev, dtype=float), (2 * problem.n,))[places]
        return self.state.flat(x=np.concatenate([q, qd]), P=T @ T.T, q=q)


def cekf_penalty(problem: Problem, alpha: float = 1e7, zeta: float = 1.0, omega: float = 10.0,
                 project: bool = True) -> Filter:
    """CEKF_penalty with the penalty ``alpha``, its damping ratio ``zeta`` and frequency ``omega``, rad/s (Eq. 27).

    ``project``: the corrected state is put back on the constraints, its independent part kept, and its covariance
    turned with them; without (as published) the penalty does it in its own time, and large corrections may not survive
    that (five-bar with coupler gyros).
    Noise ``acceleration`` (g,): its density along the independent coordinates, rad^2/s^3 or m^2/s^3. Raises
    SettingError.
    """
    check_positive(alpha=alpha, zeta=zeta, omega=omega)
    n, g = problem.n, problem.g
    moved, noise = penalty_rates(problem, alpha, zeta, omega), constant_noise(g, 2)
    sense, along, rank = sensed(problem), tangents(problem), 2 * (g if project else n)
    update, root = conditioning(2 * n, rank, problem.angular), factor(rank)
    places = [*problem.z, *(n + i for i in problem.z)]
    dynamic = any(sense.jac_sparsity(0, i).nnz() for i in (2, 3))

    def rooted(x: ca.MX, P: ca.MX, t: ca.MX, p: ca.MX) -> ca.MX:
        if not project:
            return root(P)
        return along(x[:n], problem.independent(x[n:]), t, p) @ root(P[places, places])

    def predict(state: Parts, given: Parts, tuning: Parts) -> Parts:
        u, t, dt, p, x = ca.vertcat(given['u'], ca.MX.zeros(g)), given['t'], tuning['dt'], tuning['p'], state['x']
        zdd, _, A, _ = moved(x[:n], x[n:], u, t - dt, p)
        right = x + dt / 2 * ca.vertcat(x[n:], zdd)
        end, eye = x + ca.vertcat(x[n:] * dt + zdd * (dt ** 2 / 2), zdd * dt), ca.MX.eye(2 * n)
        for _ in range(ITERATIONS):
            zdd, _, ahead, _ = moved(end[:n], end[n:], u, t, p)
            tangent = ca.densify(eye - dt / 2 * ahead)
            end = end - ca.solve(tangent, end - right - dt / 2 * ca.vertcat(end[n:], zdd), 'qr')
        S = rooted(x, state['P'], t - dt, p)
        S = ca.solve(tangent, ca.densify(S + dt / 2 * (A @ S)), 'qr')
        T = along(end[:n], problem.independent(end[n:]), t, p)
        S = ca.horzcat(S, T @ factor(2 * g)(noise(tuning['acceleration'], dt)))
        return {'x': end, 'P': square(2 * n, rank + 2 * g)(S), 'q': end[:n]}

    def correct(state: Parts, given: Parts, tuning: Parts) -> Parts:
        x, u, t, p = state['x'], ca.vertcat(given['u'], ca.MX.zeros(g)), given['t'], tuning['p']
        now = moved(x[:n], x[n:], u, t, p) if dynamic else [ca.DM.zeros(moved.sparsity_out(i)) for i in range(4)]
        h, H = sense(x[:n], x[n:], *now, u, t, p)
        S = rooted(x, state['P'], t, p)
        x, P, *found = update(x, S, given['o'], h, H @ S, tuning['variance'], tuning['gate'])
        if project:
            x = projected(problem)(x, t, p)
            S = rooted(x, P, t, p)
            P = square(2 * n, rank)(S)
            qdd = rates(problem, x[:n], problem.independent(x[n:]), given['u'], ca.MX.zeros(g), t, p).qdd
        else:
            qdd = moved(x[:n], x[n:], u, t, p)[0]
        return {'x': x, 'P': P, 'q': x[:n], 'qd': x[n:], 'qdd': qdd, 'force': ca.MX.zeros(g), **measured(*found)}

    return build_filter('CEKF_penalty', problem, 2 * n, {'acceleration': g}, predict, correct, scalar=False,
                        made=PenaltyFilter)


def penalty_rates(problem: Problem, alpha: float, zeta: float, omega: float) -> ca.Function:
    """``(q, qd, u, t, p) -> (qdd, lam, A (2n, 2n), dlam (m, 2n))`` of Eq. 28 and its exact derivatives.

    Solved as ``[M J'; J -I/alpha] [qdd; lam] = [Q; c - 2 zeta omega Phidot - omega^2 Phi]``, whose condition does not
    grow with alpha; one factorisation serves all.
    """
    system, parameters = problem.system, problem.system.values.symbol
    n, m = system.n, system.m
    (q, qd, t, p), u = problem.symbols('q qd t p', ca.MX), ca.MX.sym('u', system.u.numel())
    pieces = Pieces(system, parameters)
    Phi = ca.Function('Phi', [system.q, system.t, parameters], [system.Phi])(q, t, p)
    J, b = pieces.constraints(q, t, p)
    M, Q, _, c = pieces.dynamics(q, qd, u, t, p)
    K = ca.blockcat([[M, J.T], [J, -ca.MX.eye(m) / alpha]])
    known = ca.solve(K, ca.vertcat(Q, c - 2 * zeta * omega * (J @ qd - b) - omega ** 2 * Phi), 'qr')
    qdd, lam = known[:n], known[n:]
    G_q, G_qd = pieces.force_tangents(q, qd, u, t, p, qdd, lam)
    H_q, H_qd, rate_q = pieces.constraint_tangents(q, qd, t, p, qdd)
    right = ca.blockcat([[G_q, G_qd], [H_q - 2 * zeta * omega * rate_q - omega ** 2 * J, H_qd - 2 * zeta * omega * J]])
    change = ca.solve(K, ca.densify(right), 'qr')
    A = ca.blockcat([[ca.MX(n, n), ca.MX.eye(n)], [change[:n, :n], change[:n, n:]]])
    return ca.Function('penalty_rates', [q, qd, u, t, p], [qdd, lam, ca.densify(A), ca.densify(change[n:, :])],
                       {'cse': True})


def tangents(problem: Problem) -> ca.Function:
    """``(q, zd, t, p) -> T`` (2n, 2g): changes of q and qd with z and zd along the constraints."""
    both = velocities(problem)
    symbols = [problem.symbol(both.name_in(i), both.size1_in(i)) for i in range(both.n_in())]
    return ca.Function('tangents', symbols, [both(*symbols)[0]])


def velocities(problem: Problem) -> ca.Function:
    """``(q, zd, t, p) -> (T, qd)``: ``tangents``, and the velocities (n,) of all coordinates."""
    system = problem.system
    q, zd, t, p = problem.symbols('q zd t p')
    J, b = Pieces(system, system.values.symbol).constraints(q, t, p)
    maps = Maps.of(system, J, problem.scalar)
    R = maps.R
    qd = R @ zd + maps.S(b)
    rate = ca.jacobian(ca.jacobian(system.Phi, system.q) @ system.qd + ca.jacobian(system.Phi, system.t), system.q)
    rate_q = ca.Function('rate', [system.q, system.qd, system.t, system.values.symbol], [rate])(q, qd, t, p)
    T = ca.vertcat(ca.horzcat(R, type(R)(*R.shape)), ca.horzcat(-maps.S(rate_q @ R), R))
    return ca.Function('velocities', [q, zd, t, p], [ca.densify(T), ca.densify(qd)], {'cse': True})


def projected(problem: Problem) -> ca.Function:
    """``(x, t, p) -> x`` on the constraints, with the independent coordinates and velocities of ``x = [q, qd]``."""
    n, g = problem.n, problem.g
    q, qd, t, p = problem.symbols('q qd t p')
    end, none = problem.close(q, problem.independent(q), t, p, CLOSINGS), problem.zeros(problem.system.u.numel() - g)
    velocity = rates(problem, end, problem.independent(qd), none, problem.zeros(g), t, p).qd
    projected = ca.Function('projected', [q, qd, t, p], [ca.vertcat(end, velocity)], {'cse': True})
    x, t, p = problem.symbols('x t p', ca.MX)
    return ca.Function('projected', [x, t, p], [projected(x[:n], x[n:], t, p)])


def sensed(problem: Problem) -> ca.Function:
    """``(q, qd, qdd, lam, A, dlam, u, t, p) -> (h, H)``, ``H`` (s, 2n) with respect to all coordinates and
    velocities."""
    system, n = problem.system, problem.n
    model, A, dlam = state_sensors(system), ca.SX.sym('A', 2 * n, 2 * n), ca.SX.sym('dlam', system.m, 2 * n)
    slopes = [ca.jacobian(model.output, symbol) for symbol in (system.q, system.qd, model.qdd, model.lam)]
    H = ca.horzcat(*slopes[:2]) + slopes[2] @ A[n:, :] + slopes[3] @ dlam
    return ca.Function('sensed', [system.q, system.qd, model.qdd, model.lam, A, dlam, system.u, system.t,
                                  system.values.symbol], [ca.densify(model.output), ca.densify(H)], {'cse': True})
