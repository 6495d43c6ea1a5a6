# SPDX-License-Identifier: Apache-2.0
"""Linear solves in scalar expressions, block by block of the matrix's triangular form.

A linkage's constraints form small irreducible blocks (a dyad is one of two rows): solved one after the other they
cost far less than one dense factorisation. The determinant is the product of the blocks', so that a block is singular
only where the whole matrix is, and no pivot is lost at special positions.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca


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
