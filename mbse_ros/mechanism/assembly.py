# SPDX-License-Identifier: Apache-2.0
"""From a mechanism description to its ``System``, in any coordinates."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..description.basics import GROUND, PointRef, scalars
from ..description.model import MechanismDescription
from ..errors import DescriptionError, check_choice
from .coordinates.kinematics import BodyFrame, Kinematics
from .coordinates.named import add_named
from .coordinates.natural import natural
from .coordinates.reference_point import reference_point
from .coordinates.relative import relative
from .forces import Applied, applied_forces
from .friction import JointForces, joint_friction
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
from .system import System
from .values import Values

COORDINATES = {'natural': natural, 'reference_point': reference_point, 'relative': relative}


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
    by 180 degrees on its rail, is zero there too.
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

    @property
    def phi(self) -> ca.SX:
        """Generalised forces (n,) of friction."""
        return ca.densify(self.friction.phi(self.multipliers))

    @property
    def kinetic(self) -> ca.SX:
        """Kinetic energy, J."""
        return ca.dot(self.qd, self.M @ self.qd) / 2


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
    M, Q, potential = ca.SX.zeros(n, n), applied.conservative + applied.other, applied.potential
    for body in description.bodies.values():
        M_b, Q_b, energy = body_terms(kinematics, body, gravity)
        M, Q, potential = M + M_b, Q + Q_b, potential + energy
    masses = tuple(point_masses(kinematics))
    for mass, place in masses:
        M_b, Q_b, energy = point_terms(kinematics, mass, place, gravity)
        M, Q, potential = M + M_b, Q + Q_b, potential + energy
    geared = tuple(rotors(kinematics))
    for place, rotor in geared:
        M[place, place] += rotor
    turning: list[tuple[str, ca.SX]] = []
    for payload in description.every_payload.values():
        load = payload_spin(kinematics, payload)
        if load is not None:
            M_b, Q_b = spin_terms(kinematics, payload.body, load)
            M, Q = M + M_b, Q + Q_b
            turning.append((payload.body, load))
    for scalar in scalars((description.cylinders, description.hydraulics, description.sensors,
                           description.drives)).values():
        kinematics.values(scalar)       # its symbol, before a function is made of them
    rows = kinematics.rows
    multipliers = ca.SX.sym('multipliers', len(rows) + len(kinematics.rates))
    return MechanismSystem(
        q=ca.vertcat(*kinematics.q), qd=ca.vertcat(*kinematics.qd),
        M=ca.densify(M) if description.is_machine else M, Q=ca.densify(Q),
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
        potential=potential, other_forces=ca.densify(applied.other),
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


def _points(kinematics: Kinematics) -> dict[str, ca.SX]:
    """Positions of all points in the machine frame."""
    owners = {GROUND: kinematics.description.ground}
    owners |= {name: body.points for name, body in kinematics.description.bodies.items()}
    return {f'{body}.{point}': kinematics.point(PointRef(body, point)) for body, points in owners.items()
            for point in points}
