# SPDX-License-Identifier: Apache-2.0
"""``kinematic``: measured accelerations move the mechanism, other sensors correct it (Naya et al., review, section 8).

The dynamics have no part in the estimate of the motion. A second stage takes from it the forces that the model lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import casadi as ca
import numpy as np

from ..dynamics.formulations.matrix_r import constraint_rates
from ..dynamics.sensor_equations import state_sensors
from ..dynamics.state_equations import Maps
from ..errors import SettingError, check_positive
from .ekf import exact_jacobian
from .parts.model_step import rates, stood_still
from .parts.problem import Problem
from .parts.step import Filter, Parts, build_filter
from .parts.update import block_matrix, constant_noise, correction, measured, propagation, there, widening

HELD = 0.1      # s: after so long without accelerometers the last acceleration has faded to a third
TRIALS = 8      # states near the start at which the sensors are judged


def kinematic(problem: Problem, inputs: Sequence[str] | None = None, silent: float = 100.0,
              force_stddev: float = 1e4) -> Filter:
    """Kinematic estimator with the state ``[z, zd]`` and, in a second stage, the forces along z that are missing.

    ``inputs``: channels taken as measured accelerations (default: all accelerometers), the others correct.
    ``silent``: standard deviation of the accelerations where accelerometers are missing or see nothing, m/s2 or rad/s2;
    ``force_stddev``: of the forces at the start, N or N m. The accelerations go linearly from sample to sample.
    Noises: ``acceleration`` (g,), density beyond the accelerometers' own noise, m2/s3 or rad2/s3; ``force_walk`` (g,),
    density of the forces' random walk, N2/s or N2 m2/s. Raises SettingError, also where the sensors do not suffice.
    """
    check_positive(silent=silent, force_stddev=force_stddev)
    g = problem.g
    driving, correcting = _channels(problem, inputs)
    _suffice(problem, driving, correcting)
    noise, spread_out = constant_noise(g, 2), propagation(2 * g)
    update = correction(2 * g, tuple(problem.angular[k] for k in correcting), g)
    measure, stage, motion = _accelerations(problem, driving, silent), _force_stage(g), moved(problem)

    def predict(state: Parts, given: Parts, tuning: Parts) -> Parts:
        z, zd, t, dt, p = state['x'][:g], state['x'][g:], given['t'], tuning['dt'], tuning['p']
        last = state['zdd']
        qd, qdd = motion(state['q'], zd, last, t - dt, p)
        guess = problem.close(state['q'] + dt * qd + dt ** 2 / 2 * qdd, z + dt * zd + dt ** 2 / 2 * last, t, p)
        faded = last * ca.exp(-dt / HELD)
        zdd, C, a, b = measure(guess, zd + dt * last, faded, given['u'], given['o'], t, tuning['variance'], p,
                               state['P'], tuning['gate'])
        first = ca.if_else(state['begun'] > 0, last, zdd)
        end = z + dt * zd + dt ** 2 * (first / 3 + zdd / 6)
        ahead = problem.close(guess, end, t, p)
        eye, F = type(zd).eye(g), block_matrix(type(zd), exact_jacobian(a, b, dt), g)
        enter = ca.vertcat(eye * (dt ** 2 / 2), eye * dt)
        faster = zd + dt / 2 * (first + zdd)
        lost, q, zd, F, added = stood_still(problem, state['P'], state['q'], ahead, faster, F, t, dt, p)
        end = ca.if_else(lost, z, end)
        P = spread_out(F, state['P'], ca.densify(noise(tuning['acceleration'], dt) + enter @ C @ enter.T) + added)
        return {'x': ca.vertcat(end, zd), 'P': P, 'q': q, 'F': F, 'zdd': zdd,
                'begun': state['begun'], 'force': state['force'], 'doubt': state['doubt'],
                'force_P': ca.densify(state['force_P'] + ca.diag(tuning['force_walk'] * dt))}

    def correct(state: Parts, given: Parts, tuning: Parts) -> Parts:
        zd, u, o, t, p = state['x'][g:], given['u'], given['o'], given['t'], tuning['p']
        h, H_z, H_zd, _ = problem.sensors(state['q'], zd, state['zdd'], ca.vertcat(u, problem.zeros(g)), t, p)
        H = ca.horzcat(H_z, H_zd)
        x, P, *found = update(state['x'], state['P'], o[correcting], h[correcting], H[correcting, :],
                              tuning['variance'][correcting], tuning['gate'])
        q = problem.close(state['q'], x[:g], t, p)
        zdd, C, a, b = measure(q, x[g:], state['zdd'], u, o, t, tuning['variance'], p, P, tuning['gate'])
        model = rates(problem, q, x[g:], u, problem.zeros(g), t, p)
        D = ca.horzcat(a - model.a, b - model.b)
        force, force_P = stage(state['force'], state['force_P'], zdd - model.zdd, model.B[g:, -g:], C + D @ P @ D.T)
        qd, qdd = motion(q, x[g:], zdd, t, p)
        none = 0 * tuning['variance']
        about = [_placed(part, rest, correcting) for part, rest in zip(found, (none, tuning['variance'], none))]
        doubt, factor = widening(len(correcting))(state['doubt'], o[correcting], found[2], tuning['dt'])
        return {'x': x, 'P': P * factor, 'doubt': doubt, 'q': q, 'qd': qd, 'qdd': qdd, 'zdd': zdd,
                'begun': type(x)(1), 'force': force, 'force_P': force_P, **measured(*about)}

    memory = {'force': (g, 1), 'force_P': (g, g), 'zdd': (g, 1), 'begun': (1, 1),
              'doubt': (len(correcting), 1)}
    made = build_filter('kinematic', problem, 2 * g, {'acceleration': g, 'force_walk': g}, predict, correct, memory)
    return replace(made, memory={'force_P': np.eye(g) * force_stddev ** 2})


def _channels(problem: Problem, inputs: Sequence[str] | None) -> tuple[list[int], list[int]]:
    """Places of the channels that are inputs and of those that correct."""
    model = state_sensors(problem.system)
    kinds = ((ca.jacobian(model.output[k], model.qdd).nnz(), ca.jacobian(model.output[k], model.lam).nnz())
             for k in range(len(problem.channels)))
    accelerations = []
    for name, (acceleration, force) in zip(problem.channels, kinds):
        if force:
            raise SettingError('sensors', name, 'no sensor of forces: the kinematic estimator knows of none')
        accelerations += [name] if acceleration else []
    chosen = accelerations if inputs is None else list(inputs)
    for name in chosen:
        if name not in accelerations:
            raise SettingError('inputs', name, 'channels of accelerometers: ' + (', '.join(accelerations) or 'none'))
    driving = [k for k, name in enumerate(problem.channels) if name in chosen]
    return driving, [k for k in range(len(problem.channels)) if k not in driving]


def _suffice(problem: Problem, driving: list[int], correcting: list[int]) -> None:
    """Raise SettingError where the inputs leave an acceleration open, or the others a position, near the start."""
    g, names = problem.g, [problem.system.names[i] for i in problem.z]
    random, p = np.random.default_rng(0), problem.model.parameters
    seen = np.zeros((2, TRIALS))
    for k in range(TRIALS):
        q = problem.model.start.q.copy()
        q[problem.z] += 0.05 * k * random.normal(size=g)
        for _ in range(8):
            q = np.array(problem.newton(q, 0.0, p)[0]).ravel()
        H = problem.sensors(q, random.normal(size=g), np.zeros(g), np.zeros(problem.system.u.numel()), 0.0, p)[1:]
        H_z, H_zdd = np.array(H[0])[correcting], np.array(H[2])[driving]
        if np.isfinite(H_z).all() and np.isfinite(H_zdd).all():
            seen[:, k] = [np.linalg.matrix_rank(part, tol=1e-9) if part.size else 0 for part in (H_zdd, H_z)]
    of = ', '.join(names)
    for rank, kind in zip(seen.max(axis=1), ('inputs: accelerometers that determine the accelerations',
                                             'corrections: sensors that determine the positions')):
        if rank < g:
            raise SettingError('sensors', list(problem.channels), f'{kind} of {of} ({g}, these determine {int(rank)})')


def _accelerations(problem: Problem, driving: list[int], silent: float) -> ca.Function:
    """``(q, zd, prior, u, o, t, variance, p, P, gate) -> (zdd, C, a, b)``: accelerations by the accelerometers,
    by least squares (Eq. 86) from a prior with the standard deviation ``silent``, their covariance and derivatives by
    z, zd. A sample that this prior and the covariance P (2g, 2g) of z, zd make impossible is left out."""
    g = problem.g
    q, zd, prior, u, o, t, variance, p, gate = problem.symbols('q zd zdd u o t variance p gate')
    P = problem.symbol('P', 2 * g, 2 * g)
    h, H_z, H_zd, H_zdd = problem.sensors(q, zd, prior, ca.vertcat(u, problem.zeros(g)), t, p)
    change, C, a, b = _least_squares(g, len(driving), silent)(
        o[driving] - h[driving], variance[driving], H_z[driving, :], H_zd[driving, :], H_zdd[driving, :], P, gate)
    return ca.Function('accelerations', [q, zd, prior, u, o, t, variance, p, P, gate], [prior + change, C, a, b],
                       {'cse': True})


def _least_squares(g: int, s: int, silent: float) -> ca.Function:
    """``(error, variance, H_z, H_zd, H_zdd, P, gate) -> (change of zdd, C, a, b)``; a NaN error is missing."""
    error, variance = ca.SX.sym('error', s), ca.SX.sym('variance', s)
    H_z, H_zd, H_zdd = (ca.SX.sym(name, s, g) for name in ('H_z', 'H_zd', 'H_zdd'))
    P, gate = ca.SX.sym('P', 2 * g, 2 * g), ca.SX.sym('gate')
    H = ca.horzcat(H_z, H_zd)
    innovation_variance = ca.sum2((H @ P) * H) + silent ** 2 * ca.sum2(H_zdd ** 2) + variance
    present = ca.vertcat(*(there(error[k]) * (error[k] ** 2 <= gate * innovation_variance[k]) for k in range(s)))
    weighted = H_zdd.T @ ca.diag(ca.if_else(present, 1 / variance, 0.0))
    C = ca.solve(weighted @ H_zdd + ca.SX.eye(g) / silent ** 2, ca.SX.eye(g))
    C = ca.densify(ca.tril2symm(ca.tril(C)))
    outputs = [C @ weighted @ ca.if_else(present, error, 0.0), C, -C @ weighted @ H_z, -C @ weighted @ H_zd]
    return ca.Function('least_squares', [error, variance, H_z, H_zd, H_zdd, P, gate], [
        ca.densify(part) for part in outputs], {'cse': True})


def moved(problem: Problem) -> ca.Function:
    """``(q, zd, zdd, t, p) -> (qd, qdd)``: velocity and acceleration problem (Eqs. 83, 84)."""
    system, parameters = problem.system, problem.system.values.symbol
    q, zd, zdd, t, p = problem.symbols('q zd zdd t p')
    J, b, c = constraint_rates(system)
    J, b = ca.Function('velocity', [system.q, system.t, parameters], [J, b])(q, t, p)
    maps = Maps.of(system, J, problem.scalar)
    qd = maps.R @ zd + maps.S(b)
    c = ca.Function('acceleration', [system.q, system.qd, system.t, parameters], [c])(q, qd, t, p)
    return ca.Function('moved', [q, zd, zdd, t, p], [qd, maps.R @ zdd + maps.S(c)], {'cse': True})


def _force_stage(g: int) -> ca.Function:
    """``(w, P, y, B, N) -> (w, P)``: forces whose effect ``B w`` is seen as y with a noise of covariance N."""
    w, y = ca.SX.sym('w', g), ca.SX.sym('y', g)
    P, B, N = (ca.SX.sym(name, g, g) for name in ('P', 'B', 'N'))
    gain = ca.solve((B @ P @ B.T + N).T, B @ P.T).T
    keep = ca.SX.eye(g) - gain @ B
    cov = ca.tril2symm(ca.tril(ca.densify(keep @ P @ keep.T + gain @ N @ gain.T)))
    return ca.Function('force_stage', [w, P, y, B, N], [w + gain @ (y - B @ w), cov], {'cse': True})


def _placed(part: ca.SX, rest: ca.SX, correcting: list[int]) -> ca.SX:
    """``rest`` (s,) with what is known of the correcting channels in its place."""
    entries = ca.vertsplit(rest)
    for k, place in enumerate(correcting):
        entries[place] = part[k]
    return ca.vertcat(*entries)
