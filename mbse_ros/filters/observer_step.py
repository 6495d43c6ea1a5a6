# SPDX-License-Identifier: Apache-2.0
"""One step of the kinematic and hydraulic observer as an expression: predict, correct, weigh.

Pyrhönen et al., mass estimation, section 3.1. What goes into the compiled step besides the model: the sensor noise and
the tuning, so that a change of tuning needs no new compilation.

A discrete extended Kalman filter with exponential transition (Eqs. 38-42). The correction takes one measurement after
the other, as ``P - s k k'`` on one triangle, so that the covariance stays symmetric, and positive where a measurement
has noise; a missing one has weight 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import casadi as ca

from ..machine import Machine
from ..machine.channels import Channel
from ..machine.machine import NEWTON
from ..transition.exponential import exact_step, transition
from ..transition.noise import integrated_noise, paper_noise, symmetric
from .activity import activity_of
from .hydraulic_error import deviations, errors_of_state, state_of_errors
from .hydraulic_model import BRIEFLY, NOISES, HydraulicModel, below_tank, cavitation
from .hydraulic_state import late, sample_of
from .mass_information import mass_information
from .parts.layout import Layout
from .parts.step import DiscreteFilter
from .parts.update import wrapped
from .weighing import (
    LinearBalance,
    balanced,
    consider_jacobian,
    directions,
    forgotten,
    held_columns,
    relaxed,
    steep,
    weighed,
    within,
)

LARGE = 200         # numbers of a state, from which it costs less to copy them than to correct by nothing
KEPT = 'activity', 'trend', 'mass', 'moved', 'empty'     # parts of the state that the correction takes on
MISSING = -1e300    # a NaN compares as false with everything and loses against this in fmax


def predict(X: ca.SX, P: ca.SX, f: ca.SX, A: ca.SX, W: ca.SX, dt: ca.SX, order: str, noise: str,
            halvings: int) -> tuple[ca.SX, ca.SX, ca.SX]:
    """State (n,), covariance (n, n) and transition (n, n) one step ``dt``, s, later; ``f`` and ``A`` are taken at X,
    ``W`` is a PSD.

    ``halvings`` (at least 2) of the step make it exact.
    """
    flows, increment = exact_step(A, f, dt, halvings)
    if order == 'exact':
        F = flows[-1]
    else:
        F, G = transition(A, dt, order)
        increment = G @ f
    sigma = integrated_noise(flows, W, dt) if noise == 'van_loan' else paper_noise(A, W, dt)
    return X + increment, symmetric(ca.densify(F @ P @ F.T + sigma)), F


def correct(X: ca.SX, P: ca.SX, index: int, measured: ca.SX, variance: ca.SX,
            weight: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX, ca.SX]:
    """State and covariance after one measurement of the state's entry ``index``; weight 0: it is missing.

    Also returns its innovation, the innovation's variance and the gain (n,).
    """
    spread = P[index, index] + variance
    innovation = weight * (measured - X[index])
    gain = P[:, index] * (weight / spread)
    return X + gain * innovation, symmetric(ca.densify(P - gain @ P[index, :])), innovation, spread, gain


def correct_by(X: ca.SX, P: ca.SX, H: ca.SX, error: ca.SX, variance: ca.SX,
               weight: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX, ca.SX]:
    """As ``correct`` for a measurement with the row ``H`` (1, n) and the ``error`` to its prediction at X."""
    column = P @ H.T
    spread = H @ column + variance
    innovation = weight * error
    gain = column * (weight / spread)
    return X + gain * innovation, symmetric(ca.densify(P - gain @ column.T)), innovation, spread, gain


class ObserverStep(NamedTuple):
    """A step in stages: state, covariance, derivatives ``T`` and dependent coordinates after the prediction, and what
    was known of the payload before its samples; the first four with innovations, their variances and doubts after the
    samples, or without any; numbers of the force balance, where the observer weighs; parts of the flat state, outputs.

    The stages stay apart where the state is LARGE, and matrices are dense where one ends, so that compiled C takes them
    in lanes.
    """

    of: DiscreteFilter
    model: HydraulicModel
    predicting: ca.Function
    correcting: ca.Function
    leaving: ca.Function
    balancing: Callable[..., ca.SX | ca.MX] | None
    weigh: ca.Function

    def step(self) -> ca.Function:
        """``(x, u, p) -> (x+, y)``: all stages."""
        x, u, p = self._symbols(self.of.state)
        *state, before = self.predicting(x, p)
        return self._function('observer', [x, u, p], self._corrected(state, before, x, u, p), ['x_next', 'y'])

    def predict(self) -> ca.Function:
        """``(x, u, p) -> x``, as ``HydraulicFilter.predicted`` has it: the first stage alone."""
        x, u, p = self._symbols(self.of.state)
        X, *state, before = self.predicting(x, p)
        stays = x[self.of.state.span(('commands', *KEPT))]
        after = self._flat(X * self.model.scale, state[0], stays, *state[1:])
        known = before[:self.of.predicted.size - self.of.state.size]
        return self._function('observer_predict', [x, u, p], [ca.vertcat(after, known)], ['x_next'])

    def correct(self) -> ca.Function:
        """``(x, u, p) -> (x+, y)`` from what ``predict`` gives: the other stages."""
        x, u, p = self._symbols(self.of.predicted)
        parts, c = self.of.predicted.unpack(x), self.model.unknowns
        X, P, T = parts['x'] / self.model.scale, parts['P'], parts['T']
        before = ca.vertcat(parts['known'], X[-c:], ca.vec(P[-c:, -c:]), ca.vec(T.T[-c:, :])) if c else parts['known']
        after = self._corrected([X, P, T, parts['near']], before, x, u, p)
        return self._function('observer_correct', [x, u, p], after, ['x_next', 'y'])

    @property
    def _large(self) -> bool:
        return self.of.state.size > LARGE

    @property
    def _kept(self) -> slice:
        return self.of.state.span(KEPT)

    def _symbols(self, state: Layout) -> tuple[ca.SX | ca.MX, ...]:
        kind = ca.MX if self._large else ca.SX
        x, p, u = (kind.sym(name, size) for name, size in (
            ('x', state.size), ('p', self.of.tuning.size), ('u', self.of.given.size)))
        return x, u, p

    def _function(self, name: str, inputs: list[ca.SX], after: Sequence[ca.SX], outputs: list[str]) -> ca.Function:
        return ca.Function(f'mbse_{name}', inputs, list(after) if self._large else ca.cse(list(after)), ['x', 'u', 'p'],
                           outputs)

    def _corrected(self, state: list[ca.SX], before: ca.SX, x: ca.SX, u: ca.SX, p: ca.SX) -> tuple[ca.SX, ca.SX]:
        """From the prediction on; where there is much to correct, a step without a sample leaves that out."""
        o = self.of.given.places['o']
        measured = *state, u[o], p
        if self._large:
            sampled = ca.mmax(u[o] > MISSING)
            found = ca.Function.if_else('mbse_samples', self.correcting, self.leaving)(sampled, *measured)
        else:
            found = self.correcting(*measured)
        state, seen = found[:4], found[4:]
        numbers = self.balancing(*state, p) if self.balancing else type(x)(0, 1)
        *after, y = self.weigh(*state, *seen, before, x[self._kept], u, p, numbers)
        return self._flat(*after), y

    @staticmethod
    def _flat(X: ca.SX, P: ca.SX, *rest: ca.SX) -> ca.SX:
        lower = P[ca.Sparsity.lower(P.size1()).find()]
        return ca.vertcat(X, lower, *(ca.vec(part) for part in rest))


def observer_step(layout: DiscreteFilter, machine: Machine, model: HydraulicModel, order: str, noise: str,
                  halvings: int) -> ObserverStep:
    """The step of the observer over flat vectors as the ``HydraulicFilter`` has them; SI outside, the model's units
    inside. ``halvings`` of the step make 'exact' exact (see halvings_for)."""
    n, m, g = len(model.names), len(model.measured), len(machine.coordinates)
    was, given, tuning = (flat.unpack(ca.SX.sym(name, flat.size)) for name, flat in (
        ('x', layout.state), ('u', layout.given), ('p', layout.tuning)))
    was |= {'commands': model.U}
    tuning |= {**dict(zip(NOISES, ca.vertsplit(model.psd))), 'p': machine.parameters.symbol}
    if tuning['nominal_payload'].numel():
        tuning['nominal_payload'] = machine.payload
    measured, commands, dt, force_psd, variance = (
        given['o'], given['u'], tuning['dt'], tuning['force_psd'], tuning['variance'])
    X, P, doubt, near, mass = was['x'], ca.SX.sym('P', n, n), was['T'], was['near'], was['mass']
    kept = ca.vertcat(*(was[name] for name in KEPT))
    x, p = layout.state.pack(**was), layout.tuning.pack(**tuning)
    lively, scale = activity_of(machine, model), ca.SX(model.scale)
    state, T = [X, P, doubt, near], doubt.T

    def stage(name: str, inputs: list[ca.SX], *outputs: ca.SX) -> ca.Function:
        return ca.Function(f'mbse_{name}', inputs, ca.cse([ca.densify(output) for output in outputs]))

    factors = lively.factors(was['activity'], n)
    c = model.unknowns
    if model.weighs:
        factors[-1] = mass[0]
    ahead = _predicted(machine, model, X / scale, was['P'], T, near, factors, was['empty'], dt, order, noise, halvings)
    before = ca.vertcat(was['P'][-1, -1], ahead[0][-c:], ca.vec(ahead[1][-c:, -c:]), ca.vec(ahead[2][-c:, :]))
    before = before if c else ca.SX(0, 1)
    predicting = stage('predict', [x, p], *ahead[:2], ahead[2].T, ahead[3], before)
    found = _corrected(machine, model, X, P, T, near, measured, variance)
    correcting = stage('correct', [*state, measured, p], *found[:2], found[2].T, near, *found[3:])
    leaving = stage('leave', [*state, measured, p], *state, ca.SX.zeros(m), _spreads(machine, model, P, T, variance),
                    ca.SX.zeros(m))

    innovations, spreads, doubts = (ca.SX.sym(name, m) for name in ('innovations', 'spreads', 'doubts'))
    expected = ca.SX.sym('before', before.numel())
    after, ratios, biased = (X, P, T, near), None, ca.SX(0, 1)
    mass_after: list[ca.SX] = []
    reported: list[ca.SX] = []
    balancing: Callable[..., ca.SX | ca.MX] | None = None
    numbers = ca.SX.sym('balance', 0)
    if model.weighs:
        solved, unit = _closed(machine, model, near, X[:g], 1), directions(machine)
        along = ca.SX.sym('along', *unit.shape)
        steepening = stage('steep', [*state, p, along], *steep(machine, model, X, P, solved, along), solved)
        residuals, slopes, solved = (ca.SX.sym('steep', *steepening.size_out(i)) for i in range(3))
        balance = balanced(machine, model, X, P, solved, force_psd, dt, (residuals, slopes))
        balance_of = stage('balance', [*state, p, residuals, slopes, solved], ca.vertcat(balance.column, solved))
        numbers = ca.SX.sym('balance', balance_of.numel_out(0))

        def balancing(*at: ca.SX | ca.MX) -> ca.SX | ca.MX:
            return balance_of(*at, *steepening(*at, ca.DM(unit)))
        balance, solved = balance.at(numbers), numbers[numbers.numel() - solved.numel():]
        after, (ratios, biased), mass_after, reported = _weighing(
            machine, model, (X, P, T, solved), balance, was['moved'], expected, mass, tuning['force_slow'], dt)
    later = lively.after(was['activity'], was['trend'], tuning['activity_range'], ca.vertsplit(innovations),
                         ca.vertsplit(spreads), [measured[k] > MISSING for k in range(m)], ratios, dt)
    low = below_tank(machine, model.names, after[0])
    emptied = ca.fmin(ca.if_else(low, was['empty'] + dt, ca.fmax(was['empty'] - dt, 0)), 2 * BRIEFLY)
    weigh = stage('weigh', [*state, innovations, spreads, doubts, expected, kept, ca.vertcat(measured, commands), p,
                           numbers],
                  after[0] * scale, after[1], ca.vertcat(commands, *later, *mass_after, emptied), after[2].T, after[3],
                  layout.outputs.pack(x=after[0] * scale, innovation=innovations, innovation_variance=spreads + doubts,
                                      weighing=ca.vertcat(*reported),
                                      balance=ca.SX(0, 1) if ratios is None else ratios,
                                      shared=ca.vertcat(ca.sqrt(doubts / (spreads + doubts)), biased)))
    return ObserverStep(layout, model, predicting, correcting, leaving, balancing, weigh)


def _spreads(machine: Machine, model: HydraulicModel, P: ca.SX, T: ca.SX, variance: ca.SX) -> ca.SX:
    """Variances (ny,) of innovations without a sample, SI; without an entry of the state, that of a sample alone."""
    own = ca.diag(P) + ca.sum2(T[:, held_columns(machine, model)] ** 2)
    return ca.vertcat(*(variance[k] if item.index is None else
                        own[item.index] * (model.scale[item.index] * item.gain) ** 2 + variance[k]
                        for k, item in enumerate(model.measured)))


def _predicted(machine: Machine, model: HydraulicModel, X: ca.SX, P: ca.SX, T: ca.SX, near: ca.SX, factors: ca.SX,
               empty: ca.SX, dt: ca.SX, order: str, noise: str, halvings: int) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
    """State, covariance, derivatives by uncertain numbers and dependent coordinates (those before) a step later."""
    solved = _closed(machine, model, near, X[:len(machine.coordinates)])
    if model.driven:
        X, P, _ = errors_of_state(machine, model, X, P, solved)
    slopes = consider_jacobian(machine, model, model.f, model.X[:len(machine.coordinates)])
    speeds = deviations(machine, X, P, solved) if model.driven else model.deviation
    f, A, slopes = ca.substitute([model.f, model.A, slopes], [model.X, model.dependent, model.deviation],
                                 [X, solved, speeds])
    density = factors * ca.diag(model.W) + cavitation(machine, model.names, X, empty)
    X, P, F = predict(X, P, f, A, ca.diag(density), dt, order, noise, halvings)
    if model.driven:
        solved = _closed(machine, model, solved, X[:len(machine.coordinates)])
        X, P = state_of_errors(machine, model, X, P, solved)
    P, T = forgotten(machine, model, P, F @ T + slopes * dt, dt)
    return *relaxed(machine, model, X, P, T, dt), solved


def _weighing(machine: Machine, model: HydraulicModel, at: tuple[ca.SX, ca.SX, ca.SX, ca.SX], balance: LinearBalance,
              moved: ca.SX, before: ca.SX, mass: ca.SX, slow: ca.SX, dt: ca.SX
              ) -> tuple[tuple[ca.SX, ca.SX, ca.SX, ca.SX], tuple[ca.SX, ca.SX], list[ca.SX], list[ca.SX]]:
    """State, covariance, derivatives and dependent coordinates after the force balance ``at`` such; its residuals, and
    how far from 0 what is uncertain makes them;
    activity and trend of the mass and in which equations the pistons move; what is reported of the mass.

    ``before``: the mass's variance before the walk of this step; the payload's entries (c,) of the state, their
    covariance (c, c) after that walk and derivatives (c, k).
    """
    c, k = model.unknowns, len(model.consider(machine))
    known, expected, walked, slopes = ca.vertsplit(before, [0, 1, 1 + c, 1 + c + c * c, before.numel()])
    walked, slopes = ca.reshape(walked, c, c), ca.reshape(slopes, c, -1)
    X, P, T, ratios, biased, says, moved_now = weighed(machine, model, *at[:3], balance, moved, dt, slow)
    X[-c:], P[-c:, -c:] = ca.if_else(says, X[-c:], expected), ca.if_else(says, P[-c:, -c:], walked)
    T[-c:, :] = ca.if_else(says, T[-c:, :], slopes)      # at rest friction alone would be weighed
    found = mass_information((expected[-1], slopes[-1, :k].T, known, walked[-1, -1]),
                             (X[-1], T[-1, :k].T, P[-1, -1]), model.W[-1, -1] * dt, mass[0], mass[1:], dt,
                             model.scale[-1])
    return (X, P, T, at[3]), (ratios, biased), [found.activity, found.trend, moved_now], found.measured.row


def _closed(machine: Machine, model: HydraulicModel, near: ca.SX, z: ca.SX, steps: int = NEWTON) -> ca.SX:
    """Dependent coordinates at z, from those nearby; (0,) where the model needs none. A weighing observer, whose force
    balance needs some wherever the samples say that it is, stays near the machine's range."""
    if not model.dependent.numel():
        return near
    return machine.closed(near, within(machine, z) if model.weighs else z, steps)[machine.system.dependent]


def _corrected(machine: Machine, model: HydraulicModel, X: ca.SX, P: ca.SX, T: ca.SX, solved: ca.SX, measured: ca.SX,
               variance: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX, ca.SX, ca.SX]:
    """State, covariance and derivatives by uncertain numbers after one measurement after the other; innovations (ny,),
    their variances (ny,), and what the uncertain numbers add to these (ny,), SI.

    What is not an entry of the state is linearised at the prediction.
    """
    predicted, g, to_model = X, len(machine.coordinates), 1.0 / model.scale
    if model.indirect or model.driven:
        solved = _closed(machine, model, solved, X[:g])
    V = ca.SX.eye(X.numel())
    if model.driven:
        X, P, V = errors_of_state(machine, model, X, P, solved)
    first = X
    innovations, spreads, doubts, held = [], [], [], held_columns(machine, model)
    rates = ca.substitute(model.f, ca.vertcat(model.X, model.dependent, model.U, model.deviation), ca.vertcat(
        predicted, solved if model.dependent.numel() else ca.SX(0, 1), ca.SX.zeros(model.U.numel()),
        ca.SX.zeros(model.deviation.numel()))) if model.weighs else predicted     # used where a delay is uncertain
    for k, (item, channel) in enumerate(zip(model.measured, machine.all_channels)):
        weight, sample = measured[k] > MISSING, ca.fmax(measured[k], MISSING)
        if item.index is None:
            h, H, slopes = ca.substitute([item.h, item.H, consider_jacobian(machine, model, item.h, model.X[:g])],
                                         [model.X, model.dependent], [predicted, solved])
            slopes = slopes - H @ rates * consider_jacobian(machine, model, ca.SX(late(machine, channel)))
            H = H @ V
            error = sample - h - H @ (X - first)
            error = ca.if_else(weight, wrapped(error) if item.wraps else error, 0.0)
            X, P, innovation, spread, gain = correct_by(X, P, H, error, variance[k], weight)
            unit, seen = 1.0, H @ T + slopes
        elif item.wraps:
            error = ca.if_else(weight, wrapped(sample - item.offset - X[item.index]), 0.0)
            row = ca.SX.eye(X.numel())[item.index, :]
            X, P, innovation, spread, gain = correct_by(X, P, row, error, variance[k], weight)
            unit = 1.0
            seen = T[item.index, :] + _own(machine, model, channel, X[item.index], rates[item.index])
        else:
            unit = float(to_model[item.index]) / item.gain
            value = sample * unit
            shift = float(to_model[item.index]) * (item.zero - item.offset / item.gain)
            if shift:
                value = value + shift
            X, P, innovation, spread, gain = correct(X, P, item.index, value, variance[k] * unit ** 2, weight)
            to_si = model.scale[item.index]
            seen = T[item.index, :] + unit * _own(machine, model, channel, X[item.index] * to_si,
                                                  rates[item.index] * to_si)
        T = T - gain @ seen
        innovations.append(innovation / unit)
        spreads.append((spread + ca.sumsqr(seen[0, held])) / unit ** 2)
        doubts.append(ca.sumsqr(seen[0, :held.start]) / unit ** 2)
    if model.driven:
        X, P = state_of_errors(machine, model, X, P, _closed(machine, model, solved, X[:g]))
    return X, P, T, ca.vertcat(*innovations), ca.vertcat(*spreads), ca.vertcat(*doubts)


def _own(machine: Machine, model: HydraulicModel, channel: Channel, value: ca.SX, rate: ca.SX) -> ca.SX:
    """Derivatives (1, k) by the uncertain numbers of a sample that measures ``value``, which changes with ``rate``, SI:
    by its offset, gain and delay."""
    measured, speed = ca.SX.sym('measured'), ca.SX.sym('rate')
    slopes = consider_jacobian(machine, model, sample_of(machine, channel, measured, speed))
    return ca.substitute(slopes, ca.vertcat(measured, speed), ca.vertcat(value, rate))
