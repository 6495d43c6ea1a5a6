# SPDX-License-Identifier: Apache-2.0
"""Where the load is, out of states: its place, the angle of the swing, the radius that load charts are about."""

from __future__ import annotations

from math import nan

import numpy as np

from ..description.basics import GROUND
from ..errors import MbseError
from ..machine import Machine
from ..machine.frames import MachineFrames
from ..machine.hanging import down
from ..streams.records import ObserverStatus, StateEstimate
from .reading import Place

EVERY_NS = 200_000_000      # between two solutions of the position problem: a load is not faster than that matters
STILL = 1e-3                # m and rad, by which coordinates may change until the load has moved
UPRIGHT = 0.99              # cosine between the axis of a swing and gravity


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
