# SPDX-License-Identifier: Apache-2.0
"""Filters that estimate parameters of the model (Naya et al., review, section 9).

joint: parameters of the model as states of a DEKF with exact transition. dual: a UKF of parameters beside an
errorEKF_FE of the state and the forces. """

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import casadi as ca
import numpy as np

from ..dynamics.formulations.matrix_r import constraint_rates
from ..dynamics.sensor_equations import state_sensors
from ..dynamics.state_equations import Maps, Pieces
from ..errors import SettingError
from ..transition.exponential import exact_step
from .ekf import EkfVariant, error_ekf_fe, observe, trusted, with_force
from .parts.model_step import HALVINGS, advance, rates, stood_still
from .parts.parameter_space import Bounds, ParameterSpace, parameter_space
from .parts.problem import Problem
from .parts.step import Filter, Parts, build_filter
from .parts.update import conditioning, constant_noise, correction, factor, propagation
from .sigma_filter import CLOSINGS, closed, drawn, gathered, observed, symmetric_points


def joint(problem: Problem, parameters: Sequence[str] | None = None, bounds: Bounds | None = None) -> Filter:
    """Joint estimation with the state ``[z, zd, theta]``; theta (r,) of the model's free numbers ``parameters`` (all of
    them), within ``bounds``, is their change as a share of the model's value (``ParameterSpace``).

    Start: standard deviation (2g + r,), of theta a share (0.1: 10 %). Noises: ``acceleration`` (g,), density of the
    acceleration; ``parameter_walk`` (r,), density of theta's random walk, 1/s, 0 for constants. ``Filter.parameters``
    gives the values of means. Raises SettingError.
    """
    space = parameter_space(problem, parameters, bounds)
    g, r = problem.g, len(space.names)
    size, partials, estimated = 2 * g + r, parameter_partials(problem, space.places), space.function
    noise, update, spread_out = constant_noise(g, 2), correction(size, problem.angular, g), propagation(size)
    step = _step(2 * g, r)

    def predict(state: Parts, given: Parts, tuning: Parts) -> Parts:
        q, x, dt, u, t = state['q'], state['x'], tuning['dt'], given['u'], given['t'] - tuning['dt']
        p, slope = estimated(x[2 * g:], tuning['p'])
        now = rates(problem, q, x[g:2 * g], u, problem.zeros(g), t, p)
        dzdd = partials(q, x[g:2 * g], ca.vertcat(u, problem.zeros(g)), t, p)[0]
        increment, F = step(now.A, now.f, _scaled(dzdd, slope), dt)
        Sigma = ca.diagcat(noise(tuning['acceleration'], dt), ca.diag(tuning['parameter_walk']) * dt)
        end = x[:2 * g] + increment
        ahead = problem.close(q + now.qd * dt + now.qdd * (dt ** 2 / 2), end[:g], given['t'], p)
        _, ahead, zd, F, added = stood_still(problem, state['P'], q, ahead, end[g:], F, given['t'], dt, p)
        x = ca.vertcat(problem.independent(ahead), zd, x[2 * g:])
        return {'x': x, 'P': spread_out(F, state['P'], Sigma + added), 'q': ahead, 'F': F,
                'doubt': state['doubt']}

    def correct(state: Parts, given: Parts, tuning: Parts) -> Parts:
        q, x, t, u = state['q'], state['x'], given['t'], ca.vertcat(given['u'], problem.zeros(g))
        p, slope = estimated(x[2 * g:], tuning['p'])
        zd = x[g:2 * g]
        at = rates(problem, q, zd, given['u'], problem.zeros(g), t, p)
        h, H_z, H_zd, H_zdd = problem.sensors(q, zd, at.zdd, u, t, p)
        H = ca.horzcat(H_z + H_zdd @ at.a, H_zd + H_zdd @ at.b, _scaled(partials(q, zd, u, t, p)[1], slope))
        x, P, *innovations = update(x, state['P'], given['o'], h, H, tuning['variance'], tuning['gate'])
        x = ca.vertcat(x[:2 * g], space.limited(x[2 * g:]))
        p, _ = estimated(x[2 * g:], tuning['p'])
        q = problem.close(q, x[:g], t, p)
        now = rates(problem, q, x[g:2 * g], given['u'], problem.zeros(g), t, p)
        return {'x': x, 'q': q, 'qd': now.qd, 'qdd': now.qdd, 'force': problem.zeros(g),
                **trusted(state, given, tuning, P, *innovations)}

    built = build_filter('joint', problem, size, {'acceleration': g, 'parameter_walk': r}, predict, correct,
                         {'doubt': (len(problem.channels), 1)})
    return replace(built, parameters=space)


def _scaled(columns: ca.SX, slope: ca.SX) -> ca.SX:
    """Derivatives (m, r) by theta, from those by the values."""
    return columns @ ca.diag(slope)


def _step(size: int, r: int) -> ca.Function:
    """``(A, f, dzdd, dt) -> (increment, F)``: exact step of ``[X, theta]`` with theta at rest, whose system matrix is
    ``[[A, [0; dzdd]], [0, 0]]``."""
    A, f, dt = ca.SX.sym('A', size, size), ca.SX.sym('f', size), ca.SX.sym('dt')
    dzdd = ca.SX.sym('dzdd', size // 2, r)
    lift = ca.vertcat(ca.SX(size // 2, r), dzdd)
    whole = ca.vertcat(ca.horzcat(A, lift), ca.SX(r, size + r))
    flows, increment = exact_step(ca.densify(whole), ca.vertcat(f, ca.SX.zeros(r)), dt, HALVINGS)
    return ca.Function('joint_step', [A, f, dzdd, dt], [increment[:size], ca.densify(flows[-1])], {'cse': True})


def parameter_partials(problem: Problem, places: Sequence[int]) -> ca.Function:
    """Function ``(q, zd, u, t, p) -> (dzdd (g, r), dh (s, r), dq (n, r))``: total derivatives by the parameters at
    ``places`` of p, at constant z and zd; u as in ``Problem``.

    The constraints hold for every p: ``dq = -S Phi_p``, ``dqd = -S (d(J qd - b)/dq dq + d(J qd - b)/dp)``; then with G
    and H of ``state_function`` ``dzdd = Mbar^-1 R' (dG - M S dH)``, ``dqdd = R dzdd + S dH``, ``dlam = S' (dG - M
    dqdd)``.
    """
    system, symbol = problem.system, problem.system.values.symbol
    (q, zd, t, p), u = problem.symbols('q zd t p'), problem.symbol('u', system.u.numel())
    pieces, chosen = Pieces(system, symbol), symbol[list(places)]
    J, b = pieces.constraints(q, t, p)
    maps = Maps.of(system, J, problem.scalar)
    _, _, B, qdd, lam, qd = problem.rates(q, zd, u, t, p)
    M = pieces.dynamics(q, qd, u, t, p)[0]
    G_q, G_qd = pieces.force_tangents(q, qd, u, t, p, qdd, lam)
    H_q, H_qd, rate_q = pieces.constraint_tangents(q, qd, t, p, qdd)
    Phi_p, rate_p, G_p, H_p = _by_parameters(problem, chosen)(q, qd, u, t, p, qdd, lam)
    dq = -maps.S(Phi_p)
    dqd = -maps.S(rate_q @ dq + rate_p)
    dG, dH = G_q @ dq + G_qd @ dqd + G_p, H_q @ dq + H_qd @ dqd + H_p
    free = maps.S(dH)
    dzdd = B[problem.g:, -problem.g:] @ (maps.R.T @ (dG - M @ free))
    dqdd = maps.R @ dzdd + free
    dlam = maps.S_transposed(dG - M @ dqdd)
    h_q, h_qd, h_qdd, h_lam, h_p = _sensors(problem, chosen)(q, qd, u, t, p, qdd, lam)
    dh = h_q @ dq + h_qd @ dqd + h_qdd @ dqdd + h_lam @ dlam + h_p
    return ca.Function('mbse_parameter_partials', [q, zd, u, t, p], [ca.densify(x) for x in (dzdd, dh, dq)],
                       {'cse': True})


def _by_parameters(problem: Problem, chosen: ca.SX) -> ca.Function:
    """Partial derivatives of Phi, of the constraints' rate, of G and of H by the parameters."""
    system = problem.system
    J, b, c = constraint_rates(system)
    qdd, lam = ca.SX.sym('qdd', system.n), ca.SX.sym('lam', system.m)
    parts = [system.Phi, J @ system.qd - b, system.Q - system.M @ qdd - J.T @ lam, c - J @ qdd]
    inputs = [system.q, system.qd, system.u, system.t, system.values.symbol, qdd, lam]
    return ca.Function('by_parameters', inputs, [ca.jacobian(part, chosen) for part in parts], {'cse': True})


def _sensors(problem: Problem, chosen: ca.SX) -> ca.Function:
    """Partial derivatives of the sensors' outputs."""
    system, model = problem.system, state_sensors(problem.system)
    inputs = [system.q, system.qd, system.u, system.t, system.values.symbol, model.qdd, model.lam]
    by = [system.q, system.qd, model.qdd, model.lam, chosen]
    return ca.Function('sensors_by', inputs, [ca.jacobian(model.output, symbol) for symbol in by], {'cse': True})


def dual(problem: Problem, parameters: Sequence[str] | None = None, bounds: Bounds | None = None,
         motion: str = 'trapezoid', alpha: float = 1e-3, memory: float = 20.0) -> Filter:
    """Dual estimation: mean ``[dz, dzd, dzdd]`` of errorEKF_FE, then theta (r,) of a UKF; as in ``joint``, theta is the
    change of the model's free numbers ``parameters`` as a share of the model's value.

    Every sample the UKF moves the model one step from the last state with each of its parameters and compares what the
    sensors should say; the state's own covariance ``H P H'`` counts as noise of that comparison. Then errorEKF_FE
    corrects its state with the new parameters. That model runs without the estimated force, which takes up the
    parameters' errors and would leave nothing to see (a mass then stays wrong by half of its error).

    The two share no covariance (P is block diagonal), so only what a parameter changes within a step is seen: it takes
    accelerations; and the state's errors, which last, are in every comparison: their variance counts ``memory`` times.
    Lengths, whose error the state takes up, and encoders alone need ``joint``.

    Noises: ``acceleration`` (g,) of errorEKF_FE; ``parameter_walk`` (r,), density of theta's random walk, 1/s.
    ``alpha``: spread of the points. Raises SettingError, also for a parameter in the constraints.
    """
    space, inner = parameter_space(problem, parameters, bounds), error_ekf_fe(problem, motion)
    _check(problem, space)
    l, r, s = 3 * problem.g, len(space.names), len(problem.channels)
    points = symmetric_points(r, alpha)
    draw, gather, look = drawn(points, [0] * r), gathered(points), observed(points, s, problem.angular)
    expect, see, close = _expected(problem, space, motion), _seen(problem), closed(problem, 2 * problem.g)
    update = conditioning(r, points.number + 1 + l, problem.angular)

    def predict(state: Parts, given: Parts, tuning: Parts) -> Parts:
        u, t, dt, x, P = given['u'], given['t'], tuning['dt'], state['x'], state['P']
        P_theta = P[l:, l:] + ca.diag(tuning['parameter_walk']) * dt
        X, _ = draw(x[l:], P_theta, dt)
        Y = [expect(state['q'], x[:l], theta, u, t, dt, tuning['p'])
             for theta in ca.horzsplit(X)]
        ahead = inner.state.unpack(inner.predict(*_inner(inner, space, state, given, tuning, l)))
        return {'x': ca.vertcat(ahead['x'], x[l:]), 'P': ca.diagcat(ahead['P'], P_theta), 'q': ahead['q'],
                'force': ahead['force'], 'doubt': ahead['doubt'], 'expected': ca.horzcat(*Y)}

    def correct(state: Parts, given: Parts, tuning: Parts) -> Parts:
        u, t, x, P = given['u'], given['t'], state['x'], state['P']
        H = see(state['q'], x[:l], state['force'], u, t, space.function(x[l:], tuning['p'])[0])
        X, scale = draw(x[l:], P[l:, l:], tuning['dt'])
        h, E = look(state['expected'], scale)
        S = ca.horzcat(gather(X, scale)[1], ca.MX(r, l))
        E = ca.horzcat(E, np.sqrt(memory) * (H @ factor(l)(P[:l, :l])))
        theta, P_theta, *_ = update(x[l:], S, given['o'], h, E, tuning['variance'], tuning['gate'])
        theta = space.limited(theta)
        q = close(state['q'], x[:2 * problem.g], t, space.function(theta, tuning['p'])[0])
        moved = {**state, 'x': ca.vertcat(x[:l], theta), 'q': q}
        flat, y = inner.correct(*_inner(inner, space, moved, given, tuning, l))
        after, out = inner.state.unpack(flat), inner.outputs.unpack(y)
        return {**out, **after, 'x': ca.vertcat(after['x'], theta), 'P': ca.diagcat(after['P'], P_theta),
                'expected': state['expected']}

    kept = {'force': (problem.g, 1), 'doubt': (s, 1), 'expected': (s, points.number + 1)}
    built = build_filter('dual', problem, l + r, {'acceleration': problem.g, 'parameter_walk': r}, predict, correct,
                         kept, scalar=False)
    return replace(built, parameters=space)


def _check(problem: Problem, space: ParameterSpace) -> None:
    """Raise SettingError for a parameter of the geometry."""
    symbols = problem.system.values.symbol
    for name, place in zip(space.names, space.places):
        if ca.jacobian(problem.system.Phi, symbols[place]).nnz():
            raise SettingError('parameters', name, 'a number that is not in the constraints; joint estimates all')


def _inner(inner: Filter, space: ParameterSpace, state: Parts, given: Parts, tuning: Parts, size: int
           ) -> tuple[ca.MX, ca.MX, ca.MX]:
    """Flat state, samples and tuning of errorEKF_FE, with the estimated parameters."""
    x = state['x']
    own = {'x': x[:size], 'P': state['P'][:size, :size], 'q': state['q'], 'force': state['force'],
           'doubt': state['doubt']}
    p = space.function(x[size:], tuning['p'])[0]
    return (inner.state.pack(**own), inner.given.pack(**given),
            inner.tuning.pack(**{name: tuning[name] for name in inner.tuning.parts if name != 'p'}, p=p))


def _expected(problem: Problem, space: ParameterSpace, motion: str) -> ca.Function:
    """``(q, x, theta, u, t, dt, p) -> h``: sensors at t, one step after the state, with parameters theta, no force."""
    q, u, t, dt, p = problem.symbols('q u t dt p')
    x, theta = problem.symbol('x', 3 * problem.g), problem.symbol('theta', len(space.names))
    g, force, estimated = problem.g, problem.zeros(problem.g), space.function(theta, p)[0]
    start = problem.close(q, x[:g], t - dt, estimated, CLOSINGS)
    end, zd, _ = advance(problem, motion, start, x[g:2 * g], u, force, t, dt, estimated)
    zdd = rates(problem, end, zd, u, force, t, estimated).zdd
    h = problem.sensors(end, zd, zdd, ca.vertcat(u, force), t, estimated)[0]
    return ca.Function('expected', [q, x, theta, u, t, dt, p], [h], {'cse': True})


def _seen(problem: Problem) -> ca.Function:
    """``(q, x, force, u, t, p) -> H`` (s, 3g) of errorEKF_FE."""
    (q, force, u, t, p), x = problem.symbols('q force u t p'), problem.symbol('x', 3 * problem.g)
    choice = EkfVariant('trapezoid', with_force, force=True)
    _, H = observe(problem, choice, {'q': q, 'x': x, 'force': force}, {'u': u, 't': t}, {'p': p})
    return ca.Function('seen', [q, x, force, u, t, p], [ca.densify(H)], {'cse': True})
