# SPDX-License-Identifier: Apache-2.0
"""Matrix-R (coordinate partitioning): the constrained equations in the independent coordinates.

Pyrhönen et al., mass estimation, Eqs. 4-6, Pyrhönen et al., state transition, Eqs. 3 and 21; ``[S R] = inv([J; B])``
with ``z = B q``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from ...errors import SingularConfigurationError, SingularEquationsError
from ...mechanism.system import System
from ..partition import WORST, alternatives, choose_independent, condition
from .block_solver import BlockSolver
from .redundancy import UNDETERMINED, independent_rows
from .terms_arrays import Accelerations, Terms


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


def s_and_r(J: np.ndarray, independent: Sequence[int], names: Sequence[str] = ()) -> tuple[np.ndarray, np.ndarray]:
    """``S`` (n, m) and ``R`` (n, g): J S = I, J R = 0, B S = 0, B R = I.

    Where rows of J (m, n) are redundant, S is the inverse of the independent ones and zero for the others (S c is right
    for consistent c). Raises SingularConfigurationError where the coordinates (places) do not determine the motion.
    """
    m, n = J.shape
    independent = list(independent)
    worst = condition(J, independent)
    if not worst < WORST:
        names = names or [f'q[{i}]' for i in range(n)]
        raise SingularConfigurationError([names[i] for i in independent], worst,
                                         [[names[i] for i in choice] for choice in alternatives(J, independent)])
    rows = list(range(m)) if m + len(independent) == n else independent_rows(J)
    whole = np.linalg.inv(np.vstack([J[rows], np.eye(n)[independent]]))
    S = np.zeros((n, m))
    S[:, rows] = whole[:, :len(rows)]
    return S, whole[:, len(rows):]


def matrix_r(terms: Terms, independent: Sequence[int] | None = None) -> Accelerations:
    """Accelerations ``qdd = R zdd + S c`` with ``R' M R zdd = R' (Q - M S c)``; multipliers ``S' (Q - M qdd)``.

    ``independent``: places of the coordinates z; well-conditioned ones are chosen where it is left out. Raises
    SingularConfigurationError as ``s_and_r``, SingularEquationsError for contradicting rows and for missing mass.
    """
    independent = choose_independent(terms.J) if independent is None else independent
    S, R = s_and_r(terms.J, independent, terms.coordinates)
    Sc = S @ terms.c
    zdd = _reduced(R.T @ terms.M @ R, R.T @ (terms.Q - terms.M @ Sc), [terms.coordinates[i] for i in independent])
    qdd = R @ zdd + Sc
    if terms.m + len(independent) == terms.n:
        return Accelerations(qdd, S.T @ (terms.Q - terms.M @ qdd))
    terms.check_consistent(qdd)
    return Accelerations(qdd, terms.least_multipliers(qdd))


def _reduced(Mbar: np.ndarray, Qbar: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Accelerations zdd (g,); raises SingularEquationsError where a motion moves no mass."""
    from scipy.linalg import cho_factor, cho_solve  # here: slow to import
    if not Mbar.size:
        return np.zeros(0)
    diagonal = np.diag(Mbar)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    try:
        factor = cho_factor(Mbar * np.outer(scale, scale))
    except np.linalg.LinAlgError:
        raise SingularEquationsError(UNDETERMINED, names) from None
    return scale * cho_solve(factor, scale * Qbar)
