# SPDX-License-Identifier: Apache-2.0
"""What a URDF lacks of a machine file, as questions, and their answers as numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import DescriptionError
from ..language.entry import Entry
from ..language.problems import Problems
from ..language.quantity import ValueKind, not_negative, positive, read_number
from ..model import FORCES
from ..robots.urdf import Robot, entry_name
from ..templates import forms
from ..templates.answers import Question, listed
from . import forms as own
from .chain import RobotChain, chain_of, draft_of, tool_of, tools_of, usual_tool
from .forms import FITTING, Moves
from .masses import placeholders
from .plane import SHORTEST, level, upright

URDF = 'urdf'
RESERVED = (URDF, 'name', 'tool', 'up', 'mass', 'masses', 'load', 'tip', 'hanging', 'positions', 'pressures',
            'pressure_sensors', 'joint_states', 'efforts', 'largest', 'gear_ratios', 'torque_constants',
            'rotor_inertias', 'effort_stddev', 'gain', 'load_center', 'cylinder_masses', 'rocker_pin', 'rocker', 'link',
            'link_pin')
_AHEAD = 'how far ahead of the pin of the joint, and how far above it (below it: negative)'


@dataclass(frozen=True)
class RobotAnswers:
    """``chain`` of the URDF, what ``moves`` its joints, and answers as ``templates.answers.Answers`` has them."""

    chain: RobotChain
    moves: Mapping[str, Moves]
    entries: Mapping[str, Entry]
    values: Mapping[str, Any]
    file: str

    def joints(self, *kinds: Moves) -> list[str]:
        """Joints that are moved so, from the root outwards."""
        return [body.joint.name for body in self.chain.bodies if self.moves[body.joint.name] in kinds]

    @property
    def cylinders(self) -> dict[str, str]:
        """Cylinders by the joints that they move."""
        return {joint: cylinder_of(joint, self.chain.robot) for joint in self.joints('cylinder', 'linkage')}

    @property
    def pressures(self) -> list[str]:
        """Cylinders whose pressures are measured."""
        keys = self.values.get('pressures', ())
        return [name for joint, name in self.cylinders.items() if key_of(joint) in keys]


def key_of(joint: str) -> str:
    """What questions about the cylinder of a joint begin with: its name without the end."""
    return joint.removesuffix('_joint')


def cylinder_of(joint: str, robot: Robot) -> str:
    """Name of the cylinder that moves a joint: as questions have it, unless a joint has this name."""
    return key_of(joint) if key_of(joint) not in robot.joints else f'{joint}_cylinder'


def is_robot(tree: Any) -> bool:
    """Whether answers are to a URDF."""
    return isinstance(tree, dict) and URDF in tree


def asked(tree: Mapping[str, Any], file: str = 'answers') -> list[Question]:
    """The questions as far as answers so far say which they are; raises DescriptionError of the URDF."""
    _, _, _, found = _begun(Entry(file, '', dict(tree)))
    return found


def chains(tree: Mapping[str, Any], file: str = 'answers') -> list[tuple[list[str], list[str]]]:
    """Links at the ends of the URDF, and the joints that move them; raises DescriptionError."""
    path, robot = _robot(Entry(file, '', dict(tree)))
    return [(links, [body.joint.name for body in chain_of(path, robot, links[0]).bodies])
            for links in tools_of(robot).values()]


def robot_template(path: Path) -> str:
    """A file of the questions to a URDF, with what is found in it; what has a default is a comment."""
    text = str(path)
    return listed([f'# {path.name}: what it lacks of a machine file', f'{URDF}: {text}'], asked({URDF: text}), {})


def usual_moves(chain: RobotChain) -> dict[str, Moves]:
    """What probably moves the joints: of up to four that turn about level axes one after the other, cylinders; else
    the drives of an arm."""
    counts = range(len(chain.bodies))
    flat = [k for k in counts if level(chain, k)]
    arm = not flat or len(flat) > 4 or any(
        not chain.bodies[k].slides and (k not in flat if k > flat[0] else k < flat[0] and not upright(chain, k))
        for k in counts)
    if arm:
        return {body.joint.name: 'drive' for body in chain.bodies}
    found: dict[str, Moves] = {chain.bodies[k].joint.name: 'cylinder' if k >= flat[0] else 'sensor' for k in counts}
    if len(flat) > 2 and flat[-1] == len(chain.bodies) - 1 == flat[-2] + 1:
        found[chain.bodies[flat[-1]].joint.name] = 'linkage'
    return found


def read_robot_answers(tree: Any, file: str = 'answers') -> RobotAnswers:
    """Raises DescriptionError, DescriptionErrors of several."""
    return Entry(file, '', tree).whole(_read)


def read_some_robot(tree: Mapping[str, Any], file: str = 'answers') -> RobotAnswers | None:
    """Those of some answers that can be read; None without a chain."""
    try:
        chain, moves, entries, found = _begun(Entry(file, '', dict(tree)))
    except DescriptionError:
        return None
    if chain is None:
        return None
    values = {}
    for item in found:
        entry = entries.setdefault(item.key, Entry(file, item.key, tree.get(item.key, item.default)))
        with suppress(DescriptionError):
            if entry.value != '':
                values[item.key] = item.read(entry)
    return RobotAnswers(chain, moves, entries, values, file)


def _read(root: Entry, problems: Problems) -> RobotAnswers:
    chain, moves, entries, found = _begun(root)
    parts = root.mapping([URDF, *(item.key for item in found if not item.default)],
                         [item.key for item in found if item.default])
    if chain is None:
        problems.check()
        raise root.error('this key, which is missing', None, 'tool')
    values = {}
    for item in found:
        entry = entries[item.key] = parts.get(item.key, root.part(item.key, item.default))
        with entry.kept():
            values[item.key] = item.read(entry)
    problems.check()
    return RobotAnswers(chain, moves, entries, values, root.file)


def _robot(root: Entry) -> tuple[Path, Robot]:
    entry = root.part(URDF, root.value[URDF])
    path = Path(root.file).parent / entry.text('a path to a .urdf file, from the folder of the answers')
    return path, draft_of(path, entry)


def _begun(root: Entry) -> tuple[RobotChain | None, dict[str, Moves], dict[str, Entry], list[Question]]:
    """The chain, None as long as the tool is not known; what moves it; entries; all questions."""
    given, entry = root.value, root.part(URDF, root.value[URDF])
    path, robot = _robot(root)
    name, usual = entry_name(robot.name), usual_tool(robot)
    found = [Question('name', 'name of the machine, of letters and digits', Entry.name,
                      name if name[:1].isalpha() else ''),
             Question('tool', 'link at the end that carries the load: '
                      + ', '.join(link for links in tools_of(robot).values() for link in links),
                      lambda item: tool_of(item, robot), usual)]
    if not given.get('tool', usual):
        return None, {}, {URDF: entry}, found
    tool = tool_of(root.part('tool', given.get('tool', usual)), robot)
    up = own.axis(root.part('up', given.get('up', 'z')))
    chain = chain_of(path, robot, tool, (), up)
    lying = sum(upright(chain, k) for k in range(len(chain.bodies))) > 1
    found.append(Question('up', f'axis of {robot.root} that points up', own.axis, 'z', late=not lying))
    moves = usual_moves(chain)
    for k, joint in enumerate(moves):
        if joint in RESERVED:
            raise DescriptionError(str(path), f'robot.joint[{joint}].name', joint, 'another name: this is a question')
        text = f'{joint} ({own.motion(chain, joint)}), what moves it: '
        found.append(Question(joint, text + (', '.join(own.WORDS) if k else own.MOVES), own.moves,
                              moves[joint]))
        if joint in given:
            moves[joint] = own.moves(root.part(joint, given[joint]))
    still = [joint for joint, word in moves.items() if word == 'still']
    if still:
        chain = chain_of(path, robot, tool, [*chain.aside, *still], up)
    if not chain.bodies:
        raise root.error('a joint that moves', ', '.join(f'{joint}: still' for joint in still))
    if not {'cylinder', 'linkage', 'drive'} & set(moves.values()):
        raise root.error('a joint that a cylinder, a linkage or a drive moves', ', '.join(
            f'{name}: {word}' for name, word in moves.items()))
    linked = [k for k, body in enumerate(chain.bodies) if moves[body.joint.name] == 'linkage']
    for k in linked:
        if k != linked[0] or not k or chain.bodies[k].slides or moves[chain.bodies[k - 1].joint.name] != 'cylinder':
            joint = chain.bodies[k].joint.name
            raise root.part(joint, 'linkage').error('one linkage, of a joint that turns, after a joint that a cylinder '
                                                    'moves')
    return chain, moves, {URDF: entry}, [*found, *_questions(chain, moves, given)]


def _questions(chain: RobotChain, moves: Mapping[str, Moves], given: Mapping[str, Any]) -> Iterator[Question]:
    """What follows from how the joints are moved."""
    light = placeholders(chain, moves)
    if light:
        yield Question('mass', 'operating mass of the machine, or of the arm; the URDF has no real numbers of '
                       + ', '.join(light), forms.mass)
    if len(light) < len(chain.bodies):
        yield Question('masses', 'how well the other masses of the URDF are known, 1 sigma' if light else
                       'how well the masses of the URDF are known, 1 sigma', own.share, '5 %')
    yield Question('load', 'largest load', forms.mass)
    cylinders = [joint for joint, word in moves.items() if word in ('cylinder', 'linkage')]
    last = chain.bodies[-1]
    pinned = moves[last.joint.name] in ('cylinder', 'linkage')
    if pinned and (sum(chain.tip[0] ** 2) ** 0.5 < SHORTEST or 'tip' in given):
        what = 'its teeth' if moves[last.joint.name] == 'linkage' else 'the pin that carries the load'
        yield Question('tip', f'{last.name}: {what}, x, y, z in the frame of this link', own.place)
    before = None
    for body in chain.bodies:
        if body.joint.name in cylinders:
            yield from _cylinder(chain, body.joint.name, before, moves)
            before = body.joint.name
    if cylinders:
        names = [key_of(joint) for joint in cylinders]
        yield Question('cylinder_masses', 'whether the masses of the links include those of cylinders, rocker and '
                       'link: included, apart, unknown', own.cylinder_masses,
                       'apart' if len(light) == len(chain.bodies) else 'unknown')
        if 'linkage' not in moves.values():
            yield Question('hanging', 'from the pin of the hook to the middle of the load, if it swings, else none',
                           forms.optional(forms.HANGING), 'none')
        yield Question('positions', f'what measures the motion: {", ".join(forms.POSITIONS)}; and its deviation',
                       forms.positions, 'angles')
        yield Question('pressures', 'cylinders whose two pressures are measured: all, none, or names',
                       forms.pressures(names), 'all')
        yield Question('pressure_sensors', 'range of the pressure sensors, and absolute or gauge',
                       forms.pressure_sensors, '400 bar, absolute')
    yield from _drives(chain, moves, given)
    yield Question('joint_states', 'topic with the joints of the URDF, or none: own topics', own.topic, '/joint_states')


def _cylinder(chain: RobotChain, joint: str, before: str | None, moves: Mapping[str, Moves]) -> Iterator[Question]:
    """Pins and sizes of what moves a joint; ``before``: the joint before it that a cylinder moves."""
    name, body = key_of(joint), next(item for item in chain.bodies if item.joint.name == joint)
    what, parent = f'{name} cylinder', body.parent
    if body.slides:
        yield Question(f'{name}_cylinder', f'{what}: bore, rod, and from pin to pin with {joint} retracted and '
                       'extended', forms.cylinder)
        return
    base = f'{what}, pin of its base on {parent}'
    far = 'from the first and from the last pin of'
    if before is None:
        yield Question(f'{name}_base', f'{base}: {_AHEAD}, {joint}; or a link of the URDF', own.ahead(chain))
    else:
        yield Question(f'{name}_base', f'{base}: {far} {parent}; or a link of the URDF', own.pin(chain))
    if moves[joint] == 'linkage':
        yield from own.linkage(chain, body, far)
    else:
        yield Question(f'{name}_eye', f'{what}, eye of its rod on {body.name}: {far} {body.name}; or a link of the '
                       'URDF', own.pin(chain))
    yield Question(f'{name}_cylinder', f'{what}: bore, rod, and from pin to pin closed and extended', forms.cylinder)
    yield Question(f'{name}_cylinders', f'{name} cylinders side by side', forms.count, '1')
    yield Question(f'{name}_branch', FITTING.format(name), own.branch, own.AUTO, late=True)


def _drives(chain: RobotChain, moves: Mapping[str, Moves], given: Mapping[str, Any]) -> Iterator[Question]:
    """What measures the efforts of drives, and how."""
    bodies = [body for body in chain.bodies if moves[body.joint.name] == 'drive']
    if not bodies:
        return
    count, force = len(bodies), FORCES['m' if bodies[0].slides else 'rad']
    each = 'one for all, or one each of ' + ', '.join(body.joint.name for body in bodies)
    efforts = [body.motor.effort for body in bodies]
    known = ', '.join(f'{effort:g}' for effort in efforts) if all(efforts) else ''
    yield Question('efforts', 'what is measured of the drives: effort (torque or force), or current', own.efforts,
                   'effort')
    yield Question('largest', f'largest effort, {force}: {each}', own.each(count, positive(force)), known)
    current = given.get('efforts') == 'current'
    if current:
        yield Question('gear_ratios', f'gear ratios: {each}', own.each(count, ValueKind('1', 1e-3, 1e5)))
        yield Question('torque_constants', f'torque constants before the gear, N*m/A: {each}', own.each(
            count, positive('N/A' if bodies[0].slides else 'N*m/A')))
    what, inertia = 'before the gear' if current else 'as the joints feel it', 'kg' if bodies[0].slides else 'kg*m^2'
    yield Question('rotor_inertias', f'inertia of the rotors {what}, {inertia}, 0: not known: {each}', own.each(
        count, not_negative(inertia)), '0')
    unit = 'A' if current else force
    yield Question('effort_stddev', f'noise of one sample, {unit}, 1 sigma: {each}', own.each(count, positive(unit)),
                   '' if current or not all(efforts) else ', '.join(f'{0.007 * effort:.2g}' for effort in efforts))
    yield Question('gain', 'how well the scale of the efforts is known, 1 sigma', own.share,
                   '20 %' if current else '10 %')
    if moves[chain.bodies[-1].joint.name] == 'drive':
        yield Question('load_center', f'middle of the load, x, y, z in the frame of {chain.tool}', own.place,
                       '0 m, 0 m, 0.05 m')
    if not any(word in ('cylinder', 'linkage') for word in moves.values()):
        yield Question('positions', 'deviation of one sample of the angles, 1 sigma',
                       lambda entry: ('angles', read_number(entry, positive('rad'))), '5e-5 rad')
