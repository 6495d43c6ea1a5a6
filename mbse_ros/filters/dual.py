# SPDX-License-Identifier: Apache-2.0
"""dual: a UKF of parameters beside an errorEKF_FE of the state and the forces (Naya et al., review, section 9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import casadi as ca
import numpy as np

from ..errors import SettingError
from .ekf import EkfVariant, error_ekf_fe, observe, with_force
from .parts.model_step import advance, rates
from .parts.parameter_space import Bounds, ParameterSpace, parameter_space
from .parts.problem import Problem
from .parts.square_root import conditioning, factor
from .parts.step import Filter, Parts, build_filter
from .sigma_filter import CLOSINGS, closed, drawn, gathered, observed
from .sigma_points import symmetric_points


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
