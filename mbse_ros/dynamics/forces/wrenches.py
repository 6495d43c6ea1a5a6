# SPDX-License-Identifier: Apache-2.0
"""Gravity, springs, dampers, loads and inputs as wrenches on the bodies about the machine's origin.

``Twist`` and ``Wrench`` are velocities and forces of rigid bodies about that origin, along its axes, in a plane or in
space. A vector has d = 2 or 3 components; an angular velocity or moment has r = 1 in a plane, r = 3 in space.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from ...description.basics import GROUND, PointRef
from ...description.model import Force, Spring
from ...mechanism.assembly import MechanismSystem


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


Wrenches = dict[str, Wrench]


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


def gravity_wrench(system: MechanismSystem, inertia: Inertia) -> Wrench:
    """Weight of a body."""
    weight = Wrench.at(system.gravity, inertia.first)
    return Wrench(inertia.mass * system.gravity, weight.n)


def applied_wrenches(system: MechanismSystem, velocities: dict[str, Twist]) -> tuple[Wrenches, ca.SX]:
    """Wrench on each body (and on the ground) at their velocities, and generalised forces (n,) on coordinates."""
    description = system.description
    zero = Twist.zero(description.dimension)
    wrenches = {name: Wrench(zero.v, zero.w) for name in (GROUND, *description.bodies)}
    Q = ca.SX.zeros(system.n)
    for spring in description.springs.values():
        _spring(system, spring, velocities, wrenches, Q)
    for force in description.forces.values():
        _force(system, force, wrenches, Q)
    return wrenches, Q


def _spring(system: MechanismSystem, spring: Spring, velocities: dict[str, Twist], wrenches: Wrenches,
            Q: ca.SX) -> None:
    """Tension along the line of two points, or on a coordinate."""
    stiffness, free, damping = (system.values(item) for item in (spring.stiffness, spring.free, spring.damping))
    if spring.points is None:
        place = system.names.index(spring.coordinate)
        Q[place] -= stiffness * (system.q[place] - free) + damping * system.qd[place]
        return
    places = [system.points[str(ref)] for ref in spring.points]
    speeds = [velocities[ref.body].at(place) for ref, place in zip(spring.points, places)]
    between = places[1] - places[0]
    length = ca.norm_2(between)
    direction = between / length
    tension = stiffness * (length - free) + damping * ca.dot(direction, speeds[1] - speeds[0])
    _push(system, wrenches, spring.points[0], direction * tension)
    _push(system, wrenches, spring.points[1], -direction * tension)


def _force(system: MechanismSystem, force: Force, wrenches: Wrenches, Q: ca.SX) -> None:
    """Constant or input force on a point, torque on a body, or generalised force on a coordinate."""
    value = system.values.vector(force.value) if not force.input else system.u[system.inputs.index(force.input)]
    if force.coordinate:
        Q[system.names.index(force.coordinate)] += value
        return
    vector = value * ca.SX(list(force.direction)) if force.input and force.direction else value
    if force.point is not None:
        _push(system, wrenches, force.point, vector)
    else:
        still = Twist.zero(system.description.dimension)
        wrenches[force.body] += Wrench(still.v, vector)


def _push(system: MechanismSystem, wrenches: Wrenches, ref: PointRef, force: ca.SX) -> None:
    """Force at a point of a body."""
    wrenches[ref.body] += Wrench.at(force, system.points[str(ref)])
