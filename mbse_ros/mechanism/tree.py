# SPDX-License-Identifier: Apache-2.0
"""The tree of a system in relative coordinates: its bodies, each with the velocity that its joint adds (Pyrhönen et
al., mass estimation, Eq. 1)."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from ..description.basics import GROUND
from ..description.model import Body, Joint
from ..errors import SettingError
from .inertia import center_of_mass, inertia
from .recursive import OpenTree
from .spatial import Inertia, Twist
from .system import MechanismSystem

NEEDED = 'a system in relative coordinates (coordinates: relative), for the semi-recursive form'
_COORDINATES = {'fixed': 0, 'revolute': 1, 'prismatic': 1, 'slot': 2, 'cylindrical': 2, 'universal': 2, 'spherical': 4}


@dataclass(frozen=True)
class TreeBody:
    """One body of the tree, after the body that it hangs on.

    ``columns`` (k,): what one unit of each of the coordinates ``places`` (k,) in q adds to the velocity of the body
    it hangs on (the columns of R_d, Pyrhönen et al., mass estimation, Eq. 1); ``fixed_in`` (k,): the body in which that
    column stands still.
    """

    body: str
    hangs_on: str
    places: tuple[int, ...] = ()
    columns: tuple[Twist, ...] = ()
    fixed_in: tuple[str, ...] = ()


def tree(system: MechanismSystem) -> list[TreeBody]:
    """Bodies in the order in which relative coordinates reach them; joints that are not in it are cut.

    Raises SettingError for a system in other coordinates.
    """
    reached, place, steps = [GROUND], 0, []
    for name in system.frames:
        if name == GROUND:
            continue
        joints = [joint for joint in system.description.joints.values() if joint.type in _COORDINATES
                  and name in (ends := (joint.parent.body, joint.child.body)) and {*ends} & {*reached}]
        joint = min(joints, key=lambda joint: _COORDINATES[joint.type], default=None)
        _check(system, place, _width(system, joint), joint.name if joint else name)
        steps.append(_joined(system, name, joint, place) if joint else _free(system, name, place))
        reached.append(name)
        place += len(steps[-1].places)
    if not set(system.names[place:]) <= set(system.description.coordinates):
        raise SettingError('coordinates', list(system.names), NEEDED)
    return steps


def _width(system: MechanismSystem, joint: Joint | None) -> int:
    """Number of coordinates of a joint or of a free body."""
    free = 3 if system.description.dimension == 2 else 7
    return _COORDINATES[joint.type] if joint else free


def _check(system: MechanismSystem, place: int, count: int, owner: str) -> None:
    """The symbols of the coordinates carry the name of the joint or free body, whatever they are called now."""
    owners = {system.q[k].name().partition('.')[0] for k in range(place, min(place + count, system.n))}
    if owners - {owner} or place + count > system.n:
        raise SettingError('coordinates', list(system.names), NEEDED)


def body_inertia(system: MechanismSystem, body: Body) -> Inertia:
    """Mass, first and second moments about the machine's origin along its axes."""
    frame, mass = system.frames[body.name], ca.SX(system.values(body.mass))
    centre = frame.at(center_of_mass(body, system.values))
    tensor = inertia(body, system.values)
    if system.description.dimension == 3:
        tensor = frame.rotation @ tensor @ frame.rotation.T
    return Inertia.of(mass, centre, tensor)


def _joined(system: MechanismSystem, name: str, joint: Joint, place: int) -> TreeBody:
    """Step across a joint: along or against its direction."""
    parent, child = joint.parent.body, joint.child.body
    places = tuple(range(place, place + _COORDINATES[joint.type]))
    axis, point = ca.SX(list(joint.axis)), system.points[str(joint.child)]
    known = system.frames[parent].rotation
    columns = []
    if joint.type in ('prismatic', 'slot', 'cylindrical'):
        columns.append((parent, Twist.slide(known @ axis)))
    if joint.type in ('revolute', 'slot') and system.description.dimension == 2:
        columns.append((child, Twist.turn(ca.SX(1), point)))
    elif joint.type in ('revolute', 'cylindrical', 'universal'):
        columns.append((parent, Twist.turn(known @ axis, point)))
    rotation = system.frames[child].rotation
    if joint.type == 'universal':
        columns.append((child, Twist.turn(rotation @ ca.SX(list(joint.axis2)), point)))
    if joint.type == 'spherical':
        columns += [(child, twist) for twist in _euler_parameters(system.q[list(places)], rotation, point)]
    sign = 1.0 if name == child else -1.0
    return TreeBody(name, parent if name == child else child, places, tuple(twist * sign for _, twist in columns),
                    tuple(body for body, _ in columns))


def _free(system: MechanismSystem, name: str, place: int) -> TreeBody:
    """A body that no joint reaches: its centre of mass and its orientation."""
    frame, body = system.frames[name], system.description.bodies[name]
    centre = frame.at(center_of_mass(body, system.values))
    dimension = system.description.dimension
    slides = [Twist.slide(ca.SX.eye(dimension)[:, k]) for k in range(dimension)]
    first = place + dimension
    turns = ([Twist.turn(ca.SX(1), centre)] if dimension == 2
             else _euler_parameters(system.q[first:first + 4], frame.rotation, centre))
    return TreeBody(name, GROUND, tuple(range(place, first + len(turns))), (*slides, *turns),
                    (GROUND,) * dimension + (name,) * len(turns))


def _euler_parameters(e: ca.SX, rotation: ca.SX, point: ca.SX) -> list[Twist]:
    """Turns by each rate of the Euler parameters: angular velocity ``2 G ed`` along the turned axes.

    They stand still in the turned body as far as it matters, for ``G(ed) ed = 0``.
    """
    G = ca.horzcat(-e[1:], e[0] * ca.SX.eye(3) - ca.skew(e[1:]))
    return [Twist.turn(2 * rotation @ G[:, k], point) for k in range(4)]


def open_tree(system: MechanismSystem) -> OpenTree | None:
    """The tree of a system; None where constraints or cylinders tie coordinates, or q are no joint coordinates."""
    if system.m or system.rates.numel() or system.description.cylinders or not system.spins:
        return None
    try:
        steps = tree(system)
    except SettingError:
        return None
    joint = {GROUND: -1}        # the last one before each body
    places: list[int] = []
    above: list[int] = []
    columns: list[Twist] = []
    for step in steps:
        last, across = joint[step.hangs_on], list(zip(step.places, step.columns))
        if len(across) > 1 and step.fixed_in[0] == step.body:       # against its direction: the far axis comes last
            across.reverse()
        for place, column in across:
            above.append(last)
            last = len(places)
            places.append(place)
            columns.append(column)
        joint[step.body] = last
    if sorted(places) != list(range(system.n)):
        return None
    none = Inertia(ca.SX(0), ca.SX.zeros(system.gravity.numel()),
                   ca.SX(0) if system.description.dimension == 2 else ca.SX.zeros(3, 3))
    inertias = [none] * len(places)
    for name, item in inertias_of(system).items():
        if joint[name] >= 0:
            inertias[joint[name]] += item
    rotors: list[ca.SX | float] = [0.0] * len(places)
    for place, rotor in system.rotors:
        rotors[places.index(place)] += rotor
    return OpenTree(tuple(places), tuple(above), tuple(columns), tuple(inertias), tuple(rotors), system.gravity)


def inertias_of(system: MechanismSystem) -> dict[str, Inertia]:
    """Of each body, with the payloads that are fixed to it."""
    description, dimension = system.description, system.description.dimension
    found = {name: body_inertia(system, body) for name, body in description.bodies.items()}
    points, turning = list(system.masses[len(found):]), list(system.spins[len(found):])
    for payload in description.every_payload.values():
        mass, place = points.pop(0)
        spin = ca.SX(0) if dimension == 2 else ca.SX.zeros(3, 3)
        if payload.gyration_radius is not None:
            spin = turning.pop(0)[0]
            if dimension == 3:
                R = system.frames[payload.body].rotation
                spin = R @ spin @ R.T
        found[payload.body] += Inertia.of(mass, place, spin)
    return found
