# SPDX-License-Identifier: Apache-2.0
"""SCKF: smoothly constrained Kalman filter, state ``[q, qd]`` (Naya et al., review, section 6.1)."""

from __future__ import annotations

import math

import casadi as ca

from ...errors import check_positive
from .cekf_penalty import PenaltyFilter, tangents
from .parts.constrained import closed, constraints, estimates, euler_step, independent, is_small, sensed
from .parts.problem import Problem
from .parts.square_root import factor
from .parts.step import Filter, Parts, build_filter
from .parts.update import correction, innovation_of

WEAKEST = 1e-12     # least weakening, as a share of the constraints' spread: below it is rounding, and rows that depend
                    # on others have no spread of their own


def sckf(problem: Problem, alpha: float = 0.1, beta: float = 30.0, passes: int = 2, slack: float = 1.0) -> Filter:
    """SCKF: the sensors first, each sample once, then the constraints ``passes`` times, weakened less and less.

    ``alpha``, ``beta``: the weakening is ``alpha exp(-beta i) C P C'`` in pass i (Eqs. 62, 66). The paper's beta 10
    needs four passes until the constraints are as good as perfect; by then they are so tight that what little they
    change from pass to pass moves z (four-bar with coupler gyro: lost). Two passes with 30 do the same without. What is
    then left, at most 1e-3, the position and velocity problems take away. ``slack``: standard deviation of the
    prediction of the dependent coordinates and velocities by themselves, SI. Noise ``acceleration`` (g,): density of
    the accelerations along the independent coordinates, m2/s3 or rad2/s3. Raises SettingError.

    The slack makes way for the constraints and is not a statement about the prediction. So the spread of the
    innovations, and with it the gate, and the covariance of z and zd are those along the constraints, of which the
    passes know nothing: on a linear mechanism the same, else without taking the constraints' curvature for information.
    """
    check_positive(alpha=alpha, beta=beta, passes=passes, slack=slack)
    n, g, places = problem.n, problem.g, independent(problem)
    step, sense, finish, along = euler_step(problem), sensed(problem), closed(problem), tangents(problem)
    update, take, own = correction(2 * g, problem.angular), taken(2 * n, problem.angular), loose(problem, slack)
    impose = smoothly(problem, [alpha * math.exp(-beta * i) for i in range(int(passes))])

    def predict(state: Parts, given: Parts, tuning: Parts) -> Parts:
        x, P = step(state['x'], state['P'], tuning['acceleration'], given['u'], given['t'], tuning['dt'], tuning['p'])
        return {'x': x, 'P': P, 'q': x[:n]}

    def correct(state: Parts, given: Parts, tuning: Parts) -> Parts:
        x, P, u, t, p = state['x'], state['P'], given['u'], given['t'], tuning['p']
        h, H = sense(x, u, t, p)
        T = along(x[:n], problem.independent(x[n:]), t, p)
        _, P_z, *found = update(ca.DM.zeros(2 * g), P[places, places], given['o'], h, H @ T, tuning['variance'],
                                tuning['gate'])
        x, P = take(x, P + own, given['o'], h, H, tuning['variance'], found[2])
        x, P, qdd = finish(impose(x, P, t, p), P_z, u, t, p)
        return estimates(problem, x, P, qdd, *found)

    return build_filter('SCKF', problem, 2 * n, {'acceleration': g}, predict, correct, scalar=False,
                        made=PenaltyFilter)


def loose(problem: Problem, slack: float) -> ca.DM:
    """Covariance (2n, 2n) that the dependent coordinates and velocities have of their own."""
    return ca.diag(ca.DM([0.0 if i in problem.z else slack ** 2 for i in range(problem.n)] * 2))


def taken(size: int, angular: tuple[bool, ...]) -> ca.Function:
    """``(x, P, o, h, H, variance, used) -> (x, P)``: the correction by the measurements that ``used`` (s,) says."""
    s = len(angular)
    x, P, H = ca.SX.sym('x', size), ca.SX.sym('P', size, size), ca.SX.sym('H', s, size)
    o, h, variance, used = (ca.SX.sym(name, s) for name in ('o', 'h', 'variance', 'used'))
    mean, cov = x, P
    for k in range(s):
        column = cov @ H[k, :].T
        gain = column * (used[k] / (H[k, :] @ column + variance[k]))
        mean = mean + gain * (innovation_of(o[k], h[k], angular[k]) - H[k, :] @ (mean - x))
        cov = ca.tril2symm(ca.tril(cov - gain @ column.T))
    return ca.Function('taken', [x, P, o, h, H, variance, used], [mean, cov], {'cse': True})


def smoothly(problem: Problem, weaknesses: list[float]) -> ca.Function:
    """``(x, P, t, p) -> x``: the constraints imposed once for each weakness (Eqs. 62 to 66)."""
    x, t, p = problem.symbols('x t p', ca.MX)
    P = ca.MX.sym('P', 2 * problem.n, 2 * problem.n)
    mean, cov = x, P
    if problem.system.m:
        look = constraints(problem)
        C = look.sparsity_out(1)
        spread = ca.MX.zeros(C.size1(), C.size1())
        for i, weakness in enumerate(weaknesses):
            first, last = i == 0, i + 1 == len(weaknesses)
            found = imposed(2 * problem.n, C, weakness, first, last)(mean, cov, *look(mean, t, p), spread)
            mean, cov, spread = found if first else (*found, spread)
    return ca.Function('smoothly', [x, P, t, p], [mean])


def imposed(size: int, C: ca.Sparsity, weakness: float, first: bool, last: bool) -> ca.Function:
    """``(x, P, c, C, S) -> (x, P[, S])``: a correction by constraints ``c + C dx = 0`` with the noise ``weakness S``.

    In the ``first`` pass S (rows, rows) is what it gives back, the constraints' spread ``C P C'``; after the ``last`` P
    is not asked for and what was given. Where ``is_small`` by Cholesky's factor in scalar operations.
    """
    rows, small = C.size1(), is_small(size, C.size1())
    kind = ca.SX if small else ca.MX
    x, P, c, slope, S = (kind.sym('x', size), kind.sym('P', size, size), kind.sym('c', rows), kind.sym('C', C),
                         kind.sym('S', rows, rows))
    crossed = ca.densify(slope @ P)
    own = ca.densify(slope @ crossed.T)
    S_0 = own if first else S
    noisy = own + weakness * S_0 + WEAKEST * ca.diag(ca.diag(S_0))
    if small:
        L = ca.tril(factor(rows)(noisy))
        both = ca.solve(L, ca.horzcat(c, crossed))
        mean = x - both[:, 1:].T @ both[:, 0]
        cov = P if last else ca.tril2symm(ca.tril(P - both[:, 1:].T @ both[:, 1:]))
    else:
        gain = ca.solve(noisy, crossed, 'ldl').T
        mean, cov = x - gain @ c, P if last else ca.tril2symm(ca.tril(P - gain @ crossed))
    return ca.Function('imposed', [x, P, c, slope, S], [mean, cov, own][:3 if first else 2], {'cse': True})
