# SPDX-License-Identifier: Apache-2.0
"""Links of a robot that fixed joints tie to another one: one rigid body with it, in the frame of that body."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ..basics import PointRef

ORIGIN = 'origin'
Pose = tuple[np.ndarray, np.ndarray]        # position (3,), m, and rotation (3, 3)
STILL: Pose = (np.zeros(3), np.eye(3))


@dataclass(frozen=True)
class Inertial:
    """Mass, kg, centre of mass (3,), m, and tensor about it (3, 3), kg m2, along the axes of one frame."""

    mass: float = 0.0
    centre: np.ndarray = field(default_factory=lambda: np.zeros(3))
    tensor: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))

    def moved(self, pose: Pose) -> Inertial:
        """The same in a frame in which the old one is at ``pose``."""
        place, turned = pose
        return Inertial(self.mass, place + turned @ self.centre, turned @ self.tensor @ turned.T)


@dataclass(frozen=True)
class Seat:
    """Where a link is: ``pose`` of its frame in that of body ``owner`` (its own name, or the ground)."""

    owner: str
    pose: Pose = STILL
    hung: str = ''      # the fixed joint by which it is part of the owner


def chained(first: Pose, second: Pose) -> Pose:
    """Pose of a frame that has pose ``second`` in the frame at ``first``."""
    return first[0] + first[1] @ second[0], first[1] @ second[1]


def total(parts: Iterable[Inertial]) -> Inertial:
    """Mass properties of bodies in one frame that are one: the tensor about the common centre of mass (Steiner)."""
    parts = list(parts)
    if len(parts) == 1:
        return parts[0]
    mass = math.fsum(part.mass for part in parts)
    if mass == 0.0:
        return Inertial(0.0, parts[0].centre, sum((part.tensor for part in parts), np.zeros((3, 3))))
    centre = sum((part.mass * part.centre for part in parts), np.zeros(3)) / mass
    tensor = np.zeros((3, 3))
    for part in parts:
        off = part.centre - centre
        tensor += part.tensor + part.mass * (off @ off * np.eye(3) - np.outer(off, off))
    return Inertial(mass, centre, tensor)


def aliases(seats: Mapping[str, Seat], ends: Mapping[str, tuple[str, str]]) -> dict[str, dict[str, PointRef]]:
    """Points of the links that are part of another body, by link: where they are now."""
    found = {link: {ORIGIN: PointRef(seat.owner, seat.hung)} for link, seat in seats.items() if seat.hung}
    for name, (parent, _) in ends.items():
        if parent in found:
            found[parent][name] = PointRef(seats[parent].owner, name)
    return found
