# SPDX-License-Identifier: Apache-2.0
"""A robot from a URDF file: its links and joints as bodies and joints of a spatial mechanism.

A strict reader of our own: ROS's urdf_parser_py 0.0.4 takes numbers that are nan, joints to links that do not exist,
a second ``axis`` and a repeated name, expands entities, and says of unknown tags no more than a line on stderr.

The root link is fixed to the ground, as for robot_state_publisher, KDL and a fixed base in Pinocchio, whatever it
weighs. A link on a fixed joint is part of its parent, unless the mechanism file needs it as a body: robots have
hundreds of them, for screws and frames, and each would cost as much as one that moves. Shapes, joint limits,
transmissions, and what a file holds for simulators and controllers have no share in the equations of motion and are
not used; anything else that is not understood is refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..basics import GROUND, PointRef, Scalar, Vector
from ..language.references import References
from ..language.scalar import Numbers
from ..model import Body, Coordinate, Joint, Spring
from .tag import Tag, read_tags
from .urdf_rigid import ORIGIN, STILL, Inertial, Pose, Seat, aliases, chained, rpy_of, total

MAX_LINKS = 5_000   # in the file; more would be slow to read
MAX_BODIES = 60     # each has up to twelve coordinates; the start takes a minute beyond
_TYPES = {'revolute': 'revolute', 'continuous': 'revolute', 'prismatic': 'prismatic', 'fixed': 'fixed'}
_ROBOT_IGNORED = ('material', 'transmission', 'gazebo', 'ros2_control', 'sensor')
_LINK_IGNORED = ('visual', 'collision', 'self_collision_checking')
_JOINT_PARTS = ('origin', 'axis', 'limit', 'dynamics', 'mimic')
_JOINT_IGNORED = ('calibration', 'safety_controller')
_TENSOR = ('ixx', 'iyy', 'izz', 'ixy', 'ixz', 'iyz')          # in the order of Body.inertia
_ROUNDING = 1e-3                                             # of moments printed with three digits
_LENGTH, _ANGLE, _MASS, _INERTIA, _DAMPING = 1e3, 20.0, 1e7, 1e10, 1e12     # what is larger is not in SI
_ANY = 1e17                                                  # for limits: some write 1e16 for none


@dataclass(kw_only=True)
class Robot(References):
    """What a URDF file names, as ``entry_name`` spells it.

    ``root`` is the link that is the ground. Every link has the point 'origin' of its frame and, by the joint's name,
    a point for each joint that starts at it; ``ground`` holds those of the root. A link that is part of another body
    is in ``aliases``: its points are points of that body, its frame's is named after the joint on which it hangs.
    ``joints`` go from the root outwards. ``springs`` are the joints' dampers, on ``coordinates`` named after them.
    """

    name: str
    root: str
    springs: dict[str, Spring]


def entry_name(name: str) -> str:
    """A name of URDF as a name of ours: other characters than ASCII letters and digits become single underscores."""
    return re.sub(r'[^A-Za-z0-9]+', '_', name).strip('_')


def read_urdf(path: Path, file: str, key: str, needed: Collection[str] = ()) -> Robot:
    """The robot of a URDF file; ``file`` and ``key`` say who names the path, for the error where it cannot be read.

    ``needed``: links that stay bodies of their own, whatever joint they hang on.
    The bodies' guesses are at joint coordinates 0, or in the middle of the limits where these exclude 0. Raises
    DescriptionError, whose key is a path such as ``robot.joint[elbow].axis.xyz``, or 'line N' where it is not XML.
    """
    robot = _robot(path, file, key)
    links, tags = _by_name(robot, 'link'), _by_name(robot, 'joint')
    if len(links) > MAX_LINKS:
        raise robot.error(f'at most {MAX_LINKS} links', f'{len(links)} links', 'link')
    parts = {name: _joint_parts(tag) for name, tag in tags.items()}
    ends = {name: (_link(parts[name]['parent'], links), _link(parts[name]['child'], links)) for name in tags}
    root = _root(robot, links, tags, ends)
    seats: dict[str, Seat] = {root: Seat(GROUND)}
    starts: dict[str, Pose] = {GROUND: STILL}        # of the bodies' frames
    points: dict[str, dict[str, Vector]] = {GROUND: {ORIGIN: _scalars((0.0, 0.0, 0.0))}}
    joints: dict[str, Joint] = {}
    for name in _outwards(root, tags, ends):
        parent, child = ends[name]
        seat, kind = seats[parent], tags[name].text('type')
        origin = _origin(parts[name].get('origin'))
        place = chained(seat.pose, origin)
        own_key = GROUND if seat.owner == GROUND else f'bodies.{seat.owner}'
        points[seat.owner][name] = _scalars(place[0], f'{own_key}.points.{name}')
        if kind == 'fixed' and child not in needed:
            seats[child] = Seat(seat.owner, place, name)
            continue
        rpy = _rpy(parts[name].get('origin')) if not seat.hung else rpy_of(place[1])
        joints[name], moved = _joint(name, tags[name], parts[name], (seat.owner, child), place[1], rpy)
        seats[child] = Seat(child)
        starts[child] = chained(starts[seat.owner], (place[0] + moved[0], moved[1]))
        points[child] = {ORIGIN: _scalars((0.0, 0.0, 0.0))}
    if len(starts) - 1 > MAX_BODIES:
        raise robot.error(f'at most {MAX_BODIES} links that move, those on fixed joints apart',
                          f'{len(starts) - 1} that move', 'link')
    weights: dict[str, list[Inertial]] = {owner: [] for owner in starts}
    for link, seat in seats.items():
        weights[seat.owner].append(_inertial(links[link]).moved(seat.pose))
    bodies = {name: _body(name, total(weights[name]), points[name], pose)
              for name, pose in starts.items() if name != GROUND}       # whose inertia has no share in the motion
    coordinates, springs = _dampers({name: parts[name] for name in joints if joints[name].type != 'fixed'})
    return Robot(3, Numbers(), name=robot.text('name'), root=root, ground=points[GROUND], bodies=bodies, joints=joints,
                 coordinates=coordinates, springs=springs, aliases=aliases(seats, ends))


def _robot(path: Path, file: str, key: str) -> Tag:
    """The root tag, with known tags below it."""
    robot = read_tags(path, file, key, 'robot')
    robot.attributes(['name'], ['version'])
    if robot.text('version') not in ('', '1.0'):
        raise robot.error("version '1.0'", robot.text('version'), 'version')
    known = ('link', 'joint', *_ROBOT_IGNORED)
    for child in robot.element:
        if child.tag not in known:
            raise robot.error('one of the tags ' + ', '.join(known), child.tag)
    return robot


def _by_name(robot: Tag, kind: str) -> dict[str, Tag]:
    """Links or joints by their names in our spelling."""
    found: dict[str, Tag] = {}
    for text, tag in robot.named(kind).items():
        name = entry_name(text)
        if not name[:1].isalpha() or len(name) > 60:
            raise tag.error('a name of at most 60 characters that starts with a letter', text, 'name')
        if kind == 'joint' and name == ORIGIN:
            raise tag.error(f'another name than {ORIGIN}, which is the point of a link frame', text, 'name')
        if name in found:
            other = found[name].text('name')
            raise tag.error(f'a name whose letters and digits differ from those of {other!r}', text, 'name')
        found[name] = tag
    return found


def _joint_parts(tag: Tag) -> dict[str, Tag]:
    """Tags of a joint of a type that serves."""
    tag.attributes(['name', 'type'])
    if tag.text('type') not in _TYPES:
        raise tag.error('revolute, continuous, prismatic or fixed', tag.text('type'), 'type')
    parts = tag.children(['parent', 'child'], _JOINT_PARTS, _JOINT_IGNORED)
    if 'mimic' in parts:
        raise parts['mimic'].error('no mimic joint: take it out; a hydraulic cylinder is written under `cylinders` of '
                                   'the mechanism file, other couplings as a loop of joints there',
                                   parts['mimic'].text('joint'))
    return parts


def _link(tag: Tag, links: dict[str, Tag]) -> str:
    """The link that a joint's parent or child tag names."""
    tag.leaf(['link'])
    name = entry_name(tag.text('link'))
    if name not in links or links[name].text('name') != tag.text('link'):
        raise tag.error('the name of a link', tag.text('link'), 'link')
    return name


def _root(robot: Tag, links: dict[str, Tag], tags: dict[str, Tag], ends: dict[str, tuple[str, str]]) -> str:
    """The one link that is not a child."""
    above: dict[str, str] = {}
    for name, (_, child) in ends.items():
        if child in above:
            raise tags[name].error(f'the child of one joint only, this link is the child of {above[child]} too: '
                                   'close loops in the mechanism file', child, 'child.link')
        above[child] = name
    roots = [name for name in links if name not in above]
    if len(roots) != 1 or not ends:
        raise robot.error('links that joints join to one tree with one root',
                          f'{len(ends)} joints and {len(roots)} roots ({", ".join(roots[:8])})', 'link')
    if GROUND in above:
        raise links[GROUND].error(f'another name than {GROUND}, which means the root here', GROUND, 'name')
    return roots[0]


def _outwards(root: str, tags: dict[str, Tag], ends: dict[str, tuple[str, str]]) -> list[str]:
    """Joints from the root outwards."""
    starting: dict[str, list[str]] = {}
    for name, (parent, _) in ends.items():
        starting.setdefault(parent, []).append(name)
    order, reached = [], [root]
    for link in reached:
        order += starting.pop(link, [])
        reached += [ends[name][1] for name in order[len(reached) - 1:]]
    if starting:
        parent, (name, *_) = next(iter(starting.items()))
        raise tags[name].error(f'a link that hangs together with the root, {root}', parent, 'parent.link')
    return order


def _joint(name: str, tag: Tag, parts: dict[str, Tag], ends: tuple[str, str], turned: np.ndarray,
           angles: tuple[float, ...]) -> tuple[Joint, Pose]:
    """The joint, and the child's pose relative to the joint's point in the parent's frame; ``turned`` (3, 3) is that
    of the joint at 0, ``angles`` its roll, pitch, yaw, rad."""
    from transforms3d.axangles import axangle2mat  # here: slow to import
    kind = _TYPES[tag.text('type')]
    rpy = _scalars(angles)
    refs = (PointRef(ends[0], name), PointRef(ends[1], ORIGIN))
    start = _start(tag, parts.get('limit'))
    if kind == 'fixed':
        return Joint(name, kind, *refs, rpy=rpy), (np.zeros(3), turned)
    axis = turned @ _axis(parts.get('axis'))     # URDF gives it in the child's frame
    joint = Joint(name, kind, *refs, axis=tuple(axis.tolist()), rpy=rpy)
    if kind == 'prismatic':
        return joint, (axis * start, turned)
    return joint, (np.zeros(3), axangle2mat(axis, start, is_normalized=True) @ turned)


def _axis(tag: Tag | None) -> np.ndarray:
    """Unit vector (3,) of the axis in the joint's frame; URDF's default is x."""
    if tag is None:
        return np.array([1.0, 0.0, 0.0])
    tag.leaf(['xyz'])
    axis = np.array(tag.numbers('xyz', 3, -_LENGTH, _LENGTH, ''))
    length = np.linalg.norm(axis)
    if length < 1e-6:
        raise tag.error('a direction, not a zero vector', tag.text('xyz'), 'xyz')
    return axis / length


def _start(tag: Tag, limit: Tag | None) -> float:
    """Coordinate of the guess, rad or m."""
    if limit is None:
        return 0.0
    limit.leaf([], ['lower', 'upper', 'effort', 'velocity'])
    lower, upper = (limit.number(end, -_ANY, _ANY, 'rad or m') for end in ('lower', 'upper'))
    if lower > upper:
        raise limit.error(f'a lower limit up to the upper one, {upper:g}', limit.text('lower'), 'lower')
    bounded = tag.text('type') in ('revolute', 'prismatic')
    return (lower + upper) / 2.0 if bounded and not lower <= 0.0 <= upper else 0.0


def _rpy(tag: Tag | None) -> tuple[float, ...]:
    """Roll, pitch, yaw of an origin, rad."""
    return tag.numbers('rpy', 3, -_ANGLE, _ANGLE, 'rad') if tag and 'rpy' in tag.element.attrib else (0.0, 0.0, 0.0)


def _origin(tag: Tag | None) -> Pose:
    """Pose of an origin tag; the identity where it is left out."""
    from transforms3d.euler import euler2mat  # here: slow to import
    if tag is None:
        return np.zeros(3), np.eye(3)
    tag.leaf([], ['xyz', 'rpy'])
    xyz = tag.numbers('xyz', 3, -_LENGTH, _LENGTH, 'm') if 'xyz' in tag.element.attrib else (0.0, 0.0, 0.0)
    return np.array(xyz), euler2mat(*_rpy(tag), 'sxyz')


def _body(name: str, inertial: Inertial, points: dict[str, Vector], pose: Pose) -> Body:
    """A link with those that are part of it."""
    key = f'bodies.{name}'
    tensor = inertial.tensor
    inertia = tuple(Scalar(float(tensor['xyz'.index(item[1]), 'xyz'.index(item[2])]), key=f'{key}.inertia.{item[1:]}')
                    for item in _TENSOR)
    position, rotation = (part.tolist() for part in pose)
    return Body(name, Scalar(inertial.mass, key=f'{key}.mass'), _scalars(inertial.centre, f'{key}.center_of_mass'),
                inertia, points, tuple(position), tuple(map(tuple, rotation)), outline=tuple(points))


def _inertial(link: Tag) -> Inertial:
    """Mass properties of a link along the axes of its frame; without an inertial it weighs nothing."""
    link.attributes(['name'], ['type'])
    tag = link.children([], ['inertial'], _LINK_IGNORED).get('inertial')
    if tag is None:
        return Inertial()
    tag.attributes([])
    parts = tag.children(['mass', 'inertia'], ['origin'])
    parts['mass'].leaf(['value'])
    parts['inertia'].leaf(_TENSOR)
    mass = parts['mass'].number('value', 0.0, _MASS, 'kg')
    xx, yy, zz, xy, xz, yz = (parts['inertia'].number(name, -_INERTIA, _INERTIA, 'kg m2') for name in _TENSOR)
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    moments = np.linalg.eigvalsh(tensor)
    if 2.0 * moments.max() > moments.sum() + _ROUNDING * np.abs(moments).max():
        raise parts['inertia'].error('moments of inertia of a real body: no principal moment above the sum of the '
                                     'other two', [float(f'{moment:.4g}') for moment in moments])
    return Inertial(mass, np.zeros(3), tensor).moved(_origin(parts.get('origin')))


def _dampers(parts: dict[str, dict[str, Tag]]) -> tuple[dict[str, Coordinate], dict[str, Spring]]:
    """Viscous friction of the joints."""
    damping: dict[str, float] = {}
    for name, joint in parts.items():
        if 'dynamics' in joint:
            tag = joint['dynamics']
            tag.leaf([], ['damping', 'friction'])
            if tag.number('friction', 0.0, _DAMPING, ''):
                raise tag.error('0: a mechanism has no dry friction', tag.text('friction'), 'friction')
            damping[name] = tag.number('damping', 0.0, _DAMPING, 'N m s/rad or N s/m')
    springs = {name: Spring(name, None, name, Scalar(0.0), Scalar(0.0), Scalar(value, key=f'springs.{name}.damping'))
               for name, value in damping.items() if value > 0.0}
    return {name: Coordinate(name, 'joint', joint=name) for name in springs}, springs


def _scalars(values: tuple[float, ...] | np.ndarray, key: str = '') -> Vector:
    """Numbers with the keys by which they can be made free parameters; '' for those that must stay."""
    return tuple(Scalar(float(value), key=f'{key}[{index}]' if key else '') for index, value in enumerate(values))
