# SPDX-License-Identifier: Apache-2.0
"""One step of the kinematic and hydraulic observer as an expression: predict, correct, weigh.

Paper 003, section 3.1. What goes into the compiled step besides the model: the sensor noise and the tuning, so that
a change of tuning needs no new compilation.
"""

from __future__ import annotations

import casadi as ca

from ..machine import Machine
from ..machine.channels import Channel
from ..machine.machine import NEWTON
from .activity import activity_of
from .dekf import correct, correct_by, predict
from .filters.update import wrapped
from .hydraulic_model import HydraulicModel
from .hydraulic_sensors import sample_of
from .weighing import by_doubtful, doubtful, mass_information, weighed, within

MISSING = -1e300    # a NaN compares as false with everything and loses against this in fmax


def observer_step(machine: Machine, model: HydraulicModel, order: str, noise: str, halvings: int = 2) -> ca.Function:
    """One step ``(x, u, p) -> (x+, y)`` of the observer; SI outside, the model's units inside.

    ``x`` = state, lower triangle of its covariance in the model's units, commands in force (a valve sees a command from
    its stamp on, so those of one step act during the next), activity of each coordinate, trend of each channel and of
    each equation of the force balance, activity and trend of the mass, in which equations the pistons move, derivatives
    of the state by the uncertain numbers where it weighs, dependent coordinates where the model needs them, near which
    Newton's method starts;
    ``u`` = measurements (NaN: missing), commands; ``p`` = dt, spectral densities, largest activity, density
    of the force balance's error, variances of the measurements, uncertain parameters; ``y`` = state, innovations, their
    variances, and what the step measures of the mass: see MassInformation. ``halvings`` of the step make 'exact'
    exact (see halvings_for).
    """
    n, m, to_model, g = len(model.names), len(model.measured), 1.0 / model.scale, len(machine.coordinates)
    X_si, lower, commands = ca.SX.sym('X', n), ca.SX.sym('P', n * (n + 1) // 2), ca.SX.sym('U_next', model.U.numel())
    measured, variance, dt = ca.SX.sym('y', m), ca.SX.sym('r', m), ca.SX.sym('dt')
    near, activity = ca.SX.sym('near', model.dependent.numel()), ca.SX.sym('a', g)
    trend, mass = ca.SX.sym('t', m + len(machine.actuated) * model.weighs), ca.SX.sym('mass', 2 * model.weighs)
    moved = ca.SX.sym('moved', len(machine.actuated) * model.weighs)
    largest, force_psd = ca.SX.sym('largest'), ca.SX.sym('force_psd')
    doubt = ca.SX.sym('T', n, len(doubtful(machine, model)))
    lively = activity_of(machine, model)
    P = ca.tril2symm(ca.SX(ca.Sparsity.lower(n), lower))
    X = X_si * to_model
    solved = _closed(machine, model, near, X[:g])
    f, A, slopes = ca.substitute([model.f, model.A, by_doubtful(machine, model, model.f, model.X[:g])],
                                 [model.X, model.dependent], [X, solved])
    factors = lively.factors(activity, n)
    if model.weighs:
        factors[-1] = mass[0]
    W, known = ca.diag(factors * ca.diag(model.W)), P[-1, -1]
    X, P, F = predict(X, P, f, A, W, dt, order, noise, halvings)
    T = F @ doubt + slopes * dt
    predicted, mass_after, reported, ratios = (X[-1], T[-1, :].T, known, P[-1, -1]), [], [], None
    X, P, T, innovations, spreads = _corrected(machine, model, X, P, T, solved, measured, variance)
    if model.weighs:
        solved = _closed(machine, model, solved, X[:g], 1)
        X, P, T, ratios, says, moved_now = weighed(machine, model, X, P, T, solved, moved, force_psd, dt)
        X[-1], P[-1, -1] = ca.if_else(says, X[-1], predicted[0]), ca.if_else(says, P[-1, -1], predicted[-1])
        T[-1, :] = ca.if_else(says, T[-1, :], predicted[1].T)      # at rest friction alone would be weighed
        found = mass_information(predicted, (X[-1], T[-1, :].T, P[-1, -1]), model.W[-1, -1] * dt, *ca.vertsplit(mass))
        mass_after, unit = [found.activity, found.trend, moved_now], model.scale[-1]
        reported = [found.information / unit ** 2, found.weighted / unit, found.forgotten, found.slopes / unit]
    X = X * ca.SX(model.scale)
    after = lively.after(activity, trend, largest, innovations, spreads, [measured[k] > MISSING for k in range(m)],
                         ratios)
    x_next, y = ca.cse([ca.vertcat(X, ca.tril(P).nz[:], commands, *after, *mass_after, ca.vec(T), solved),
                        ca.vertcat(X, *innovations, *spreads, *reported)])
    p = ca.vertcat(dt, model.psd, largest, force_psd, variance, machine.parameters.symbol)
    x = ca.vertcat(X_si, lower, model.U, activity, trend, mass, moved, ca.vec(doubt), near)
    return ca.Function('mbse_observer', [x, ca.vertcat(measured, commands), p], [x_next, y], ['x', 'u', 'p'],
                       ['x_next', 'y'])


def _closed(machine: Machine, model: HydraulicModel, near: ca.SX, z: ca.SX, steps: int = NEWTON) -> ca.SX:
    """Dependent coordinates at z, from those nearby; (0,) where the model needs none. A weighing observer, whose force
    balance needs some wherever the samples say that it is, stays near the machine's range."""
    if not model.dependent.numel():
        return near
    return machine.closed(near, within(machine, z) if model.weighs else z, steps)[machine.system.dependent]


def _corrected(machine: Machine, model: HydraulicModel, X: ca.SX, P: ca.SX, T: ca.SX, solved: ca.SX, measured: ca.SX,
               variance: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX, list[ca.SX], list[ca.SX]]:
    """State, covariance and derivatives by uncertain numbers after one measurement after the other; innovations and
    their variances, SI.

    What is not an entry of the state is linearised at the prediction.
    """
    predicted, g, to_model = X, len(machine.coordinates), 1.0 / model.scale
    if model.indirect:
        solved = _closed(machine, model, solved, X[:g])
    innovations, spreads = [], []
    for k, (item, channel) in enumerate(zip(model.measured, machine.all_channels)):
        weight, sample = measured[k] > MISSING, ca.fmax(measured[k], MISSING)
        if item.index is None:
            h, H, slopes = ca.substitute([item.h, item.H, by_doubtful(machine, model, item.h, model.X[:g])],
                                         [model.X, model.dependent], [predicted, solved])
            error = sample - h - H @ (X - predicted)
            error = ca.if_else(weight, wrapped(error) if item.wraps else error, 0.0)
            X, P, innovation, spread, gain = correct_by(X, P, H, error, variance[k], weight)
            unit, seen = 1.0, H @ T + slopes
        elif item.wraps:
            error = ca.if_else(weight, wrapped(sample - item.offset - X[item.index]), 0.0)
            row = ca.SX.eye(X.numel())[item.index, :]
            X, P, innovation, spread, gain = correct_by(X, P, row, error, variance[k], weight)
            unit = 1.0
            seen = T[item.index, :] + _own(machine, model, channel, X[item.index])
        else:
            unit = float(to_model[item.index]) / item.gain
            value = sample * unit
            shift = float(to_model[item.index]) * (item.zero - item.offset / item.gain)
            if shift:
                value = value + shift
            X, P, innovation, spread, gain = correct(X, P, item.index, value, variance[k] * unit ** 2, weight)
            seen = T[item.index, :] + unit * _own(machine, model, channel, X[item.index] * model.scale[item.index])
        T = T - gain @ seen
        innovations.append(innovation / unit)
        spreads.append(spread / unit ** 2)
    return X, P, T, innovations, spreads


def _own(machine: Machine, model: HydraulicModel, channel: Channel, value: ca.SX) -> ca.SX:
    """Derivatives (1, k) by the uncertain numbers of a sample that measures ``value``, SI: by its offset and gain."""
    measured = ca.SX.sym('measured')
    return ca.substitute(by_doubtful(machine, model, sample_of(machine, channel, measured)), measured, value)
