# SPDX-License-Identifier: Apache-2.0
"""``FactorKind``: residual and exact Jacobian of one kind of factor, compiled once and run over all its instances."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TypeAlias

import casadi as ca
import numpy as np

from ...compiled.scan import Scan
from ...dynamics.partitioned import affordable

Expression: TypeAlias = 'ca.SX | ca.MX'


class FactorKind:
    """One kind of factor: ``e(x, c)`` and ``de/dx``.

    ``variables`` and ``constants`` give the size of each argument by its role (``q``, ``qd``, ``dt``, ...), in order;
    ``rows`` the size of e; ``function (x, c, p) -> (e, J)`` takes them stacked, with the numbers ``p`` of the
    mechanism, whose values are ``numbers``. ``blind``: roles by which e does not change, such as the start of an
    iteration. ``operations``: scalar operations of functions that the expressions call.
    """

    def __init__(self, name: str, variables: Mapping[str, Expression], constants: Mapping[str, Expression],
                 residual: Expression, jacobian: Expression | None = None, parameters: Expression | None = None,
                 numbers: np.ndarray | None = None, blind: tuple[str, ...] = (), backend: str = 'auto',
                 operations: int = 0) -> None:
        self.name, self.blind = name, blind
        self.variables = {role: symbol.numel() for role, symbol in variables.items()}
        self.constants = {role: symbol.numel() for role, symbol in constants.items()}
        self.rows, self.width = residual.numel(), sum(self.variables.values())
        self.numbers = np.zeros(0) if numbers is None else numbers
        self._backend = backend
        kind = type(residual)
        x, c = kind.sym('x', self.width), kind.sym('c', sum(self.constants.values()))
        p = kind.sym('p', 0 if parameters is None else parameters.numel())
        own = [*variables.values(), *constants.values(), *([] if parameters is None else [parameters])]
        J = ca.jacobian(residual, ca.vertcat(*variables.values())) if jacobian is None else jacobian
        parts = ca.Function('parts', own, [residual, J])
        given = [*_split(x, self.variables), *_split(c, self.constants), *([] if parameters is None else [p])]
        e, J = parts(*given)
        self.function = ca.Function(f'mbse_factor_{name}', [x, c, p], [ca.densify(e), J], ['x', 'c', 'p'], ['e', 'J'],
                                    {'cse': True})
        self.operations = operations + self.function.n_instructions()

    def evaluate(self, x: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Residuals (k, rows) and Jacobians (k, rows, width) of k instances: x (k, width), c (k, constants)."""
        if not len(x):
            return np.zeros((0, self.rows)), np.zeros((0, self.rows, self.width))
        _, found = self._scan(np.zeros(0), np.hstack([x, c]), self.numbers)
        return found[:, :self.rows], found[:, self.rows:].reshape(len(x), self.rows, self.width)

    @cached_property
    def _scan(self) -> Scan:
        """The function as a step without a state: one compiled call over all instances."""
        x, c, p = (ca.MX.sym(name, self.function.numel_in(i)) for i, name in enumerate('xcp'))
        state = ca.MX.sym('none', 0)
        row = ca.MX.sym('row', x.numel() + c.numel())
        e, J = self.function(row[:x.numel()], row[x.numel():], p)
        step = ca.Function(f'mbse_{self.name}', [state, row, p], [state, ca.vertcat(e, ca.vec(ca.densify(J).T))])
        return Scan(step, affordable(self._backend, self.operations + self.rows * self.width))


def _split(stacked: Expression, sizes: Mapping[str, int]) -> list[Expression]:
    """The arguments of a stacked column."""
    if not sizes:
        return []
    return ca.vertsplit(stacked, [0, *np.cumsum(list(sizes.values())).tolist()])
