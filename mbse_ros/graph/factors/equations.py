# SPDX-License-Identifier: Apache-2.0
"""What the factors of a mechanism are made of: its equations, with unknown forces and unknown numbers in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import casadi as ca
import numpy as np

from ...dynamics.formulations.matrix_r import constraint_rates
from ...dynamics.model import Model
from ...errors import SettingError
from .kinds import Expression, FactorKind


class FactorEquations:
    """Equations of a model for its factors; redundant constraint rows are left out.

    ``forces``: names of coordinates along which the role ``Q`` acts, N or N m (default: all, as in Blanco-Claraco
    et al., factor graphs);
    ``unknown``: names of numbers (``model.system.values.names``) that the role ``parameters`` holds. Symbols of the
    roles: ``symbols`` (q, qd, qdd, z, zd, zdd, Q, parameters, and the known u, t), scalar expressions (SX).
    ``system`` has Q and the unknown numbers in it. Raises SettingError for names that the model has not.
    """

    def __init__(self, model: Model, forces: Sequence[str] | None = None, unknown: Sequence[str] = ()) -> None:
        self.model = model
        base = model.partition().system
        self.n, self.m, self.g = base.n, base.m, len(base.independent)
        self.names, self.z = base.names, list(base.independent)
        self.forces = tuple(base.names if forces is None else forces)
        self.force_places = base.indices(self.forces)
        self.unknown = tuple(unknown)
        known = base.values.names
        for name in self.unknown:
            if name not in known:
                raise SettingError('unknown', name, 'an uncertain or free number: ' + (', '.join(known) or 'none'))
        self.unknown_places = [known.index(name) for name in self.unknown]
        symbol = {name: ca.SX.sym(name, size) for name, size in (
            ('qdd', self.n), ('z', self.g), ('zd', self.g), ('zdd', self.g), ('Q', len(self.forces)),
            ('parameters', len(self.unknown)))}
        self.symbols = {'q': base.q, 'qd': base.qd, 'u': base.u, 't': base.t, **symbol}
        self.lam = ca.SX.sym('lam', self.m)
        along = ca.SX.eye(self.n)[:, self.force_places]
        push = along @ symbol['Q']
        self.system = replace(base, Q=base.Q + push, applied=base.applied + push)
        J, b, c = constraint_rates(self.system)
        self._expressions = {'J': J, 'b': b, 'c': c}

    @property
    def numbers(self) -> np.ndarray:
        """Values of the mechanism's uncertain and free numbers; those of unknown ones are not used."""
        return self.model.parameters

    @property
    def residuals(self) -> dict[str, ca.SX]:
        """``position`` Phi, ``velocity`` Phi_q qd + Phi_t, ``acceleration`` Phi_q qdd - c, ``force``
        Q - M qdd - Phi_q' lam: expressions in the symbols, in ``lam`` and in the system's numbers."""
        J, system, qdd = self._expressions['J'], self.system, self.symbols['qdd']
        return {'position': system.Phi, 'velocity': J @ system.qd - self._expressions['b'],
                'acceleration': J @ qdd - self._expressions['c'],
                'force': system.Q - system.M @ qdd - J.T @ self.lam}

    def kind(self, name: str, variables: Sequence[str], residual: ca.SX, constants: Sequence[str] = ('u', 't'),
             extra: dict[str, ca.SX] | None = None) -> FactorKind:
        """Factor of an expression in the symbols and the system's numbers, by automatic differentiation.

        ``variables``: roles that are nodes; other roles in the expression, and ``extra`` symbols, are constants. The
        force Q and the unknown numbers must be among the one or the other, where they matter; unnamed forces are zero.
        """
        given = {role: self.symbols[role] for role in variables}
        fixed = {role: self.symbols[role] for role in constants if self.symbols[role].numel()} | (extra or {})
        residual = self.inserted(residual, 'parameters' in given or 'parameters' in fixed)
        if 'Q' not in given and 'Q' not in fixed:
            residual = ca.substitute(residual, self.symbols['Q'], ca.SX.zeros(len(self.forces)))
        return FactorKind(name, given, fixed, ca.densify(residual), parameters=self.numbers_symbol,
                          numbers=self.numbers, backend=self.model.backend)

    def inserted(self, expression: ca.SX, active: bool) -> ca.SX:
        """The expression with the unknown numbers' symbols instead of the system's."""
        if not active or not self.unknown:
            return expression
        return ca.substitute(expression, self.numbers_symbol[self.unknown_places], self.symbols['parameters'])

    @property
    def numbers_symbol(self) -> ca.SX:
        """Symbols of the system's numbers."""
        return self.system.values.symbol

    def matrix_symbols(self) -> tuple[dict[str, ca.MX], ca.MX]:
        """Matrix symbols of all roles, and ``p`` of the system's numbers."""
        return ({role: ca.MX.sym(role, symbol.numel()) for role, symbol in self.symbols.items()},
                ca.MX.sym('p', self.numbers_symbol.numel()))

    def with_unknown(self, p: ca.MX, values: ca.MX) -> ca.MX:
        """The numbers p with the unknown ones in their places."""
        entries = ca.vertsplit(p)
        for k, place in enumerate(self.unknown_places):
            entries[place] = values[k]
        return ca.vertcat(*entries)

    @cached_property
    def arguments(self) -> list[ca.SX]:
        """``q, qd, Q, u, t, p``: arguments of ``terms`` and, with qdd and lam, of ``tangents``."""
        s = self.symbols
        return [s['q'], s['qd'], s['Q'], s['u'], s['t'], self.numbers_symbol]

    @cached_property
    def terms(self) -> ca.Function:
        """Function ``(q, qd, Q, u, t, p) -> (M, forces, J, c, b)``."""
        e = self._expressions
        return ca.Function('terms', self.arguments, [self.system.M, self.system.Q, e['J'], e['c'], e['b']],
                           {'cse': True})

    @cached_property
    def tangents(self) -> ca.Function:
        """Function ``(q, qd, Q, u, t, p, qdd, lam)`` -> derivatives of ``[force; -acceleration]`` by q, qd, Q, and
        the unknown numbers, then of the velocity residual by q and these, and of Phi by these."""
        s, r = self.symbols, self.residuals
        both = ca.vertcat(r['force'], -r['acceleration'])
        chosen = self.numbers_symbol[self.unknown_places]
        out = [ca.jacobian(both, s['q']), ca.jacobian(both, s['qd']), ca.jacobian(both, s['Q']),
               ca.jacobian(both, chosen), ca.jacobian(r['velocity'], s['q']), ca.jacobian(r['velocity'], chosen),
               ca.jacobian(r['position'], chosen)]
        return ca.Function('tangents', [*self.arguments, s['qdd'], self.lam], out, {'cse': True})

    def accelerations(self, M: Expression, Q: Expression, J: Expression, c: Expression
                      ) -> tuple[Expression, Expression, Expression]:
        """``qdd, lam`` and the matrix of ``[M J'; J 0] [qdd; lam] = [Q; c]``, which may have massless coordinates."""
        K = ca.vertcat(ca.horzcat(M, J.T), ca.horzcat(J, type(J)(self.m, self.m)))
        x = ca.solve(K, ca.densify(ca.vertcat(Q, c)), 'qr')
        return x[:self.n], x[self.n:], K
