# SPDX-License-Identifier: Apache-2.0
"""AerrorEKF_FE: errorEKF_FE whose plant noise is adapted by maximum likelihood (paper 001, section 10.1)."""

from __future__ import annotations

import casadi as ca

from .ekf import Choice, error_mean, feed_back, measured, observe, run_model
from .error_ekf import with_force
from .problem import Problem
from .step import Filter, Parts, build_filter
from .update import constant_noise, correction, propagation

SMALLEST = 1e-3      # of the start: the noise is not adapted below this share of it


def adaptive_error_ekf_fe(problem: Problem, motion: str = 'trapezoid', window: int = 50) -> Filter:
    """AerrorEKF_FE; noise ``acceleration`` (g,), density of the acceleration error's random walk, is where it starts.

    The estimate of Eq. 91 over the last ``window`` samples, of which only the diagonal of the acceleration error
    counts (Eq. 94): there ``f_x`` is the identity and a term is ``dx^2 + P+ - P+ before``. Its absolute value is
    taken, as the paper has it, and kept above a small share of the start, so that it stays a variance.
    """
    g, size = problem.g, 3 * problem.g
    noise, update, spread_out = constant_noise(g, 3), correction(size, problem.angular), propagation(size)
    choice = Choice(motion, with_force, force=True)

    def predict(state: Parts, given: Parts, tuning: Parts) -> Parts:
        ahead, F = run_model(problem, choice, state, given, tuning)
        density = _density(state, tuning, window)
        P = spread_out(F, state['P'], noise(density, tuning['dt']))
        return {**ahead, 'x': error_mean(problem, ahead, 3), 'P': P, 'terms': state['terms'], 'count': state['count'],
                'before': ca.diag(state['P'])[2 * g:]}

    def correct(state: Parts, given: Parts, tuning: Parts) -> Parts:
        h, H = observe(problem, choice, state, given, tuning)
        x, P, *innovations = update(state['x'], state['P'], given['o'], h, H, tuning['variance'], tuning['gate'])
        term = x[2 * g:] ** 2 + ca.diag(P)[2 * g:] - state['before']
        used = ca.fmin(ca.sum1(innovations[2]), 1.0)           # a sample without measurements tells nothing
        terms = ca.if_else(used > 0, ca.horzcat(state['terms'][:, 1:], term), state['terms'])
        count = ca.fmin(state['count'] + used, float(window))
        return {**feed_back(problem, choice, state, x, given, tuning), 'P': P, **measured(*innovations),
                'terms': terms, 'count': count, 'before': state['before']}

    memory = {'force': (g, 1), 'terms': (g, window), 'count': (1, 1), 'before': (g, 1)}
    return build_filter('AerrorEKF_FE', problem, size, {'acceleration': g}, predict, correct, memory)


def _density(state: Parts, tuning: Parts, window: int) -> ca.SX:
    """Density (g,) of the random walk: the start's until the window is full, then the mean of the window's terms."""
    found = ca.fabs(ca.sum2(state['terms'])) / (window * tuning['dt'])
    start = tuning['acceleration']
    return ca.if_else(state['count'] >= window - 0.5, ca.fmax(found, SMALLEST * start), start)
