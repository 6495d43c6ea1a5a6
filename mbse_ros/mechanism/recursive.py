# SPDX-License-Identifier: Apache-2.0
"""Equations of motion of a tree without constraints, from body to body: the mass matrix of composite bodies and the
forces of Newton and Euler (Featherstone, Rigid Body Dynamics Algorithms, chapters 5 and 6).

All vectors are about the machine's origin, along its axes, so that velocities and wrenches add without a transform.
With N coordinates the forces take O(N) operations, the mass matrix O(N d), d the depth of the tree. A joint of two
coordinates is two joints with nothing between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeVar

import casadi as ca

from .spatial import Inertia, Twist, Wrench


class Summed(Protocol):
    """What adds up."""

    def __add__(self, other: Any, /) -> Any: ...


T = TypeVar('T', bound=Summed)


@dataclass(frozen=True)
class OpenTree:
    """Joints of one coordinate each, every one after that which it hangs on.

    ``places`` (N,) of the coordinates in q; ``above`` (N,) the joint before, -1 the ground; ``columns`` (N,) the
    velocity that a unit of the coordinate adds; ``inertias`` (N,) of what moves with it; ``rotors`` (N,) inertia that a
    drive adds at the coordinate alone, kg m2 or kg; ``gravity`` (d,), m/s2.
    """

    places: tuple[int, ...]
    above: tuple[int, ...]
    columns: tuple[Twist, ...]
    inertias: tuple[Inertia, ...]
    rotors: tuple[ca.SX | float, ...]
    gravity: ca.SX

    @property
    def still(self) -> Twist:
        """No motion."""
        return Twist.zero(self.gravity.numel())

    @cached_property
    def paths(self) -> list[list[int]]:
        """By joint those on its way from the ground, itself last."""
        found: list[list[int]] = []
        for k, before in enumerate(self.above):
            found.append([*(found[before] if before >= 0 else []), k])
        return found

    def outwards(self, qd: ca.SX, qdd: ca.SX | None = None) -> tuple[list[Twist], list[Twist]]:
        """Velocities and accelerations (N,) behind each joint, the latter less gravity; without qdd as if it were 0."""
        ground = self.still, Twist(-self.gravity, self.still.w)
        V: list[Twist] = []
        a: list[Twist] = []
        for k, (before, S) in enumerate(zip(self.above, self.columns)):
            V_before, a_before = (V[before], a[before]) if before >= 0 else ground
            move = S * qd[self.places[k]]
            V.append(V_before + move)
            more = a_before + V_before.rate(move)
            a.append(more if qdd is None else more + S * qdd[self.places[k]])
        return V, a

    def wrenches(self, V: Sequence[Twist], a: Sequence[Twist]) -> list[Wrench]:
        """What moves each body so (N,): ``I a + V x* I V``."""
        return [inertia.momentum(a_k) + V_k.rate_of(inertia.momentum(V_k))
                for inertia, V_k, a_k in zip(self.inertias, V, a)]

    def inwards(self, items: Sequence[T]) -> list[T]:
        """Sums over all that hangs on each joint, itself included."""
        found = list(items)
        for k in reversed(range(len(found))):
            if self.above[k] >= 0:
                found[self.above[k]] = found[self.above[k]] + found[k]
        return found

    @cached_property
    def composite(self) -> list[Inertia]:
        """Inertia (N,) of all that hangs on each joint."""
        return self.inwards(self.inertias)

    def mass_matrix(self) -> ca.SX:
        """M (n, n); entries between branches are none."""
        n = len(self.places)
        M = ca.SX(n, n)
        for k, path in enumerate(self.paths):
            momentum = self.composite[k].momentum(self.columns[k])
            for i in path:
                M[self.places[k], self.places[i]] = M[self.places[i], self.places[k]] = self.columns[i].power(momentum)
            M[self.places[k], self.places[k]] += self.rotors[k]
        return M

    def bias(self, qd: ca.SX) -> ca.SX:
        """Generalised forces (n,) at zero accelerations: those of velocities, less weight."""
        total = self.inwards(self.wrenches(*self.outwards(qd)))
        return self.along([S.power(F) for S, F in zip(self.columns, total)])

    def along(self, values: Sequence[ca.SX]) -> ca.SX:
        """Numbers (N,) of the joints in the order of q."""
        return ca.densify(ca.vertcat(*(values[self.places.index(i)] for i in range(len(self.places)))))
