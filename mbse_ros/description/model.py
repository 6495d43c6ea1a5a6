# SPDX-License-Identifier: Apache-2.0
"""A mechanism as data: what the YAML says, in SI, checked; no coordinates are chosen yet.

A plane has x to the right and y up, space has z up. Vectors have ``dimension`` components (2 or 3). A body's points,
centre of mass and inertia are given in the body's frame. The frame of a planar body that is given by a list of its
points starts at the first of them and has its x axis through the second.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from .basics import GROUND, PointRef, Scalar, Vector
from .language.entry import Entry
from .machine_parts import Attachment, Base, Calibration, Cylinder, Drive, Hydraulics, Payload

RATES = {'rad': 'rad/s', 'm': 'm/s'}        # units by that of the coordinate
FORCES = {'rad': 'N*m', 'm': 'N'}
_SENSOR_UNITS = {'stroke': 'm', 'position': 'm', 'velocity': 'm/s', 'gyro': 'rad/s', 'accelerometer': 'm/s^2',
                 'distance': 'm', 'inclinometer': 'rad', 'pressure': 'Pa', 'inclination': 'rad', 'current': 'A'}
DIGITS = 8


def sensor_unit(kind: str, coordinate_unit: Callable[[], str]) -> str:
    """Unit of a kind of sensor; ``coordinate_unit`` is asked for that of its coordinate, or its driver's, where it
    depends on it."""
    if kind in _SENSOR_UNITS:
        return _SENSOR_UNITS[kind]
    unit = coordinate_unit()
    return {'rate': RATES, 'force': FORCES, 'effort': FORCES}.get(kind, {unit: unit})[unit]


@dataclass(frozen=True)
class Body:
    """Rigid body: kg, m, kg m2.

    ``inertia`` about the centre of mass: (Izz,) in a plane, (xx, yy, zz, xy, xz, yz) in space (the tensor's elements).
    ``uniform``: a slender rod from the first of its points to the second; then ``center_of_mass`` and ``inertia`` are
    empty. ``position`` (dimension,) and ``rotation`` (dimension, dimension) of the frame: a guess of the start, m.
    ``outline``: names of points to draw it by.
    """

    name: str
    mass: Scalar
    center_of_mass: Vector
    inertia: Vector
    points: dict[str, Vector]
    position: tuple[float, ...]
    rotation: tuple[tuple[float, ...], ...]
    uniform: bool = False
    outline: tuple[str, ...] = ()


@dataclass(frozen=True)
class Joint:
    """Joint between a point of the parent and a point of the child.

    ``type`` in a plane: revolute, prismatic, slot, fixed, distance; in space: revolute, prismatic, cylindrical,
    spherical, universal, fixed, distance. Rotation of the child's frame in the parent's: ``Rot(axis, angle) R(rpy)``
    with the unit vector ``axis`` (dimension,) in the parent's frame ((0, 0, 1) is meant by a planar revolute joint,
    whose ``axis`` is empty). ``rpy``: (angle,) in a plane, (roll, pitch, yaw) in space, rad.
    prismatic: the child's point slides along the axis, the rotation stays R(rpy); slot (pinned slider): it slides
    along the axis and the child may turn; cylindrical: slides along and turns about it; universal: a cross whose
    arms are ``axis`` in the parent and ``axis2`` in the child's frame; distance: a massless rod of ``length``, m.
    ``limits``: range of the coordinate of a revolute or prismatic joint, rad or m, where the file gives one.
    """

    name: str
    type: str
    parent: PointRef
    child: PointRef
    axis: tuple[float, ...] = ()
    rpy: Vector = ()
    axis2: tuple[float, ...] = ()
    length: Scalar | None = None
    limits: tuple[float, float] | None = None


@dataclass(frozen=True)
class Coordinate:
    """A named coordinate beside those of the coordinate type; drivers, springs, inputs and ``independent`` use them.

    ``kind``: 'angle' (planar: of the x axis of ``bodies[-1]``, absolute, or relative to ``bodies[0]`` when there are
    two; counter-clockwise, rad, counted over full turns), 'joint' (angle, rad, or displacement, m, of ``joint``),
    'distance' (of two ``points``, m), 'piston' (the same less the cylinder's ``closed_length``, m), 'component'
    (``component`` 0, 1, 2 of the position of ``points[0]``, m).
    ``branches``: use the two branches of Blanco-Claraco et al., factor graphs, appendix III, instead of the one form
    that holds at all angles.
    """

    name: str
    kind: str
    bodies: tuple[str, ...] = ()
    joint: str = ''
    points: tuple[PointRef, ...] = ()
    component: int = 0
    branches: bool = False
    closed_length: Scalar | None = None


@dataclass(frozen=True)
class Spring:
    """Spring and damper: linear between two ``points`` (N/m, m, N s/m) or on a named ``coordinate``
    (N m/rad, rad, N m s/rad; N/m, m, N s/m)."""

    name: str
    points: tuple[PointRef, PointRef] | None
    coordinate: str
    stiffness: Scalar
    free: Scalar
    damping: Scalar


@dataclass(frozen=True)
class Force:
    """Constant or input force.

    On a ``point``: vector (N) of constant components, or an input along the unit ``direction`` (in the machine frame);
    on a ``body``: torque (N m), about ``direction`` in space; on a ``coordinate``: generalised force (N or N m).
    ``input``: the name of the input ('' for a constant ``value``).
    """

    name: str
    point: PointRef | None = None
    body: str = ''
    coordinate: str = ''
    value: Vector = ()
    direction: tuple[float, ...] = ()
    input: str = ''


@dataclass(frozen=True)
class Driver:
    """Prescribed motion of a named coordinate: arithmetic over the parameters and the time ``t``, m or rad."""

    name: str
    coordinate: str
    motion: str
    factor: float = 1.0


@dataclass(frozen=True)
class NonHolonomic:
    """Constraint on velocities that is none on positions.

    Without a ``radius``: the ``point`` has no velocity along the unit vector ``along`` (dimension,) in the frame of its
    body, as the blade of a skate. With one: a wheel or ball of this ``radius``, m, whose centre is the ``point``, rolls
    without slip on what is level at the point ``on`` of the ground (None: at the machine's origin); ``axis`` (3,) of a
    disc in the frame of its body, empty for a ball and in a plane.
    """

    name: str
    point: PointRef
    along: tuple[float, ...] = ()
    radius: Scalar | None = None
    on: PointRef | None = None
    axis: tuple[float, ...] = ()


@dataclass(frozen=True)
class QuasiVelocity:
    """Velocity that has a name and is the derivative of no coordinate: of a ``point``, m/s, or, without one, of the
    ``body``, rad/s, along the unit vector ``along`` in the frame of the body (empty: of a body in a plane)."""

    name: str
    body: str
    along: tuple[float, ...] = ()
    point: PointRef | None = None

    @property
    def unit(self) -> str:
        """'m/s' or 'rad/s'."""
        return 'rad/s' if self.point is None else 'm/s'


@dataclass(frozen=True)
class JointFriction:
    """Coulomb friction in a ``joint`` (revolute, prismatic or slot): ``coefficient`` times the normal force that the
    joint's constraints exert, against the sliding; of a revolute joint at the ``radius`` of its pin, m. ``speed``, m/s,
    from which it is whole: it has the factor ``tanh(v / speed)``."""

    name: str
    joint: str
    coefficient: Scalar
    speed: Scalar
    radius: Scalar | None = None


@dataclass(frozen=True)
class Drift:
    """Random walk of a sensor's zero: ``rate``, SI per square root of a day, over the ``days`` since the date of the
    calibration, before it where below 0; ``stated``: deviations of the zero on that date, SI."""

    rate: float
    days: int = 0
    stated: tuple[float, ...] = ()

    @property
    def stddev(self) -> float:
        """What the age adds to a zero, SI."""
        return self.rate * math.sqrt(abs(self.days))


@dataclass(frozen=True)
class Sensor:
    """A sensor; ``stddev`` of one sample in SI (0 where the file gives none).

    ``kind``: 'encoder' (a ``coordinate``, m or rad), 'rate' (its velocity), 'position' and 'velocity' (of a
    ``point``, m, m/s), 'gyro' (of a ``body``, rad/s; in space about its three axes), 'accelerometer' (specific force
    at a ``point`` along ``axes`` of its body, m/s2; ``gravity`` False leaves gravity out; of the ground, that of the
    machine's base), 'distance' (of two points,
    m), 'inclinometer' (absolute angle of a body in the plane x y or, in space, x z: wrapped to pi, rad), 'force' (of a
    ``driver``, N or N m), 'pressure' (of a hydraulic ``volume`` or supply, Pa), 'inclination' (of the base about
    ``axis`` 'roll' or 'pitch', rad), 'effort' (of a ``drive``, N m or N at its joint) and 'current' (of its motor, A).
    ``bias``: what each channel adds to the true value, SI; empty: nothing. ``gain``: what a pressure or an effort is
    multiplied by; ``gauge``: it is counted from the atmosphere's. ``resolution``: step of the values, 0 where they have
    none. ``wraps``: an encoder that does not count its turns. ``range``: lowest and highest sample, where the file
    says. ``delay``, s: the stamp of a sample is so much later than what it measures. ``drift`` of the ``bias``, which
    has the deviation of its age.
    """

    name: str
    kind: str
    stddev: float = 0.0
    resolution: float = 0.0
    coordinate: str = ''
    body: str = ''
    points: tuple[PointRef, ...] = ()
    axes: tuple[tuple[float, ...], ...] = ()
    gravity: bool = True
    driver: str = ''
    bias: Vector = ()
    wraps: bool = False
    volume: str = ''
    axis: str = ''
    gain: Scalar | None = None
    gauge: bool = False
    range: tuple[float, float] | None = None
    delay: Scalar | None = None
    drift: Drift | None = None
    drive: str = ''

    def aged(self, days: int) -> Sensor:
        """The same, so many days after the date of the calibration, before it where below 0."""
        if self.drift is None:
            return self
        drift = replace(self.drift, days=days, stated=self.drift.stated or tuple(item.stddev for item in self.bias))
        return replace(self, drift=drift, bias=tuple(replace(item, stddev=math.hypot(stated, drift.stddev))
                                                     for item, stated in zip(self.bias, drift.stated)))

    @property
    def on_base(self) -> bool:
        """Whether it measures the acceleration of a machine's base."""
        return self.kind == 'accelerometer' and self.body == GROUND

    @property
    def target(self) -> tuple[str, str] | None:
        """What a sensor of a machine's pressures, coordinates or base is at; None of others."""
        owner = self.volume or self.axis or self.drive or (self.coordinate if self.kind == 'encoder' else
                                             self.body if self.on_base else '')
        return ('effort' if self.drive else self.kind, owner) if owner else None

    @property
    def noise(self) -> float:
        """Standard deviation of one sample with the rounding to its resolution, SI."""
        return math.hypot(self.stddev, self.resolution / math.sqrt(12.0))


@dataclass(frozen=True)
class Initial:
    """Start of the named coordinates: positions and velocities, SI; those not named are assembled from the guess.

    ``held``: what simulates the mechanism gives its inputs the constant values that hold it there, unless told others.
    """

    position: dict[str, Scalar] = field(default_factory=dict)
    velocity: dict[str, Scalar] = field(default_factory=dict)
    held: bool = False


@dataclass(frozen=True)
class Level:
    """One level of the hierarchy (Orsino, modular modelling): the joints inside these modules are enforced; none: all
    that are left."""

    modules: tuple[str, ...]


@dataclass(frozen=True)
class MechanismDescription:
    """All that the file says of one mechanism, SI; dictionaries keep the file's order.

    ``coordinate_type``: 'natural', 'reference_point' or 'relative'; ``independent``: names of coordinates, empty for
    'auto'; ``modules``: names of bodies or of other modules; ``levels``: from the lowest upwards. A machine has
    ``cylinders`` and ``hydraulics``, or ``drives``, or all of them, and a ``payload`` where one is to be weighed, or
    ``payloads``, two or more by name; ``sources`` is that section as it stands, for the room `sources` to read, and
    ``scale`` for `scale`;
    ``calibration``: which of its numbers' errors depend on each other. ``remarks``: what of a URDF is not used, or was
    assumed. ``attachment``: the tool that the payload's body has been given, see ``machine.attachment``.
    """

    file: str
    name: str
    source: str
    dimension: int
    gravity: Vector
    parameters: dict[str, Scalar]
    ground: dict[str, Vector]
    bodies: dict[str, Body]
    joints: dict[str, Joint]
    coordinates: dict[str, Coordinate]
    springs: dict[str, Spring]
    forces: dict[str, Force]
    drivers: dict[str, Driver]
    sensors: dict[str, Sensor]
    coordinate_type: str
    independent: tuple[str, ...]
    initial: Initial
    modules: dict[str, tuple[str, ...]]
    levels: tuple[Level, ...]
    cylinders: dict[str, Cylinder] = field(default_factory=dict)
    hydraulics: Hydraulics | None = None
    payload: Payload | None = None
    payloads: dict[str, Payload] = field(default_factory=dict)
    base: Base | None = None
    sources: Entry | None = field(default=None, repr=False, compare=False)      # says where numbers come from
    calibration: Calibration | None = None
    scale: Entry | None = field(default=None, repr=False, compare=False)        # what is weighed is no part of it
    nonholonomic: dict[str, NonHolonomic] = field(default_factory=dict)
    friction: dict[str, JointFriction] = field(default_factory=dict)
    quasi_velocities: dict[str, QuasiVelocity] = field(default_factory=dict)
    remarks: dict[str, str] = field(default_factory=dict, repr=False, compare=False)    # of a URDF that was read
    attachment: Attachment | None = field(default=None, repr=False, compare=False)      # its mass is in the body's
    drives: dict[str, Drive] = field(default_factory=dict)

    @property
    def is_machine(self) -> bool:
        """Whether it has cylinders or drives."""
        return bool(self.cylinders or self.drives)

    @property
    def mechanical_sensors(self) -> dict[str, Sensor]:
        """Sensors of the motion and of forces: those that a mechanism without hydraulics has, too."""
        return {name: sensor for name, sensor in self.sensors.items()
                if sensor.kind not in ('pressure', 'inclination', 'effort', 'current') and not sensor.on_base}

    @property
    def base_accelerometer(self) -> Sensor | None:
        """The accelerometer on the base of a machine, if it has one."""
        return next((sensor for sensor in self.sensors.values() if sensor.on_base), None)

    @property
    def every_payload(self) -> dict[str, Payload]:
        """All that are to be weighed, by name; that of the section `payload` is 'payload'."""
        return self.payloads or ({} if self.payload is None else {'payload': self.payload})


def content(description: MechanismDescription) -> str:
    """All that a description says, as text: two with the same one are the same but for where their files are."""
    return repr(replace(description, file='')).replace(', payloads={}', '')


def fingerprint(description: MechanismDescription) -> str:
    """Eight hexadecimal digits of the SHA-256 of a description.

    Where its file is, its comments and its layout do not count; each value with its unit and source does, and what
    replaced the file's valves. A key that came later does not count where a file leaves it out, nor does the day.
    """
    text = content(replace(description, sensors={name: item.aged(0) for name, item in description.sensors.items()}))
    for later in ('drives={}', 'quasi_velocities={}', 'friction={}', 'nonholonomic={}', 'calibration=None',
                  'held=False', 'in_scale=None', 'out_scale=None', 'force_error=None', 'parallel=None', "drive=''",
                  'drift=None', 'delay=None'):
        text = text.replace(f', {later})', ')')
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
