# SPDX-License-Identifier: Apache-2.0
"""Gravity, springs, dampers, loads and inputs as wrenches on the bodies about the machine's origin
(``mechanism.spatial``)."""

from __future__ import annotations

import casadi as ca

from ...description.basics import GROUND, PointRef
from ...description.model import Force, Spring
from ...mechanism.assembly import MechanismSystem
from ...mechanism.spatial import Inertia, Twist, Wrench

Wrenches = dict[str, Wrench]


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
