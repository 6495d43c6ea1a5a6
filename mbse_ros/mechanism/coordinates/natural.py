# SPDX-License-Identifier: Apache-2.0
"""Planar natural coordinates: the positions of the points that the bodies share (Blanco-Claraco et al., factor graphs,
appendix III).

Two points of a body are its basis, at a constant distance; a third is rigidly placed by two linear rows. So all
positions are linear in q, the mass matrix is constant and the constraints are quadratic.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from ...description.basics import GROUND, PointRef
from ...description.model import Body, MechanismDescription
from ...errors import DescriptionError
from ..values import Values
from .joint_rows import joint_rows
from .kinematics import BodyFrame, Kinematics, cross2, ground_frame

TINY = 1e-9     # m; points nearer to each other than this are one


def natural(description: MechanismDescription, values: Values) -> Kinematics:
    """Kinematics in natural coordinates; raises DescriptionError for a spatial mechanism."""
    if description.dimension != 2:
        raise DescriptionError(description.file, 'coordinates', 'natural',
                               'reference_point or relative: natural coordinates are for a plane')
    kinematics = Kinematics(description, values)
    kinematics.frames[GROUND] = ground_frame(2)
    classes = shared_points(description)
    _ground_points(kinematics, classes)
    for body in description.bodies.values():
        _body(kinematics, body, classes)
    for joint in description.joints.values():
        if joint.type != 'revolute':
            joint_rows(kinematics, joint)
    return kinematics


def shared_points(description: MechanismDescription) -> dict[str, frozenset[PointRef]]:
    """Points that revolute joints hold together, by each ``body.point``."""
    classes: dict[str, frozenset[PointRef]] = {}
    for joint in description.joints.values():
        if joint.type == 'revolute':
            ends = [classes.get(str(point), frozenset([point])) for point in (joint.parent, joint.child)]
            union = ends[0] | ends[1]
            classes.update((str(point), union) for point in union)
    return classes


def _ground_points(kinematics: Kinematics, classes: dict[str, frozenset[PointRef]]) -> None:
    """Points that are held by the ground are numbers; raises DescriptionError for two places of one point."""
    for name in kinematics.description.ground:
        ground = PointRef(GROUND, name)
        place = kinematics.local(ground)
        for point in classes.get(str(ground), frozenset([ground])):
            known = kinematics.world.setdefault(str(point), place)
            if _number(kinematics, ca.norm_2(known - place)) > TINY:
                raise DescriptionError(kinematics.description.file, 'joints', str(point),
                                       'joints that hold it at one point of the ground')


def _body(kinematics: Kinematics, body: Body, classes: dict[str, frozenset[PointRef]]) -> None:
    """Coordinates, frame and rigidity of one body."""
    first, second = _basis(kinematics, body, classes)
    a = _point(kinematics, body, first, classes)
    b = _axis_point(kinematics, body) if second is None else _point(kinematics, body, second, classes)
    local_a = kinematics.values.vector(body.points[first])
    offset = ca.SX([1.0, 0.0]) if second is None else kinematics.values.vector(body.points[second]) - local_a
    # On the x axis the length is the number itself: no root of a square in the equations.
    aligned = bool(offset[1].is_zero()) and bool(_number(kinematics, offset[0]) > 0)
    length = offset[0] if aligned else ca.sqrt(ca.sumsqr(offset))
    unit, axis = (b - a) / length, offset / length
    cosine = unit[0] * axis[0] + unit[1] * axis[1]
    sine = unit[1] * axis[0] - unit[0] * axis[1]
    rotation = ca.horzcat(ca.vertcat(cosine, sine), ca.vertcat(-sine, cosine))
    spin = kinematics.velocity_of(b - a)
    omega = cross2(b - a, spin) / ca.sumsqr(b - a)
    kinematics.frames[body.name] = BodyFrame(a - rotation @ local_a, rotation, omega)
    kinematics.natural[body.name] = unit
    fixed = ca.SX(b - a).is_constant()          # both points to the ground: there is nothing to hold, at its length
    if not fixed or abs(_number(kinematics, ca.norm_2(b - a) - length)) >= TINY:
        kinematics.row(f'{body.name}.length', body.name, ca.sumsqr(b - a) - length ** 2, (body.name,))
    for name in body.points:
        point = PointRef(body.name, name)
        if name not in (first, second) and str(point) in classes:
            world = _point(kinematics, body, name, classes)
            placed = kinematics.frames[body.name].at(kinematics.values.vector(body.points[name]))
            for k in range(2):
                kinematics.row(f'{body.name}.{name}.{"xy"[k]}', body.name, world[k] - placed[k], (body.name,))


def _basis(kinematics: Kinematics, body: Body, classes: dict[str, frozenset[PointRef]]) -> tuple[str, str | None]:
    """The two points that carry the body: shared ones first, as far apart as there are; None: it has but one place."""
    names = sorted(body.points, key=lambda name: f'{body.name}.{name}' not in classes)
    first = names[0]
    place = {name: np.array([item.value for item in body.points[name]]) for name in names}
    away = {name: float(np.linalg.norm(place[name] - place[first])) for name in names}
    far = [name for name in names if away[name] > TINY]
    shared = [name for name in far if f'{body.name}.{name}' in classes]
    return first, max(shared or far, key=away.__getitem__, default=None)


def _point(kinematics: Kinematics, body: Body, name: str, classes: dict[str, frozenset[PointRef]]) -> ca.SX:
    """Position of a body's point as coordinates, made at the first body that has it."""
    point = PointRef(body.name, name)
    known = kinematics.world.get(str(point))
    if known is not None:
        return known
    guess = np.array(body.position) + np.array(body.rotation) @ [item.value for item in body.points[name]]
    members = classes.get(str(point), frozenset([point]))
    label = name if len(members) > 1 else str(point)
    label = str(point) if f'{label}.x' in kinematics.names else label
    world = ca.vertcat(*(kinematics.coordinate(f'{label}.{"xy"[k]}', guess[k]) for k in range(2)))
    kinematics.world.update((str(member), world) for member in members)
    return world


def _axis_point(kinematics: Kinematics, body: Body) -> ca.SX:
    """A second point, 1 m along its x axis, for a body whose points lie on one place (a block on a pin)."""
    name = next(iter(body.points))
    local = np.array([item.value for item in body.points[name]])
    guess = np.array(body.position) + np.array(body.rotation) @ (local + [1.0, 0.0])
    return ca.vertcat(*(kinematics.coordinate(f'{body.name}.axis.{"xy"[k]}', guess[k]) for k in range(2)))


def _number(kinematics: Kinematics, expression: ca.SX) -> float:
    """Nominal value of an expression of the parameters."""
    return float(ca.Function('number', [kinematics.values.symbol], [expression])(kinematics.values.mean))
