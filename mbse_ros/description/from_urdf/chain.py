# SPDX-License-Identifier: Apache-2.0
"""The joints of a URDF from its root to the tool: what moves, in which frames, how heavy it is."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ...errors import DescriptionError
from ..basics import GROUND
from ..language.entry import Entry
from ..language.references import nominal
from ..model import Joint
from ..robots.urdf import Robot, entry_name, read_urdf
from ..robots.urdf_parts import Motor, Pose, chained
from ..start import axis_rotation, rpy_rotation

MOST_TURNED = 4 * np.pi     # rad, of a joint with limits: more is degrees
FARTHEST = 60.0     # m between joints: more is a robot in millimetres
UPRIGHT = {'z': np.eye(3), 'y': np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]]),
           'x': np.array([[0.0, 0, -1], [0, 1, 0], [1, 0, 0]]), '-z': np.diag([1.0, -1, -1]),
           '-y': np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]]), '-x': np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]])}
"""Rotations of the root by its axis that points up."""
USUAL_TOOLS = 'tool0', 'tcp', 'tool', 'flange'


@dataclass(frozen=True)
class ChainBody:
    """A link that moves, with what is fixed to it. Its ``joint`` hangs it at ``place`` (3,), m, of the ``parent``, in
    whose frame it is turned by ``turned`` (3, 3) at 0; ``axis`` (3,) in the parent's frame; ``mass``, kg, ``center``
    (3,) and ``inertia`` (3, 3) about it, in its own frame."""

    name: str
    joint: Joint
    motor: Motor
    parent: str
    place: np.ndarray
    turned: np.ndarray
    axis: np.ndarray
    mass: float
    center: np.ndarray
    inertia: np.ndarray

    @property
    def slides(self) -> bool:
        """Whether its joint is prismatic."""
        return self.joint.type == 'prismatic'

    @property
    def middle(self) -> float:
        """0, or the middle of limits that exclude it, rad or m."""
        low, high = self.joint.limits or (0.0, 0.0)
        return 0.0 if low <= 0.0 <= high else 0.5 * (low + high)

    def pose(self, value: float) -> Pose:
        """In the parent's frame, at a value of the joint, rad or m."""
        if self.slides:
            return self.place + value * self.axis, self.turned
        return self.place, axis_rotation(tuple(self.axis), value) @ self.turned


@dataclass(frozen=True)
class RobotChain:
    """``bodies`` from the root of the ``robot`` outwards; ``tool``: a link that is the last of them or fixed to it, at
    ``tip`` in its frame; ``aside``: joints that move but lead elsewhere, or mimic another, which are held at 0. The
    ground is the root, ``turned`` (3, 3) so that z points up."""

    path: Path
    robot: Robot
    bodies: tuple[ChainBody, ...]
    tool: str
    tip: Pose
    aside: tuple[str, ...]
    turned: np.ndarray

    def body(self, name: str) -> ChainBody:
        """By its name."""
        return next(body for body in self.bodies if body.name == name)

    def at(self, count: int, value: float | None = None) -> Pose:
        """Pose of the first ``count`` bodies' last one in the root's frame, all joints in the middle, or at a value."""
        pose: Pose = (np.zeros(3), np.eye(3))
        for body in self.bodies[:count]:
            pose = chained(pose, body.pose(body.middle if value is None else value))
        return pose


def draft_of(path: Path, entry: Entry) -> Robot:
    """The robot of a file that ``entry`` names, with all its joints; raises DescriptionError."""
    robot = read_urdf(path, entry.file, entry.key, still=())
    if not robot.motors:
        raise DescriptionError(str(path), 'robot.joint', 'none that moves', 'a revolute, continuous or prismatic joint')
    for name, joint in robot.joints.items():
        points = {GROUND: robot.ground, **{body.name: body.points for body in robot.bodies.values()}}
        place = nominal(points[joint.parent.body][joint.parent.point])
        if max(map(abs, place)) > FARTHEST:
            raise DescriptionError(str(path), f'robot.joint[{robot.motors[name].written}].origin.xyz',
                                   ' '.join(f'{item:g}' for item in place), f'lengths in m, up to {FARTHEST:g} m '
                                   'between joints; these look like millimetres')
        if joint.type == 'revolute' and joint.limits is not None and max(map(abs, joint.limits)) > MOST_TURNED:
            raise DescriptionError(str(path), f'robot.joint[{robot.motors[name].written}].limit',
                                   ' to '.join(f'{item:g}' for item in joint.limits), f'limits in rad, up to '
                                   f'{MOST_TURNED:.3g}; these look like degrees')
    return robot


def tools_of(robot: Robot) -> dict[str, list[str]]:
    """Links at the ends of chains that move, by the body that they are or are fixed to."""
    inner = {joint.parent.body for joint in robot.joints.values()}
    found: dict[str, list[str]] = {name: [] for name in robot.bodies if name not in inner and name not in robot.held}
    for link, seat in robot.seats.items():
        if seat.owner in found and seat.hung and len(robot.aliases[link]) == 1 and link not in robot.held:
            found[seat.owner].append(link)
    return {owner: links or [owner] for owner, links in found.items()}


def usual_tool(robot: Robot) -> str:
    """The only end, or one with a usual name; '' where it has to be asked for."""
    ends = tools_of(robot)
    for name in USUAL_TOOLS:
        if any(name in links for links in ends.values()):
            return name
    if len(ends) != 1:
        return ''
    links = next(iter(ends.values()))
    return max(links, key=lambda link: float(np.linalg.norm(robot.seats[link].pose[0])))


def tool_of(entry: Entry, robot: Robot) -> str:
    """The link that an answer names; raises DescriptionError."""
    word = entry_name(entry.text('a link'))
    moving = [link for link, seat in robot.seats.items() if seat.owner != GROUND or link in robot.held]
    ends = [link for links in tools_of(robot).values() for link in links]
    if word not in moving:
        raise entry.error('the link that carries the load, which joints move: one at the end of a chain, '
                          + ', '.join(ends) + f', or another of the {len(moving)} links that move' * (
                              len(moving) > len(ends)))
    return word


def chain_of(path: Path, robot: Robot, tool: str, still: Collection[str] = (), up: str = 'z') -> RobotChain:
    """From the root to a tool; ``still``: joints that are held at 0, as those that lead elsewhere; ``up``: the axis of
    the root that points up. Raises DescriptionError for a tool that a joint moves which mimics another."""
    def way(robot: Robot) -> list[Joint]:
        hung, found, body = {joint.child.body: joint for joint in robot.joints.values()}, [], robot.seats[tool].owner
        while body != GROUND:
            found.append(hung[body])
            body = hung[body].parent.body
        return found[::-1]
    if tool in robot.held and robot.held[tool] not in still:
        raise DescriptionError(str(path), f'robot.joint[{robot.held[tool]}].mimic', robot.held[tool], 'no joint that '
                               f'mimics another on the way to {tool}: take the mimic out, or choose another tool')
    leading = [joint.name for joint in way(robot)]
    aside = [*(name for name in robot.joints if name not in leading), *dict.fromkeys(robot.held.values())]
    if aside or still:
        robot = read_urdf(path, str(path), 'robot', still=[*aside, *still])
    bodies = [_body(robot, joint) for joint in way(robot)]
    turned = UPRIGHT[up]
    if bodies:
        first = bodies[0]
        bodies[0] = replace(first, place=turned @ first.place, turned=turned @ first.turned, axis=turned @ first.axis)
    return RobotChain(path, robot, tuple(bodies), tool, robot.seats[tool].pose, tuple(aside), turned)


def _body(robot: Robot, joint: Joint) -> ChainBody:
    body, parent = robot.bodies[joint.child.body], joint.parent
    points = robot.ground if parent.body == GROUND else robot.bodies[parent.body].points
    xx, yy, zz, xy, xz, yz = nominal(body.inertia)
    return ChainBody(body.name, joint, robot.motors[joint.name], parent.body, np.array(nominal(points[parent.point])),
                     rpy_rotation(nominal(joint.rpy)), np.array(joint.axis), body.mass.value,
                     np.array(nominal(body.center_of_mass)), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
