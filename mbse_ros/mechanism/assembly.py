# SPDX-License-Identifier: Apache-2.0
"""From a mechanism description to its ``System``, in any coordinates."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import casadi as ca
import numpy as np

from ..description.basics import GROUND, PointRef, scalars
from ..description.model import MechanismDescription
from ..errors import DescriptionError, check_choice
from .coordinates.kinematics import Kinematics
from .coordinates.named import add_named
from .coordinates.natural import natural
from .coordinates.reference_point import reference_point
from .coordinates.relative import relative
from .forces import Applied, applied_forces
from .friction import joint_friction
from .inertia import (
    Mass,
    accelerated,
    body_terms,
    center_of_mass,
    inclined,
    inertia,
    payload_spin,
    point_masses,
    point_terms,
    rotors,
    spin_terms,
)
from .nonholonomic import nonholonomic_rows, quasi_velocities
from .system import MechanismSystem as MechanismSystem
from .tree import open_tree
from .values import Values

COORDINATES = {'natural': natural, 'reference_point': reference_point, 'relative': relative}


def build_mechanism(description: MechanismDescription, coordinates: str | None = None,
                    independent: Sequence[str] | None = None, free: Collection[str] = ()) -> MechanismSystem:
    """Symbolic system of a described mechanism.

    ``coordinates``: 'natural', 'reference_point' or 'relative' (default: the file's); ``independent``: names of
    coordinates (default: the file's; empty where they are to be chosen by the numbers); ``free``: parameters, or keys
    of numbers such as ``bodies.crank.mass``, that become symbols. Raises DescriptionError, SettingError.
    """
    chosen = coordinates or description.coordinate_type
    check_choice('coordinates', chosen, COORDINATES)
    values = Values(description, free)
    kinematics = COORDINATES[chosen](description, values)
    add_named(kinematics)
    t = ca.SX.sym('t')
    nonholonomic_rows(kinematics)
    driven = _drivers(kinematics, t)
    system = _system(kinematics, applied_forces(kinematics), t, driven)
    values.check_free()
    names = description.independent if independent is None else tuple(independent)
    return system.with_independent(system.indices(names))


def _drivers(kinematics: Kinematics, t: ca.SX) -> list[int]:
    """Prescribed motions as constraint rows."""
    first = len(kinematics.rows)
    for driver in kinematics.description.drivers.values():
        coordinate = kinematics.q[kinematics.names.index(driver.coordinate)]
        motion = kinematics.values.evaluate(driver.motion, t=t) * driver.factor
        kinematics.row(f'drivers.{driver.name}', driver.name, coordinate - motion)
    return list(range(first, len(kinematics.rows)))


def _system(kinematics: Kinematics, applied: Applied, t: ca.SX, driven: list[int]) -> MechanismSystem:
    description, n = kinematics.description, len(kinematics.q)
    if n == 0:
        raise DescriptionError(description.file, 'bodies', list(description.bodies), 'a body that can move')
    gravity = accelerated(inclined(kinematics.values.vector(description.gravity), description.base, kinematics),
                          kinematics)
    for body in description.bodies.values():        # their symbols first: the order of the parameters
        center_of_mass(body, kinematics.values), kinematics.values(body.mass), inertia(body, kinematics.values)
    masses, geared = tuple(point_masses(kinematics)), tuple(rotors(kinematics))
    turning = [(payload.body, load) for payload in description.every_payload.values()
               if (load := payload_spin(kinematics, payload)) is not None]
    for scalar in scalars((description.cylinders, description.hydraulics, description.sensors,
                           description.drives)).values():
        kinematics.values(scalar)       # its symbol, before a function is made of them
    rows = kinematics.rows
    multipliers = ca.SX.sym('multipliers', len(rows) + len(kinematics.rates))
    system = MechanismSystem(
        q=ca.vertcat(*kinematics.q), qd=ca.vertcat(*kinematics.qd), M=ca.SX(n, n), Q=ca.SX.zeros(n),
        Phi=ca.densify(ca.vertcat(*(row.expression for row in rows))) if rows else ca.SX(0, 1),
        names=tuple(kinematics.names), rows=tuple(row.name for row in rows), independent=[],
        start=np.array(kinematics.start), points=_points(kinematics), t=t, u=applied.u, driven=tuple(driven),
        description=description, values=kinematics.values, inputs=applied.inputs,
        owners=tuple(row.owner for row in (*rows, *kinematics.rates)),
        row_bodies=tuple(row.bodies for row in (*rows, *kinematics.rates)),
        rates=ca.densify(ca.vertcat(ca.SX(0, 1), *(row.expression for row in kinematics.rates))),
        rate_rows=tuple(row.name for row in kinematics.rates),
        multipliers=multipliers, friction=joint_friction(kinematics, multipliers),
        quasi=quasi_velocities(kinematics), frames=dict(kinematics.frames),
        potential=applied.potential, other_forces=ca.densify(applied.other),
        sides=ca.densify(ca.vertcat(*kinematics.sides)) if kinematics.sides else ca.SX(0, 1),
        biases={s.name: kinematics.values.vector(s.bias) for s in description.sensors.values() if s.bias},
        gravity=gravity, applied=ca.densify(applied.conservative + applied.other),
        masses=(*((ca.SX(kinematics.values(body.mass)), kinematics.frames[body.name].at(
            center_of_mass(body, kinematics.values))) for body in description.bodies.values()), *masses),
        rotors=geared,
        spins=() if kinematics.natural else (*((inertia(body, kinematics.values), kinematics.frames[body.name].omega)
                                               for body in description.bodies.values()),
                                             *((tensor, kinematics.frames[body].omega)
                                               for body, tensor in turning)))
    return _with_terms(system, kinematics, masses, turning)


def _with_terms(system: MechanismSystem, kinematics: Kinematics, masses: Sequence[Mass],
                turning: Sequence[tuple[str, ca.SX]]) -> MechanismSystem:
    """The system with mass matrix, forces and potential: of a tree from body to body, else a sum over all that has
    inertia."""
    bodies, gravity, Q, potential = system.description.bodies.values(), system.gravity, system.applied, system.potential
    tree = open_tree(system)
    if tree is not None:
        weights = (mass * ca.dot(gravity, place) for mass, place in system.masses)
        M, Q, potential = tree.mass_matrix(), Q - tree.bias(system.qd), potential - sum(weights)
    else:
        M = ca.SX.zeros(system.n, system.n)
        for body in bodies:
            M_b, Q_b, energy = body_terms(kinematics, body, gravity)
            M, Q, potential = M + M_b, Q + Q_b, potential + energy
        for mass, place in masses:
            M_b, Q_b, energy = point_terms(kinematics, mass, place, gravity)
            M, Q, potential = M + M_b, Q + Q_b, potential + energy
        for place_in_q, rotor in system.rotors:
            M[place_in_q, place_in_q] += rotor
        for name, tensor in turning:
            M_b, Q_b = spin_terms(kinematics, name, tensor)
            M, Q = M + M_b, Q + Q_b
    return replace(system, M=ca.densify(M) if system.description.is_machine else M, Q=ca.densify(Q),
                   potential=potential, tree=tree)


def _points(kinematics: Kinematics) -> dict[str, ca.SX]:
    """Positions of all points in the machine frame."""
    owners = {GROUND: kinematics.description.ground}
    owners |= {name: body.points for name, body in kinematics.description.bodies.items()}
    return {f'{body}.{point}': kinematics.point(PointRef(body, point)) for body, points in owners.items()
            for point in points}
