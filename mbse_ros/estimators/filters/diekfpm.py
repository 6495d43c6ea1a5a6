# SPDX-License-Identifier: Apache-2.0
"""DIEKFpm: iterated extended Kalman filter with perfect measurements, state ``[q, qd]`` (Naya et al., review,
section 6.2)."""

from __future__ import annotations

import casadi as ca

from ...errors import check_positive
from .cekf_penalty import PenaltyFilter
from .parts.constrained import closed, consistent, estimates, euler_step, independent, sensed
from .parts.problem import Problem
from .parts.step import Filter, Parts, build_filter
from .parts.update import correction


def diekfpm(problem: Problem, iterations: int = 4, slack: float = 1.0) -> Filter:
    """DIEKFpm: sensors and constraints together, ``iterations`` times, each from the a-priori estimate.

    Only the point at which all is linearised moves, so that no sample counts twice. The paper's constraints have a
    noise of 1e-3 SI, divided by e at each iteration until they hold to 1e-3; here they are perfect, that is what it
    tends to: each iteration looks for z and zd alone, the others follow. What they depart from their own prediction
    counts with the standard deviation ``slack``, SI, each. Noise ``acceleration`` (g,): density of the accelerations
    along the independent coordinates, m2/s3 or rad2/s3. Raises SettingError.

    The covariance is that of the sensors alone: the constraints carry no information on z.
    """
    check_positive(iterations=iterations, slack=slack)
    n, g, places = problem.n, problem.g, independent(problem)
    others = [i for i in range(2 * n) if i not in places]
    step, sense, near, finish = euler_step(problem), sensed(problem), consistent(problem), closed(problem, 1)
    update, settle = correction(2 * g, problem.angular), correction(2 * g, (False,) * len(others))
    variance = ca.DM.ones(len(others)) * slack ** 2

    def predict(state: Parts, given: Parts, tuning: Parts) -> Parts:
        x, P = step(state['x'], state['P'], tuning['acceleration'], given['u'], given['t'], tuning['dt'], tuning['p'])
        return {'x': x, 'P': P, 'q': x[:n]}

    def correct(state: Parts, given: Parts, tuning: Parts) -> Parts:
        u, t, p, prior, P = given['u'], given['t'], tuning['p'], state['x'], state['P'][places, places]
        x, point, start, first = prior, prior[places], prior[places], None
        for _ in range(int(iterations)):
            x, T = near(x, point, t, p)
            first = T if first is None else first
            h, H = sense(x, u, t, p)
            z, P_z, *found = update(start, P, given['o'], h + H @ T @ (start - point), H @ T, tuning['variance'],
                                    tuning['gate'])
            bent = x[others] + T[others, :] @ (z - point) - prior[others] - first[others, :] @ (z - start)
            point = settle(z, P_z, ca.DM.zeros(len(others)), bent, T[others, :] - first[others, :], variance,
                           1e300)[0]
        x, P, qdd = finish(near(x, point, t, p)[0], P_z, u, t, p)
        return estimates(problem, x, P, qdd, *found)

    return build_filter('DIEKFpm', problem, 2 * n, {'acceleration': g}, predict, correct, scalar=False,
                        made=PenaltyFilter)
