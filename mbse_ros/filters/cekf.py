# SPDX-License-Identifier: Apache-2.0
"""CEKF: continuous extended Kalman filter in independent coordinates (Naya et al., review, section 3), ours and as
published.

``xd = f(x) + K (o - h(x))``, ``Pd = A P + P A' + W - P H' Rc^-1 H P`` with the exact Jacobian A and the density ``Rc =
sigma^2 dt`` that samples of variance ``sigma^2`` every ``dt`` have. A step is split into its two flows, each taken as a
whole: that of the model, by the trapezoidal rule and the exact transition of the linearised system with Van Loan's
noise; and that of the measurement, which over ``dt`` adds ``H' H / sigma^2`` to the information: the correction of
Kalman's filter, here in square-root form. Neither can leave the positive cone, as Euler's rule does when ``H P H' dt >
Rc`` (the crank gyro of Naya et al., review, section 12), and on a linear system the step is exact.

As published (Eqs. 22 to 26), four things are not as they should be: the Jacobian of Eq. 23 is not that of the
accelerations; R is the variance of a sample instead of a density, so that the sensor is trusted ``1 / dt`` times less;
P takes explicit Euler steps of the Riccati equation, which leave the positive cone when ``H P H' dt > R``: with the
crank gyro it does not survive ten steps; and of the two ends of the trapezoidal rule only the later has the correction,
so that half of it acts, which the paper does not say but its figures show.
"""

from __future__ import annotations

import casadi as ca

from ..dynamics.state_equations import Maps, Pieces
from ..transition.exponential import exact_step
from ..transition.noise import integrated_noise
from .parts.model_step import HALVINGS, ModelRates, advance, rates
from .parts.problem import Problem
from .parts.step import Filter, Parts, build_filter
from .parts.update import block_matrix, conditioning, factor, innovation_of, measured, propagation, there

ITERATIONS = 4      # of Newton's method; its tangent, which does not change the result, is exact instead of Eq. 26


def cekf(problem: Problem, motion: str = 'trapezoid') -> Filter:
    """CEKF with the state ``[z, zd]``; noise ``acceleration`` (g,): its density, rad^2/s^3 or m^2/s^3. ``motion`` of
    the mean as in ``model_step.TRANSITIONS``."""
    g, s = problem.g, len(problem.channels)
    flow, spread_out = linear_flow(g), propagation(2 * g)
    root, update = factor(2 * g), conditioning(2 * g, 2 * g, problem.angular)
    none = problem.zeros(g)

    def predict(state: Parts, given: Parts, tuning: Parts) -> Parts:
        q, zd, u, t, dt, p = state['q'], state['x'][g:], given['u'], given['t'], tuning['dt'], tuning['p']
        A = rates(problem, q, zd, u, none, t - dt, p).A
        q, zd, _ = advance(problem, motion, q, zd, u, none, t, dt, p)
        F, Sigma = flow((A + rates(problem, q, zd, u, none, t, p).A) / 2, tuning['acceleration'], dt)
        return {'x': ca.vertcat(problem.independent(q), zd), 'P': spread_out(F, state['P'], Sigma), 'q': q}

    def correct(state: Parts, given: Parts, tuning: Parts) -> Parts:
        x, q, u, t, p = state['x'], state['q'], given['u'], given['t'], tuning['p']
        at = rates(problem, q, x[g:], u, none, t, p)
        h, H_z, H_zd, H_zdd = problem.sensors(q, x[g:], at.zdd, ca.vertcat(u, none), t, p)
        S = root(state['P'])
        E = (ca.horzcat(H_z, H_zd) + H_zdd @ ca.horzcat(at.a, at.b)) @ S if s else type(S)(0, 2 * g)
        x, P, *found = update(x, S, given['o'], h, E, tuning['variance'], tuning['gate'])
        q = problem.close(q, x[:g], t, p)
        now = rates(problem, q, x[g:], u, none, t, p)
        return {'x': x, 'P': P, 'q': q, 'qd': now.qd, 'qdd': now.qdd, 'force': none, **measured(*found)}

    return build_filter('CEKF', problem, 2 * g, {'acceleration': g}, predict, correct)


def linear_flow(g: int) -> ca.Function:
    """``(A, q_c, dt) -> (F, Sigma)`` (2g, 2g): exact transition, and the noise of density ``q_c`` (g,) on the
    accelerations by Van Loan's integral."""
    A, density, dt = ca.SX.sym('A', 2 * g, 2 * g), ca.SX.sym('q_c', g), ca.SX.sym('dt')
    flows, _ = exact_step(A, ca.SX.zeros(2 * g), dt, HALVINGS)
    W = ca.diag(ca.vertcat(ca.SX.zeros(g), density))
    return ca.Function('linear_flow', [A, density, dt],
                       [ca.densify(flows[-1]), ca.densify(integrated_noise(flows, W, dt))], {'cse': True})


def cekf_published(problem: Problem) -> Filter:
    """CEKF_published with the state ``[z, zd]``; noise ``acceleration`` (g,): its density, rad^2/s^3 or m^2/s^3.

    The gate, which the paper does not have, leaves out a measurement as in the other filters. Its
    ``innovation_variance`` is that with the P at the start of the step.
    """
    g, s = problem.g, len(problem.channels)
    tangent, none = published_jacobian(problem), problem.zeros(g)

    def predict(state: Parts, given: Parts, tuning: Parts) -> Parts:
        q, zd, u, t, dt, p = state['q'], state['x'][g:], given['u'], given['t'], tuning['dt'], tuning['p']
        now = rates(problem, q, zd, u, none, t - dt, p)
        A = tangent(q, zd, u, t - dt, p)
        W = ca.diag(ca.vertcat(none, tuning['acceleration']))
        P = state['P']
        memory = {'before': state['x'], 'q_before': q, 'rate': now.f, 'P_before': P}
        x = ca.vertcat(problem.independent(q), zd)
        q, x = _implicit(problem, q, x, now.f, None, None, given, tuning)
        return {'x': x, 'P': P + dt * (A @ P + P @ A.T + W), 'q': q, **memory}

    def correct(state: Parts, given: Parts, tuning: Parts) -> Parts:
        before, q, u, t, dt, p = state['before'], state['q_before'], given['u'], given['t'], tuning['dt'], tuning['p']
        at = rates(problem, q, before[g:], u, none, t - dt, p)
        _, H = simple_sensors(problem, q, before, at, u, t - dt, p)
        PH = state['P_before'] @ H.T
        ahead = rates(problem, state['q'], state['x'][g:], u, none, t, p)
        h, _ = simple_sensors(problem, state['q'], state['x'], ahead, u, t, p)
        present = [there(given['o'][k]) for k in range(s)]
        innovation = ca.vertcat(*(innovation_of(given['o'][k], h[k], problem.angular[k]) for k in range(s)))
        innovation_variance = ca.vertcat(*((H[k, :] @ PH[:, k]) for k in range(s))) + tuning['variance']
        used = ca.vertcat(*(present[k] * (innovation[k] ** 2 <= tuning['gate'] * ca.fabs(innovation_variance[k]))
                            for k in range(s)))
        K = PH @ ca.diag(used / tuning['variance'])
        q, x = _implicit(problem, q, before, state['rate'], K, H, given, tuning)
        P = state['P'] - dt * K @ PH.T
        now = rates(problem, q, x[g:], u, none, t, p)
        return {**state, 'x': x, 'P': (P + P.T) / 2, 'q': q, 'qd': now.qd, 'qdd': now.qdd, 'force': none,
                **measured(innovation, innovation_variance, used)}

    memory = {'before': (2 * g, 1), 'q_before': (problem.n, 1), 'rate': (2 * g, 1), 'P_before': (2 * g, 2 * g)}
    return build_filter('CEKF_published', problem, 2 * g, {'acceleration': g}, predict, correct, memory)


def published_jacobian(problem: Problem) -> ca.Function:
    """``(q, zd, u, t, p) -> (2g, 2g)``, the matrix of Eq. 23 with ``K = -dQ/dq``, ``C = -dQ/dqd``:
    ``F21 = -Mbar^-1 R' (K R + 2 M (R_q R) zdd)``, ``F22 = -Mbar^-1 R' (C R + M Rdot)``."""
    system, g = problem.system, problem.g
    parameters = system.values.symbol
    q, zd, u, t, p = problem.symbols('q zd u t p')
    at = rates(problem, q, zd, u, problem.zeros(g), t, p)
    pieces = Pieces(system, parameters)
    J, _ = pieces.constraints(q, t, p)
    maps = Maps.of(system, J, problem.scalar)
    R = maps.R
    state = [system.q, system.qd, system.u, system.t, parameters]
    forces = ca.Function('forces', state, [system.M, ca.jacobian(system.Q, system.q), ca.jacobian(system.Q, system.qd)])
    M, Q_q, Q_qd = forces(q, at.qd, ca.vertcat(u, problem.zeros(g)), t, p)
    change = _constraint_change(problem)
    along = ca.horzcat(*(-maps.S(change(q, R[:, k], t, p) @ (R @ at.zdd)) for k in range(g)))      # (R_q R) zdd
    rate = -maps.S(change(q, at.qd, t, p) @ R)                                                      # Rdot
    reduced = R.T @ M @ R
    F21 = ca.solve(reduced, R.T @ (Q_q @ R - 2 * M @ along))
    F22 = ca.solve(reduced, R.T @ (Q_qd @ R - M @ rate))
    return ca.Function('published_jacobian', [q, zd, u, t, p], [block_matrix(type(R), [[0.0, 1.0], [F21, F22]], g)],
                       {'cse': True})


def simple_sensors(problem: Problem, q: ca.SX, x: ca.SX, at: ModelRates, u: ca.SX, t: ca.SX, p: ca.SX
                   ) -> tuple[ca.SX, ca.SX]:
    """``h`` (s,) and ``H`` (s, 2g) of the sensors, without the derivative of the accelerations."""
    g = problem.g
    h, H_z, H_zd, _ = problem.sensors(q, x[g:], at.zdd, ca.vertcat(u, problem.zeros(g)), t, p)
    return h, ca.horzcat(H_z, H_zd)


def _implicit(problem: Problem, q: ca.SX, x: ca.SX, rate: ca.SX, K: ca.SX | None, H: ca.SX | None, given: Parts,
              tuning: Parts) -> tuple[ca.SX, ca.SX]:
    """Trapezoidal step of ``xd = f(x) - K (h(x) - o)`` (Eqs. 24 and 25): coordinates and state."""
    g, s, u, t, dt, p = problem.g, len(problem.channels), given['u'], given['t'], tuning['dt'], tuning['p']
    start, none = x, problem.zeros(problem.g)
    x, gain = start + dt * rate, problem.zeros(2 * g)
    for _ in range(ITERATIONS):
        q = problem.close(q, x[:g], t, p)
        at = rates(problem, q, x[g:], u, none, t, p)
        tangent = type(at.A).eye(2 * g) - dt / 2 * at.A
        if H is not None:
            h, H_now = simple_sensors(problem, q, x, at, u, t, p)
            gain = K @ ca.vertcat(*(innovation_of(given['o'][k], h[k], problem.angular[k]) for k in range(s)))
            tangent = tangent + dt / 2 * K @ H_now
        x = x - ca.solve(tangent, x - start - dt / 2 * (rate + at.f + gain))
    return problem.close(q, x[:g], t, p), x


def _constraint_change(problem: Problem) -> ca.Function:
    """``(q, d, t, p) -> dJ`` (m, n), the change of the constraint Jacobian along d (n,)."""
    system = problem.system
    J = ca.jacobian(system.Phi, system.q)
    d = ca.SX.sym('d', system.n)
    dJ = ca.reshape(ca.jtimes(ca.vec(ca.densify(J)), system.q, d), *J.shape)
    return ca.Function('constraint_change', [system.q, d, system.t, system.values.symbol], [dJ])
