# SPDX-License-Identifier: Apache-2.0
"""A machine as data: what the YAML says, in SI, checked, and nothing computed from it but areas.

Frames: x forward, y left, z up (REP-103). A body's points, centre of mass and inertia are given in the body's frame.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

GROUND = 'ground'


@dataclass(frozen=True)
class Quantity:
    """A value in SI with its standard deviation (1 sigma, absolute, same unit) and where it comes from."""

    value: float
    stddev: float = 0.0
    source: str = field(default='', compare=False)


Vector = tuple[Quantity, Quantity, Quantity]


@dataclass(frozen=True)
class PointRef:
    """A named point of a body, or of the ground (`body` is then 'ground')."""

    body: str
    point: str

    def __str__(self) -> str:
        return f'{self.body}.{self.point}'


@dataclass(frozen=True)
class Body:
    """Rigid body: kg, m, kg m^2.

    `inertia` is the tensor's xx, yy, zz, xy, xz, yz about the centre of mass along the body's axes (the products are
    the tensor's elements, that is -sum(m x y), as in URDF). Moments that cannot act in a planar machine may be 0.
    """

    name: str
    mass: Quantity
    center_of_mass: Vector
    inertia: tuple[Quantity, Quantity, Quantity, Quantity, Quantity, Quantity]
    points: dict[str, Vector]
    outline: tuple[str, ...] = ()


@dataclass(frozen=True)
class Joint:
    """Joint of the tree: the child's point lies on the parent's, moved by one coordinate q (rad or m).

    Rotation of the child's frame in the parent's: Rot(axis, q) R(rpy) with R(rpy) = Rz(yaw) Ry(pitch) Rx(roll);
    a prismatic joint moves the child's point by q along `axis` and keeps R(rpy); a fixed joint has no coordinate.
    `axis` is a unit vector in the parent's frame; `limits` are infinite where the file gives none.
    """

    name: str
    type: str
    parent: PointRef
    child: PointRef
    axis: tuple[float, float, float]
    start: float
    limits: tuple[float, float]
    rpy: Vector = (Quantity(0.0), Quantity(0.0), Quantity(0.0))


@dataclass(frozen=True)
class Friction:
    """Cylinder friction: Brown-McPhee (N, m/s, N s/m) and pressure terms (m^2); `scale` multiplies all of it."""

    coulomb: Quantity
    static: Quantity
    transition_velocity: Quantity
    viscous: Quantity
    pressure_difference: Quantity
    pressure_rod: Quantity
    scale: Quantity


@dataclass(frozen=True)
class EndStop:
    """Spring and damper over the last `length` (m) of the stroke at both ends: N/m, N s/m."""

    stiffness: Quantity
    damping: Quantity
    length: Quantity


@dataclass(frozen=True)
class Cylinder:
    """Hydraulic cylinder between two points: m; the piston position is 0 at `closed_length` (pin to pin)."""

    name: str
    base: PointRef
    rod_eye: PointRef
    bore: Quantity
    rod: Quantity
    closed_length: Quantity
    stroke: Quantity
    friction: Friction
    end_stop: EndStop | None = None

    @property
    def piston_area(self) -> float:
        """Area of the piston, m^2."""
        return math.pi / 4.0 * self.bore.value ** 2

    @property
    def rod_area(self) -> float:
        """Annular area on the rod side, m^2."""
        return math.pi / 4.0 * (self.bore.value ** 2 - self.rod.value ** 2)


@dataclass(frozen=True)
class Hose:
    """Line between valve and cylinder: m^3, Pa."""

    volume: Quantity
    bulk_modulus: Quantity


@dataclass(frozen=True)
class Volume:
    """One pressure: the chambers ((cylinder, 'piston' or 'rod'), ...) and hoses that share it; moduli in Pa."""

    name: str
    chambers: tuple[tuple[str, str], ...]
    cylinder_bulk_modulus: Quantity
    hoses: tuple[Hose, ...]


@dataclass(frozen=True)
class Valve:
    """Directional valve: a command above 0 joins pump to volume `a` and volume `b` to tank.

    Kind 'orifice': m^3/s at Pa and V, the command's limit in V, the spool's lag in s, the pressure drop in Pa below
    which the flow is linear. Kind 'unknown': only `a` and `b` are required, what the file leaves out is '' or None.
    """

    name: str
    kind: str
    a: str
    b: str
    pump: str = ''
    tank: str = ''
    nominal_flow: Quantity | None = None
    nominal_pressure: Quantity | None = None
    nominal_command: Quantity | None = None
    command_limit: Quantity | None = None
    time_constant: Quantity | None = None
    laminar_pressure: Quantity | None = None


@dataclass(frozen=True)
class Hydraulics:
    """The circuit: supplies are constant pressures in Pa."""

    oil_bulk_modulus: Quantity
    supplies: dict[str, Quantity]
    volumes: dict[str, Volume]
    valves: dict[str, Valve]


@dataclass(frozen=True)
class Payload:
    """Where the rigid payload hangs and the range of its mass, kg."""

    point: PointRef
    limits: tuple[float, float]


@dataclass(frozen=True)
class Sensors:
    """Noise of the sensors, 1 sigma: piston positions in m by cylinder, pressures in Pa by volume."""

    position: dict[str, float]
    pressure: dict[str, float]


@dataclass(frozen=True)
class MachineDescription:
    """All that the file says of one machine, SI; dictionaries keep the file's order."""

    file: str
    name: str
    source: str
    gravity: Vector
    ground_points: dict[str, Vector]
    bodies: dict[str, Body]
    joints: dict[str, Joint]
    cylinders: dict[str, Cylinder]
    hydraulics: Hydraulics
    payload: Payload
    sensors: Sensors
