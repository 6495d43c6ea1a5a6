# SPDX-License-Identifier: Apache-2.0
"""AerrorEKF_FE: errorEKF_FE whose noises are adapted by maximum likelihood (Naya et al., review, section 10.1)."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from ..errors import check_choice
from .ekf import (
    EkfVariant,
    actuator_places,
    along,
    error_mean,
    feed_back,
    force_names,
    observe,
    run_model,
    trusted,
    with_force,
)
from .parts.problem import Problem
from .parts.step import Filter, Parts, build_filter
from .parts.update import constant_noise, correction, propagation

NOISES = ('plant', 'sensors', 'both')
SMALLEST = 1e-3      # of the start: a noise is not adapted below this share of it
LARGEST = 10.0       # of the start: nor above it, where a filter that is lost would lose itself
OUTLIER = 9.0        # largest square of one sample's ratio, beyond which it is more than noise
TINY = 1e-300


def adaptive_error_ekf_fe(problem: Problem, motion: str = 'trapezoid', window: int = 50, adapt: str = 'plant',
                          actuators: Sequence[str] = ()) -> Filter:
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
    """
    check_choice('adapt', adapt, NOISES)
    g, s, size = problem.g, len(problem.channels), 3 * problem.g
    noise, update, spread_out = constant_noise(g, 3), correction(size, problem.angular, g), propagation(size)
    choice = EkfVariant(motion, with_force, force=True, actuators=actuator_places(problem, actuators))
    plant, sensors = adapt != 'sensors', adapt != 'plant'

    def predict(state: Parts, given: Parts, tuning: Parts) -> Parts:
        ahead, F = run_model(problem, choice, state, given, tuning)
        density = _density(state, tuning['acceleration'], window) if plant else tuning['acceleration']
        P = spread_out(F, state['P'], along(ahead, noise(density, tuning['dt'])))
        return {**state, **ahead, 'x': error_mean(problem, ahead, 3), 'P': P, 'density': density}

    def correct(state: Parts, given: Parts, tuning: Parts) -> Parts:
        h, H = observe(problem, choice, state, given, tuning)
        R = _variance(state, tuning['variance'], window) if sensors else tuning['variance']
        x, P, *innovations = update(state['x'], state['P'], given['o'], h, H, R, tuning['gate'])
        expected = ca.fmax(ca.diag(state['P'] - P)[2 * g:], TINY)
        memory = _remember(state, 'count', innovations[2], window, ratios=ca.fmin(x[2 * g:] ** 2 / expected, OUTLIER),
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
