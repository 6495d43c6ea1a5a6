# SPDX-License-Identifier: Apache-2.0
"""Payload mass by inverse dynamics: the residual of the equations of motion is affine in the mass.

Pyrhönen et al., mass estimation, Eqs. 50-57. ``g(m) = Mbar(z, m) zdd - Qbar(z, zd, m) - S' F_act = g0 + G1 m`` in any
independent coordinates, S being the pistons' speeds by theirs; least squares over the equations with a cylinder,
weighted by the covariance of g that follows from the observer's, gives the mass and its information 1/variance.

Gates belong to equations, see ``gates``.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..filters.force_balance import force_balance
from ..filters.hydraulic_model import hydraulic_model
from ..filters.hydraulic_state import state_names, state_parts
from ..machine import Machine

LARGEST_WRITTEN = 12_000     # scalar operations that are written out; calls of functions compile faster beyond


@dataclass(frozen=True)
class Residual:
    """``g0 + G1 m`` (a,), N or N m, one equation for each coordinate that cylinders move, and m (k,) the masses.

    Where there are as many cylinders as such coordinates it is one for each cylinder: the force, N, that is missing
    along it, or that times a lever where each coordinate moves one.

    Expressions in the dependent coordinates nearby (n - g,), the observer's state X (SI) and the parameters;
    ``pistons``, ``speeds`` (cylinders,), ``rates`` (cylinders, nx), the derivatives of the speeds by X. ``share`` (a,)
    is the part of G1 that comes from motion, relative to its static part: 0 at rest, 1 in free fall; ``slopes`` (a k,
    nx) its derivatives by X, except for their signs, mass by mass. ``concerns`` (a, cylinders): whose friction is in an
    equation.
    """

    near: ca.SX
    X: ca.SX
    g0: ca.SX
    G1: ca.SX
    share: ca.SX
    slopes: ca.SX
    pistons: ca.SX
    speeds: ca.SX
    rates: ca.SX
    concerns: np.ndarray


def residual(machine: Machine) -> Residual:
    """Residual of the equations of motion (Pyrhönen et al., mass estimation, Eq. 55) at coordinates solved for the
    independent ones.

    The sensors' offsets, gains and delays appear in it as errors of what the observer found, so that their uncertainty
    reaches the mass as that of every other parameter.
    """
    names, scale = state_names(machine)
    balance = force_balance(machine, names, rated=True)
    X, g, concerns, part = balance.X, balance.g, balance.concerns, state_parts(names, balance.X)
    pistons, speeds, rates = balance.pistons, balance.speeds, balance.rates
    if balance.rate.numel():        # by the observer's model; valves' spools have no sensors
        model = hydraulic_model(machine)
        f = ca.substitute(model.f * scale, ca.vertcat(model.X, model.U), ca.vertcat(X / scale, 0 * model.U))
        f = ca.substitute(f, model.dependent, balance.near) if model.dependent.numel() else f
        g, pistons, speeds, rates = ca.substitute([g, pistons, speeds, rates], [balance.rate], [f])
    unknowns, moving = machine.payload, ca.vertcat(part['velocity'], part['acceleration'])
    G1 = ca.jacobian(g, unknowns)
    motion = [i for i, name in enumerate(names) if name.startswith(('velocity/', 'acceleration/'))]
    static = ca.jacobian(ca.substitute(g, X[motion], ca.SX.zeros(moving.numel())), unknowns)
    share = ca.sqrt(ca.sum2((G1 - static) ** 2) / ca.sum2(static ** 2))
    slopes, masses = ca.SX(unknowns.numel() * len(concerns), X.numel()), unknowns.numel()
    slopes[:, motion] = ca.jacobian(G1, X[motion]) / ca.repmat(ca.sqrt(ca.sum2(static ** 2)), masses, len(motion))
    g0 = ca.substitute(g, unknowns, ca.SX.zeros(unknowns.numel()))
    return Residual(balance.near, X, g0, G1, share, slopes, pistons, speeds, rates, concerns)


def weighing(machine: Machine, n: int, a: int) -> ca.Function:
    """``(g0, G1, J_X', P, passed) -> (information, information times mass, G1' weight, mass within reason)``.

    Over the equations that pass all gates, or over all where none does.
    """
    g0, G1, rows, P = ca.SX.sym('g0', a), ca.SX.sym('G1', a), ca.SX.sym('rows', n, a), ca.SX.sym('P', n, n)
    passed = ca.SX.sym('passed', a, 3)
    trusted = passed[:, 2] if a > 1 else ca.SX(1)
    trusted = ca.if_else(ca.sum1(trusted) > 0, trusted, ca.SX.ones(a)) if a > 1 else ca.SX.ones(1)
    low, high = machine.payload_data.limits
    margin, some, kept = high - low, trusted * G1, ca.diag(trusted)
    first = ca.fmin(ca.fmax(-ca.dot(some, g0) / ca.fmax(ca.sumsqr(some), 1e-12), low - margin), high + margin)
    spread = kept @ (rows.T @ P @ rows) @ kept + ca.diag(1 - trusted)
    row = ca.inv(spread) @ some
    return ca.Function('weighing', [g0, G1, rows, P, passed], [ca.dot(row, some), -ca.dot(row, g0), row, first],
                       {'cse': True})
