# SPDX-License-Identifier: Apache-2.0
"""What every choice of coordinates gives: frames of the bodies and constraint rows as functions of ``q``."""

from __future__ import annotations

from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from ...description.basics import GROUND, PointRef
from ...description.model import MechanismDescription
from ..values import Values


@dataclass(frozen=True)
class BodyFrame:
    """Pose of a body: ``origin`` (d,) m and ``rotation`` (d, d) in the machine frame; ``omega`` rad/s, a scalar in a
    plane, in space (3,) along the body's axes. ``angle`` is the absolute angle over full turns where the coordinates
    know it (planar reference-point and relative), else None."""

    origin: ca.SX
    rotation: ca.SX
    omega: ca.SX
    angle: ca.SX | None = None

    def at(self, local: ca.SX) -> ca.SX:
        """Position of a point of the body, m."""
        return self.origin + self.rotation @ local


@dataclass(frozen=True)
class ConstraintRow:
    """One constraint ``expression = 0``; ``owner``: the joint, body or driver that it belongs to."""

    name: str
    owner: str
    expression: ca.SX
    bodies: tuple[str, ...] = ()


@dataclass
class Kinematics:
    """Coordinates, frames and constraints while a system is put together.

    ``natural``: by body the direction whose derivative is the angular velocity (constant mass matrix), natural
    coordinates only. ``world``: positions of points that are coordinates themselves. ``joints``: for joints that the
    coordinates know, their own coordinate (angle or displacement). ``tree``: by body of a tree of joints the body
    before it, and its rotation and origin in the frame of that. ``rates``: constraints on velocities alone.
    """

    description: MechanismDescription
    values: Values
    q: list[ca.SX] = field(default_factory=list)
    qd: list[ca.SX] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    start: list[float] = field(default_factory=list)
    frames: dict[str, BodyFrame] = field(default_factory=dict)
    rows: list[ConstraintRow] = field(default_factory=list)
    rates: list[ConstraintRow] = field(default_factory=list)
    sides: list[ca.SX] = field(default_factory=list)
    natural: dict[str, ca.SX] = field(default_factory=dict)
    world: dict[str, ca.SX] = field(default_factory=dict)
    joints: dict[str, ca.SX] = field(default_factory=dict)
    tree: dict[str, tuple[str, ca.SX, ca.SX]] = field(default_factory=dict)

    def coordinate(self, name: str, start: float) -> ca.SX:
        """A new coordinate; its velocity is made with it. One that had its name before is called after its joint."""
        self.release(name)
        self.q.append(ca.SX.sym(name))
        self.qd.append(ca.SX.sym(f'{name}_dot'))
        self.names.append(name)
        self.start.append(float(start))
        return self.q[-1]

    def release(self, name: str) -> None:
        """Give up a name: a coordinate of a joint steps back behind a named one."""
        if name in self.names:
            self.names[self.names.index(name)] = f'{name}.joint'

    def local(self, point: PointRef) -> ca.SX:
        """Coordinates of a point in the frame of its body; the ground's are in the machine frame."""
        ground = point.body == GROUND
        points = self.description.ground if ground else self.description.bodies[point.body].points
        return self.values.vector(points[point.point])

    def point(self, point: PointRef) -> ca.SX:
        """Position of a point in the machine frame, m."""
        known = self.world.get(str(point))
        return self.frames[point.body].at(self.local(point)) if known is None else known

    def poses(self, one: str, other: str) -> tuple[tuple[ca.SX, ca.SX], tuple[ca.SX, ca.SX]]:
        """Rotation and origin of two bodies, both in the frame of the body next to them in the tree, or of the machine.

        What two bodies have to do with each other then holds no joint below both: loops stay apart from each other.
        """
        if not {one, other} <= {GROUND, *self.tree}:
            here, there = self.frames[one], self.frames[other]
            return (here.rotation, here.origin), (there.rotation, there.origin)
        chains = [self._chain(name) for name in (one, other)]
        shared = next(name for name in chains[0] if name in chains[1])
        return self._pose_in(shared, chains[0]), self._pose_in(shared, chains[1])

    def between(self, one: PointRef, other: PointRef) -> ca.SX:
        """Vector from one point to another, m, in the frame of ``poses``."""
        if {str(one), str(other)} & self.world.keys():
            return self.point(other) - self.point(one)
        (R, r), (S, s) = self.poses(one.body, other.body)
        return s + S @ self.local(other) - r - R @ self.local(one)

    def _chain(self, body: str) -> list[str]:
        """A body and those before it, down to the ground."""
        chain = [body]
        while chain[-1] != GROUND:
            chain.append(self.tree[chain[-1]][0])
        return chain

    def _pose_in(self, shared: str, chain: list[str]) -> tuple[ca.SX, ca.SX]:
        """Rotation and origin of the first body of a chain in the frame of one of its bodies."""
        size = self.description.dimension
        R, r = ca.SX.eye(size), ca.SX.zeros(size)
        for name in chain[:chain.index(shared)]:
            _, turn, origin = self.tree[name]
            R, r = turn @ R, origin + turn @ r
        return R, r

    def row(self, name: str, owner: str, expression: ca.SX, bodies: tuple[str, ...] = ()) -> None:
        """A new constraint."""
        self.rows.append(ConstraintRow(name, owner, expression, bodies))

    def side(self, expression: ca.SX) -> None:
        """An expression that is positive on the side that is meant of a row with a second solution (turned by 180
        degrees, or of the other sign)."""
        self.sides.append(expression)

    def velocity_of(self, expression: ca.SX) -> ca.SX:
        """Time derivative along the motion."""
        return ca.jtimes(expression, ca.vertcat(*self.q), ca.vertcat(*self.qd)) if self.q else 0 * expression

    def at_start(self, *expressions: ca.SX) -> list[np.ndarray]:
        """Numbers of expressions at the guess of the start and the nominal parameters."""
        function = ca.Function('start', [ca.vertcat(*self.q), self.values.symbol], list(expressions))
        return [result.full() for result in function.call([ca.DM(self.start), ca.DM(self.values.mean)])]


def ground_frame(dimension: int) -> BodyFrame:
    """The machine frame."""
    omega = ca.SX(0) if dimension == 2 else ca.SX.zeros(3)
    return BodyFrame(ca.SX.zeros(dimension), ca.SX.eye(dimension), omega, ca.SX(0) if dimension == 2 else None)


def cross2(a: ca.SX, b: ca.SX) -> ca.SX:
    """z component of the product of two planar vectors."""
    return a[0] * b[1] - a[1] * b[0]


def wrapped(angle: float) -> float:
    """The angle within half a turn of zero, rad."""
    return float(np.arctan2(np.sin(angle), np.cos(angle)))
