# SPDX-License-Identifier: Apache-2.0
"""Velocities, forces and inertias of rigid bodies as spatial vectors, about the machine's origin, along its axes
(Featherstone, Rigid Body Dynamics Algorithms, chapter 2).

A vector has d = 2 or 3 components; an angular velocity or moment has r = 1 in a plane, r = 3 in space.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca


@dataclass(frozen=True)
class Twist:
    """Velocity ``v`` (d,), m/s, of the body's point at the origin, and angular velocity ``w`` (r,), rad/s."""

    v: ca.SX
    w: ca.SX

    @classmethod
    def zero(cls, dimension: int) -> Twist:
        """No motion."""
        return cls(ca.SX.zeros(dimension), ca.SX.zeros(1 if dimension == 2 else 3))

    @classmethod
    def slide(cls, direction: ca.SX) -> Twist:
        """Translation at unit speed."""
        return cls(direction, ca.SX.zeros(1 if direction.numel() == 2 else 3))

    @classmethod
    def turn(cls, w: ca.SX, point: ca.SX) -> Twist:
        """Rotation about an axis through a point (d,)."""
        return cls(-turned(w, point), w)

    def at(self, point: ca.SX) -> ca.SX:
        """Velocity (d,) of the body's point that is at this place, m/s."""
        return self.v + turned(self.w, point)

    def rate(self, other: Twist) -> Twist:
        """Time derivative of a twist that stands still in the body that moves with this one."""
        return Twist(turned(self.w, other.v) - turned(other.w, self.v), spun(self.w, other.w))

    def rate_of(self, momentum: Wrench) -> Wrench:
        """Time derivative of a momentum that stands still in the body that moves with this one."""
        return Wrench(turned(self.w, momentum.f), moment(self.v, momentum.f) + spun(self.w, momentum.n))

    def power(self, wrench: Wrench) -> ca.SX:
        """Power of a wrench, W."""
        return ca.dot(self.v, wrench.f) + ca.dot(self.w, wrench.n)

    def __add__(self, other: Twist) -> Twist:
        return Twist(self.v + other.v, self.w + other.w)

    def __mul__(self, factor: ca.SX | float) -> Twist:
        return Twist(self.v * factor, self.w * factor)


@dataclass(frozen=True)
class Wrench:
    """Force ``f`` (d,), N, and moment ``n`` (r,) about the origin, N m; or momentum and its moment."""

    f: ca.SX
    n: ca.SX

    @classmethod
    def at(cls, force: ca.SX, point: ca.SX) -> Wrench:
        """Force at a point (d,)."""
        return cls(force, moment(point, force))

    def __add__(self, other: Wrench) -> Wrench:
        return Wrench(self.f + other.f, self.n + other.n)

    def __sub__(self, other: Wrench) -> Wrench:
        return Wrench(self.f - other.f, self.n - other.n)


@dataclass(frozen=True)
class Inertia:
    """Mass, kg, its first moment ``first`` (d,), kg m, and its second moments ``second`` (r, r) about the origin."""

    mass: ca.SX
    first: ca.SX
    second: ca.SX

    @classmethod
    def of(cls, mass: ca.SX, centre: ca.SX, tensor: ca.SX) -> Inertia:
        """A body with its centre of mass (d,) and inertia about it (r, r)."""
        squares = ca.sumsqr(centre)
        moved = squares if centre.numel() == 2 else squares * ca.SX.eye(3) - centre @ centre.T
        return cls(mass, mass * centre, tensor + mass * moved)

    def momentum(self, twist: Twist) -> Wrench:
        """Momentum, kg m/s, and its moment about the origin at a velocity."""
        return Wrench(self.mass * twist.v + turned(twist.w, self.first),
                      moment(self.first, twist.v) + self.second @ twist.w)

    def __add__(self, other: Inertia) -> Inertia:
        return Inertia(self.mass + other.mass, self.first + other.first, self.second + other.second)


def turned(w: ca.SX, v: ca.SX) -> ca.SX:
    """Product w x v (d,) of an angular velocity and a vector."""
    return ca.cross(w, v) if v.numel() == 3 else w * ca.vertcat(-v[1], v[0])


def moment(a: ca.SX, b: ca.SX) -> ca.SX:
    """Product a x b (r,) of two vectors."""
    return ca.cross(a, b) if a.numel() == 3 else a[0] * b[1] - a[1] * b[0]


def spun(w: ca.SX, n: ca.SX) -> ca.SX:
    """Product w x n (r,) of two angular quantities; none in a plane."""
    return ca.cross(w, n) if w.numel() == 3 else ca.SX.zeros(1)
