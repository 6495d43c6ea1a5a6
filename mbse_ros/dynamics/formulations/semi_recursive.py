# SPDX-License-Identifier: Apache-2.0
"""Double-step semi-recursive equations of motion: reference coordinates, joint coordinates, independent coordinates.

Pyrhönen et al., mass estimation, section 2.1. A body's velocity is that of its point which coincides with the machine's
origin, and its angular velocity; then the velocities along a path add up (the path matrix T holds zeros and ones), and
so do masses and forces from the leaves to the root. No body needs a Jacobian of its own: in a chain of N bodies forces
take O(N) and the mass matrix O(N^2) operations. The second step, by the cut joints, is matrix-R, as for every
``System``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import casadi as ca

from ...description.basics import GROUND
from ...description.model import Body, Joint
from ...errors import SettingError
from ...mechanism.assembly import MechanismSystem
from ...mechanism.inertia import center_of_mass, inertia
from ..forces.wrenches import Inertia, Twist
from ..partitioned import Partitioned

if TYPE_CHECKING:
    from ..model import Model

from ..forces.wrenches import applied_wrenches, gravity_wrench

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


def semi_recursive(system: MechanismSystem) -> MechanismSystem:
    """The system, in relative coordinates, with M and Q accumulated from the leaves (Pyrhönen et al., mass estimation,
    Eq. 3).

    The accelerations are the same; M and Q themselves too, but along the length of Euler parameters, which their
    constraint forbids to change. Raises SettingError for a system in other coordinates.
    """
    steps = tree(system)
    velocities, rests = _outwards(system, steps)
    wrenches, Q = applied_wrenches(system, velocities)
    inertias: dict[str, Inertia] = {}
    for name, body in system.description.bodies.items():
        inertias[name] = _inertia(system, body)
        momentum = inertias[name].momentum(velocities[name])
        wrenches[name] += gravity_wrench(system, inertias[name])
        wrenches[name] -= velocities[name].rate_of(momentum) + inertias[name].momentum(rests[name])
    M = ca.SX(system.n, system.n)
    above = {step.body: step for step in steps}
    for step in reversed(steps):
        for place, column in zip(step.places, step.columns):
            Q[place] += column.power(wrenches[step.body])
        _mass(M, inertias[step.body], step, above)
        if step.hangs_on != GROUND:
            wrenches[step.hangs_on] += wrenches[step.body]
            inertias[step.hangs_on] += inertias[step.body]
    return replace(system, M=M, Q=ca.densify(Q))


def semi_recursive_partition(model: Model, independent: Sequence[int] | None = None) -> Partitioned:
    """State equations of a model in relative coordinates by the double-step form (Pyrhönen et al., mass estimation,
    Eqs. 4-6).

    ``independent``: places in q; default: the model's own.
    """
    chosen = model.z if independent is None else list(independent)
    model.check_reducible()
    return Partitioned(semi_recursive(model.system), chosen, list(model.active), model.parameters, model.backend)


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


def _outwards(system: MechanismSystem, steps: list[TreeBody]) -> tuple[dict[str, Twist], dict[str, Twist]]:
    """Velocities ``Z = T R_d zd`` and accelerations ``T R_d' zd`` of the bodies (Pyrhönen et al., mass estimation,
    Eqs. 1 and 2)."""
    still = Twist.zero(system.description.dimension)
    velocities, rests = {GROUND: still}, {GROUND: still}
    for step in steps:
        moves = [column * system.qd[place] for place, column in zip(step.places, step.columns)]
        velocities[step.body] = sum(moves, velocities[step.hangs_on])
        turned = [velocities[name].rate(move) for name, move in zip(step.fixed_in, moves)]
        rests[step.body] = sum(turned, rests[step.hangs_on])
    return velocities, rests


def _mass(M: ca.SX, inertia: Inertia, step: TreeBody, above: dict[str, TreeBody]) -> None:
    """Rows of the step's coordinates: its columns with the inertia of all that hangs on the body, along the path."""
    for place, column in zip(step.places, step.columns):
        momentum = inertia.momentum(column)
        on_path: TreeBody | None = step
        while on_path is not None:
            for other, its_column in zip(on_path.places, on_path.columns):
                M[place, other] = M[other, place] = its_column.power(momentum)
            on_path = above.get(on_path.hangs_on)


def _inertia(system: MechanismSystem, body: Body) -> Inertia:
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
