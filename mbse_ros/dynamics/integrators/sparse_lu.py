# SPDX-License-Identifier: Apache-2.0
"""``SparseLU`` solves in scalar operations without pivots, for matrices whose symmetric part is positive definite.

All leading minors of such a matrix are positive, in any symmetric order of rows and columns (Golub and Van Loan,
Matrix Computations, section 4.2); the order is the one of little fill (AMD), and only nonzeros are computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import casadi as ca

Expression: TypeAlias = 'ca.SX | ca.MX'
Place = tuple[int, int]


class SparseLU:
    """Factors ``L U`` of a matrix of a square sparsity; the diagonal of U is kept inverted.

    ``factor (T) -> factors (k,)`` and ``solve (factors, right (n,)) -> x (n,)`` are CasADi functions, to be called with
    SX (written out) or MX (called).
    """

    def __init__(self, sparsity: ca.Sparsity) -> None:
        self._order = list((sparsity + sparsity.T).amd())
        T = ca.SX.sym('T', sparsity)
        entries = _eliminated(T, self._order)
        places = list(entries)
        self.factor = ca.Function('factor', [T], [ca.vertcat(*entries.values())], {'cse': True})
        factors, right = ca.SX.sym('factors', len(places)), ca.SX.sym('right', sparsity.shape[0])
        self.solve = ca.Function('solve', [factors, right], [self._solved(places, factors, right)])

    def _solved(self, places: list[Place], factors: ca.SX, right: ca.SX) -> ca.SX:
        """Forward and backward substitution."""
        known, n = dict(zip(places, ca.vertsplit(factors))), len(self._order)
        x = [right[i] for i in self._order]
        for i, j in sorted(place for place in places if place[1] < place[0]):
            x[i] = x[i] - known[i, j] * x[j]
        above = _by_row(place for place in places if place[1] > place[0])
        for i in reversed(range(n)):
            x[i] = (x[i] - sum(known[i, j] * x[j] for j in above.get(i, []))) * known[i, i]
        return ca.vertcat(*(x[self._order.index(i)] for i in range(n)))


def _by_row(places: Iterator[Place]) -> dict[int, list[int]]:
    """Columns by row."""
    found: dict[int, list[int]] = {}
    for i, j in places:
        found.setdefault(i, []).append(j)
    return found


def _eliminated(T: ca.SX, order: list[int]) -> dict[Place, ca.SX]:
    """Entries of L below the diagonal, of U above it, inverse pivots on it, by their places in the order."""
    n = T.shape[0]
    place = {old: new for new, old in enumerate(order)}
    rows: list[dict[int, ca.SX]] = [{} for _ in range(n)]
    for k, (i, j) in enumerate(zip(*T.sparsity().get_triplet())):
        rows[place[i]][place[j]] = T.nz[k]
    for k in range(n):
        rows[k][k] = 1 / rows[k][k]
        above = [(j, value) for j, value in rows[k].items() if j > k]
        for row in rows[k + 1:]:
            if k in row:
                row[k] = row[k] * rows[k][k]
                for j, value in above:
                    row[j] = row[j] - row[k] * value if j in row else -row[k] * value
    return {(i, j): value for i, row in enumerate(rows) for j, value in row.items()}
