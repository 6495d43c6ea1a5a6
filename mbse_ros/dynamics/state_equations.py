# SPDX-License-Identifier: Apache-2.0
"""Accelerations of the independent coordinates and their exact Jacobian (replaces paper 000 Eqs. 30-40)."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from ..mechanism.system import System
from .matrix_r import Reduced, constraint_rates, reduce


@dataclass(frozen=True)
class StateEquations:
    """Expressions in q, zd, u, t of the state ``X = [z, zd]``.

    ``zdd`` (g,), ``qdd`` (n,), ``multipliers`` (m,) with ``M qdd + J' lam = Q``; ``A`` (2g, 2g) = df/dX with
    ``f = [zd, zdd]`` (paper 000 Eq. 21), ``B`` (2g, k) = df/du.
    """

    reduced: Reduced
    zdd: ca.SX
    qdd: ca.SX
    multipliers: ca.SX
    A: ca.SX
    B: ca.SX


def state_equations(system: System) -> StateEquations:
    """State equations by matrix-R, for systems small enough for scalar expressions.

    Derivatives along ``dq = R e_k`` (with the velocities that keep the constraints) and ``dqd = R e_k``: with
    ``G = Q - M qdd - J' lam`` and ``H = c - J qdd``, whose values are zero, ``dzdd = Mbar^-1 R' (dG - M S dH)``.
    """
    reduced, g = reduce(system), len(system.independent)
    M, R, S = system.M, reduced.R, reduced.S
    zdd = ca.solve(reduced.Mbar, reduced.Qbar)
    qdd = R @ zdd + S @ reduced.c
    multipliers = S.T @ (ca.substitute(system.Q, system.qd, reduced.qd) - M @ qdd)
    out, symbols = _tangents(system)
    G_q, G_qd, H_q, H_qd, rate_q = ca.substitute(out, symbols, [reduced.qd, qdd, multipliers])
    along = -S @ (rate_q @ R)                              # velocities change with q at constant zd
    dG = ca.horzcat(G_q @ R + G_qd @ along, G_qd @ R)
    dH = ca.horzcat(H_q @ R + H_qd @ along, H_qd @ R)
    lower = ca.solve(reduced.Mbar, R.T @ (dG - M @ (S @ dH)))
    A = ca.vertcat(ca.horzcat(ca.SX(g, g), ca.SX.eye(g)), lower)
    force = ca.solve(reduced.Mbar, R.T @ ca.substitute(ca.jacobian(system.Q, system.u), system.qd, reduced.qd))
    return StateEquations(reduced, zdd, qdd, multipliers, A, ca.vertcat(ca.SX(g, system.u.numel()), force))


def _tangents(system: System) -> tuple[list[ca.SX], list[ca.SX]]:
    """Partial derivatives of G, H and of the constraints' rate; and the symbols of qd, qdd, lam in them."""
    J, b, c = constraint_rates(system)
    qdd, lam = ca.SX.sym('qdd', system.n), ca.SX.sym('lam', system.m)
    G, H, rate = system.Q - system.M @ qdd - J.T @ lam, c - J @ qdd, J @ system.qd - b
    out = [ca.jacobian(G, system.q), ca.jacobian(G, system.qd), ca.jacobian(H, system.q), ca.jacobian(H, system.qd),
           ca.jacobian(rate, system.q)]
    return out, [system.qd, qdd, lam]
