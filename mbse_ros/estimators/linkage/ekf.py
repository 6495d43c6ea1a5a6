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
    force along z corrects; noise ``acceleration`` (g,): density of the acceleration, or of its error's random walk."""
    g, blocks = problem.g, 3 if choice.force else 2
    size, s = g * blocks, len(problem.channels)
    noise = constant_noise(g, blocks) if choice.force else constant_noise(g, 2)
    update, spread_out = correction(size, problem.angular), propagation(size)

    def predict(state: Parts, given: Parts, tuning: Parts) -> Parts:
        q, zd, force, dt = state['q'], state['x'][g:2 * g], state['force'], tuning['dt']
        before = rates(problem, q, zd, given['u'], force, given['t'] - dt, tuning['p'])
        q, zd, F = advance(problem, choice.motion, q, zd, given['u'], force, given['t'], dt, tuning['p'])
        P = spread_out(choice.jacobian(before, F, dt), state['P'], noise(tuning['acceleration'], dt))
        rest = [problem.zeros(g)] if choice.force else []      # its estimate is in the force already
        return {'x': ca.vertcat(*(q[i] for i in problem.z), zd, *rest), 'P': P, 'q': q, 'force': force}

    def correct(state: Parts, given: Parts, tuning: Parts) -> Parts:
        x, q, force, u, t, p = state['x'], state['q'], state['force'], given['u'], given['t'], tuning['p']
        at = rates(problem, q, x[g:2 * g], u, force, t, p)
        h, H_z, H_zd, H_zdd = problem.sensors(q, x[g:2 * g], at.zdd, ca.vertcat(u, force), t, p)
        H = ca.horzcat(H_z, H_zd) + H_zdd @ ca.horzcat(at.a, at.b) * float(choice.accelerations)
        H = ca.horzcat(H, H_zdd) if choice.force else H
        x, P, innovation, spread, used = update(x, state['P'], given['o'], h, H, tuning['variance'], tuning['gate'])
        q = problem.close(q + at.qd * 0, x[:g], t, p)
        if choice.force:
            force = force + ca.solve(at.B[g:, -g:], x[2 * g:]) if g > 1 else force + x[2 * g:] / at.B[g:, -g:]
        now = rates(problem, q, x[g:2 * g], u, force, t, p)
        return {'x': x, 'P': P, 'q': q, 'force': force, 'qd': now.qd, 'qdd': now.qdd, 'innovation': innovation,
                'spread': spread, 'used': used}

    assert s == len(problem.stddev)
    return build_filter(name, problem, size, {'acceleration': g}, predict, correct, {'force': (g, 1)})


def simple(before: Rates, _: ca.SX, dt: ca.SX) -> ca.SX:
    """``[[I, dt I], [0, I]]`` (paper 001 Eq. 50)."""
    return block_matrix(type(before.A), [[1.0, dt], [0.0, 1.0]], before.zd.numel())


def exact_jacobian(before: Rates, dt: ca.SX) -> list[list[ca.SX]]:
    """Blocks ``[[I + a dt^2/2, I dt + b dt^2/2], [a dt, I + b dt]]`` (paper 001, section 7.2)."""
    eye = type(before.A).eye(before.zd.numel())
    return [[eye + before.a * (dt ** 2 / 2), eye * dt + before.b * (dt ** 2 / 2)],
            [before.a * dt, eye + before.b * dt]]
