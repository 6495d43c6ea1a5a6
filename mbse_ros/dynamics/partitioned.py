# SPDX-License-Identifier: Apache-2.0
"""One choice of independent coordinates of a mechanism: its state equations and its position problem, compiled."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from ..compiled import Kernel
from ..errors import PositionProblemError, SingularConfigurationError, SingularEquationsError
from ..mechanism.assembly import MechanismSystem
from .formulations.articulated import motion_of_tree, rates_of_tree
from .formulations.matrix_r import constraint_rates
from .formulations.redundancy import UNDETERMINED, undetermined
from .formulations.terms_arrays import Terms
from .partition import WORST, alternatives, condition
from .state_equations import Maps, Pieces, is_small, largest_entry, state_function

POSITION_TOLERANCE = 1e-12      # of Phi, times the square of the largest coordinate above 1
POSITION_ITERATIONS = 30
FARTHEST = 1e9                  # m or rad: beyond it no digit of a constraint is left
LONGEST_STEP = 0.25             # of an independent coordinate, m or rad, that Newton's method is asked to take at once
MOST_STEPS = 1_000
SLOPES = 4                      # about what all operations are to those of the constraints
LARGEST_COMPILED = 8_900        # scalar operations that a C compiler turns into code in a few seconds
LARGEST_TREE = 60_000           # ... of the functions of a tree: each is counted itself, and compiled once


@dataclass(frozen=True)
class StateRates:
    """``zdd`` (g,), ``A`` (2g, 2g) = df/dX, ``B`` (2g, k) = df/du, ``qdd``, ``qd`` (n,), multipliers ``lam`` (m,)."""

    zdd: np.ndarray
    A: np.ndarray
    B: np.ndarray
    qdd: np.ndarray
    lam: np.ndarray
    qd: np.ndarray


class Partitioned:
    """State equations ``X = [z, zd]`` of a system for given independent coordinates.

    ``independent`` are places in q, ``rows`` the constraints that count (no redundant ones). Every method raises
    SingularConfigurationError, with coordinates that would do, where the choice does not determine the motion, and
    SingularEquationsError where a coordinate has neither mass nor constraint.
    """

    def __init__(self, system: MechanismSystem, independent: Sequence[int], rows: Sequence[int],
                 parameters: np.ndarray, backend: str = 'auto') -> None:
        self.independent, self.parameters = list(independent), parameters
        self.system = replace(with_rows(system, rows), independent=list(independent))
        self.names = tuple(system.names[i] for i in independent)
        self._pieces = Pieces(self.system, self.system.values.symbol)
        self._given = backend
        self.kept: dict[str, Any] = {}      # what integrators made of it, for any parameters

    def with_parameters(self, parameters: np.ndarray) -> Partitioned:
        """The same equations, compiled once, with other parameters (p,)."""
        other = copy(self)
        other.parameters = parameters
        return other

    def rates(self, q: np.ndarray, zd: np.ndarray, u: np.ndarray | None = None, t: float = 0.0) -> StateRates:
        """Accelerations and exact Jacobians at coordinates (n,), independent velocities (g,), inputs (k,)."""
        u = np.zeros(self.system.u.numel()) if u is None else u
        zdd, A, B, qdd, lam, qd, largest = self._state(q, zd, u, [t], self.parameters)
        if not (largest[0] < WORST and np.isfinite(zdd).all()):
            self._refuse(q, t)
        g = len(self.independent)
        return StateRates(zdd, A.reshape(2 * g, 2 * g), B.reshape(2 * g, len(u)), qdd, lam, qd)

    def velocity(self, q: np.ndarray, zd: np.ndarray, t: float = 0.0) -> np.ndarray:
        """Velocities (n,) of all coordinates."""
        qd, largest = self._velocity(q, zd, [t], self.parameters)
        if not (largest[0] < WORST and np.isfinite(qd).all()):
            self._refuse(q, t)
        return qd

    def position(self, z: np.ndarray, guess: np.ndarray, t: float = 0.0) -> np.ndarray:
        """Coordinates (n,) at independent ones (g,) on the branch of a guess (Pyrhönen et al., state transition,
        Eq. 7).

        A far way is gone in steps. Raises PositionProblemError too, also where it ends on another branch.
        """
        q, z = np.array(guess, dtype=float), np.asarray(z, dtype=float)
        try:
            q = self._walked(q, z, t)
        except PositionProblemError as error:       # say what was asked for, not how far the way led
            q[self.independent] = z
            raise PositionProblemError(error.residual, error.iterations, q) from None
        sides, = self._sides(q, self.parameters)
        if (sides <= 0).any():
            raise PositionProblemError(0.0, POSITION_ITERATIONS, q, 'another branch than the guess is on')
        return q

    def _walked(self, q: np.ndarray, z: np.ndarray, t: float) -> np.ndarray:
        """Coordinates after the way to independent ones (g,)."""
        away = z - q[self.independent]
        if not np.isfinite(away).all():
            raise PositionProblemError(np.inf, 0, q)
        steps = int(min(np.ceil(np.max(np.abs(away), initial=0.0) / LONGEST_STEP), MOST_STEPS))
        if steps > 1:
            q = self.close(q, t)
        for left in range(max(steps, 1) - 1, -1, -1):
            target = z - away * (left / max(steps, 1))
            if steps > 1:
                step = target - q[self.independent]     # along R, to first order
                q = q + self.velocity(q, step, t) - self.velocity(q, 0 * step, t)
            q[self.independent] = target
            q = self.close(q, t)
        return q

    def close(self, q: np.ndarray, t: float = 0.0) -> np.ndarray:
        """Newton's method on the dependent coordinates, the independent ones kept."""
        last = np.inf
        for _ in range(POSITION_ITERATIONS):
            fresh, largest = self._newton(q, [t], self.parameters)
            size = float(largest[0])
            extent = float(np.max(np.abs(q)))
            if not extent < FARTHEST:
                raise PositionProblemError(size, 0, q, 'too far away')
            tolerance = POSITION_TOLERANCE * max(1.0, extent ** 2)
            if size <= 1e-3 * tolerance or (size <= tolerance and size >= 0.25 * last):
                return q
            if not np.isfinite(fresh).all():
                self._refuse(q, t)
            q, last = fresh, size
        raise PositionProblemError(size, POSITION_ITERATIONS, q)

    def condition(self, q: np.ndarray, t: float = 0.0) -> float:
        """Condition number of the dependent part of the constraint Jacobian."""
        return condition(self._jacobian_at(q, t), self.independent)

    def _refuse(self, q: np.ndarray, t: float) -> None:
        """Say which coordinates fail here and which would do."""
        J = self._jacobian_at(q, t)
        if not np.isfinite(J).all():
            raise PositionProblemError(np.inf, POSITION_ITERATIONS, q)
        names = self.system.names
        if condition(J, self.independent) < WORST:
            M, = self._mass(q, [t], self.parameters)
            n = len(names)
            terms = Terms(M.reshape(n, n), np.zeros(n), J, np.zeros(len(J)), coordinates=names)
            raise SingularEquationsError(UNDETERMINED, undetermined(terms) or names)
        would_do = tuple(tuple(names[i] for i in choice) for choice in alternatives(J, self.independent))
        raise SingularConfigurationError(self.names, condition(J, self.independent), would_do)

    def _jacobian_at(self, q: np.ndarray, t: float) -> np.ndarray:
        J, = self._jacobian(q, [t], self.parameters)
        return J.reshape(self.system.m, self.system.n)

    @cached_property
    def _sides(self) -> Kernel:
        return Kernel(ca.Function('mbse_sides', [self.system.q, self.system.values.symbol], [self.system.sides]), 'vm')

    @cached_property
    def _mass(self) -> Kernel:
        system = self.system
        return Kernel(ca.Function('mbse_mass', [system.q, system.t, system.values.symbol], [system.M]), 'vm')

    @cached_property
    def function(self) -> ca.Function:
        """The state equations as a CasADi function (``state_function``)."""
        return state_function(self.system, self.system.values.symbol, pieces=self._pieces)

    @cached_property
    def rates_function(self) -> ca.Function:
        """``(q, zd, u, t, p) -> zdd`` without what its Jacobian takes."""
        if self.system.tree is not None and not is_small(self.system):
            return rates_of_tree(self.system, self.system.values.symbol)
        symbols = self.function.sx_in() if self.function.is_a('SXFunction') else self.function.mx_in()
        return ca.Function('mbse_rates', symbols, self.function.call(symbols, True, False)[:1], {'cse': True})

    @cached_property
    def motion_function(self) -> ca.Function:
        """``(q, zd, u, t, p) -> (zdd, qdd, lam, qd)``, as ``function`` without its Jacobians."""
        if self.system.tree is not None and not is_small(self.system):
            return motion_of_tree(self.rates_function, self.system)
        symbols = self.function.sx_in() if self.function.is_a('SXFunction') else self.function.mx_in()
        zdd, _, _, qdd, lam, qd = self.function.call(symbols, True, False)
        return ca.Function('mbse_motion', symbols, [zdd, qdd, lam, qd], {'cse': True})

    @cached_property
    def _state(self) -> Kernel:
        backend = affordable(self._given, self.operations, self.largest)
        return Kernel(state_function(self.system, self.system.values.symbol, guard=True, pieces=self._pieces), backend)

    @property
    def operations(self) -> int:
        """Scalar operations of the state equations, without constraints their own, else solutions with the dependent
        block apart."""
        return self._pieces.operations if self.system.tree is None else _all_operations(self.function)

    @property
    def motion_operations(self) -> int:
        """The same of ``motion_function``."""
        small = is_small(self.system)
        return _all_operations(self.motion_function) if small or self.system.tree is not None else self.operations

    @property
    def largest(self) -> int:
        """Operations up to which a function is compiled."""
        return LARGEST_COMPILED if self.system.tree is None else LARGEST_TREE

    @property
    def _backend(self) -> str:
        """Of functions of the constraints alone."""
        return affordable(self._given, SLOPES * self._pieces.constraints.n_instructions())

    @cached_property
    def _newton(self) -> Kernel:
        return Kernel(newton_function(self.system), self._backend, rare=True)

    @cached_property
    def _velocity(self) -> Kernel:
        return Kernel(velocity_function(self.system, guard=True), self._backend, rare=True)

    @cached_property
    def _jacobian(self) -> Kernel:
        system = self.system
        J = ca.jacobian(system.Phi, system.q)
        return Kernel(ca.Function('mbse_jacobian', [system.q, system.t, system.values.symbol], [J]), 'vm')


def with_rows(system: MechanismSystem, rows: Sequence[int]) -> MechanismSystem:
    """The system with some of its constraint rows."""
    rows = list(rows)
    return replace(system, Phi=system.Phi[rows], rows=tuple(system.rows[i] for i in rows),
                   owners=tuple(system.owners[i] for i in rows), row_bodies=tuple(system.row_bodies[i] for i in rows),
                   driven=tuple(k for k, i in enumerate(rows) if i in system.driven))


def affordable(backend: str, operations: int, largest: int = LARGEST_COMPILED) -> str:
    """'vm' instead of 'auto' for functions that would keep the C compiler busy for long."""
    return 'vm' if backend == 'auto' and operations > largest else backend


def _all_operations(function: ca.Function) -> int:
    """Instructions of a function and of those that it calls, each once."""
    return int(sum(each.n_instructions() for each in (function, *function.find_functions())))


def newton_function(system: MechanismSystem) -> ca.Function:
    """Function ``(q, t, p) -> (q after one Newton step, max |Phi| before it)``; independent coordinates are kept."""
    q, t, p, maps = _constraint_maps(system)
    phi = ca.Function('residual', [system.q, system.t, system.values.symbol], [system.Phi])(q, t, p)
    return ca.Function('mbse_newton', [q, t, p], [q - maps[0].S(phi), ca.norm_inf(phi)], {'cse': True})


def velocity_function(system: MechanismSystem, guard: bool = False) -> ca.Function:
    """Function ``(q, zd, t, p) -> qd = R zd + S b``; ``guard`` adds the largest entry of R."""
    q, t, p, (maps, b) = _constraint_maps(system)
    zd = type(q).sym('zd', len(system.independent))
    out = [maps.R @ zd + maps.S(b), *([largest_entry(maps.R)] if guard else [])]
    return ca.Function('mbse_velocity', [q, zd, t, p], out, {'cse': True})


def _constraint_maps(system: MechanismSystem) -> tuple[ca.SX, ca.SX, ca.SX, tuple[Maps, ca.SX]]:
    """Symbols q, t, p, of the kind that suits the size, and the maps with ``b`` there."""
    scalar = is_small(system)
    kind = ca.SX if scalar else ca.MX
    q, t, p = kind.sym('q', system.n), kind.sym('t'), kind.sym('p', system.values.symbol.numel())
    J, b = ca.Function('constraints', [system.q, system.t, system.values.symbol], constraint_rates(system)[:2])(q, t, p)
    return q, t, p, (Maps.of(system, J, scalar), b)
