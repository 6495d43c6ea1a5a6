# SPDX-License-Identifier: Apache-2.0
"""``kinematic``: measured accelerations move the mechanism, other sensors correct it (Naya et al., review, section 8).

The dynamics have no part in the estimate of the motion. A second stage takes from it the forces that the model lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import casadi as ca
import numpy as np

from ..dynamics.formulations.matrix_r import constraint_rates
from ..dynamics.integrators.fixed_step import STAGES, WEIGHTS
from ..dynamics.sensor_equations import state_sensors
from ..dynamics.state_equations import Maps
from ..errors import SettingError, check_choice, check_positive
from .ekf import exact_jacobian
from .parts.model_step import rates, stood_still
from .parts.problem import Problem
from .parts.step import Filter, Parts, build_filter
from .parts.update import block_matrix, constant_noise, correction, measured, propagation, there, widening

Table = tuple[tuple[float, ...], tuple[tuple[float, ...], ...]]
HELD = 0.1      # s: after so long without accelerometers the last acceleration has faded to a third
TRIALS = 8      # states near the start at which the sensors are judged
SWEEPS = 4      # over the stages of an implicit method; each multiplies the error by about |A| dt, twice
MODELS = ('input', 'random_walk', 'differences', 'derivative')
CONSISTENT = 1e-9
_BESIDE = ((), *STAGES)
TABLES: dict[str, Table] = {        # beta and lambda of Eq. 87
    'forward_euler': ((1.0,), ((0.0,),)), 'midpoint': ((0.0, 1.0), ((0.0, 0.0), (0.5, 0.0))),
    'heun': ((0.5, 0.5), ((0.0, 0.0), (1.0, 0.0))), 'trapezoid': ((0.5, 0.5), ((0.0, 0.0), (0.5, 0.5))),
    'rk4': (WEIGHTS, tuple((*row, *[0.0] * (4 - len(row))) for row in _BESIDE))}
Taken = tuple[ca.SX, ca.SX, ca.SX, ca.SX, ca.SX, ca.SX]     # z, zd, a guess of q, zdd, F (2g, 2g), Sigma (2g, 2g)


def kinematic(problem: Problem, inputs: Sequence[str] | None = None, silent: float = 100.0, force_stddev: float = 1e4,
              motion: str | Table = 'linear', acceleration: str = 'input') -> Filter:
    """Kinematic estimator with the state ``[z, zd]`` and, in a second stage, the forces along z that are missing.

    ``inputs``: channels taken as measured accelerations (default: all accelerometers), the others correct.
    ``silent``: standard deviation of the accelerations where accelerometers are missing or see nothing, m/s2 or rad/s2;
    ``force_stddev``: of the forces at the start, N or N m. ``motion``: accelerations go linearly from sample to sample
    ('linear'), or Eq. 87 with the newest sample over the step: a name of ``TABLES``, or its numbers ``(beta (nu,),
    lambda (nu, nu))``. ``acceleration``: 'input', or with accelerations in the state, ``[z, zd, zdd]``, which all
    sensors correct: 'random_walk'; 'differences': that of zd over the step; 'derivative': zdd moves by the difference
    of the measured accelerations.
    Noises: ``acceleration`` (g,), density beyond the accelerometers' own noise, m2/s3 or rad2/s3; ``jerk`` (g,) of
    accelerations in the state, m2/s5 or rad2/s5; ``force_walk`` (g,), density of the forces' random walk, N2/s or N2
    m2/s. Raises SettingError, also where the sensors do not suffice.
    """
    check_positive(silent=silent, force_stddev=force_stddev)
    check_choice('acceleration', acceleration, MODELS)
    if acceleration in ('random_walk', 'derivative') and motion != 'linear':
        raise SettingError('motion', motion, f'none with acceleration={acceleration}, which integrates no samples')
    g, s = problem.g, len(problem.channels)
    driving, correcting = _channels(problem, inputs)
    _suffice(problem, driving, correcting)
    take = _linear if motion == 'linear' else partial(_runge_kutta, _table(motion))
    measure, stage, moved_by = _accelerations(problem, driving, silent), _force_stage(g), moved(problem)
    blocks, correcting = (2, correcting) if acceleration == 'input' else (3, list(range(s)))
    spread_out = propagation(blocks * g)
    update = correction(blocks * g, tuple(problem.angular[k] for k in correcting), g)
    ahead_of = {'random_walk': partial(_walked, None), 'derivative': partial(_walked, measure),
                'differences': partial(_differences, take, measure)}.get(acceleration, partial(take, measure))

    def remembered(measured: ca.SX | None, zdd: ca.SX | None) -> Parts:
        """The last acceleration, or the last measured one."""
        return {'input': {'zdd': zdd}, 'derivative': {'measured': measured}}.get(acceleration, {})

    def predict(state: Parts, given: Parts, tuning: Parts) -> Parts:
        z, t, dt, p = state['x'][:g], given['t'], tuning['dt'], tuning['p']
        last = state['zdd'] if acceleration == 'input' else state['x'][2 * g:]
        qd, qdd = moved_by(state['q'], state['x'][g:2 * g], last, t - dt, p)
        found = ahead_of(problem, state, given, tuning, last, qd, qdd)
        end, faster, guess, zdd, F, Sigma = found[:6]
        ahead = problem.close(guess, end, t, p)
        lost, q, zd, F, added = stood_still(problem, state['P'], state['q'], ahead, faster, F, t, dt, p)
        end = ca.if_else(lost, z, end)
        if acceleration != 'input':        # of the first acceleration nothing is known
            unknown = ca.if_else(state['begun'] > 0, 0.0, silent ** 2) * type(z).eye(g)
            added = added + ca.diagcat(type(z)(2 * g, 2 * g), unknown)
        P = spread_out(F, state['P'], ca.densify(Sigma + added))
        x = ca.vertcat(end, zd) if acceleration == 'input' else ca.vertcat(end, zd, zdd)
        kept = remembered(found[-1], zdd)
        return {'x': x, 'P': P, 'q': q, 'F': F, 'begun': state['begun'], 'force': state['force'],
                'doubt': state['doubt'], **kept,
                'force_P': ca.densify(state['force_P'] + ca.diag(tuning['force_walk'] * dt))}

    def correct(state: Parts, given: Parts, tuning: Parts) -> Parts:
        u, o, t, p = given['u'], given['o'], given['t'], tuning['p']
        zdd = state['zdd'] if acceleration == 'input' else state['x'][2 * g:]
        h, *slopes = problem.sensors(state['q'], state['x'][g:2 * g], zdd, ca.vertcat(u, problem.zeros(g)), t, p)
        H = ca.horzcat(*slopes[:blocks])
        x, P, *found = update(state['x'], state['P'], o[correcting], h[correcting], H[correcting, :],
                              tuning['variance'][correcting], tuning['gate'])
        zd = x[g:2 * g]
        q = problem.close(state['q'], x[:g], t, p)
        model = rates(problem, q, zd, u, problem.zeros(g), t, p)
        if acceleration == 'input':
            zdd, C, a, b = measure(q, zd, zdd, u, o, t, tuning['variance'], p, P, tuning['gate'])
            D = ca.horzcat(a - model.a, b - model.b)
        else:
            zdd, C, D = x[2 * g:], 0.0, ca.horzcat(-model.a, -model.b, type(x).eye(g))
        force, force_P = stage(state['force'], state['force_P'], zdd - model.zdd, model.B[g:, -g:],
                               ca.densify(C + D @ P @ D.T))
        qd, qdd = moved_by(q, zd, zdd, t, p)
        none = 0 * tuning['variance']
        about = [_placed(part, rest, correcting) for part, rest in zip(found, (none, tuning['variance'], none))]
        doubt, factor = widening(len(correcting))(state['doubt'], o[correcting], found[2], tuning['dt'])
        kept = remembered(state.get('measured'), zdd)
        return {'x': x, 'P': P * factor, 'doubt': doubt, 'q': q, 'qd': qd, 'qdd': qdd, **kept,
                'begun': type(x)(1), 'force': force, 'force_P': force_P, **measured(*about)}

    memory = {'force': (g, 1), 'force_P': (g, g), 'begun': (1, 1), 'doubt': (len(correcting), 1)}
    memory |= dict.fromkeys(remembered(None, None), (g, 1))
    noises = (*(['acceleration'] if acceleration in ('input', 'differences') else []),
              *(['jerk'] if blocks == 3 else []), 'force_walk')
    made = build_filter('kinematic', problem, blocks * g, dict.fromkeys(noises, g), predict, correct, memory)
    return replace(made, memory={'force_P': np.eye(g) * force_stddev ** 2})


def _table(motion: str | Table) -> Table:
    """beta and lambda; raises SettingError."""
    if isinstance(motion, str):
        check_choice('motion', motion, ('linear', *TABLES))
        return TABLES[motion]
    expected = 'beta (nu,), whose sum is 1, and lambda (nu, nu)'
    try:
        beta, shares = (np.asarray(part, dtype=float) for part in motion)
    except (TypeError, ValueError):
        raise SettingError('motion', motion, expected) from None
    if beta.ndim != 1 or shares.shape != (len(beta),) * 2 or not (
            np.isfinite(shares).all() and abs(beta.sum() - 1.0) < CONSISTENT):
        raise SettingError('motion', motion, expected)
    return tuple(beta.tolist()), tuple(map(tuple, shares.tolist()))


def _linear(measure: ca.Function, problem: Problem, state: Parts, given: Parts, tuning: Parts, last: ca.SX, qd: ca.SX,
            qdd: ca.SX) -> Taken:
    """The exact integral of accelerations that go linearly from the last ones to the measured ones."""
    g, t, dt, p = problem.g, given['t'], tuning['dt'], tuning['p']
    z, zd = state['x'][:g], state['x'][g:2 * g]
    guess = problem.close(state['q'] + dt * qd + dt ** 2 / 2 * qdd, z + dt * zd + dt ** 2 / 2 * last, t, p)
    zdd, C, a, b = measure(guess, zd + dt * last, last * ca.exp(-dt / HELD), given['u'], given['o'], t,
                           tuning['variance'], p, state['P'][:2 * g, :2 * g], tuning['gate'])
    first = ca.if_else(state['begun'] > 0, last, zdd)
    eye, F = type(zd).eye(g), block_matrix(type(zd), exact_jacobian(a, b, dt), g)
    enter = ca.vertcat(eye * (dt ** 2 / 2), eye * dt)
    return (z + dt * zd + dt ** 2 * (first / 3 + zdd / 6), zd + dt / 2 * (first + zdd), guess, zdd, F,
            constant_noise(g, 2)(tuning['acceleration'], dt) + enter @ C @ enter.T)


def _runge_kutta(table: Table, measure: ca.Function, problem: Problem, state: Parts, given: Parts, tuning: Parts,
                 last: ca.SX, qd: ca.SX, qdd: ca.SX) -> Taken:
    """Eq. 87 with ``f_c`` of Eq. 86, and its exact Jacobian."""
    (beta, shares), g, dt, x = table, problem.g, tuning['dt'], state['x'][:2 * problem.g]
    begin, faded, eye = given['t'] - dt, last * ca.exp(-dt / HELD), type(x).eye(2 * g)
    into = eye[:, g:]

    def evaluated(X: ca.SX, part: float) -> tuple[ca.SX, ...]:
        t, q = begin + part * dt, state['q'] + part * dt * qd + (part * dt) ** 2 / 2 * qdd
        zdd, C, a, b = measure(problem.close(q, X[:g], t, tuning['p']), X[g:], faded, given['u'], given['o'], t,
                               tuning['variance'], tuning['p'], state['P'][:2 * g, :2 * g], tuning['gate'])
        return ca.vertcat(X[g:], zdd), ca.vertcat(into.T, ca.horzcat(a, b)), zdd, C

    def mixed(weights: Sequence[float], parts: Sequence[ca.SX], like: ca.SX) -> ca.SX:
        return dt * sum((weight * part for weight, part in zip(weights, parts) if weight), 0 * like)

    explicit = not np.triu(shares).any()
    kappa, slopes, effects = list[ca.SX](), list[ca.SX](), list[ca.SX]()
    if not explicit:        # all stages begin with the rates at the start
        f, A, *_ = evaluated(x, 0.0)
        kappa, slopes, effects = [f] * len(beta), [A] * len(beta), [into] * len(beta)
    for _ in range(1 if explicit else SWEEPS):
        for i, row in enumerate(shares):
            f, A, zdd, C = evaluated(x + mixed(row, kappa, x), sum(row))
            new = f, A @ (eye + mixed(row, slopes, eye)), into + A @ mixed(row, effects, into)
            for parts, entry in zip((kappa, slopes, effects), new):
                parts[i:i + 1] = [entry]
    X, F, enter = (like + mixed(beta, parts, like) for like, parts in ((x, kappa), (eye, slopes), (0 * into, effects)))
    guess = state['q'] + dt * qd + dt ** 2 / 2 * qdd
    return X[:g], X[g:], guess, zdd, F, constant_noise(g, 2)(tuning['acceleration'], dt) + enter @ C @ enter.T


def _differences(take: Callable[..., Taken], measure: ca.Function, problem: Problem, state: Parts, given: Parts,
                 tuning: Parts, last: ca.SX, qd: ca.SX, qdd: ca.SX) -> Taken:
    """Accelerations ``(zd_k - zd_(k-1)) / dt`` of the integrated ones, with the noise ``jerk``."""
    g, dt, zd = problem.g, tuning['dt'], state['x'][problem.g:2 * problem.g]
    z, faster, guess, _, F, Sigma = take(measure, problem, state, given, tuning, last, qd, qdd)
    kind = type(zd)
    change = ca.horzcat(kind(g, g), kind.eye(g) / dt)
    onto = ca.vertcat(kind.eye(2 * g), change)
    F = ca.horzcat(onto @ F - ca.vertcat(kind(2 * g, 2 * g), change), kind(3 * g, g))
    Sigma = onto @ Sigma @ onto.T + ca.diagcat(kind(2 * g, 2 * g), ca.diag(tuning['jerk'] * dt))
    return z, faster, guess, (faster - zd) / dt, ca.densify(F), Sigma


def _walked(measure: ca.Function | None, problem: Problem, state: Parts, given: Parts, tuning: Parts, last: ca.SX,
            qd: ca.SX, qdd: ca.SX) -> tuple[ca.SX, ...]:
    """Accelerations with white jerk; with ``measure`` besides by the difference of the measured ones, which follow."""
    g, t, dt, p = problem.g, given['t'], tuning['dt'], tuning['p']
    zd, kind = state['x'][g:2 * g], type(last)
    F = block_matrix(kind, [[1.0, dt, dt ** 2 / 2], [0.0, 1.0, dt], [0.0, 0.0, 1.0]], g)
    guess, Sigma = state['q'] + dt * qd + dt ** 2 / 2 * qdd, constant_noise(g, 3)(tuning['jerk'], dt)
    moved_to = F @ state['x']
    if measure is None:
        return moved_to[:g], moved_to[g:2 * g], guess, last, F, Sigma
    q = problem.close(guess, moved_to[:g], t, p)
    new, C, *_ = measure(q, zd + dt * last, state['measured'], given['u'], given['o'], t, tuning['variance'], p,
                         state['P'][:2 * g, :2 * g], tuning['gate'])
    change = ca.if_else(state['begun'] > 0, new - state['measured'], 0.0)       # dt times the jerk
    enter = ca.vertcat(*(kind.eye(g) * share for share in (dt ** 2 / 6, dt / 2, 1.0)))
    X = moved_to + enter @ change
    return X[:g], X[g:2 * g], guess, X[2 * g:], F, Sigma + enter @ (2 * C) @ enter.T, new


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
    for rank, kind in zip(seen.max(axis=1), (
            'accelerometers, the inputs of kinematic, that determine the accelerations',
            'sensors beside these accelerometers that determine the positions')):
        if rank < g:
            raise SettingError('sensors', list(problem.channels), f'{kind} of {of}: these determine {int(rank)} of {g}')


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
