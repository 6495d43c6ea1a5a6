# SPDX-License-Identifier: Apache-2.0
"""From a model and its coordinates to what the report draws of it."""

from __future__ import annotations

from dataclasses import replace
from os.path import commonprefix

import casadi as ca
import numpy as np
from scipy.spatial import ConvexHull, QhullError

from ...description.basics import GROUND, PointRef
from ...description.model import Body, Coordinate, Driver, Force, Joint, Spring
from ...dynamics.model import Model
from ...report.linkage import Link, Linkage, Part

_ORIGIN, _CENTER = ' origin', ' center'      # beside the points of a body; no name in a file starts with a blank


class Picture:
    """Draws a model: ``at(q)`` gives the linkage in a pose."""

    def __init__(self, model: Model) -> None:
        self.model = model
        system, d = model.system, model.description
        self._places = dict(system.points)
        for name, body in d.bodies.items():
            self._places[f'{name}.{_CENTER}'] = system.frames[name].at(_center(model, body))
            self._places[f'{name}.{_ORIGIN}'] = system.frames[name].origin
        rotations = ca.horzcat(*(system.frames[name].rotation for name in d.bodies))
        self._function = ca.Function('picture', [system.q, system.values.symbol],
                                     [ca.horzcat(*self._places.values()), rotations])
        self._anchors = self._held()
        self._outlines = {name: _outline(body) for name, body in d.bodies.items()}

    def at(self, q: np.ndarray) -> Linkage:
        """The linkage at coordinates (n,)."""
        places, rotations = (result.full() for result in self._function(q, self.model.parameters))
        d = self.model.description
        points = dict(zip(self._places, places.T))
        frames = dict(zip(d.bodies, np.split(rotations, max(1, len(d.bodies)), axis=1)))
        frames[GROUND] = np.eye(d.dimension)
        parts = [self._part(name, points) for name in d.bodies]
        joints = [_link(joint, points, frames) for joint in d.joints.values()]
        elements = [self._spring(spring, points) for spring in d.springs.values() if spring.stiffness.value]
        elements += self._actuators(points)
        gravity = np.array([item.value for item in d.gravity])
        anchors = [points[place] for place in self._anchors]
        return Linkage(d.name, parts, _once(joints), [e for e in elements if e is not None], anchors, gravity)

    def _held(self) -> list[str]:
        """Points of the ground that carry a spring or an actuator, and no pin."""
        d = self.model.description
        pairs: list[tuple[PointRef, ...]] = [spring.points for spring in d.springs.values() if spring.points]
        pairs += [item.points for item in d.coordinates.values() if item.kind in ('distance', 'piston')]
        pinned = {str(end) for joint in d.joints.values() for end in (joint.parent, joint.child)}
        found = dict.fromkeys(str(point) for pair in pairs for point in pair if point.body == GROUND)
        return [place for place in found if place not in pinned]

    def _part(self, name: str, points: dict[str, np.ndarray]) -> Part:
        names, closed = self._outlines[name]
        return Part(name, np.array([points[f'{name}.{point}'] for point in names]), points[f'{name}.{_CENTER}'], closed)

    def _spring(self, spring: Spring, points: dict[str, np.ndarray]) -> Link | None:
        """Between its points, or where its coordinate is."""
        if spring.points:
            start, end = (points[str(point)] for point in spring.points)
            return Link(spring.name, 'spring', start, end)
        coordinate = self.model.description.coordinates[spring.coordinate]
        ends = self._ends(coordinate)
        if ends is None:
            return None
        joint = self.model.description.joints.get(coordinate.joint)
        straight = coordinate.kind == 'distance' or (
            joint is not None and joint.type in ('prismatic', 'slot', 'cylindrical'))
        return Link(spring.name, 'spring' if straight else 'coil', points[ends[0]], points[ends[straight]])

    def _actuators(self, points: dict[str, np.ndarray]) -> list[Link]:
        """Cylinders: those of a machine, and distances on which an input or a driver acts."""
        d = self.model.description
        found = [Link(item.name, 'actuator', points[str(item.base)], points[str(item.rod_eye)])
                 for item in d.cylinders.values()]
        acting: list[Force | Driver] = [*d.forces.values(), *d.drivers.values()]
        for name in dict.fromkeys(item.coordinate for item in acting if item.coordinate):
            coordinate = d.coordinates[name]
            if coordinate.kind == 'distance':
                start, end = (points[str(point)] for point in coordinate.points)
                found.append(Link(name, 'actuator', start, end))
        return found

    def _ends(self, coordinate: Coordinate) -> tuple[str, str] | None:
        """Points between which the coordinate is measured; for an angle, the joint of its bodies."""
        d = self.model.description
        if coordinate.kind == 'distance':
            return str(coordinate.points[0]), str(coordinate.points[1])
        bodies = {*coordinate.bodies} if len(coordinate.bodies) == 2 else {*coordinate.bodies, GROUND}
        for joint in d.joints.values():
            if joint.name == coordinate.joint or {joint.parent.body, joint.child.body} == bodies:
                return str(joint.parent), str(joint.child)
        shared = _shared(d.joints, bodies)
        return None if shared is None else (str(shared), str(shared))


def _shared(joints: dict[str, Joint], bodies: set[str]) -> PointRef | None:
    """The point of a third body on which both bodies are hung."""
    held: dict[PointRef, set[str]] = {}
    for joint in joints.values():
        held.setdefault(joint.parent, {joint.parent.body}).add(joint.child.body)
    return next((point for point, members in held.items() if bodies <= members), None)


def _link(joint: Joint, points: dict[str, np.ndarray], frames: dict[str, np.ndarray]) -> Link:
    axis = frames[joint.parent.body] @ np.array(joint.axis) if joint.axis else None
    return Link(joint.name, joint.type, points[str(joint.parent)], points[str(joint.child)], axis,
                GROUND in (joint.parent.body, joint.child.body))


def _once(joints: list[Link]) -> list[Link]:
    """Pins that lie on each other, as where three bars meet, are drawn once."""
    pins: dict[tuple[object, ...], list[Link]] = {}
    for joint in joints:
        key = (*np.round(joint.start, 9),) if joint.kind == 'revolute' else (joint.name,)
        pins.setdefault(key, []).append(joint)
    return [group[0] if len(group) == 1 else replace(group[0], name=_common(group)) for group in pins.values()]


def _common(joints: list[Link]) -> str:
    """What the names of joints begin with: those of one shared point are named point_body."""
    start = commonprefix([joint.name for joint in joints]).rpartition('_')[0]
    return start or joints[0].name


def _center(model: Model, body: Body) -> ca.SX:
    """Centre of mass in the body's frame."""
    if not body.uniform:
        return model.system.values.vector(body.center_of_mass)
    first, second = (model.system.values.vector(point) for point in list(body.points.values())[:2])
    return (first + second) / 2


def _outline(body: Body) -> tuple[tuple[str, ...], bool]:
    """Names of points to draw the body by, and whether they go round an area."""
    names = tuple(body.points)
    if body.outline and body.outline != names:
        return body.outline, len(body.outline) > 3 and body.outline[0] == body.outline[-1]
    if len(names) < 3:
        return names, False
    places = np.array([[item.value for item in vector] for vector in body.points.values()])
    if places.shape[1] == 3:
        return (*names, names[0]), True
    try:
        around = [names[i] for i in ConvexHull(places).vertices]
    except QhullError:             # all on one line
        order = np.argsort(places @ (places[-1] - places[0]))
        return tuple(names[i] for i in order), False
    return (*around, around[0]), True
