# SPDX-License-Identifier: Apache-2.0
"""What makes a mechanism a machine: cylinders with a hydraulic circuit, or drives whose effort is measured; a payload
and a base that may be inclined; SI."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields

from .basics import ZERO, PointRef, Scalar, Vector

EDGES = ('pump_a', 'b_tank', 'pump_b', 'a_tank')


@dataclass(frozen=True)
class Friction:
    """Cylinder friction: Brown-McPhee (N, m/s, N s/m) and pressure terms (m^2); ``scale`` multiplies all of it,
    ``out_scale`` and ``in_scale`` that of a piston that moves out and in (None: 1)."""

    coulomb: Scalar
    static: Scalar
    transition_velocity: Scalar
    viscous: Scalar
    pressure_difference: Scalar
    pressure_rod: Scalar
    scale: Scalar
    out_scale: Scalar | None = None
    in_scale: Scalar | None = None


@dataclass(frozen=True)
class Parallel:
    """What works beside a piston, a spring and damper for instance, of any sign: against its way out at the stroke s
    ``constant + linear (s - about) + cubic (s - about)^3 + damping ds/dt``; N, N/m, N/m^3, N s/m, m."""

    constant: Scalar
    linear: Scalar
    cubic: Scalar
    damping: Scalar
    about: Scalar


@dataclass(frozen=True)
class BalanceError:
    """Of the force balance at a cylinder: what its pressures do not show and the file does not describe. A first-order
    Markov process of this standard deviation, N, and correlation time, s; None: as `filters/force_error` has it."""

    stddev: float
    time: float | None = None


@dataclass(frozen=True)
class EndStop:
    """Spring and damper over the last ``length`` (m) of the stroke at both ends: N/m, N s/m."""

    stiffness: Scalar
    damping: Scalar
    length: Scalar


@dataclass(frozen=True)
class Cylinder:
    """``count`` equal hydraulic cylinders side by side between two points: m, kg; the piston position is 0 at
    ``closed_length`` (pin to pin).

    Friction, end stops, ``parallel`` forces, masses and ``force_error`` are those of one cylinder. ``barrel_mass`` and
    ``rod_mass`` are uniform rods of ``closed_length``, from the base's pin and back from the rod's eye.
    """

    name: str
    base: PointRef
    rod_eye: PointRef
    bore: Scalar
    rod: Scalar
    closed_length: Scalar
    stroke: Scalar
    friction: Friction
    end_stop: EndStop | None = None
    count: int = 1
    barrel_mass: Scalar | None = None
    rod_mass: Scalar | None = None
    parallel: Parallel | None = None
    force_error: BalanceError | None = None

    @property
    def piston_area(self) -> float:
        """Area of all pistons, m^2."""
        return self.count * math.pi / 4.0 * self.bore.value ** 2

    @property
    def rod_area(self) -> float:
        """Annular area of all rod sides, m^2."""
        return self.count * math.pi / 4.0 * (self.bore.value ** 2 - self.rod.value ** 2)


@dataclass(frozen=True)
class DriveFriction:
    """Friction of a drive at its joint: Brown-McPhee (N m, rad/s, N m s/rad; N, m/s, N s/m), and ``load`` times the
    size of its effort; ``scale`` multiplies all of it, ``forward_scale`` and ``backward_scale`` that in the direction
    of the coordinate and against it (None: 1)."""

    coulomb: Scalar
    static: Scalar
    transition_velocity: Scalar
    viscous: Scalar
    load: Scalar
    scale: Scalar
    forward_scale: Scalar | None = None
    backward_scale: Scalar | None = None


@dataclass(frozen=True)
class Drive:
    """Motor and gear that move the ``coordinate`` of a joint, turning (``unit`` 'rad') or sliding ('m'), and whose
    effort a sensor measures: what the motor gives, N m or N at the joint, before friction and the rotor's inertia.

    ``largest``: effort that it has at most. ``rotor_inertia``, kg m2 (kg), before the gear: the joint feels it times
    the square of ``gear_ratio``. ``torque_constant``, N m/A (N/A), of the motor, 0 where the file gives none.
    ``force_error``: as of a cylinder, N m or N.
    """

    name: str
    coordinate: str
    unit: str
    largest: float
    friction: DriveFriction
    rotor_inertia: Scalar | None = None
    gear_ratio: float = 1.0
    torque_constant: float = 0.0
    force_error: BalanceError | None = None

    @property
    def effort(self) -> str:
        """Unit of its effort, in words."""
        return 'N m' if self.unit == 'rad' else 'N'

    @property
    def current(self) -> float:
        """Current of the motor, A, for an effort of 1 N m or N at the joint."""
        return 1.0 / (self.torque_constant * self.gear_ratio)


@dataclass(frozen=True)
class Hose:
    """Line between valve and cylinder: m^3, Pa."""

    volume: Scalar
    bulk_modulus: Scalar


@dataclass(frozen=True)
class Volume:
    """One pressure: the chambers ((cylinder, 'piston' or 'rod'), ...) and hoses that share it; moduli in Pa."""

    name: str
    chambers: tuple[tuple[str, str], ...]
    cylinder_bulk_modulus: Scalar
    hoses: tuple[Hose, ...]


@dataclass(frozen=True)
class Valve:
    """Directional valve: a command above 0 joins pump to volume ``a`` and volume ``b`` to tank.

    Kind 'orifice': m^3/s at Pa and V, the command's limit in V, the spool's lag in s, the pressure drop in Pa below
    which the flow is linear. 'compensated': the same, but the drop from the pump is held at ``nominal_pressure`` as
    long as the supply lasts. ``dead_band``, V: commands up to which the spool covers its ports; ``gains`` of the four
    edges (``EDGES``), 1 where the file gives none; ``make_up``, Pa: how far below the tank a port is when its
    anti-cavitation valve lets the nominal flow pass. Kind 'unknown': only ``a`` and ``b`` are required, what the file
    leaves out is '' or None.
    """

    name: str
    kind: str
    a: str
    b: str
    pump: str = ''
    tank: str = ''
    nominal_flow: Scalar | None = None
    nominal_pressure: Scalar | None = None
    nominal_command: Scalar | None = None
    command_limit: Scalar | None = None
    time_constant: Scalar | None = None
    laminar_pressure: Scalar | None = None
    dead_band: Scalar | None = None
    make_up: Scalar | None = None
    gains: dict[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True)
class Hydraulics:
    """The circuit: supplies are pressures in Pa, constant or measured by a sensor."""

    oil_bulk_modulus: Scalar
    supplies: dict[str, Scalar] = field(default_factory=dict)
    volumes: dict[str, Volume] = field(default_factory=dict)
    valves: dict[str, Valve] = field(default_factory=dict)


NO_HYDRAULICS = Hydraulics(ZERO)       # of a machine whose motion alone is wanted


@dataclass(frozen=True)
class Payload:
    """A load at a point of a body; ``mass`` (kg) is the unknown, ``limits`` its range.

    ``center``: its place (m) in the frame of ``body``, that of ``point`` where the file names one; ``contact``: where
    the soil pushes against the machine, as ``body.point``, '' where the file does not say. A rigid load turns with
    the body, with the inertia ``mass gyration_radius^2`` about its centre in every direction (None: a point mass); one
    that hangs is a point that swings at the length ``hanging``, m, below its place (None: it is rigid).
    """

    body: str
    center: Vector
    limits: tuple[float, float]
    mass: Scalar
    point: str = ''
    contact: str = ''
    gyration_radius: Scalar | None = None
    hanging: Scalar | None = None

    def __repr__(self) -> str:
        return _stated(self)


@dataclass(frozen=True)
class Support:
    """On what the machine stands: corners (k >= 3) of the convex polygon x, y, m, counterclockwise seen from above, in
    the plane z = ``height``, m, of the machine's frame; ``mass``, kg, and ``center_of_mass``, m, of what does not move.
    """

    corners: tuple[tuple[float, float], ...]
    height: float = 0.0
    mass: float = 0.0
    center_of_mass: tuple[float, float, float] = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Base:
    """Attitude of the machine's frame: roll about x, then pitch about y, rad, both 0 where z points up; ``support``:
    None where the file does not say."""

    roll: Scalar
    pitch: Scalar
    support: Support | None = None

    def __repr__(self) -> str:
        return _stated(self)


@dataclass(frozen=True)
class Attachment:
    """A tool that a machine may carry: ``mass``, kg, by which it is heavier than what the machine's file has in its
    place, with the deviation ``stddev``; ``center``: where that mass is, m, in the frame of the payload's body, (value,
    stddev) of each axis; empty: where the load is. ``key`` of the ``file`` that it is from."""

    name: str
    mass: float
    stddev: float = 0.0
    center: tuple[tuple[float, float], ...] = ()
    file: str = field(default='', compare=False, repr=False)
    key: str = field(default='', compare=False, repr=False)

    @property
    def line(self) -> str:
        """In words, of a result that is with it."""
        return f'with attachment {self.name} ({self.mass:+g} kg) in the equations'


@dataclass(frozen=True)
class Calibration:
    """Errors of the numbers ``keys`` that bags have made depend on each other.

    ``rows``: of each number so many numbers as its place, their squares' sum 1: the error of number i is its standard
    deviation times the sum of ``rows[i][j] u[j]``, with independent u of standard deviation 1. ``date`` and ``bags``:
    when and from what it was found.
    """

    keys: tuple[str, ...] = ()
    rows: tuple[tuple[float, ...], ...] = ()
    date: str = ''
    bags: tuple[str, ...] = ()


def _stated(part: Payload | Base) -> str:
    """What the file leaves out is not in it: the fingerprints of files without these keys stay as they were."""
    values = {item.name: getattr(part, item.name) for item in fields(part)}
    said = ', '.join(f'{name}={value!r}' for name, value in values.items() if value is not None)
    return f'{type(part).__name__}({said})'
