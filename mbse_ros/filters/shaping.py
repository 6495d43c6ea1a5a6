# SPDX-License-Identifier: Apache-2.0
"""errorEKF_FE_SH: errorEKF_FE with shaping filters for coloured plant and measurement noise (Naya et al., review,
section 11)."""

from __future__ import annotations

import casadi as ca
import numpy as np

from ..errors import check_choice
from .ekf import EkfVariant, along, error_mean, feed_back, force_of, observe, run_model, trusted, with_force
from .parts.model_step import rates
from .parts.problem import Problem
from .parts.standstill import dropped
from .parts.step import Filter, Parts, build_filter
from .parts.update import constant_noise, correction, propagation

COLORS = ('plant', 'measurement', 'both')


def error_ekf_fe_sh(problem: Problem, color: str = 'plant', motion: str = 'trapezoid', window: int = 500) -> Filter:
    """errorEKF_FE_SH with the state ``[dz, dzd, dzdd]``, then ``omega`` (g,) and, for coloured sensors, ``v`` (s,).

    Plant: ``dzdd+ = dzdd + omega``, ``omega+ = W omega + xi`` (Eqs. 97, 101; the papers' noises of position and speed
    are never excited, Eq. 102, so only that of the acceleration is kept). W (g,) is found online: it grows as long as
    the acceleration corrections of successive samples resemble each other (lag-1 autocorrelation with a memory of
    ``window`` samples) and stays in 0..1; the paper names the autocorrelation itself, which whitening drives to zero.
    Measurement: ``v+ = W v + zeta`` (Eq. 104) with known W.

    Noises: ``acceleration`` (g,) as in errorEKF_FE, 0 in the paper; ``colored`` (g,) variance of xi a step; for
    measurements ``sensor_memory`` (s,) W, ``sensor_color`` (s,) variance of zeta a step. Raises SettingError.
    """
    check_choice('color', color, COLORS)
    g, v = problem.g, 0 if color == 'plant' else len(problem.channels)
    w = 0 if color == 'measurement' else g
    size, choice = 3 * g + w + v, EkfVariant(motion, with_force, force=True)
    noise, update, spread_out = constant_noise(g, 3), correction(size, problem.angular, g), propagation(size)

    def predict(state: Parts, given: Parts, tuning: Parts) -> Parts:
        ahead, F = run_model(problem, choice, state, given, tuning)
        omega, W = state['x'][3 * g:3 * g + w], state['W']
        fresh = [tuning[name] for name, present in (('colored', w), ('sensor_color', v)) if present]
        fresh = ca.diag(ca.vertcat(*fresh))
        if w:
            omega, added = dropped(g, g, w + v, 0)(ahead['lost'], omega, type(W).eye(g))
            fresh = fresh + added
            at = rates(problem, ahead['q'], ahead['zd'], given['u'], ahead['force'], given['t'], tuning['p'])
            ahead = {**ahead, 'force': ahead['force'] + force_of(g)(at.B[g:, -g:], omega)}
        memory = ca.vertcat(W, tuning['sensor_memory']) if w and v else W if w else tuning['sensor_memory']
        Sigma = ca.diagcat(along(ahead, noise(tuning['acceleration'], tuning['dt'])), fresh)
        P = spread_out(_augmented(F, memory, g, w), state['P'], Sigma)
        colors = ca.vertcat(omega, state['x'][3 * g + w:])
        mean = ca.vertcat(error_mean(problem, ahead, 3), memory * colors)
        return {**ahead, 'x': mean, 'P': P, 'W': W, 'products': state['products'], 'last': state['last'],
                'doubt': state['doubt']}

    def correct(state: Parts, given: Parts, tuning: Parts) -> Parts:
        h, H = observe(problem, choice, state, given, tuning)
        if w:
            H = ca.horzcat(H, problem.zeros(len(problem.channels), w))
        if v:
            h, H = h + state['x'][3 * g + w:], ca.horzcat(H, type(H).eye(v))
        x, P, *innovations = update(state['x'], state['P'], given['o'], h, H, tuning['variance'], tuning['gate'])
        adapted = _adapted(state, x[2 * g:3 * g], innovations[2], window)
        return {**feed_back(problem, choice, state, x, given, tuning), **adapted,
                **trusted(state, given, tuning, P, *innovations)}

    colored = {'sensor_memory': v, 'sensor_color': v} if v else {}
    noises = {'acceleration': g} | ({'colored': g} if w else {}) | colored
    memory = {'force': (g, 1), 'W': (g, 1), 'products': (g, 2), 'last': (g, 1),
              'doubt': (len(problem.channels), 1)}
    return build_filter('errorEKF_FE_SH', problem, size, noises, predict, correct, memory)


def _augmented(F: ca.SX, memory: ca.SX, g: int, w: int) -> ca.SX:
    """``[[F, I], [0, W]]`` (Eq. 101), the identity where the plant's noise moves the acceleration error."""
    kind, n = type(F), memory.numel()
    into = kind(3 * g, n) if not w else ca.horzcat(ca.vertcat(kind(2 * g, w), kind.eye(w)), kind(3 * g, n - w))
    return ca.densify(ca.vertcat(ca.horzcat(F, into), ca.horzcat(kind(n, 3 * g), ca.diag(memory))))


def _adapted(state: Parts, error: ca.SX, used: ca.SX, window: int) -> Parts:
    """W after a sample: integrated lag-1 autocorrelation of the acceleration corrections, forgotten exponentially."""
    keep, present = 1.0 - 1.0 / window, ca.fmin(ca.sum1(used), 1.0)
    products = keep * state['products'] + ca.horzcat(error * error, error * state['last'])
    correlation = products[:, 1] / ca.fmax(products[:, 0], np.finfo(float).tiny)
    W = ca.fmin(ca.fmax(state['W'] + correlation / window, 0.0), 1.0)
    return {'W': ca.if_else(present > 0, W, state['W']),
            'products': ca.if_else(present > 0, products, state['products']),
            'last': ca.if_else(present > 0, error, state['last'])}
