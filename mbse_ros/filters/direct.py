# SPDX-License-Identifier: Apache-2.0
"""direct_EJ and direct_FE: errorEKF_EJ and errorEKF_FE with absolute states (Naya et al., review, section 7.4).

The state is predicted by the model's increment and corrected by ``x + K y`` (Eq. 81). The acceleration in the state of
direct_FE is that of the mechanism, not the model's error: the force is found from it, and its covariance is its own.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from .ekf import EkfVariant, along, feed_back, force_of, observe, run_model, trusted, with_force, with_jacobian
from .parts.model_step import ModelRates, rates
from .parts.problem import Problem
from .parts.step import Filter, Parts, build_filter
from .parts.update import block_matrix, constant_noise, correction, propagation


class DirectFilter(Filter):
    """Filter with the accelerations in its state."""

    def start(self, q: np.ndarray, qd: np.ndarray, stddev: float | np.ndarray) -> np.ndarray:
        """Flat state at coordinates and velocities (n,); ``stddev`` as in errorEKF_FE: a number or (3g,), of z, zd and
        of what the accelerations differ from the model's."""
        problem, g = self.problem, self.problem.g
        zd, inputs = qd[problem.z], np.zeros(problem.system.u.numel())
        zdd, A, *_ = problem.rates(q, zd, inputs, 0.0, problem.model.parameters)
        T = np.eye(3 * g)
        T[2 * g:, :2 * g] = np.array(A)[g:]
        T = T * np.broadcast_to(np.asarray(stddev, dtype=float), (3 * g,))
        return self.state.flat(x=np.concatenate([q[problem.z], zd, np.array(zdd).ravel()]), P=T @ T.T, q=q,
                               force=np.zeros(g), doubt=np.zeros(len(problem.channels)))


def direct_ej(problem: Problem, motion: str = 'trapezoid') -> Filter:
    """direct_EJ with the state ``[z, zd]``; noise ``acceleration`` (g,): density of the accelerations, m2/s3 or
    rad2/s3. Same estimates as errorEKF_EJ."""
    g, choice = problem.g, EkfVariant(motion, with_jacobian)
    noise, update, spread_out = constant_noise(g, 2), correction(2 * g, problem.angular, g), propagation(2 * g)

    def predict(state: Parts, given: Parts, tuning: Parts) -> Parts:
        ahead, F = run_model(problem, choice, state, given, tuning)
        P = spread_out(F, state['P'], along(ahead, noise(tuning['acceleration'], tuning['dt'])))
        return {**state, **ahead, 'x': _moved(problem, state, ahead), 'P': P, 'F': F}

    def correct(state: Parts, given: Parts, tuning: Parts) -> Parts:
        h, H = observe(problem, choice, state, given, tuning)
        x, P, *innovations = update(state['x'], state['P'], given['o'], h, H, tuning['variance'], tuning['gate'])
        return {**feed_back(problem, choice, state, x, given, tuning),
                **trusted(state, given, tuning, P, *innovations)}

    return build_filter('direct_EJ', problem, 2 * g, {'acceleration': g}, predict, correct,
                        {'force': (g, 1), 'doubt': (len(problem.channels), 1)})


def direct_fe(problem: Problem, motion: str = 'trapezoid') -> Filter:
    """direct_FE with the state ``[z, zd, zdd]``; noise ``acceleration`` (g,): density of the random walk of what the
    accelerations differ from the model's, m2/s5 or rad2/s5. Same estimates as errorEKF_FE.

    With ``zdd = a z + b zd + d`` along the model, its error d the third block of errorEKF_FE, the matrices are those of
    errorEKF_FE in other coordinates.
    """
    g, size, choice = problem.g, 3 * problem.g, EkfVariant(motion, with_force, force=True)
    noise, update, spread_out = constant_noise(g, 3), correction(size, problem.angular, g), propagation(size)

    def predict(state: Parts, given: Parts, tuning: Parts) -> Parts:
        u, t, dt, p = given['u'], given['t'], tuning['dt'], tuning['p']
        before = rates(problem, state['q'], state['x'][g:2 * g], u, state['force'], t - dt, p)
        ahead, F = run_model(problem, choice, state, given, tuning)
        at = rates(problem, ahead['q'], ahead['zd'], u, ahead['force'], t, p)
        to = _coordinates(at, 1.0)
        F = to @ F @ _coordinates(before, -1.0)
        Sigma = to @ along(ahead, noise(tuning['acceleration'], dt)) @ to.T
        P = spread_out(ca.densify(F), state['P'], ca.densify(Sigma))
        return {**state, **ahead, 'x': ca.vertcat(_moved(problem, state, ahead), at.zdd), 'P': P}

    def correct(state: Parts, given: Parts, tuning: Parts) -> Parts:
        x, u, t, p, force = state['x'], given['u'], given['t'], tuning['p'], state['force']
        zd, inputs = x[g:2 * g], ca.vertcat(u, force)
        h, *H = problem.sensors(state['q'], zd, x[2 * g:], inputs, t, p)
        found, P, *innovations = update(x, state['P'], given['o'], h, ca.horzcat(*H), tuning['variance'],
                                        tuning['gate'])
        at = rates(problem, state['q'], zd, u, force, t, p)
        error = (_coordinates(at, -1.0) @ (found - x))[2 * g:]
        q = problem.close(state['q'], found[:g], t, p)
        lift = rates(problem, q, found[g:2 * g], u, force, t, p).B[g:, -g:]
        force = force + force_of(g)(lift, error)
        now = rates(problem, q, found[g:2 * g], u, force, t, p)
        move = _coordinates(now, 1.0) @ _coordinates(at, -1.0)
        P = propagation(size)(ca.densify(move), P, type(move).zeros(size, size))
        return {'x': ca.vertcat(found[:2 * g], now.zdd), 'q': q, 'force': force, 'qd': now.qd, 'qdd': now.qdd,
                **trusted(state, given, tuning, P, *innovations)}

    return build_filter('direct_FE', problem, size, {'acceleration': g}, predict, correct,
                        {'force': (g, 1), 'doubt': (len(problem.channels), 1)}, made=DirectFilter)


def _moved(problem: Problem, state: Parts, ahead: Parts) -> ca.SX:
    """The state's ``z``, moved by what the model moves by, and the velocities."""
    return ca.vertcat(state['x'][:problem.g] + problem.independent(ahead['q'] - state['q']), ahead['zd'])


def _coordinates(at: ModelRates, sign: float) -> ca.SX:
    """``[[I, 0, 0], [0, I, 0], [a, b, I]]``, from ``[dz, dzd, d]`` to ``[dz, dzd, dzdd]``; with -1 its inverse."""
    rows = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [sign * at.a, sign * at.b, 1.0]]
    return block_matrix(type(at.A), rows, at.zd.numel())
