# SPDX-License-Identifier: Apache-2.0
"""DIEKFpm: iterated extended Kalman filter with perfect measurements, state ``[q, qd]`` (paper 001, section 6.2)."""

from __future__ import annotations

import math
from dataclasses import fields

import casadi as ca

from ...errors import SettingError
from .cekf_penalty import PenaltyFilter
from .constrained import closed, constraints, estimates, euler_step, imposed, is_small, sensed
from .problem import Problem
from .step import Filter, Parts, build_filter
from .update import correction


SMALLEST = 1e-13    # variance of a constraint's noise, below which it is rounding


def diekfpm(problem: Problem, variance: float = 1e-3, decay: float = 6.0, iterations: int = 4,
            slack: float = 1.0) -> Filter:
    """DIEKFpm: sensors and constraints together, ``iterations`` times, each from the a-priori estimate.

    Only the point at which all is linearised moves, so that no sample counts twice. ``variance`` of the constraints'
    noise, SI, divided by ``exp(decay)`` at each iteration. The paper's decay is 1, and what is left of the noise then
    blurs sensors of dependent coordinates: 2e-5 m2 after four iterations; with 6 it is nothing. ``slack``: as in SCKF.
    In an iteration the constraints are taken first: the result is the same, and the innovations are those of a
    prediction that keeps the constraints. Noise ``acceleration`` (g,): density of the accelerations along the
    independent coordinates, m2/s3 or rad2/s3. Raises SettingError.
    """
    for name, value in (('variance', variance), ('decay', decay), ('iterations', iterations),
                        ('slack', slack)):
        if not 0 < value < float('inf'):
            raise SettingError(name, value, 'a positive number')
    n, rows = problem.n, 2 * problem.system.m
    step, sense, finish, look = euler_step(problem, slack), sensed(problem), closed(problem), constraints(problem)
    impose, update = imposed(2 * n, look.sparsity_out(1)), correction(2 * n, problem.angular)

    def predict(state: Parts, given: Parts, tuning: Parts) -> Parts:
        x, P = step(state['x'], state['P'], tuning['acceleration'], given['u'], given['t'], tuning['dt'], tuning['p'])
        return {'x': x, 'P': P, 'q': x[:n]}

    def correct(state: Parts, given: Parts, tuning: Parts) -> Parts:
        u, t, p, prior = given['u'], given['t'], tuning['p'], state['x']
        x = prior
        for i in range(1, iterations + 1):
            mean, P = prior, state['P']
            if rows:
                c, C = look(x, t, p)
                weak = max(variance * math.exp(-decay * i), SMALLEST)
                noise = weak * (ca.DM.ones(rows) if is_small(2 * n, rows) else ca.DM.eye(rows))
                mean, P = impose(prior, P, c + C @ (prior - x), C, ca.densify(noise))
            h, H = sense(x, u, t, p)
            x, P, innovation, spread, used = update(mean, P, given['o'], h + H @ (mean - x), H, tuning['variance'],
                                                    tuning['gate'])
        x, P, qdd = finish(x, P, u, t, p)
        return {**estimates(problem, x, P, qdd), 'innovation': innovation, 'spread': spread, 'used': used}

    made = build_filter('DIEKFpm', problem, 2 * n, {'acceleration': problem.g}, predict, correct, scalar=False)
    return PenaltyFilter(**{field.name: getattr(made, field.name) for field in fields(made)})
