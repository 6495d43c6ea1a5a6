# SPDX-License-Identifier: Apache-2.0
"""Extended Kalman filters in independent coordinates: one shape, of which the papers' filters are choices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca

from .motion import Rates, advance, rates
from .problem import Problem
from .step import Filter, Parts, build_filter
from .update import block_matrix, constant_noise, correction, propagation

Jacobian = Callable[[Rates, ca.SX, ca.SX], ca.SX]       # (rates before the step, exact F of the motion, dt) -> F


@dataclass(frozen=True)
class Choice:
    """What distinguishes one filter.

    ``motion``: transition of the mean (``motion.TRANSITIONS``); ``jacobian``: transition of the covariance;
    ``force``: the acceleration error is a third block of the state and becomes a force on the model (paper 001,
    section 7.3); ``accelerations``: the sensors' derivative takes in that of the model's accelerations.
    """

    motion: str
    jacobian: Jacobian
    force: bool = False
    accelerations: bool = True


def ekf(name: str, problem: Problem, choice: Choice) -> Filter:
    """Filter of a choice. The mean is ``[z, zd]`` or ``[z, zd, dzdd]`` with the acceleration error ``dzdd`` that the
    force along z corrects; noise ``acceleration`` (g,): density of the acceleration, m2/s3 or rad2/s3, or of the random
    walk of its error, m2/s5 or rad2/s5."""
    g, blocks = problem.g, 3 if choice.force else 2
    size = g * blocks
    noise, update, spread_out = constant_noise(g, blocks), correction(size, problem.angular), propagation(size)

    def predict(state: Parts, given: Parts, tuning: Parts) -> Parts:
        ahead, F = run_model(problem, choice, state, given, tuning)
        P = spread_out(F, state['P'], noise(tuning['acceleration'], tuning['dt']))
        step = {} if choice.force else {'F': F}      # an error that becomes a force does not stay in the mean
        return {**ahead, **step, 'x': error_mean(problem, ahead, blocks), 'P': P}

    def correct(state: Parts, given: Parts, tuning: Parts) -> Parts:
        h, H = observe(problem, choice, state, given, tuning)
        x, P, *innovations = update(state['x'], state['P'], given['o'], h, H, tuning['variance'], tuning['gate'])
        return {**feed_back(problem, choice, state, x, given, tuning), 'P': P, **measured(*innovations)}

    return build_filter(name, problem, size, {'acceleration': g}, predict, correct, {'force': (g, 1)})


def run_model(problem: Problem, choice: Choice, state: Parts, given: Parts, tuning: Parts) -> tuple[Parts, ca.SX]:
    """Coordinates ``q``, independent velocities ``zd`` and ``force`` one step later, and the transition ``F`` of P."""
    g, dt, p = problem.g, tuning['dt'], tuning['p']
    q, zd, force = state['q'], state['x'][g:2 * g], state['force']
    before = rates(problem, q, zd, given['u'], force, given['t'] - dt, p)
    q, zd, F = advance(problem, choice.motion, q, zd, given['u'], force, given['t'], dt, p)
    return {'q': q, 'zd': zd, 'force': force}, choice.jacobian(before, F, dt)


def error_mean(problem: Problem, ahead: Parts, blocks: int) -> ca.SX:
    """The model's own state as the mean; the acceleration error is zero, for its estimate is in the force already."""
    rest = [problem.zeros(problem.g)] * (blocks - 2)
    return ca.vertcat(*(ahead['q'][i] for i in problem.z), ahead['zd'], *rest)


def observe(problem: Problem, choice: Choice, state: Parts, given: Parts, tuning: Parts) -> tuple[ca.SX, ca.SX]:
    """Sensors (s,) of the predicted state and their derivative (s, 2g or 3g)."""
    g, q, force, u, t, p = problem.g, state['q'], state['force'], given['u'], given['t'], tuning['p']
    zd = state['x'][g:2 * g]
    at = rates(problem, q, zd, u, force, t, p)
    h, H_z, H_zd, H_zdd = problem.sensors(q, zd, at.zdd, ca.vertcat(u, force), t, p)
    H = ca.horzcat(H_z, H_zd)
    if choice.accelerations:
        H = H + H_zdd @ ca.horzcat(at.a, at.b)
    return h, ca.horzcat(H, H_zdd) if choice.force else H


def feed_back(problem: Problem, choice: Choice, state: Parts, x: ca.SX, given: Parts, tuning: Parts) -> Parts:
    """State and outputs after the correction of the mean: the model is moved, and given the force of its error
    ``Mbar dzdd`` (paper 001 Eq. 80)."""
    g, force, u, t, p = problem.g, state['force'], given['u'], given['t'], tuning['p']
    q = problem.close(state['q'], x[:g], t, p)
    if choice.force:
        force = force + force_of(g)(rates(problem, q, x[g:2 * g], u, force, t, p).B[g:, -g:], x[2 * g:3 * g])
    now = rates(problem, q, x[g:2 * g], u, force, t, p)
    return {'x': x, 'q': q, 'force': force, 'qd': now.qd, 'qdd': now.qdd}


def force_of(g: int) -> ca.Function:
    """``(Mbar^-1, dzdd) -> Mbar dzdd``."""
    inverse, error = ca.SX.sym('inverse', g, g), ca.SX.sym('error', g)
    return ca.Function('force_of', [inverse, error], [ca.solve(inverse, error) if g > 1 else error / inverse])


def measured(innovation: ca.SX, spread: ca.SX, used: ca.SX) -> Parts:
    """Outputs about the measurements."""
    return {'innovation': innovation, 'spread': spread, 'used': used}


def simple(before: Rates, _: ca.SX, dt: ca.SX) -> ca.SX:
    """``[[I, dt I], [0, I]]`` (paper 001 Eq. 50)."""
    return block_matrix(type(before.A), [[1.0, dt], [0.0, 1.0]], before.zd.numel())


def exact_jacobian(before: Rates, dt: ca.SX) -> list[list[ca.SX]]:
    """Blocks ``[[I + a dt^2/2, I dt + b dt^2/2], [a dt, I + b dt]]`` (paper 001, section 7.2)."""
    eye = type(before.A).eye(before.zd.numel())
    return [[eye + before.a * (dt ** 2 / 2), eye * dt + before.b * (dt ** 2 / 2)],
            [before.a * dt, eye + before.b * dt]]
