# SPDX-License-Identifier: Apache-2.0
"""Matrix-R (coordinate partitioning): the constrained equations in the independent coordinates.

Pyrhönen et al., mass estimation, Eqs. 4-6, Pyrhönen et al., state transition, Eqs. 3 and 21; ``[S R] = inv([J; B])``
with ``z = B q``.

Linear solves in scalar expressions go block by block of the matrix's triangular form. A linkage's constraints form
small irreducible blocks (a dyad is one of two rows): solved one after the other they cost far less than one dense
factorisation. The determinant is the product of the blocks', so that a block is singular only where the whole matrix
is, and no pivot is lost at special positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from ...errors import SingularConfigurationError, SingularEquationsError
from ...mechanism.system import System
from ..partition import WORST, alternatives, choose_independent, condition
from .redundancy import UNDETERMINED, independent_rows
from .terms_arrays import Accelerations, Terms


@dataclass(frozen=True)
class BlockSolver:
    """Solver of ``A x = r`` and ``A' x = r``; the inverses of the diagonal blocks are shared by all uses."""

    A: ca.SX
    rows: list[list[int]]
    columns: list[list[int]]
    inverses: list[ca.SX]

    @classmethod
    def of(cls, A: ca.SX) -> BlockSolver:
        """Solver of a square matrix that is not singular by its structure; raises ValueError for one that is."""
        sparsity = A.sparsity()
        if ca.sprank(A) < A.shape[0]:
            raise ValueError('the matrix is singular by its structure')
        blocks, row_order, column_order, row_ends, column_ends, _, _ = sparsity.btf()
        rows = [list(row_order[row_ends[k]:row_ends[k + 1]]) for k in range(blocks)]
        columns = [list(column_order[column_ends[k]:column_ends[k + 1]]) for k in range(blocks)]
        return cls(A, rows, columns, [_inverse(A[r, c]) for r, c in zip(rows, columns)])

    def solve(self, right: ca.SX) -> ca.SX:
        """``A^-1 right``: the first block first, for the form is lower triangular."""
        found: list[ca.SX] = []
        for k, rows in enumerate(self.rows):
            rest = right[rows, :]
            for earlier in range(k):
                coupling = self.A[rows, self.columns[earlier]]
                rest = rest - coupling @ found[earlier] if coupling.nnz() else rest
            found.append(self.inverses[k] @ rest)
        return _ordered(found, self.columns)

    def solve_transposed(self, right: ca.SX) -> ca.SX:
        """``A^-T right``: the last block first."""
        found: list[ca.SX] = [ca.SX()] * len(self.rows)
        for k in reversed(range(len(self.rows))):
            rest = right[self.columns[k], :]
            for later in range(k + 1, len(self.rows)):
                coupling = self.A[self.rows[later], self.columns[k]]
                rest = rest - coupling.T @ found[later] if coupling.nnz() else rest
            found[k] = self.inverses[k].T @ rest
        return _ordered(found, self.rows)


def _ordered(parts: list[ca.SX], places: list[list[int]]) -> ca.SX:
    """Rows of the parts in the order of the places."""
    flat = [place for block in places for place in block]
    return ca.vertcat(*parts)[[flat.index(i) for i in range(len(flat))], :]


def _inverse(A: ca.SX) -> ca.SX:
    """Inverse of a block: closed form up to two rows, else QR."""
    if A.shape[0] == 1:
        return 1 / A
    if A.shape[0] == 2:
        a, b, c, d = A[0, 0], A[0, 1], A[1, 0], A[1, 1]
        determinant = a * d - b * c
        return ca.vertcat(ca.horzcat(d, -b), ca.horzcat(-c, a)) / determinant
    return ca.solve(ca.densify(A), ca.SX.eye(A.shape[0]))


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
    """``J`` (m + k, n), ``b`` and ``c`` (m + k,) of ``J qd = b`` and ``J qdd = c``: ``Phi_q``, then the derivative of
    the non-holonomic rows by qd."""
    J, b = ca.jacobian(system.Phi, system.q), -ca.jacobian(system.Phi, system.t)
    if system.rates.numel():
        J = ca.vertcat(J, ca.jacobian(system.rates, system.qd))
        b = ca.vertcat(b, ca.SX.zeros(system.rates.numel()))
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
