# SPDX-License-Identifier: Apache-2.0
"""Forces that a motion takes, without the mass matrix: by virtual power, as recursive Newton-Euler schemes do.

``M qdd - Q`` is the gradient, by virtual velocities w, of the power of all inertial and gravity forces; its cost grows
with the number of bodies, that of the matrix with their number times that of the coordinates squared.
"""

from __future__ import annotations

import casadi as ca

from ...mechanism.assembly import MechanismSystem


def inertial_forces(system: MechanismSystem, qdd: ca.SX) -> ca.SX:
    """``M qdd - Q`` (n,) as an expression in the system's q, qd, u, t and in the accelerations ``qdd`` (n,)."""
    if len(system.spins) < len(system.description.bodies):      # natural coordinates: the matrix is constant
        return system.M @ qdd - system.Q
    q, qd, w = system.q, system.qd, ca.SX.sym('w', system.n)
    places = ca.vertcat(*(place for _, place in system.masses))
    velocity = ca.jtimes(places, q, qd)
    acceleration = ca.jtimes(velocity, q, qd) + ca.jtimes(places, q, qdd)
    virtual = ca.jtimes(places, q, w)
    power, d = ca.SX(0), system.gravity.numel()
    for k, (mass, _) in enumerate(system.masses):
        part = slice(d * k, d * k + d)
        power = power + mass * ca.dot(acceleration[part] - system.gravity, virtual[part])
    for tensor, omega in system.spins:
        rate = ca.jtimes(omega, q, qd) + ca.jtimes(omega, qd, qdd)
        moment = tensor @ rate
        if omega.numel() == 3:
            moment = moment + ca.cross(omega, tensor @ omega)
        power = power + ca.dot(moment, ca.jtimes(omega, qd, w))
    for place, rotor in system.rotors:
        power = power + rotor * qdd[place] * w[place]
    return ca.gradient(power, w) - system.applied
