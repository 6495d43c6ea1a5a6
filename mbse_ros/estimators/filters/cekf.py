# SPDX-License-Identifier: Apache-2.0
"""CEKF: continuous extended Kalman filter in independent coordinates (Naya et al., review, section 3), ours.

``xd = f(x) + K (o - h(x))``, ``Pd = A P + P A' + W - P H' Rc^-1 H P`` with the exact Jacobian A and the density ``Rc =
sigma^2 dt`` that samples of variance ``sigma^2`` every ``dt`` have. A step is split into its two flows, each taken as a
whole: that of the model, by the trapezoidal rule and the exact transition of the linearised system with Van Loan's
noise; and that of the measurement, which over ``dt`` adds ``H' H / sigma^2`` to the information: the correction of
Kalman's filter, here in square-root form. Neither can leave the positive cone, as Euler's rule does when ``H P H' dt >
Rc`` (the crank gyro of Naya et al., review, section 12), and on a linear system the step is exact.
"""

from __future__ import annotations

import casadi as ca

from ...transition.exponential import exact_step
from ...transition.noise import integrated_noise
from .parts.model_step import HALVINGS, advance, rates
from .parts.problem import Problem
from .parts.square_root import conditioning, factor
from .parts.step import Filter, Parts, build_filter
from .parts.update import measured, propagation


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
