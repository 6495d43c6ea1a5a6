# SPDX-License-Identifier: Apache-2.0
"""DEKF, discrete extended Kalman filter with any transition, and ADEKF, with unknown input forces as random walks in
its state (Naya et al., review, section 5, Pyrhönen et al., state transition, section 4)."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from .ekf import EkfVariant, Jacobian, bias_places, ekf, feed_back, observe, simple, trusted
from .parts.model_step import advance, dropped, rates, stood_still
from .parts.problem import Problem
from .parts.step import Filter, Parts, build_filter
from .parts.update import block_matrix, constant_noise, correction, propagation


def dekf(problem: Problem, transition: str = 'forward_euler', biases: Sequence[str] = ()) -> Filter:
    """DEKF; with 'forward_euler' (Naya et al., review) and 'augmented_euler' the covariance follows ``[[I, dt I], [0,
    I]]``, with the exponential ones (Pyrhönen et al., state transition) the exact Jacobian, which sees what the simple
    one is blind to. ``biases``:
    channels or sensors whose bias is estimated too."""
    return ekf('DEKF', problem, EkfVariant(transition, _jacobian(transition), biases=bias_places(problem, biases)))


def _jacobian(transition: str) -> Jacobian:
    """Transition of the covariance: the simple one, or that of the motion."""
    return simple if transition in ('forward_euler', 'augmented_euler') else lambda _, F, dt: F


def adekf(problem: Problem, transition: str = 'forward_euler') -> Filter:
    """ADEKF with the state ``[z, zd, force]``, the force (g,) along the independent coordinates, N or N m.

    Noises: ``acceleration`` (g,), density of the acceleration; ``force_walk`` (g,), density of the force's random walk,
    N2/s or N2 m2/s. ``transition`` as in the DEKF; with 'forward_euler' the force moves positions only in the
    next step, mean and covariance alike; with the others it enters to second order in dt.
    """
    g = problem.g
    noise, walk = constant_noise(g, 2), constant_noise(g, 1)
    choice = EkfVariant(transition, _jacobian(transition))
    update, spread_out = correction(3 * g, problem.angular, g), propagation(3 * g)

    def predict(state: Parts, given: Parts, tuning: Parts) -> Parts:
        x, dt, p = state['x'], tuning['dt'], tuning['p']
        zd, force = x[g:2 * g], x[2 * g:]
        before = rates(problem, state['q'], zd, given['u'], force, given['t'] - dt, p)
        q, zd, F = advance(problem, transition, state['q'], zd, given['u'], force, given['t'], dt, p)
        F, lift = choice.jacobian(before, F, dt), before.B[g:, -g:]
        onto = 0.0 * lift if transition == 'forward_euler' else lift * (dt ** 2 / 2)
        F = block_matrix(type(lift), [[F[:g, :g], F[:g, g:], onto], [F[g:, :g], F[g:, g:], lift * dt], [0.0, 0.0, 1.0]],
                         g)
        lost, q, zd, F, added = stood_still(problem, state['P'], state['q'], q, zd, F, given['t'], dt, p)
        force, gone = dropped(g, g, 3 * g, 2 * g)(lost, force, type(lift).eye(g))
        Sigma = ca.diagcat(noise(tuning['acceleration'], dt), walk(tuning['force_walk'], dt)) + added + gone
        P = spread_out(F, state['P'], Sigma)
        return {'x': ca.vertcat(problem.independent(q), zd, force), 'P': P, 'q': q, 'force': force, 'F': F,
                'doubt': state['doubt']}

    def correct(state: Parts, given: Parts, tuning: Parts) -> Parts:
        h, H = observe(problem, choice, state, given, tuning)
        H = ca.horzcat(H, _by_force(problem, state, given, tuning))
        x, P, *innovations = update(state['x'], state['P'], given['o'], h, H, tuning['variance'], tuning['gate'])
        moved = feed_back(problem, choice, {**state, 'force': x[2 * g:]}, x, given, tuning)
        return {**moved, **trusted(state, given, tuning, P, *innovations)}

    return build_filter('ADEKF', problem, 3 * g, {'acceleration': g, 'force_walk': g}, predict, correct,
                        {'force': (g, 1), 'doubt': (len(problem.channels), 1)})


def _by_force(problem: Problem, state: Parts, given: Parts, tuning: Parts) -> ca.SX:
    """Derivative (s, g) of the sensors by the force, through the accelerations."""
    g, q, zd, force = problem.g, state['q'], state['x'][problem.g:2 * problem.g], state['force']
    at = rates(problem, q, zd, given['u'], force, given['t'], tuning['p'])
    inputs = ca.vertcat(given['u'], force)
    return problem.sensors(q, zd, at.zdd, inputs, given['t'], tuning['p'])[3] @ at.B[g:, -g:]
