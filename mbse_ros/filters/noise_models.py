# SPDX-License-Identifier: Apache-2.0
"""errorEKF_FE with noise that is not known, or not white.

AerrorEKF_FE: errorEKF_FE whose noises are adapted by maximum likelihood (Naya et al., review, section 10.1).
errorEKF_FE_SH: errorEKF_FE with shaping filters for coloured plant and measurement noise (Naya et al., review,
section 11).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import casadi as ca
import numpy as np

from ..errors import SettingError, check_choice, check_count
from .ekf import (
    EkfVariant,
    actuator_places,
    along,
    error_mean,
    feed_back,
    force_names,
    force_of,
    observe,
    run_model,
    trusted,
    with_force,
)
from .parts.model_step import dropped, rates
from .parts.problem import Problem
from .parts.step import Filter, Parts, build_filter
from .parts.update import constant_noise, correction, propagation

NOISES = ('plant', 'sensors', 'both')
SMALLEST = 1e-3      # of the start: a noise is not adapted below this share of it
LARGEST = 10.0       # of the start: nor above it, where a filter that is lost would lose itself
OUTLIER = 9.0        # largest square of one sample's ratio, beyond which it is more than noise
TINY = 1e-300
COLORS = ('plant', 'measurement', 'both')
PLANT_LAWS = ('ratio', 'printed')
LAWS = ('correction', 'innovation')


def adaptive_error_ekf_fe(problem: Problem, motion: str = 'trapezoid', window: int = 50, adapt: str = 'plant',
                          actuators: Sequence[str] = (), law: str = 'ratio') -> Filter:
    """AerrorEKF_FE; noise ``acceleration`` (g,), density of the acceleration error's random walk, is where it starts.

    ``adapt``: the plant's noise, the sensors' (Eq. 92), or both, which one sensor a coordinate cannot distinguish (the
    paper saw it diverge). ``actuators`` as in errorEKF_FE. Raises SettingError.

    Of Eq. 91 only the diagonal of the acceleration error counts (Eq. 94); there the mean term over the ``window`` is
    zero where ``dx^2`` is as large as ``P- - P+`` says. The paper adds the difference to the noise, which may turn
    negative; here the noise is multiplied by the ratio of the two (mean over the window): it has the same solution and
    stays positive. Places of the window that are still empty count as no noise, in Eq. 91 as here, so that the start
    rules the first step alone. To keep it until the window is full, or to take the mean of the few samples that there
    are, costs what they say about a position that the sensors see only through the accelerations: with the papers'
    start, 40 times too large, one to four runs of twenty with a coupler's gyro are then lost.

    ``law='printed'``: the absolute value of the mean of Eq. 91 as it stands, without bounds, as variance of the
    acceleration error alone (Eq. 94), and the identity of Eq. 79. Not with ``actuators``.
    """
    check_count(window=window)
    check_choice('adapt', adapt, NOISES)
    check_choice('law', law, PLANT_LAWS)
    printed, window = law == 'printed', int(window)
    if printed and actuators:
        raise SettingError('law', law, 'ratio, or no actuators')
    g, s, size = problem.g, len(problem.channels), 3 * problem.g
    noise, update, spread_out = constant_noise(g, 3), correction(size, problem.angular, g), propagation(size)
    choice = EkfVariant(motion, with_force, force=True, actuators=actuator_places(problem, actuators),
                        held='acceleration' if printed else 'force')
    plant, sensors = adapt != 'sensors', adapt != 'plant'
    density_of = _printed_density if printed else _density

    def predict(state: Parts, given: Parts, tuning: Parts) -> Parts:
        ahead, F = run_model(problem, choice, state, given, tuning)
        density = density_of(state, tuning['acceleration'], window) if plant else tuning['acceleration']
        Sigma = noise(density, tuning['dt'])
        if printed:
            Sigma = ca.diag(ca.vertcat(problem.zeros(2 * g), density * tuning['dt']))
        P = spread_out(F, state['P'], along(ahead, Sigma))
        return {**state, **ahead, 'x': error_mean(problem, ahead, 3), 'P': P, 'density': density}

    def correct(state: Parts, given: Parts, tuning: Parts) -> Parts:
        h, H = observe(problem, choice, state, given, tuning)
        R = _variance(state, tuning['variance'], window) if sensors else tuning['variance']
        x, P, *innovations = update(state['x'], state['P'], given['o'], h, H, R, tuning['gate'])
        expected = ca.fmax(ca.diag(state['P'] - P)[2 * g:], TINY)
        ratio = ca.fmin(x[2 * g:] ** 2 / expected, OUTLIER)
        if printed:      # F P F' of Eq. 91 is the predicted covariance without its noise
            ratio = state['density'] + (x[2 * g:] ** 2 - ca.diag(state['P'] - P)[2 * g:]) / tuning['dt']
        memory = _remember(state, 'count', innovations[2], window, ratios=ratio,
                           densities=state['density']) if plant else {}
        if sensors:
            term = innovations[0] ** 2 - (innovations[1] - R)
            memory |= _remember(state, 'seen', innovations[2], window, terms=term)
        return {**feed_back(problem, choice, state, x, given, tuning), 'density': state['density'], **memory,
                **trusted(state, given, tuning, P, *innovations)}

    forces = force_names(problem, choice)
    memory = {'force': (len(forces), 1), 'density': (g, 1), 'doubt': (s, 1)}
    memory |= {'ratios': (g, window), 'densities': (g, window), 'count': (1, 1)} if plant else {}
    memory |= {'terms': (s, window), 'seen': (s, 1)} if sensors else {}
    return build_filter('AerrorEKF_FE', problem, size, {'acceleration': g}, predict, correct, memory, forces=forces)


def _density(state: Parts, start: ca.SX, window: int) -> ca.SX:
    """Density (g,) of the random walk from the window's ratios and the densities they belong to."""
    count = ca.fmax(state['count'], 1.0)
    ratio, mean = ca.sum2(state['ratios']) / count, ca.sum2(state['densities']) / window
    found = ca.fmin(ca.fmax(mean * ratio, SMALLEST * start), LARGEST * start)
    return ca.if_else(state['count'] > 0.5, found, start)


def _printed_density(state: Parts, start: ca.SX, window: int) -> ca.SX:
    """Density (g,) of Eq. 91, whose terms over the step are in place of the ratios."""
    return ca.if_else(state['count'] > 0.5, ca.fabs(ca.sum2(state['ratios'])) / window, start)


def _variance(state: Parts, start: ca.SX, window: int) -> ca.SX:
    """Variance (s,) of the sensors (Eq. 92), the start's share fading while the window fills."""
    filled = ca.sum2(state['terms']) + (window - state['seen']) * start
    return ca.fmax(filled / window, SMALLEST * start)


def _remember(state: Parts, counter: str, used: ca.SX, window: int, **terms: ca.SX) -> Parts:
    """Windows with one more column where a measurement was used; else they stay."""
    counts = state[counter].numel()
    used = used if counts > 1 else ca.fmin(ca.sum1(used), 1.0)
    found = {counter: ca.fmin(state[counter] + used, float(window))}
    for name, term in terms.items():
        rows = ca.vertsplit(state[name])
        flags = [used[k] if counts > 1 else used for k in range(len(rows))]
        found[name] = ca.vertcat(*(ca.if_else(flag > 0, ca.horzcat(row[1:], term[k]), row)
                                   for k, (row, flag) in enumerate(zip(rows, flags))))
    return found


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

    Noises: ``acceleration`` (g,) as in errorEKF_FE, 0 in the paper; ``color_walk`` (g,) density of xi, whose variance
    over a step is that times dt, so that with W = 0 it is errorEKF_FE with any step; for measurements ``sensor_memory``
    (s,) W, ``sensor_color`` (s,) variance of zeta, both a step. Raises SettingError.
    """
    check_count(window=window)
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
        fresh = ([tuning['color_walk'] * tuning['dt']] if w else []) + ([tuning['sensor_color']] if v else [])
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
    noises = {'acceleration': g} | ({'color_walk': g} if w else {}) | colored
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
