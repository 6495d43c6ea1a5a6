# SPDX-License-Identifier: Apache-2.0
"""A robot from a URDF file: its links and joints as bodies and joints of a spatial mechanism.

A strict reader of our own: ROS's urdf_parser_py 0.0.4 takes numbers that are nan, joints to links that do not exist,
a second ``axis`` and a repeated name, expands entities, and says of unknown tags no more than a line on stderr.

The root link is fixed to the ground, as for robot_state_publisher, KDL and a fixed base in Pinocchio, whatever it
weighs. A link on a fixed joint is part of its parent, unless the mechanism file needs it as a body: robots have
hundreds of them, for screws and frames, and each would cost as much as one that moves. Shapes, transmissions, and what
a file holds for simulators and controllers have no share in the equations of motion and are not used; nor is any other
name that urdfdom does not know, unless it is nearly one of URDF.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..basics import GROUND, Scalar, Vector
from ..language.references import References
from ..language.scalar import Numbers
from ..model import Body, Joint, Spring
from .tag import Tag, read_tags
from .urdf_parts import (
    ORIGIN,
    STILL,
    Inertial,
    Motor,
    Pose,
    Seat,
    aliases,
    chained,
    dampers,
    joint_of,
    joint_parts,
    motor_of,
    number_vector,
    origin_of,
    rpy_angles,
    rpy_of,
    total,
)

MAX_LINKS = 5_000   # in the file; more would be slow to read
MOST_LISTED = 12
MAX_BODIES = 60     # each has up to twelve coordinates; the start takes a minute beyond
_VERSIONS = ('1.0', '1.1', '1.2')
_ROBOT_IGNORED = ('material', 'transmission', 'gazebo', 'ros2_control', 'sensor')
_LINK_IGNORED = ('visual', 'collision', 'self_collision_checking')
_TENSOR = ('ixx', 'iyy', 'izz', 'ixy', 'ixz', 'iyz')          # in the order of Body.inertia
_ROUNDING = 1e-3                                             # of moments printed with three digits
_WIDE = {'revolute': 20.0, 'prismatic': 30.0}                # rad and m; ranges beyond are said: degrees, mm?
_MASS, _INERTIA = 1e7, 1e10                                  # what is larger is not in SI


@dataclass(kw_only=True)
class Robot(References):
    """What a URDF file names, as ``entry_name`` spells it.

    ``root`` is the link that is the ground. Every link has the point 'origin' of its frame and, by the joint's name,
    a point for each joint that starts at it; ``ground`` holds those of the root. A link that is part of another body
    is in ``aliases``: its points are points of that body, its frame's is named after the joint on which it hangs.
    ``joints`` go from the root outwards. ``springs`` are the joints' dampers, on ``coordinates`` named after them.
    ``remarks``: what of the file is not used or was assumed, each by what it is about. ``motors`` of the joints that
    move, ``seats`` of all links, and links that are ``held`` by a joint that could move, by this joint, are for a
    machine file that is to be written.
    """

    name: str
    root: str
    springs: dict[str, Spring]
    remarks: dict[str, str]
    motors: dict[str, Motor]
    seats: dict[str, Seat]
    held: dict[str, str]


def entry_name(name: str) -> str:
    """A name of URDF as a name of ours: other characters than ASCII letters and digits become single underscores."""
    return re.sub(r'[^A-Za-z0-9]+', '_', name).strip('_')


def read_urdf(path: Path, file: str, key: str, needed: Collection[str] = (),
              guess: Callable[[str, str], float | None] = lambda name, unit: None,
              still: Collection[str] | None = None) -> Robot:
    """The robot of a URDF file; ``file`` and ``key`` say who names the path, for the error where it cannot be read.

    ``needed``: links that stay bodies of their own, whatever joint they hang on. The bodies' guesses are at the joint
    coordinates ``guess(joint, 'rad' or 'm')``, where that is None at 0, or in the middle of the limits where these
    exclude 0. Raises DescriptionError, whose key is a path such as ``robot.joint[elbow].axis.xyz``, or 'line N' where
    it is not XML; also for a link that moves and weighs nothing. ``still``: of a file from which a machine file is to
    be written: joints that are held at 0, as those
    that mimic another; masses may be missing and moments impossible then, and friction is in
    ``motors`` alone.
    """
    robot = _robot(path, file, key)
    links, tags = _by_name(robot, 'link'), _by_name(robot, 'joint')
    if len(links) > MAX_LINKS:
        raise robot.error(f'at most {MAX_LINKS} links', f'{len(links)} links', 'link')
    parts = {name: joint_parts(tag, still is None) for name, tag in tags.items()}
    still_ones: set[str] = set() if still is None else {*still, *(name for name in tags if 'mimic' in parts[name])}
    held: dict[str, str] = {}
    ends = {name: (_link(parts[name]['parent'], links), _link(parts[name]['child'], links)) for name in tags}
    root = _root(robot, links, tags, ends)
    seats: dict[str, Seat] = {root: Seat(GROUND)}
    starts: dict[str, Pose] = {GROUND: STILL}        # of the bodies' frames
    points: dict[str, dict[str, Vector]] = {GROUND: {ORIGIN: number_vector((0.0, 0.0, 0.0))}}
    joints: dict[str, Joint] = {}
    for name in _outwards(root, tags, ends):
        parent, child = ends[name]
        seat, kind = seats[parent], tags[name].text('type')
        origin = origin_of(parts[name].get('origin'))
        place = chained(seat.pose, origin)
        own_key = GROUND if seat.owner == GROUND else f'bodies.{seat.owner}'
        points[seat.owner][name] = number_vector(place[0], f'{own_key}.points.{name}')
        if name in still_ones or parent in held:
            held[child] = held.get(parent, name)
        if (kind == 'fixed' or name in still_ones) and child not in needed:
            seats[child] = Seat(seat.owner, place, name)
            continue
        rpy = rpy_angles(parts[name].get('origin')) if not seat.hung else rpy_of(place[1])
        joints[name], moved = joint_of(name, tags[name], parts[name], (seat.owner, child), place[1], rpy,
                                       guess)
        seats[child] = Seat(child)
        starts[child] = chained(starts[seat.owner], (place[0] + moved[0], moved[1]))
        points[child] = {ORIGIN: number_vector((0.0, 0.0, 0.0))}
    if len(starts) - 1 > MAX_BODIES:
        raise robot.error(f'at most {MAX_BODIES} links that move, those on fixed joints apart',
                          f'{len(starts) - 1} that move', 'link')
    weights: dict[str, list[Inertial]] = {owner: [] for owner in starts}
    own = {link: _inertial(tag, still is None) for link, tag in links.items()}
    for link, seat in seats.items():
        weights[seat.owner].append(own[link].moved(seat.pose))
    totals = {name: total(parts) for name, parts in weights.items()}
    if still is None:
        _check_mass(links, joints, totals)
    bodies = {name: _body(name, totals[name], points[name], pose)
              for name, pose in starts.items() if name != GROUND}       # whose inertia has no share in the motion
    moving = {name: parts[name] for name in joints if joints[name].type != 'fixed'}
    coordinates, springs = dampers(moving if still is None else {})
    light = [link for link, seat in seats.items() if seat.hung and not own[link].mass]
    return Robot(3, Numbers(), name=robot.text('name'), root=root, ground=points[GROUND], bodies=bodies, joints=joints,
                 coordinates=coordinates, springs=springs, aliases=aliases(seats, ends),
                 remarks=_remarks(robot, root, light, bodies, joints, tags, parts),
                 motors={name: motor_of(tags[name], parts[name]) for name in moving} if still is not None else {},
                 seats=seats, held=held)


def _check_mass(links: Mapping[str, Tag], joints: Mapping[str, Joint], totals: Mapping[str, Inertial]) -> None:
    """Refuse what moves without any inertia: its mass is lost, and would be sought in the load."""
    carrier = {GROUND: GROUND}       # the link that is moved, by those that are fixed to it
    for joint in joints.values():
        carrier[joint.child.body] = carrier[joint.parent.body] if joint.type == 'fixed' else joint.child.body
    heavy = {GROUND, *(carrier[name] for name in totals if totals[name].mass or totals[name].tensor.any())}
    for joint in joints.values():
        link = joint.child.body
        if carrier[link] == link and link not in heavy:
            raise links[link].error(f'a mass: joint {joint.name} moves this link, and neither it nor what is fixed to '
                                    'it weighs anything; give it an inertial, or make the joint fixed',
                                    '0 kg' if links[link].element.find('inertial') is not None else None, 'inertial')


def _remarks(robot: Tag, root: str, light: list[str], bodies: Mapping[str, Body], joints: Mapping[str, Joint],
             tags: Mapping[str, Tag], parts: Mapping[str, dict[str, Tag]]) -> dict[str, str]:
    """What of the file is not used, and what was assumed."""
    moving = {name: joint for name, joint in joints.items() if joint.type != 'fixed'}
    bound = [name for name, joint in moving.items() if joint.limits is None
             and ('limit' in parts[name] or tags[name].text('type') != 'continuous')]
    unused = [name for name in moving if 'limit' in parts[name]
              and {'velocity', 'effort'} & parts[name]['limit'].element.attrib.keys()]
    wide = [name for name, joint in moving.items() if joint.limits is not None
            and joint.limits[1] - joint.limits[0] > _WIDE[joint.type]]
    soft = [name for name in moving if tags[name].element.find('safety_controller') is not None]
    found = {'root': f'{root}, fixed to the ground: what it weighs has no share in the motion',
             'names that mean nothing here, not used': _listed(sorted(robot.reading.foreign)),
             'links without mass, fixed to others': _listed(light),
             'moments of inertia without mass': _listed([name for name, body in bodies.items() if not body.mass.value
                                                         and any(item.value for item in body.inertia)]),
             'limits of velocity and effort, not used': _listed(unused),
             'soft limits of safety controllers, not used': _listed(soft),
             'limits of many turns or meters; URDF has rad and m, not degrees and mm': _listed(wide),
             'joints without a range: turning freely, or with limits that are missing or equal': _listed(bound)}
    return {about: text for about, text in found.items() if text}


def _listed(names: list[str]) -> str:
    return ', '.join(names[:MOST_LISTED]) + (f', ... ({len(names)} in all)' if len(names) > MOST_LISTED else '')


def _robot(path: Path, file: str, key: str) -> Tag:
    """The root tag, with known tags below it."""
    robot = read_tags(path, file, key, 'robot')
    robot.attributes(['name'], ['version'])
    if robot.reading.version not in ('', *_VERSIONS):
        raise robot.error('version ' + ', '.join(_VERSIONS), robot.reading.version, 'version')
    for child in robot.element:
        if child.tag not in ('link', 'joint', *_ROBOT_IGNORED):
            robot.unknown(child.tag, ('link', 'joint'), 'tags')
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


def _body(name: str, inertial: Inertial, points: dict[str, Vector], pose: Pose) -> Body:
    """A link with those that are part of it."""
    key = f'bodies.{name}'
    tensor = inertial.tensor
    inertia = tuple(Scalar(float(tensor['xyz'.index(item[1]), 'xyz'.index(item[2])]), key=f'{key}.inertia.{item[1:]}')
                    for item in _TENSOR)
    position, rotation = (part.tolist() for part in pose)
    return Body(name, Scalar(inertial.mass, key=f'{key}.mass'), number_vector(inertial.centre, f'{key}.center_of_mass'),
                inertia, points, tuple(position), tuple(map(tuple, rotation)), outline=tuple(points))


def _inertial(link: Tag, strict: bool = True) -> Inertial:
    """Mass properties of a link along the axes of its frame; without an inertial it weighs nothing; where it
    is not ``strict``, impossible moments are none."""
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
        if not strict:
            return Inertial(mass).moved(origin_of(parts.get('origin')))
        raise parts['inertia'].error('moments of inertia of a real body: no principal moment above the sum of the '
                                     'other two', [float(f'{moment:.4g}') for moment in moments])
    return Inertial(mass, np.zeros(3), tensor).moved(origin_of(parts.get('origin')))


