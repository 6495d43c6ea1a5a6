# SPDX-License-Identifier: Apache-2.0
"""Matrix-R (coordinate partitioning): the constrained equations in the independent coordinates.

Paper 003 Eqs. 4-6, paper 000 Eqs. 3 and 21; ``[S R] = inv([J; B])`` with ``z = B q``.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from ..mechanism.system import System


@dataclass(frozen=True)
class Reduced:
    """Expressions in q, zd: ``qd = R zd``, ``qdd = R zdd + S c``, ``Mbar zdd = Qbar + F``.

    ``R`` (n, g), ``S`` (n, m), ``c`` (m,), ``Mbar`` (g, g), ``Qbar`` (g,); F are forces along z.
    """

    zd: ca.SX
    R: ca.SX
    S: ca.SX
    c: ca.SX
    Mbar: ca.SX
    Qbar: ca.SX


def reduce(system: System) -> Reduced:
    """Matrix-R form of a system; the velocities of all coordinates are expressed by ``zd``."""
    q, qd = system.q, system.qd
    J = ca.jacobian(system.Phi, q)
    B = ca.SX.eye(q.numel())[system.independent, :]
    m = system.Phi.numel()
    inverse = ca.solve(ca.densify(ca.vertcat(J, B)), ca.SX.eye(q.numel()))
    S, R = inverse[:, :m], inverse[:, m:]
    c = -ca.jtimes(ca.jtimes(system.Phi, q, qd), q, qd)
    zd = ca.SX.sym('zd', len(system.independent))
    Mbar = R.T @ system.M @ R
    Qbar = R.T @ (system.Q - system.M @ S @ c)
    c, Qbar = ca.substitute([c, Qbar], [qd], [R @ zd])
    return Reduced(zd, R, S, c, Mbar, Qbar)


def total_jacobian(expression: ca.SX, system: System, reduced: Reduced) -> ca.SX:
    """Derivative of ``expression(q, zd)`` with respect to z along the constraints: dq = R dz."""
    return ca.jacobian(expression, system.q) @ reduced.R
