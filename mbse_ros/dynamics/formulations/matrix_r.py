# SPDX-License-Identifier: Apache-2.0
"""Matrix-R (coordinate partitioning): the constrained equations in the independent coordinates.

Pyrhönen et al., mass estimation, Eqs. 4-6, Pyrhönen et al., state transition, Eqs. 3 and 21; ``[S R] = inv([J; B])``
with ``z = B q``.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from ...errors import SingularConfigurationError
from ...mechanism.system import System
from ..block_solver import BlockSolver


@dataclass(frozen=True)
class Reduced:
    """Expressions in q, zd, t, u: ``qd = R zd + S b``, ``qdd = R zdd + S c``, ``Mbar zdd = Qbar + F``.

    ``R`` (n, g), ``S`` (n, m), ``b``, ``c`` (m,), ``Mbar`` (g, g), ``Qbar`` (g,); F are forces along z.
    """

    zd: ca.SX
    R: ca.SX
    S: ca.SX
    b: ca.SX
    c: ca.SX
    Mbar: ca.SX
    Qbar: ca.SX

    @property
    def qd(self) -> ca.SX:
        """Velocities of all coordinates (n,)."""
        return self.R @ self.zd + self.S @ self.b


def constraint_rates(system: System) -> tuple[ca.SX, ca.SX, ca.SX]:
    """``J = Phi_q`` (m, n), ``b`` and ``c`` (m,) of ``J qd = b`` and ``J qdd = c``."""
    J, b = ca.jacobian(system.Phi, system.q), -ca.jacobian(system.Phi, system.t)
    return J, b, -_second_rate(system, J @ system.qd - b)


def _second_rate(system: System, rate: ca.SX) -> ca.SX:
    """Time derivative of ``Phi_q qd + Phi_t`` without the term ``Phi_q qdd``."""
    return ca.jtimes(rate, system.q, system.qd) + ca.jacobian(rate, system.t)


def reduce(system: System) -> Reduced:
    """Matrix-R form of a system; the velocities of all coordinates are expressed by ``zd``."""
    J, b, c = constraint_rates(system)
    R, S = velocity_maps(system, J)
    zd = ca.SX.sym('zd', len(system.independent))
    Mbar = R.T @ system.M @ R
    Qbar = R.T @ (system.Q - system.M @ (S @ c))
    c, Qbar = ca.substitute([c, Qbar], [system.qd], [R @ zd + S @ b])
    return Reduced(zd, R, S, b, c, Mbar, Qbar)


def velocity_maps(system: System, J: ca.SX) -> tuple[ca.SX, ca.SX]:
    """``R`` (n, g) and ``S`` (n, m), from the inverse of the dependent columns of J alone."""
    dependent, independent = system.dependent, system.independent
    inverse = dependent_solver(system, J).solve(ca.SX.eye(system.m)) if system.m else ca.SX(0, 0)
    place = places(dependent + independent)
    R = ca.vertcat(-inverse @ J[:, independent], ca.SX.eye(len(independent)))[place, :]
    S = ca.vertcat(inverse, ca.SX(len(independent), system.m))[place, :]
    return R, S


def dependent_solver(system: System, J: ca.SX) -> BlockSolver:
    """Solver with the dependent columns of J; SingularConfigurationError when they can never determine the motion."""
    try:
        return BlockSolver.of(J[:, system.dependent])
    except ValueError:
        names = tuple(system.names[i] for i in system.independent)
        raise SingularConfigurationError(names, float('inf')) from None


def places(order: list[int]) -> list[int]:
    """Place of each coordinate in the given order."""
    return [order.index(i) for i in range(len(order))]
