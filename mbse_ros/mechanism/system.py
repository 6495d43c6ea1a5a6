# SPDX-License-Identifier: Apache-2.0
"""The symbolic ``System``: what every description becomes and all equations of motion are derived from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeVar

import casadi as ca
import numpy as np

from ..description.model import MechanismDescription
from ..errors import SettingError
from .coordinates.kinematics import BodyFrame
from .friction import JointForces
from .inertia import Mass
from .recursive import OpenTree
from .values import Values

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


@dataclass(frozen=True, kw_only=True)
class MechanismSystem(System):
    """``System`` of a described mechanism.

    ``inputs`` names u; ``owners`` (m + k,) gives the joint, body, coordinate or driver of each constraint row and
    ``row_bodies`` (m + k,) the bodies it ties, non-holonomic ones last; ``frames`` the pose and angular velocity of
    each body; ``potential`` is the energy of gravity and springs, J; ``other_forces`` (n,) those that change the sum of
    kinetic and potential energy;
    ``phi`` (n,) is the ``friction`` of joints by the ``multipliers`` (m + k,) of the rows; ``quasi`` are
    quasi-velocities;
    ``values`` holds the symbols of uncertain and free numbers; ``biases`` are those of the sensors that have some;
    ``gravity`` (d,) in the machine's frame, m/s2; ``applied`` (n,) what springs, loads and inputs add to Q; ``masses``
    and ``spins`` are all that has inertia: points with their places, and tensors of bodies with their angular
    velocities (none where natural coordinates carry a rotation); ``rotors``: what drives add at places
    in q. ``sides`` (k,) are positive where the rows hold as meant; a row with a second solution, such as a block turned
    by 180 degrees on its rail, is zero there too. ``tree``: where nothing ties the coordinates of joints; M, and Q less
    what is applied, are then its.
    """

    description: MechanismDescription
    values: Values
    inputs: tuple[str, ...]
    owners: tuple[str, ...]
    row_bodies: tuple[tuple[str, ...], ...]
    multipliers: ca.SX
    friction: JointForces
    quasi: dict[str, ca.SX]
    frames: dict[str, BodyFrame]
    potential: ca.SX
    other_forces: ca.SX
    sides: ca.SX
    biases: dict[str, ca.SX]
    gravity: ca.SX
    applied: ca.SX
    masses: tuple[Mass, ...]
    rotors: tuple[tuple[int, ca.SX | float], ...]
    spins: tuple[tuple[ca.SX, ca.SX], ...]
    tree: OpenTree | None = None

    @property
    def phi(self) -> ca.SX:
        """Generalised forces (n,) of friction."""
        return ca.densify(self.friction.phi(self.multipliers))

    @property
    def kinetic(self) -> ca.SX:
        """Kinetic energy, J."""
        return ca.dot(self.qd, self.M @ self.qd) / 2
