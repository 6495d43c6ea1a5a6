# SPDX-License-Identifier: Apache-2.0
"""errorEKF_FE_SH: errorEKF_FE with shaping filters for coloured plant and measurement noise (Naya et al., review,
section 11)."""

from __future__ import annotations

from collections.abc import Callable

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
LAWS = ('correction', 'innovation')


def error_ekf_fe_sh(problem: Problem, color: str = 'plant', motion: str = 'trapezoid', window: int = 500,
                    law: str = 'correction') -> Filter:
    """errorEKF_FE_SH with the state ``[dz, dzd, dzdd]``, then ``omega`` (g,) and, for coloured sensors, ``v`` (s,).

    Plant: ``dzdd+ = dzdd + omega``, ``omega+ = W omega + xi`` (Eqs. 97, 101; the papers' noises of position and speed
    are never excited, Eq. 102, so only that of the acceleration is kept). W (g,), in 0..1, is found online by a
    ``law``, from lag-1 autocorrelations with a memory of ``window`` samples. 'correction', of the authors' toolbox: W
    grows as long as the acceleration corrections of successive samples resemble each other. 'innovation', as printed:
    W is the autocorrelation of the innovations, all channels together; whitening drives it to zero, and W with it, so
    the innovations never become white.
    Measurement: ``v+ = W v + zeta`` (Eq. 104) with known W.

    Noises: ``acceleration`` (g,) as in errorEKF_FE, 0 in the paper; ``colored`` (g,) variance of xi a step; for
    measurements ``sensor_memory`` (s,) W, ``sensor_color`` (s,) variance of zeta a step. Raises SettingError.
    """
    check_choice('color', color, COLORS)
    check_choice('law', law, LAWS)
    g, channels = problem.g, len(problem.channels)
    v = 0 if color == 'plant' else channels
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
            H = ca.horzcat(H, problem.zeros(channels, w))
        if v:
            h, H = h + state['x'][3 * g + w:], ca.horzcat(H, type(H).eye(v))
        x, P, *innovations = update(state['x'], state['P'], given['o'], h, H, tuning['variance'], tuning['gate'])
        adapted = adapted_by(state, x[2 * g:3 * g], *innovations)
        return {**feed_back(problem, choice, state, x, given, tuning), **adapted,
                **trusted(state, given, tuning, P, *innovations)}

    colored = {'sensor_memory': v, 'sensor_color': v} if v else {}
    noises = {'acceleration': g} | ({'colored': g} if w else {}) | colored
    adapted_by, last = (_by_correction(window), g) if law == 'correction' else (_by_innovation(window), channels)
    memory = {'force': (g, 1), 'W': (g, 1), 'products': (g, 2), 'last': (last, 1), 'doubt': (channels, 1)}
    return build_filter('errorEKF_FE_SH', problem, size, noises, predict, correct, memory)


def _augmented(F: ca.SX, memory: ca.SX, g: int, w: int) -> ca.SX:
    """``[[F, I], [0, W]]`` (Eq. 101), the identity where the plant's noise moves the acceleration error."""
    kind, n = type(F), memory.numel()
    into = kind(3 * g, n) if not w else ca.horzcat(ca.vertcat(kind(2 * g, w), kind.eye(w)), kind(3 * g, n - w))
    return ca.densify(ca.vertcat(ca.horzcat(F, into), ca.horzcat(kind(n, 3 * g), ca.diag(memory))))


def _by_correction(window: int) -> Callable[..., Parts]:
    """W after a sample: integrated lag-1 autocorrelation of the acceleration corrections, forgotten exponentially."""
    def adapted(state: Parts, error: ca.SX, _: ca.SX, __: ca.SX, used: ca.SX) -> Parts:
        products, correlation = _correlated(state, window, error * error, error * state['last'])
        W = ca.fmin(ca.fmax(state['W'] + correlation / window, 0.0), 1.0)
        return _where_sampled(state, used, W=W, products=products, last=error)
    return adapted


def _by_innovation(window: int) -> Callable[..., Parts]:
    """W after a sample: lag-1 autocorrelation of the normalised innovations (s,), the same for all coordinates."""
    def adapted(state: Parts, error: ca.SX, innovation: ca.SX, variance: ca.SX, used: ca.SX) -> Parts:
        now = ca.if_else(used > 0, innovation / ca.sqrt(variance), 0.0)
        squares, lagged = (ca.repmat(ca.dot(now, other), error.numel(), 1) for other in (now, state['last']))
        products, correlation = _correlated(state, window, squares, lagged)
        return _where_sampled(state, used, W=ca.fmin(ca.fmax(correlation, 0.0), 1.0), products=products, last=now)
    return adapted


def _correlated(state: Parts, window: int, squares: ca.SX, lagged: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Sums (g, 2) of ``squares`` and ``lagged`` products with a memory of ``window`` samples, and their ratio (g,)."""
    products = (1.0 - 1.0 / window) * state['products'] + ca.horzcat(squares, lagged)
    return products, products[:, 1] / ca.fmax(products[:, 0], np.finfo(float).tiny)


def _where_sampled(state: Parts, used: ca.SX, **new: ca.SX) -> Parts:
    """The new parts of the state where any sample was used, else the old ones."""
    return {name: ca.if_else(ca.sum1(used) > 0, value, state[name]) for name, value in new.items()}
