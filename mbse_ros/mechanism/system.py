# SPDX-License-Identifier: Apache-2.0
"""The symbolic ``System``: what every description becomes and all equations of motion are derived from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeVar

import casadi as ca
import numpy as np

from ..errors import SettingError

S = TypeVar('S', bound='System')


@dataclass(frozen=True)
class System:
    """Equations ``M(q) qdd = Q(q, qd, u) - Phi_q' lam``, ``Phi(q, t) = 0`` of one mechanism, as CasADi expressions.

    ``q``, ``qd`` (n,); ``M`` (n, n); ``Q`` (n,) all applied and velocity forces; ``Phi`` (m,); SI. ``names`` (n,) of
    the coordinates, ``rows`` (m,) of the constraints; ``independent`` indexes q; ``start`` (n,) is a guess of the
    start; ``t`` the time, s; ``u`` the inputs; ``driven`` indexes the rows that prescribe a motion.
    ``rates`` (k,) = 0 are non-holonomic constraints, linear in qd, with the names ``rate_rows``; the rows of all
    velocities are those of Phi, then these. ``points`` gives the position of each named point ``body.point`` in the
    machine frame, m.
    """

    q: ca.SX
    qd: ca.SX
    M: ca.SX
    Q: ca.SX
    Phi: ca.SX
    names: tuple[str, ...]
    rows: tuple[str, ...]
    independent: list[int]
    start: np.ndarray
    points: dict[str, ca.SX]
    t: ca.SX = field(default_factory=lambda: ca.SX.sym('t'))
    u: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    driven: tuple[int, ...] = ()
    rates: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    rate_rows: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """Number of coordinates."""
        return self.q.numel()

    @property
    def m(self) -> int:
        """Number of constraints."""
        return self.Phi.numel()

    @property
    def dependent(self) -> list[int]:
        """Places of the dependent coordinates in q."""
        return [i for i in range(self.n) if i not in self.independent]

    def indices(self, names: Iterable[str]) -> list[int]:
        """Places of named coordinates in q; raises SettingError that lists the coordinates."""
        known = {name: i for i, name in enumerate(self.names)}
        for name in names:
            if name not in known:
                raise SettingError('independent', name, 'one of the coordinates ' + ', '.join(self.names))
        return [known[name] for name in names]

    def with_independent(self: S, independent: Iterable[int]) -> S:
        """The same mechanism described by other independent coordinates."""
        return replace(self, independent=list(independent))
