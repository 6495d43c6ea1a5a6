# SPDX-License-Identifier: Apache-2.0
"""Derivatives of the inverse dynamics of a tree, joint by joint (Carpentier and Mansard, Analytical derivatives of
rigid body dynamics algorithms, RSS 2018; in the form of Singh, Russell and Wensing, IEEE RA-L 7, 2022).

A change of the coordinate j turns all that hangs on it, with its wrenches, by its column S; what is not turned are the
velocity and acceleration that come from before it. With ``S' = V x S`` and ``S'' = a x S + V x S'``, V and a of what
the joint hangs on, the wrench of a body with inertia I changes by ``S x* f + I S'' + B S'`` for q and by
``2 I S' + B S`` for qd, where ``B x = I (x x V) + x x* I V + V x* I x`` sees the angular part of x alone. Each entry of
the result is then a product of two vectors, one of each joint.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from .recursive import OpenTree
from .spatial import Inertia, Twist, Wrench, moment, turned


@dataclass(frozen=True)
class Gyration:
    """B of a body or of several: ``momentum`` (d,), the force part of I V, and the moment ``turning`` (r, r) by the
    angular part of x."""

    momentum: ca.SX
    turning: ca.SX

    @classmethod
    def of(cls, inertia: Inertia, V: Twist) -> Gyration:
        """Of one body at a velocity."""
        first, momentum = inertia.first, inertia.momentum(V).f
        if first.numel() == 2:
            return cls(momentum, 2 * ca.dot(first, V.v))
        spread = ca.trace(inertia.second) / 2 * ca.SX.eye(3) - inertia.second       # sum of m r r'
        return cls(momentum, -2 * (ca.skew(first) @ ca.skew(V.v) + ca.skew(V.w) @ spread))

    def __add__(self, other: Gyration) -> Gyration:
        return Gyration(self.momentum + other.momentum, self.turning + other.turning)

    def wrench(self, x: Twist) -> Wrench:
        """B x."""
        return Wrench(2 * turned(x.w, self.momentum), self.turning @ x.w)

    def transposed(self, x: Twist) -> ca.SX:
        """Angular part (r,) of B'x; the other is zero."""
        return 2 * moment(self.momentum, x.v) + self.turning.T @ x.w


@dataclass(frozen=True)
class Changes:
    """By joint: ``first`` S' and ``second`` S''; ``by_q`` and ``by_qd`` the wrench that a change of its coordinate and
    its velocity puts on it; ``momenta`` I S and ``gyrations`` (r,) of B'S of all that hangs on it."""

    first: list[Twist]
    second: list[Twist]
    by_q: list[Wrench]
    by_qd: list[Wrench]
    momenta: list[Wrench]
    gyrations: list[ca.SX]


def changes(tree: OpenTree, qd: ca.SX, qdd: ca.SX) -> Changes:
    """Vectors whose products are the derivatives, at velocities and accelerations (n,); O(N)."""
    V, a = tree.outwards(qd, qdd)
    total, whole = tree.inwards(tree.wrenches(V, a)), tree.composite
    gyration = tree.inwards([Gyration.of(inertia, V_k) for inertia, V_k in zip(tree.inertias, V)])
    ground = tree.still, Twist(-tree.gravity, tree.still.w)
    found = Changes([], [], [], [], [], [])
    for k, (before, S) in enumerate(zip(tree.above, tree.columns)):
        V_before, a_before = (V[before], a[before]) if before >= 0 else ground
        first = V_before.rate(S)
        second = a_before.rate(S) + V_before.rate(first)
        found.first.append(first)
        found.second.append(second)
        found.by_q.append(S.rate_of(total[k]) + whole[k].momentum(second) + gyration[k].wrench(first))
        found.by_qd.append(whole[k].momentum(first * 2) + gyration[k].wrench(S))
        found.momenta.append(whole[k].momentum(S))
        found.gyrations.append(gyration[k].transposed(S))
    return found


def force_derivatives(tree: OpenTree, qd: ca.SX, qdd: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Derivatives (n, n) by q and qd of the forces that a motion of the tree takes, without drives' rotors, whose
    forces depend on accelerations alone; entries between branches are none."""
    n, c, place, S = len(tree.places), changes(tree, qd, qdd), tree.places, tree.columns
    by_q, by_qd = ca.SX(n, n), ca.SX(n, n)
    for k, path in enumerate(tree.paths):
        for j in path:
            by_q[place[j], place[k]], by_qd[place[j], place[k]] = S[j].power(c.by_q[k]), S[j].power(c.by_qd[k])
            if j != k:
                m, b = c.momenta[k], c.gyrations[k]
                by_q[place[k], place[j]] = c.second[j].power(m) + ca.dot(c.first[j].w, b)
                by_qd[place[k], place[j]] = (c.first[j] * 2).power(m) + ca.dot(S[j].w, b)
    return by_q, by_qd
