# SPDX-License-Identifier: Apache-2.0
"""What the file has named so far, and the questions a later section asks of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..basics import GROUND, PointRef, Scalar, Vector
from ..model import Body, Coordinate, Joint
from .entry import Entry
from .quantity import ValueKind
from .scalar import Numbers


@dataclass
class References:
    """Names of the mechanism while it is read.

    ``sketch`` holds the points of the section `points` (a plane's joints of the sketch, or the ground's points):
    fixed points and guesses; ``fixed`` names those that belong to the ground. ``aliases``: by links of a URDF that are
    part of another body, where their points are.
    """

    dimension: int
    numbers: Numbers
    sketch: dict[str, Vector] = field(default_factory=dict)
    ground: dict[str, Vector] = field(default_factory=dict)
    bodies: dict[str, Body] = field(default_factory=dict)
    joints: dict[str, Joint] = field(default_factory=dict)
    coordinates: dict[str, Coordinate] = field(default_factory=dict)
    aliases: dict[str, dict[str, PointRef]] = field(default_factory=dict)

    @property
    def planar(self) -> bool:
        """Whether the mechanism lies in a plane."""
        return self.dimension == 2

    def body(self, entry: Entry) -> str:
        """Name of a body."""
        return entry.choice(self.bodies, 'a body')

    def coordinate(self, entry: Entry) -> Coordinate:
        """A named coordinate, a cylinder, or a joint with one coordinate, which gets one of its name."""
        name = entry.choice(self.known_coordinates(), 'a coordinate of `named`, a cylinder or a joint')
        if name not in self.coordinates:
            self.coordinates[name] = joint_coordinate(name, self.joints[name], self.planar)
        return self.coordinates[name]

    def known_coordinates(self) -> list[str]:
        """Names that ``coordinate`` takes."""
        single = [name for name, joint in self.joints.items() if joint.type in ('revolute', 'prismatic')]
        return list(dict.fromkeys([*self.coordinates, *single]))

    def point(self, entry: Entry, on_body: bool = False) -> PointRef:
        """A point: a name of `points`, 'body.point' or 'ground.point'; DescriptionError lists the known ones. Where
        errors are collected, a point of no body after one."""
        return entry.tried(lambda: self._point(entry, on_body), PointRef(entry.key, ''))

    def _point(self, entry: Entry, on_body: bool) -> PointRef:
        what = "a point of `points`, 'body.point' or 'ground.point'"
        body, dot, point = entry.text(what).partition('.')
        ref = self._dotted(entry, body, point) if dot else self._shared(entry, body)
        if on_body and ref.body == GROUND:
            raise entry.error('a point of a body, this one is fixed to the ground')
        return ref

    def two_points(self, entry: Entry) -> tuple[PointRef, PointRef]:
        """Two points whose distance can change."""
        one, two = (self.point(item) for item in entry.items('two points', 2))
        if one.body == two.body or self.same_place(one, two):
            raise entry.error('two points whose distance can change')
        return one, two

    def same_place(self, one: PointRef, two: PointRef) -> bool:
        """Whether two references always mean one place: the same point, or bodies that share a point of the sketch."""
        return one == two or (self.planar and one.point == two.point and one.point in self.sketch)

    def _dotted(self, entry: Entry, body: str, point: str) -> PointRef:
        owners: dict[str, Iterable[str]] = {
            GROUND: self.ground, **{name: item.points for name, item in self.bodies.items()}, **self.aliases}
        entry.choice(owners, 'a point of the ground or of one of the bodies', body)
        entry.choice(owners[body], f'a point of {body}', point)
        return self.aliases[body][point] if body in self.aliases else PointRef(body, point)

    def _shared(self, entry: Entry, point: str) -> PointRef:
        if point in self.ground:
            return PointRef(GROUND, point)
        owner = next((name for name, body in self.bodies.items() if point in body.points), '')
        known = [*self.ground, *(name if name in self.sketch else f'{body}.{name}'
                                 for body, item in self.bodies.items() for name in item.points)]
        entry.choice(dict.fromkeys(known), "a point of `points`, 'body.point' or 'ground.point'")
        return PointRef(owner, point)


def unit_of(coordinate: Coordinate, joints: dict[str, Joint]) -> str:
    """'rad' or 'm'."""
    turning = coordinate.kind == 'angle' or (coordinate.kind == 'joint'
                                             and joints[coordinate.joint].type == 'revolute')
    return 'rad' if turning else 'm'


def joint_coordinate(name: str, joint: Joint, planar: bool) -> Coordinate:
    """Angle or displacement of a joint; that of a planar revolute joint is an angle between bodies."""
    if planar and joint.type == 'revolute':
        return Coordinate(name, 'angle', tuple(ref.body for ref in (joint.parent, joint.child) if ref.body != GROUND))
    return Coordinate(name, 'joint', joint=joint.name)


def read_sketch(entry: Entry, references: References) -> None:
    """The section `points`: {fixed: [..]} belongs to the ground; in a plane [x, y] is the guess of a joint."""
    for name, item in entry.named('points').items():
        with item.kept():
            if name == GROUND:
                raise item.error("another name, 'ground' is the ground", name)
            if isinstance(item.value, dict):
                place = item.mapping(['fixed'])['fixed']
                references.ground[name] = references.numbers.vector(place, ValueKind('m'), references.dimension)
                references.sketch[name] = references.ground[name]
            elif not references.planar:
                raise item.error('{fixed: [x, y, z]}, a point of the ground; a body in space gives its own points')
            else:
                references.sketch[name] = references.numbers.texts(item, ValueKind('m'), 2)


def nominal(vector: tuple[Scalar, ...]) -> tuple[float, ...]:
    """Values of the scalars."""
    return tuple(item.value for item in vector)
