# SPDX-License-Identifier: Apache-2.0
"""Derivatives of the model and its sensors by its parameters, along the constraints."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from ...dynamics.matrix_r import constraint_rates
from ...dynamics.sensor_equations import state_sensors
from ...dynamics.state_equations import Maps, Pieces
from .problem import Problem


def parameter_partials(problem: Problem, places: Sequence[int]) -> ca.Function:
    """Function ``(q, zd, u, t, p) -> (dzdd (g, r), dh (s, r), dq (n, r))``: total derivatives by the parameters at
    ``places`` of p, at constant z and zd; u as in ``Problem``.

    The constraints hold for every p: ``dq = -S Phi_p``, ``dqd = -S (d(J qd - b)/dq dq + d(J qd - b)/dp)``; then with G
    and H of ``state_function`` ``dzdd = Mbar^-1 R' (dG - M S dH)``, ``dqdd = R dzdd + S dH``, ``dlam = S' (dG - M
    dqdd)``.
    """
    system, symbol = problem.system, problem.system.values.symbol
    q, zd, u, t, p = (problem.symbol(name, size) for name, size in (
        ('q', problem.n), ('zd', problem.g), ('u', system.u.numel()), ('t', 1), ('p', symbol.numel())))
    pieces, chosen = Pieces(system, symbol), symbol[list(places)]
    J, b = pieces.constraints(q, t, p)
    maps = Maps.of(system, J, problem.scalar)
    _, _, B, qdd, lam, qd = problem.rates(q, zd, u, t, p)
    M = pieces.dynamics(q, qd, u, t, p)[0]
    G_q, G_qd, H_q, H_qd, rate_q = pieces.tangents(q, qd, u, t, p, qdd, lam)
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
