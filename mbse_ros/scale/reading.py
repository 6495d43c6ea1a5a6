# SPDX-License-Identifier: Apache-2.0
"""What the scale takes of one instant: the mass of the payload stage, what stands behind it, and where the load is: its
place, the angle of the swing, the radius that load charts are about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite, nan

import numpy as np

from ..description.basics import GROUND
from ..errors import MbseError
from ..machine import Machine
from ..machine.frames import MachineFrames
from ..machine.hanging import down
from ..monitor.faults import NONE, Fault
from ..streams.records import ObserverStatus, PayloadEstimate, PayloadStatus, StateEstimate

# The mass is that of what hangs there, though it may not be measured at this very moment.
KNOWN = (PayloadStatus.UPDATING, PayloadStatus.TOO_SLOW, PayloadStatus.NOT_OBSERVABLE, PayloadStatus.OUTSIDE_STROKE,
         PayloadStatus.ACCELERATING)
HELD = PayloadStatus.NO_DATA, PayloadStatus.IMPLAUSIBLE        # nothing is known of what hangs there
NO_SLOPES = np.zeros(0)
EVERY_NS = 200_000_000      # between two solutions of the position problem: a load is not faster than that matters
STILL = 1e-3                # m and rad, by which coordinates may change until the load has moved
UPRIGHT = 0.99              # cosine between the axis of a swing and gravity


@dataclass(frozen=True)
class Place:
    """Where the load is, x, y, z in the machine's frame, m, and the angle of the swing, rad, NaN without one."""

    x: float
    y: float
    z: float
    swing: float = nan

    def distance(self, other: Place) -> float:
        """To another place, m."""
        return ((self.x - other.x) ** 2 + (self.y - other.y) ** 2 + (self.z - other.z) ** 2) ** 0.5


@dataclass(frozen=True)
class Reading:
    """One instant.

    ``mass``, ``stddev``, kg, NaN where not known; ``information``, 1/kg^2, that this instant adds on the mass, and
    ``slopes`` (k,): that times the derivatives of the mass by the machine's uncertain numbers, for one standard
    deviation of each; 0 and (0,) from an observer that does not report them. ``place``: None where it is not known.
    ``trusted``: false soon after a mass that could not be, as while a machine digs: the payload stage waits for a
    while of motion, in which a bucket may be emptied already. ``faults``: of the payload stage. ``doubted``: the force
    balance has turned out to be less exact than it was taken to be, and so have the masses before.
    """

    stamp_ns: int
    mass: float
    stddev: float
    status: PayloadStatus
    place: Place | None = None
    trusted: bool = True
    information: float = 0.0
    slopes: np.ndarray = field(default_factory=lambda: NO_SLOPES, compare=False)
    faults: Fault = NONE
    doubted: bool = False

    @property
    def held(self) -> bool:
        """Whether the payload stage does not stand for the mass, nor for that it changes."""
        return self.status in HELD

    @property
    def known(self) -> bool:
        """Whether the mass is that of what hangs there, or would be if it was trusted."""
        return (self.status in KNOWN or not self.trusted) and self.finite

    @property
    def finite(self) -> bool:
        """Whether there is a mass."""
        return isfinite(self.mass) and isfinite(self.stddev) and self.stddev > 0.0

    @property
    def measured(self) -> bool:
        """Whether this instant adds to the mass; else it is held."""
        return self.status is PayloadStatus.UPDATING or not self.trusted


def reading(state: StateEstimate | None, payload: PayloadEstimate, place: Place | None = None) -> Reading:
    """Of a payload estimate and the state it was made of; without a state nothing is known of what is common."""
    information, slopes, doubted = 0.0, NO_SLOPES, False
    trusted = Fault.NOT_TRUSTED not in payload.faults
    measured = payload.status is PayloadStatus.UPDATING or not trusted
    found = state.mass_information if state is not None and state.weighs else None
    if found is not None:
        doubted = bool((found.log_trusted < 0.0).any())
    if found is not None and measured:
        some = found.information > 0.0
        information, slopes = float(found.information[some].sum()), found.slopes[some].sum(axis=0)
    return Reading(payload.stamp_ns, payload.mass, payload.stddev, payload.status, place, trusted, information,
                   slopes, payload.faults, doubted)


def named_slopes(names: tuple[str, ...], slopes: np.ndarray, size: float) -> Mapping[str, float]:
    """Derivatives (k,) as causes of an error of standard deviation ``size``, kg, together; the sign and the proportions
    are theirs, as the payload stage may know the numbers better by now than the machine's file."""
    norm = float(np.sqrt(slopes @ slopes)) if slopes.size == len(names) else 0.0
    if size <= 0.0:
        return {}
    if not norm > 0.0 or not isfinite(norm):
        return {'': size}
    return {name: float(kg) for name, kg in zip(names, slopes * (size / norm)) if kg != 0.0}


class Whereabouts:
    """Of one machine. ``origin`` (3,), m: a point of the axis that radii are measured from, by default that of the
    swing, else the origin of the machine's frame. ``radius``, m: the last one, NaN before."""

    def __init__(self, machine: Machine, origin: tuple[float, float, float] | None = None) -> None:
        self._machine, self._frames = machine, MachineFrames(machine)
        self._swing = swing_coordinate(machine)
        self._origin = radius_origin(machine, origin)
        upright = down(machine.description)
        self._across = np.concatenate([upright == 0.0, np.zeros(3 - len(upright), dtype=bool)])
        self.reset()

    def reset(self) -> None:
        """Forget the last solution."""
        self._q: np.ndarray | None = None
        self._at: tuple[np.ndarray, Place] | None = None        # the last solution and what it is of
        self._last_ns: int | None = None
        self.radius = nan

    def place(self, state: StateEstimate) -> Place | None:
        """Where the load is; None between two looks, and where the machine cannot be so."""
        if self._last_ns is not None and 0 <= state.stamp_ns - self._last_ns < EVERY_NS:
            return None
        self._last_ns = state.stamp_ns
        if state.status is ObserverStatus.LOST:
            self._q, self._at, self.radius = None, None, nan
            return None
        entries = dict(zip(state.names, state.mean[-1].tolist()))
        z = state.mean[-1, :len(self._machine.coordinates)]
        base = {axis: entries[f'inclination/{axis}'] for axis in self._machine.inclinations}
        swung = np.array([entries.get(f'swing/{axis}', 0.0) for axis in self._machine.swings])
        moved = np.concatenate([z, [*base.values()], swung])
        if not np.isfinite(moved).all():
            return None
        if self._at is not None and not state.restart and np.abs(moved - self._at[0]).max() < STILL:
            return self._at[1]
        try:
            start = self._machine.model.start.q if state.restart or self._q is None else self._q
            self._q = self._machine.model.position(z, start)
        except MbseError:       # out of reach for the moment: the next one from the file's start
            self._q, self._at, self.radius = None, None, nan
            return None
        found = self._frames.load(self._q, base, swung).place
        self.radius = float(np.linalg.norm((found - self._origin)[self._across]))
        x, y, z = found.tolist()
        self._at = moved, Place(x, y, z, entries.get(f'position/{self._swing}', nan))
        return self._at[1]


def swing_coordinate(machine: Machine) -> str:
    """Independent coordinate that turns the machine about an upright axis on the ground; '' where there is none."""
    described = machine.description
    if described.dimension != 3:
        return ''
    upright = down(machine.description)
    for name in machine.coordinates:
        coordinate = described.coordinates.get(name)
        joint = described.joints.get(coordinate.joint if coordinate else '')
        if (joint is not None and joint.type == 'revolute' and joint.parent.body == GROUND
                and abs(float(np.dot(joint.axis, upright))) > UPRIGHT):
            return name
    return ''


def radius_origin(machine: Machine, origin: tuple[float, float, float] | None = None) -> np.ndarray:
    """A point (3,), m, of the axis that radii are measured from: ``origin``, else on the axis of the swing, else the
    origin of the machine's frame."""
    swing = swing_coordinate(machine) if origin is None else ''
    found = _swing_center(machine, swing) if swing else origin
    return np.zeros(3) if found is None else np.asarray(found, dtype=float)


def _swing_center(machine: Machine, name: str) -> tuple[float, ...]:
    """Point on the ground about which a coordinate turns the machine."""
    joint = machine.description.joints[machine.description.coordinates[name].joint]
    return tuple(item.value for item in machine.description.ground[joint.parent.point])
