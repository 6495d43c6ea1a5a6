# SPDX-License-Identifier: Apache-2.0
"""SCKF: smoothly constrained Kalman filter, state ``[q, qd]`` (paper 001, section 6.1)."""

from __future__ import annotations

import math
from dataclasses import fields

import casadi as ca

from ...errors import SettingError
from .cekf_penalty import PenaltyFilter
from .constrained import closed, constraints, estimates, euler_step, imposed, is_small, sensed
from .problem import Problem
from .square_root import factor
from .step import Filter, Parts, build_filter
from .update import correction

WEAKEST = 1e-13     # share of the constraints' spread below which the weakening is rounding


def sckf(problem: Problem, alpha: float = 0.1, beta: float = 30.0, passes: int = 2, slack: float = 1.0) -> Filter:
    """SCKF: the sensors first, each sample once, then the constraints ``passes`` times, weakened less and less.

    ``alpha``, ``beta``: the weakening is ``alpha exp(-beta i) C P C'`` in pass i (Eqs. 62, 66). The paper's beta 10
    needs four passes until the constraints are as good as perfect; by then they are so tight that what little they
    change from pass to pass moves z (four-bar with coupler gyro: lost). Two passes with 30 do the same without. What is
    then left, at most 1e-3, the position and velocity problems take away. ``slack``: standard deviation a step of the
    dependent coordinates and velocities by themselves, SI. Noise ``acceleration`` (g,): density of the accelerations
    along the independent coordinates, m2/s3 or rad2/s3. Raises SettingError.

    The innovations are those of a prediction that may leave the constraints: with sensors of dependent coordinates
    their spread is wide and the NIS small.
    """
    for name, value in (('alpha', alpha), ('beta', beta), ('passes', passes), ('slack', slack)):
        if not 0 < value < float('inf'):
            raise SettingError(name, value, 'a positive number')
    n = problem.n
    step, sense, finish = euler_step(problem, slack), sensed(problem), closed(problem)
    update, impose = correction(2 * n, problem.angular), smoothly(problem, [
        max(alpha * math.exp(-beta * i), WEAKEST) for i in range(passes)])

    def predict(state: Parts, given: Parts, tuning: Parts) -> Parts:
        x, P = step(state['x'], state['P'], tuning['acceleration'], given['u'], given['t'], tuning['dt'], tuning['p'])
        return {'x': x, 'P': P, 'q': x[:n]}

    def correct(state: Parts, given: Parts, tuning: Parts) -> Parts:
        u, t, p = given['u'], given['t'], tuning['p']
        h, H = sense(state['x'], u, t, p)
        x, P, innovation, spread, used = update(state['x'], state['P'], given['o'], h, H, tuning['variance'],
                                                tuning['gate'])
        x, P = impose(x, P, t, p)
        x, P, qdd = finish(x, P, u, t, p)
        return {**estimates(problem, x, P, qdd), 'innovation': innovation, 'spread': spread, 'used': used}

    made = build_filter('SCKF', problem, 2 * n, {'acceleration': problem.g}, predict, correct, scalar=False)
    return PenaltyFilter(**{field.name: getattr(made, field.name) for field in fields(made)})


def smoothly(problem: Problem, weaknesses: list[float]) -> ca.Function:
    """``(x, P, t, p) -> (x, P)``: the constraints imposed once for each weakness (Eqs. 62 to 66)."""
    x, t, p = (ca.MX.sym(name, size) for name, size in (
        ('x', 2 * problem.n), ('t', 1), ('p', problem.system.values.symbol.numel())))
    P = ca.MX.sym('P', 2 * problem.n, 2 * problem.n)
    look, rows, size = constraints(problem), 2 * problem.system.m, 2 * problem.n
    mean, cov = x, P
    if rows:
        small = is_small(size, rows)
        whiten = whitened(rows, look.sparsity_out(1))
        impose = imposed(size, whiten.sparsity_out(1) if small else look.sparsity_out(1))
        spread = weakening(size, look.sparsity_out(1))(P, look(x, t, p)[1])
    for weakness in weaknesses if rows else ():
        c, C = look(mean, t, p)
        if small:
            mean, cov = impose(mean, cov, *whiten(spread, c, C), weakness * ca.DM.ones(rows))
        else:
            mean, cov = impose(mean, cov, c, C, weakness * spread)
    return ca.Function('smoothly', [x, P, t, p], [mean, cov])


def weakening(size: int, C: ca.Sparsity) -> ca.Function:
    """``(P, C) -> C P C'``, or where the correction is in scalar operations the inverse W of its Cholesky factor: the
    weakening of the constraints ``W c`` is a multiple of the identity, so that they can be taken one by one."""
    rows = C.size1()
    kind = ca.SX if is_small(size, rows) else ca.MX
    P, slope = kind.sym('P', size, size), kind.sym('C', C)
    S = ca.densify(slope @ P @ slope.T)
    if kind is ca.SX:
        S = ca.tril(ca.solve(ca.tril(factor(rows)(S)), ca.SX.eye(rows)))
    return ca.Function('weakening', [P, slope], [S], {'cse': True})


def whitened(rows: int, C: ca.Sparsity) -> ca.Function:
    """``(W, c, C) -> (W c, W C)``."""
    W, c, slope = ca.SX.sym('W', ca.Sparsity.lower(rows)), ca.SX.sym('c', rows), ca.SX.sym('C', C)
    return ca.Function('whitened', [W, c, slope], [W @ c, W @ slope])
