# SPDX-License-Identifier: Apache-2.0
"""The terms of the constrained equations of motion at one instant, and what every formulation makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...errors import SingularEquationsError
from .decomposition import decompose

CONSISTENT = 1e-6           # relative; a dependent row whose acceleration differs by more contradicts the others
NO_MASS = 1e-28             # share of the largest entry on the diagonal of M; the square of rounding is about 1e-32
STILL = 1e-9                # m/s2 or rad/s2: accelerations that count as none


@dataclass(frozen=True)
class JointWork:
    """Friction of k joints: forces (n,) by which constraint forces do work, of their multipliers (m,) (Orsino, modular
    modelling, ``phi`` of Eq. 3.3).

    ``directions`` (n, k): forces of 1 N against the sliding of each joint; ``forces`` (k, d, m): times the multipliers,
    the force of each across its motion, N; ``sliding``, ``speeds`` (k,), m/s; ``coefficients`` (k,).
    """

    directions: np.ndarray
    forces: np.ndarray
    sliding: np.ndarray
    speeds: np.ndarray
    coefficients: np.ndarray

    @property
    def factors(self) -> np.ndarray:
        """Share (k,) of the force across a joint that is its friction, with the sign of the sliding."""
        return self.coefficients * np.tanh(self.sliding / self.speeds)

    def __call__(self, lam: np.ndarray) -> np.ndarray:
        """Generalised forces (n,)."""
        found: np.ndarray = self.directions @ (self.factors * np.linalg.norm(self.forces @ lam, axis=1))
        return found

    def stopping_rates(self, slowing: np.ndarray, dt: float) -> np.ndarray:
        """Rates (k,), 1/s, at which joints that friction can stop within dt, s, come to rest, by their decelerations
        ``slowing`` (k, k); 0 of the others."""
        near = np.flatnonzero(np.abs(self.sliding) <= np.diag(slowing) * dt)
        rates = np.zeros(len(self.speeds))
        if near.size:
            part = slowing[np.ix_(near, near)] / self.speeds[near]
            share = np.diag(part) / max(np.diag(part).max(), 1e-300)
            rates[near] = share * np.abs(np.linalg.eigvals(part)).max()
        return rates


@dataclass(frozen=True)
class Terms:
    """``M qdd + J' lam = Q`` with ``J qdd = c`` (Naya et al., review, Eq. 1, index 1), SI.

    ``M`` (n, n) symmetric, positive semi-definite; ``Q`` (n,); ``J`` (m, n); ``c`` (m,); ``Phi`` (m,) and ``Phidot``
    (m,) = J qd + Phi_t are the violation of the constraints and its rate, zero where left out. ``coordinates`` (n,)
    and ``rows`` (m,) are names for messages. With ``phi``, ``M qdd + J' lam = Q + phi(lam)``, as ``by_name`` solves
    it. ValueError for shapes that do not fit and for values that are not finite.
    """

    M: np.ndarray
    Q: np.ndarray
    J: np.ndarray
    c: np.ndarray
    Phi: np.ndarray = None      # type: ignore[assignment]  # zeros once it is made
    Phidot: np.ndarray = None   # type: ignore[assignment]
    coordinates: Sequence[str] = field(default=(), repr=False)
    rows: Sequence[str] = field(default=(), repr=False)
    phi: JointWork | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        n, m = np.size(self.Q), np.size(self.c)
        for name, shape in (('M', (n, n)), ('Q', (n,)), ('J', (m, n)), ('c', (m,)), ('Phi', (m,)), ('Phidot', (m,))):
            given = getattr(self, name)
            array = np.zeros(shape) if given is None else np.asarray(given, dtype=float)
            if array.shape != shape:
                raise ValueError(f'{name}: shape {array.shape}, expected {shape}')
            if not np.isfinite(array).all():
                raise ValueError(f'{name}: not all values are finite')
            object.__setattr__(self, name, array)
        object.__setattr__(self, 'M', _without_rounding(self.M))
        object.__setattr__(self, 'coordinates', tuple(self.coordinates) or tuple(f'q[{i}]' for i in range(n)))
        object.__setattr__(self, 'rows', tuple(self.rows) or tuple(f'row {i}' for i in range(m)))

    @property
    def n(self) -> int:
        """Number of coordinates."""
        return self.Q.size

    @property
    def m(self) -> int:
        """Number of constraint rows."""
        return self.c.size

    def take(self, rows: Sequence[int]) -> Terms:
        """The same system with only these constraint rows, in this order."""
        rows = list(rows)
        phi = None if self.phi is None else replace(self.phi, forces=self.phi.forces[:, :, rows])
        return replace(self, J=self.J[rows], c=self.c[rows], Phi=self.Phi[rows], Phidot=self.Phidot[rows],
                       rows=[self.rows[i] for i in rows], phi=phi)

    def stabilized(self, zeta: float = 1.0, omega: float = 10.0) -> Terms:
        """Constraints that pull violations back: ``c - 2 zeta omega Phidot - omega^2 Phi`` (Naya et al., review,
        Eq. 27).

        ``zeta`` damping ratio; ``omega`` natural frequency, rad/s.
        """
        return replace(self, c=self.c - 2 * zeta * omega * self.Phidot - omega ** 2 * self.Phi)

    def check_groups(self, groups: Sequence[Sequence[int]]) -> None:
        """Raise ValueError unless groups of rows name every row at least once, and no other."""
        strangers = {i for group in groups for i in group} ^ set(range(self.m))
        if strangers:
            raise ValueError(f'groups: rows {sorted(strangers)} missing or unknown, expected all of 0..{self.m - 1}')

    def least_multipliers(self, qdd: np.ndarray) -> np.ndarray:
        """Multipliers (m,) of least norm with ``J' lam = Q - M qdd`` for accelerations (n,) of the system."""
        return decompose(self.J).solve_transposed(self.Q - self.M @ qdd)

    def check_consistent(self, qdd: np.ndarray, rows: Sequence[int] | None = None) -> None:
        """Raise SingularEquationsError where accelerations (n,) do not keep the constraints (all, or ``rows``)."""
        size = np.abs(self.J)
        scale = CONSISTENT * (size @ np.abs(qdd) + np.abs(self.c)) + STILL * (size.sum(axis=1) + 1.0)
        wrong = np.abs(self.J @ qdd - self.c) > scale
        broken = [i for i in (range(self.m) if rows is None else rows) if wrong[i]]
        if broken:
            raise SingularEquationsError('constraints contradict each other', [self.rows[i] for i in broken])


def _without_rounding(M: np.ndarray) -> np.ndarray:
    """Zero rows and columns for coordinates whose mass is the square of a rounding error.

    M is semi-definite: where its diagonal is zero, the row is. (An Euler parameter has no mass at the identity.)
    """
    diagonal = np.abs(np.diag(M))
    none = diagonal <= NO_MASS * diagonal.max(initial=0.0)
    return np.where(none[:, None] | none, 0.0, M) if none.any() else M


@dataclass(frozen=True)
class Accelerations:
    """``qdd`` (n,), m/s2 or rad/s2, and ``multipliers`` (m,) with ``M qdd + J' lam = Q`` (Naya et al., review, Eq. 1).

    Where rows are redundant, the multipliers are those of least norm. ``slowing`` (k, k), m/s2: how much the friction
    of each of k joints (columns) slows the sliding of each (rows).
    """

    qdd: np.ndarray
    multipliers: np.ndarray
    slowing: np.ndarray | None = None
