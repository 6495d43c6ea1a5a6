# SPDX-License-Identifier: Apache-2.0
"""The plane in which cylinders move the links of a URDF: its directions in every frame, and the lines of pins.

A machine works in a plane that stands upright. Seen with the tool ahead, a frame's ``basis`` is x along the line of its
pins (first joint to the next one, or to the tool), y to the left, z up from this line: as tape measures are read.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from ...errors import DescriptionError
from .chain import ChainBody, RobotChain

UP = np.array([0.0, 0.0, 1.0])
LEVEL, ALIGNED = 0.05, 0.02     # of unit vectors: an axis counts as level, as parallel
SHORTEST = 0.05                 # m between two pins of a body that are a line


@dataclass(frozen=True)
class PlanarFrame:
    """A frame in the plane: ``basis`` (3, 3), columns x, y, z in the frame of the link; ``origin`` (3,) there, m, where
    the line begins; its ``length``, m."""

    basis: np.ndarray
    origin: np.ndarray
    length: float

    def point(self, x: float, z: float) -> np.ndarray:
        """(3,) in the frame of the link, of a place in the plane, m."""
        return self.origin + self.basis @ np.array([x, 0.0, z])

    def planar(self, point: np.ndarray) -> tuple[float, float]:
        """Place in the plane of a point of the link, m."""
        x, _, z = self.basis.T @ (point - self.origin)
        return float(x), float(z)

    def spread(self, stddev: tuple[float, float]) -> np.ndarray:
        """(3,) standard deviations in the frame of the link, of those along x and z."""
        return np.sqrt((self.basis[:, [0, 2]] ** 2) @ np.array(stddev) ** 2)


def level(chain: RobotChain, count: int) -> bool:
    """Whether the axis of body ``count`` is level and turns, in the middle of all joints."""
    body = chain.bodies[count]
    axis = chain.at(count)[1] @ body.axis
    return not body.slides and abs(axis[2]) < LEVEL


def upright(chain: RobotChain, count: int) -> bool:
    """Whether it turns about an axis that stands upright."""
    body = chain.bodies[count]
    return not body.slides and abs((chain.at(count)[1] @ body.axis)[2]) > 1.0 - LEVEL


def end_of(chain: RobotChain, count: int) -> np.ndarray:
    """(3,) in the frame of body ``count``, m: its last pin, that of the next joint, or the tool; of a telescope's outer
    part that of the inner one, retracted."""
    if count == len(chain.bodies) - 1:
        return chain.tip[0]
    after = chain.bodies[count + 1]
    if not after.slides:
        return after.place
    low, high = after.joint.limits or (0.0, 0.0)
    inner = after.turned @ end_of(chain, count + 1)
    return after.place + after.axis * (low if outwards(chain, count + 1) > 0 else high) + inner


def outwards(chain: RobotChain, count: int) -> int:
    """1 where a prismatic joint takes the tool away from the body before with growing values, else -1."""
    body = chain.bodies[count]
    away = body.place + body.turned @ end_of(chain, count)
    return 1 if away @ body.axis >= 0.0 else -1


class WorkPlane:
    """The plane of the bodies whose joints ``moved`` by cylinders name; raises DescriptionError where there is none."""

    def __init__(self, chain: RobotChain, moved: Collection[str], file: str) -> None:
        self.chain = chain
        self.counts = [k for k, body in enumerate(chain.bodies) if body.joint.name in moved]
        first, last = self.counts[0], self.counts[-1]
        for k in range(first, last + 1):
            body = chain.bodies[k]
            if k not in self.counts:
                raise DescriptionError(file, body.joint.name, 'between joints that cylinders move', 'cylinder, '
                                       'linkage, or still: joints of other kinds are before the first of these, or '
                                       'after the last')
        turning = [k for k in self.counts if not chain.bodies[k].slides]
        if not turning:
            raise DescriptionError(file, chain.bodies[first].joint.name, 'a prismatic joint alone', 'a joint that '
                                   'turns and is moved by a cylinder, as well')
        axes = {k: chain.at(k)[1] @ chain.bodies[k].axis for k in self.counts}
        main = axes[turning[0]]
        for k in self.counts:
            off = abs(axes[k] @ main) if chain.bodies[k].slides else np.linalg.norm(np.cross(axes[k], main))
            if abs(main[2]) > LEVEL or off > ALIGNED:
                axis = ' '.join(f'{item:.3g}' for item in axes[k])
                raise DescriptionError(file, chain.bodies[k].joint.name, f'an axis along {axis} of the root', 'sensor, '
                                       'still or drive: cylinders move joints whose axes are level and parallel'
                                       + ', and prismatic ones across them' * chain.bodies[k].slides)
        self.normal = self._normal(main, first)
        self.forward = np.cross(UP, self.normal)
        self.forward /= np.linalg.norm(self.forward)

    def _normal(self, axis: np.ndarray, first: int) -> np.ndarray:
        """(3,) level, to the right of a machine whose tool is ahead, in the frame of the root."""
        chain = self.chain
        foot, turned = chain.at(first + 1)
        count = len(chain.bodies)
        pose = chain.at(count)
        away = pose[0] + pose[1] @ chain.tip[0] - foot
        normal = axis / np.linalg.norm(axis)
        side = float(np.cross(UP, normal) @ away)
        return normal if side > 0.0 or (side == 0.0 and normal[1] < 0.0) else -normal

    def frame(self, count: int) -> PlanarFrame:
        """Of a body that a cylinder moves."""
        chain = self.chain
        y = -(chain.at(count + 1)[1].T @ self.normal)
        end = end_of(chain, count)
        along = end - (end @ y) * y
        length = float(np.linalg.norm(along))
        x = along / length if length > 1e-9 else _across(y)
        return PlanarFrame(np.column_stack([x, y, np.cross(x, y)]), np.zeros(3), length)

    def foot(self, count: int) -> PlanarFrame:
        """Of the body before the first that a cylinder moves, from the pin of this one: x ahead, z up."""
        turned = self.chain.at(count)[1].T
        return PlanarFrame(np.column_stack([turned @ self.forward, -(turned @ self.normal), turned @ UP]),
                           self.chain.bodies[count].place, 0.0)

    def before(self, count: int) -> PlanarFrame:
        """Of the parent of a body, in the plane of the pin of the body."""
        if count - 1 not in self.counts:
            return self.foot(count)
        frame, place = self.frame(count - 1), self.chain.bodies[count].place
        y = frame.basis[:, 1]
        return PlanarFrame(frame.basis, (place @ y) * y, frame.length)

    def angle(self, count: int) -> tuple[float, int]:
        """Angle of a body's line against that of its parent at 0 of the joint, rad, and whether it grows with the joint
        (1) or falls (-1); 0 of one that slides."""
        body: ChainBody = self.chain.bodies[count]
        before, x = self.before(count).basis, body.turned @ self.frame(count).basis[:, 0]
        sense = 0 if body.slides else int(np.sign(-body.axis @ before[:, 1]))
        return float(np.arctan2(x @ before[:, 2], x @ before[:, 0])), sense


def _across(y: np.ndarray) -> np.ndarray:
    """Some direction across another."""
    x = np.cross(y, UP if abs(y[2]) < 0.9 else np.array([1.0, 0.0, 0.0]))
    return x / np.linalg.norm(x)
