# SPDX-License-Identifier: Apache-2.0
"""SCKF and DIEKFpm: filters in dependent coordinates, state ``[q, qd]``, with the constraints as perfect measurements
(Naya et al., review, section 6).

SCKF, smoothly constrained (section 6.1), imposes them with a noise that falls from pass to pass; DIEKFpm (section 6.2)
is iterated."""

from __future__ import annotations

import math
from collections.abc import Callable

import casadi as ca

from ..compiled.of_scipy import NEVER
from ..errors import SettingError, check_count, check_positive
from .cekf_penalty import PenaltyFilter, tangents
from .dependent import (
    DependentFilter,
    check_printed,
    closed,
    consistent,
    constraints,
    estimates,
    independent,
    loose,
    prediction,
    sensed,
)
from .parts.model_step import rates
from .parts.problem import Problem
from .parts.step import Filter, Parts, build_filter
from .parts.update import correction, factor, innovation_of

PERFECT = 1e-3      # variance of the paper's perfect measurements in the first iteration, SI
SCALAR = 5_000      # multiplications of a correction up to which it is written out in scalar operations
WEAKEST = 1e-12     # least weakening, as a share of the constraints' spread: below it is rounding, and rows that depend
                    # on others have no spread of their own


def is_small(size: int, rows: int) -> bool:
    """Whether a correction is written out in scalar operations."""
    return size * rows ** 2 <= SCALAR


def sckf(problem: Problem, alpha: float = 0.1, beta: float = 30.0, passes: int = 2, slack: float = 1.0,
         tolerance: float = 0.0, noise: str = 'along') -> Filter:
    """SCKF: the sensors first, each sample once, then the constraints ``passes`` times, weakened less and less.

    ``alpha``, ``beta``: the weakening is ``alpha exp(-beta i) C P C'`` in pass i (Eqs. 62, 66). ``tolerance``: no pass
    changes anything once the norm of ``[Phi, Phidot]``, SI, is below; 0: all do. With the paper's beta 10 and tolerance
    1e-3 up to three of five passes are needed, at twice the cost of our two, and the estimates are the same (four-bar,
    five-bar); without the tolerance all five move z a little (four-bar with coupler gyro 0.038 instead of 0.036 rad,
    after 2 s the same). What is then left the position and velocity problems take away. ``slack``: standard deviation
    of the prediction of the dependent coordinates and velocities by themselves, SI. Noise ``acceleration`` (g,):
    density of the accelerations along the independent coordinates, m2/s3 or rad2/s3. Raises SettingError.

    The slack makes way for the constraints and is not a statement about the prediction. So the spread of the
    innovations, and with it the gate, and the covariance of z and zd are those along the constraints, of which the
    passes know nothing: on a linear mechanism the same, else without taking the constraints' curvature for information.

    ``noise='printed'``: the covariance of all coordinates with the noise of Eqs. 108 to 112 (``slack`` is sigma_b), for
    gate and gain alike, after the passes as they leave it (Eq. 65), and no position problem. As in the paper:
    ``beta=10, passes=5, tolerance=1e-3, noise='printed'``.
    """
    check_positive(alpha=alpha, beta=beta, slack=slack)
    check_count(passes=passes)
    check_printed(noise, tolerance)
    n, g, places, along_them = problem.n, problem.g, independent(problem), noise == 'along'
    sense, finish, along = sensed(problem), closed(problem), tangents(problem)
    update, take, own = correction(2 * g, problem.angular), taken(2 * n, problem.angular), loose(problem, slack)
    impose = smoothly(problem, [alpha * math.exp(-beta * i) for i in range(int(passes))], tolerance, not along_them)

    def correct(state: Parts, given: Parts, tuning: Parts) -> Parts:
        x, P, u, t, p = state['x'], state['P'], given['u'], given['t'], tuning['p']
        h, H = sense(x, u, t, p)
        T = along(x[:n], problem.independent(x[n:]), t, p)
        _, P_z, *found = update(ca.DM.zeros(2 * g), P[places, places], given['o'], h, H @ T, tuning['variance'],
                                tuning['gate'])
        x, P = take(x, P + own, given['o'], h, H, tuning['variance'], found[2])
        x, P, qdd = finish(impose(x, P, t, p), P_z, u, t, p)
        return estimates(problem, x, P, qdd, *found)

    def correct_printed(state: Parts, given: Parts, tuning: Parts) -> Parts:
        u, t, p = given['u'], given['t'], tuning['p']
        h, H = sense(state['x'], u, t, p)
        x, P, *found = correction(2 * n, problem.angular)(state['x'], state['P'], given['o'], h, H, tuning['variance'],
                                                          tuning['gate'])
        x, P = impose(x, P, t, p)
        return estimates(problem, x, P, rates(problem, x[:n], problem.independent(x[n:]), u, ca.DM.zeros(g), t, p).qdd,
                         *found)

    return build_filter('SCKF', problem, 2 * n, {'acceleration': g}, prediction(problem, noise, slack),
                        correct if along_them else correct_printed, scalar=False,
                        made=PenaltyFilter if along_them else DependentFilter)


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


def smoothly(problem: Problem, weaknesses: list[float], tolerance: float = 0.0, spread_too: bool = False
             ) -> ca.Function:
    """``(x, P, t, p) -> x[, P]``: the constraints imposed once for each weakness, until the norm of what they lack is
    below ``tolerance`` (Eqs. 62 to 66); ``spread_too``: with the covariance after that."""
    x, t, p = problem.symbols('x t p', ca.MX)
    P = ca.MX.sym('P', 2 * problem.n, 2 * problem.n)
    mean, cov = x, P
    if problem.system.m:
        look = constraints(problem)
        C = look.sparsity_out(1)
        spread = ca.MX.zeros(C.size1(), C.size1())
        for i, weakness in enumerate(weaknesses):
            first, last = i == 0, i + 1 == len(weaknesses) and not spread_too
            c, slope = look(mean, t, p)
            found = imposed(2 * problem.n, C, weakness, first, last)(mean, cov, c, slope, spread)
            spread = found[2] if first else spread
            if tolerance:
                lacking = ca.norm_2(c) >= tolerance
                found = [ca.if_else(lacking, new, old) for new, old in zip(found, (mean, cov))]
            mean, cov = found[:2]
    return ca.Function('smoothly', [x, P, t, p], [mean, cov] if spread_too else [mean])


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


def diekfpm(problem: Problem, iterations: int = 4, slack: float = 1.0, tolerance: float = 0.0, noise: str = 'along'
            ) -> Filter:
    """DIEKFpm: sensors and constraints together, ``iterations`` times, each from the a-priori estimate.

    Only the point at which all is linearised moves, so that no sample counts twice. The paper's constraints have a
    noise of 1e-3 SI, divided by e at each iteration until they hold to 1e-3; here they are perfect, that is what it
    tends to: each iteration looks for z and zd alone, the others follow. What they depart from their own prediction
    counts with the standard deviation ``slack``, SI, each. Noise ``acceleration`` (g,): density of the accelerations
    along the independent coordinates, m2/s3 or rad2/s3. Raises SettingError.

    The covariance is that of the sensors alone: the constraints carry no information on z.

    ``noise='printed'``: as in the paper, with that noise on the constraints, the plant noise of Eqs. 108 to 112
    (``slack`` is sigma_b) and the covariance of all coordinates; ``tolerance`` as in SCKF, 1e-3 in the paper, for which
    up to seven iterations are needed on the four-bar: ``iterations=12``.
    """
    check_positive(slack=slack)
    check_count(iterations=iterations)
    check_printed(noise, tolerance)
    if noise == 'printed':
        return build_filter('DIEKFpm', problem, 2 * problem.n, {'acceleration': problem.g},
                            prediction(problem, noise, slack), printed_iterations(problem, int(iterations), tolerance),
                            scalar=False, made=DependentFilter)
    if tolerance:
        raise SettingError('tolerance', tolerance, '0, or noise=printed: perfect constraints are not iterated')
    n, g, places = problem.n, problem.g, independent(problem)
    others = [i for i in range(2 * n) if i not in places]
    sense, near, finish = sensed(problem), consistent(problem), closed(problem, 1)
    update, settle = correction(2 * g, problem.angular), correction(2 * g, (False,) * len(others))
    variance = ca.DM.ones(len(others)) * slack ** 2

    def correct(state: Parts, given: Parts, tuning: Parts) -> Parts:
        u, t, p, prior, P = given['u'], given['t'], tuning['p'], state['x'], state['P'][places, places]
        x, point, start, first = prior, prior[places], prior[places], None
        for _ in range(int(iterations)):
            x, T = near(x, point, t, p)
            first = T if first is None else first
            h, H = sense(x, u, t, p)
            z, P_z, *found = update(start, P, given['o'], h + H @ T @ (start - point), H @ T, tuning['variance'],
                                    tuning['gate'])
            bent = x[others] + T[others, :] @ (z - point) - prior[others] - first[others, :] @ (z - start)
            point = settle(z, P_z, ca.DM.zeros(len(others)), bent, T[others, :] - first[others, :], variance,
                           NEVER)[0]
        x, P, qdd = finish(near(x, point, t, p)[0], P_z, u, t, p)
        return estimates(problem, x, P, qdd, *found)

    return build_filter('DIEKFpm', problem, 2 * n, {'acceleration': g}, prediction(problem), correct,
                        scalar=False, made=PenaltyFilter)


def printed_iterations(problem: Problem, iterations: int, tolerance: float) -> Callable[[Parts, Parts, Parts], Parts]:
    """The correction of section 6.2: sensors and constraints from the a-priori estimate, each time linearised again
    (Eq. 67), until the norm of what the constraints lack is below ``tolerance``."""
    n, g, sense, look = problem.n, problem.g, sensed(problem), constraints(problem)
    rows = look.size1_out(0)
    update, hold = correction(2 * n, problem.angular), correction(2 * n, (False,) * rows)

    def correct(state: Parts, given: Parts, tuning: Parts) -> Parts:
        u, t, p, prior = given['u'], given['t'], tuning['p'], state['x']
        now: list[ca.MX] = []
        for i in range(iterations):
            x = now[0] if now else prior
            (h, H), (c, C) = sense(x, u, t, p), look(x, t, p)
            mean, P, *found = update(prior, state['P'], given['o'], h + H @ (prior - x), H, tuning['variance'],
                                     tuning['gate'])
            mean, P = hold(mean, P, ca.DM.zeros(rows), c + C @ (mean - x), ca.densify(C),
                           ca.DM.ones(rows) * PERFECT * math.exp(-i), NEVER)[:2]
            new, lacking = [mean, P, *found], ca.norm_2(c) >= tolerance
            now = [ca.if_else(lacking, one, old) for one, old in zip(new, now)] if now and tolerance else new
        x, P, *found = now
        return estimates(problem, x, P, rates(problem, x[:n], problem.independent(x[n:]), u, ca.DM.zeros(g), t, p).qdd,
                         *found)

    return correct
