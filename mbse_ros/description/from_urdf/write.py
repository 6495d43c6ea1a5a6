# SPDX-License-Identifier: Apache-2.0
"""The text of a machine file from a URDF and answers: frames, axes and names are those of the URDF."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from ..basics import GROUND
from ..model import FORCES
from ..robots.urdf_parts import rpy_of
from ..templates.geometry import TAPE, Point
from ..templates.kinds import BAR, LOAD_CENTER
from ..templates.layout import PinnedBody
from ..templates.write import (
    ASSUMED,
    BAR_SPREAD,
    ZEROS,
    assumed,
    cylinder_lines,
    metres,
    outline,
    position_line,
    pressure_lines,
)
from .answers import RobotAnswers
from .chain import ChainBody, RobotChain
from .layout import SLID, RobotLayout, measured_chain
from .masses import LinkMass, masses_of, placeholders

SWING_NOISE = 0.1               # deg: deviation of a sample of a joint that is measured alone
ENCODER_ZERO = 0.1              # deg: deviation of the zero of an arm's encoder
LOAD_SPREAD = 0.05              # m: of the centre of an arm's load
ROTOR_SPREAD = '50 %'           # of the inertia of a rotor
PRODUCTS = ('xy', 0, 1), ('xz', 0, 2), ('yz', 1, 2)
LEAST = 0.1                     # of the typical mass of rocker and link, where it is in the mass of the links
ROUND = 1e-6                    # of the largest moment: products below are 0


def robot_text(answers: RobotAnswers, layout: RobotLayout) -> str:
    """The file."""
    chain = measured_chain(answers)
    return '\n'.join([*_head(answers, layout), *_ground(chain, layout), *_bodies(answers, chain, layout),
                      *_joints(answers, chain, layout), *_actuators(answers, layout), *_payload(answers, chain, layout),
                      *_sensors(answers, layout), *_sources(answers)]) + '\n'


def _head(answers: RobotAnswers, layout: RobotLayout) -> Iterator[str]:
    chain = answers.chain
    yield f'# Written by `mbse new` from {chain.path.name}. Frames, axes, zeros and names are those of the URDF;'
    up = answers.values['up']
    yield (f'# the ground is {chain.robot.root}' + f', turned so that its {up} is z' * (up != 'z')
           + '. What says `assumed` is typical; `mbse calibrate` finds it.')
    if chain.aside:
        yield f'# Held at 0, as they do not lead to {chain.tool}, or mimic others: {", ".join(chain.aside)}.'
    yield from ('format: mbse/machine/2', f'name: {answers.values["name"]}',
                f'source: {chain.path.name}' + ', pins by tape measure' * bool(layout.cylinders),
                'gravity: 9.81 m/s^2', 'dimension: 3')
    yield f'independent: [{", ".join(_independent(answers))}]'
    if answers.values['positions'][0] != 'angles':
        starts = _starts(answers, layout)
        yield 'initial: {position: {' + ', '.join(f'{name}: {start}' for name, start in starts.items()) + '}}'
    yield from [''] if layout.cylinders else ['base: {roll: 0, pitch: 0}', '']


def _independent(answers: RobotAnswers) -> list[str]:
    pistons = answers.cylinders if answers.values.get('positions', ('angles', 0))[0] != 'angles' else {}
    return [pistons.get(body.joint.name, body.joint.name) for body in answers.chain.bodies]


def _starts(answers: RobotAnswers, layout: RobotLayout) -> dict[str, str]:
    found = {}
    pistons = {item.name: item for item in layout.cylinders}
    for body, name in zip(answers.chain.bodies, _independent(answers)):
        if name in pistons:
            found[name] = metres(0.5 * (pistons[name].sizes[3] - pistons[name].sizes[2]))
        else:
            found[name] = _value(body, layout.starts.get(body.joint.name, body.middle))
    return found


def _value(body: ChainBody, value: float) -> str:
    return metres(value) if body.slides else f'{round(math.degrees(value), 2):g} deg'


def _ground(chain: RobotChain, layout: RobotLayout) -> Iterator[str]:
    first = chain.bodies[0]
    yield 'points:'
    yield f'  {first.joint.name}: {{fixed: {_vector(first.place)}}}'
    if layout.cylinders and _before(chain, layout) == GROUND:
        yield from (f'  {pin}: {{fixed: {_pin(layout, "", place, (TAPE, TAPE))}}}'
                    for pin, place in layout.ground.items() if not pin.endswith(SLID))
    yield ''


def _before(chain: RobotChain, layout: RobotLayout) -> str:
    """The body that holds the first one that a cylinder moves."""
    return next(body.parent for body in chain.bodies if body.name in layout.frames)


def _bodies(answers: RobotAnswers, chain: RobotChain, layout: RobotLayout) -> Iterator[str]:
    yield 'bodies:                                      # moments of inertia about the centre of mass'
    masses = masses_of(chain, answers.moves, answers.values.get('mass', 0.0), answers.values.get('masses', 0.05))
    pinned = {body.link.name: body for body in layout.bodies}
    reasons = placeholders(chain, answers.moves)
    first = next((k for k, body in enumerate(chain.bodies) if body.name in layout.frames), 0)
    for k, (body, mass) in enumerate(zip(chain.bodies, masses)):
        points = {'pin': _vector(np.zeros(3))}
        if k < len(chain.bodies) - 1:
            points[chain.bodies[k + 1].joint.name] = _vector(chain.bodies[k + 1].place)
        else:
            points['tip'] = _vector(chain.tip[0])
        own = dict(pinned[body.name].points) if body.name in pinned else {}
        if layout.cylinders and _before(chain, layout) == body.name:
            own = {pin: (place, (TAPE, TAPE)) for pin, place in layout.ground.items()}
        frame = '' if body.name not in pinned else body.name
        points |= {pin: _pin(layout, frame, place, spread) for pin, (place, spread) in own.items()
                   if pin not in ('pin', 'end', 'tip') and not pin.endswith(SLID)}
        center = _vector(mass.center) if k < first else _center(layout, body.name, mass)      # what only swings: none
        yield from _body(body.name, points, mass, center, reasons.get(body.name, ''))
        if body.name in pinned:
            inner = {name: place for name, place in pinned[body.name].points.items() if not name.endswith(SLID)}
            ends = {'end': chain.bodies[k + 1].joint.name} if 'end' in inner else {}
            around = outline(replace(pinned[body.name], points=inner))
            yield f'    outline: [{", ".join(ends.get(name, name) for name in around)}]'
    total = answers.values.get('mass', sum(item.mass for item in masses))
    share, spread = answers.values.get('cylinder_masses', (1.0, 0.0))
    for item in layout.bodies:
        if item.link.name not in {body.name for body in chain.bodies}:
            yield from _bar(item, BAR * total * max(share, LEAST), max(spread, BAR_SPREAD))
    yield ''


def _center(layout: RobotLayout, name: str, mass: LinkMass) -> str:
    """With deviations in the plane in which cylinders move the body, or in all directions."""
    size, source = mass.center_spread, f', {ASSUMED}' if mass.assumed else ''
    stddev = _spread(layout, name, (size, size)) if name in layout.frames else metres(float(f'{size:.2g}'))
    return f'{{value: {_vector(mass.center)}, stddev: {stddev}{source}}}'


def _body(name: str, points: dict[str, str], mass: LinkMass, center: str, reason: str) -> Iterator[str]:
    value, why = f'{mass.mass:.6g}', f'   # the URDF has {reason}' if reason else ''
    source = f', {ASSUMED}' if mass.assumed else ''
    yield f'  {name}:{why}'
    yield f'    mass: {{value: {value} kg, stddev: {100.0 * mass.spread:g} %{source}}}'
    yield f'    center_of_mass: {center}'
    spread = f'stddev: {100.0 * mass.inertia_spread:g} %, {ASSUMED}'
    moments = [f'{axis}: ' + (f'{{value: {mass.inertia[k, k]:.4g}, {spread}}}' if mass.inertia_spread else
                              f'{mass.inertia[k, k]:.6g}') for k, axis in enumerate(('xx', 'yy', 'zz'))]
    small = ROUND * float(np.abs(mass.inertia).max())
    moments += [f'{axis}: {mass.inertia[i, j]:.6g}' for axis, i, j in PRODUCTS if abs(mass.inertia[i, j]) > small]
    yield f'    inertia: {{{", ".join(moments)}}}'
    yield '    points:'
    yield from (f'      {pin}: {place}' for pin, place in points.items())


def _bar(body: PinnedBody, mass: float, stddev: float) -> Iterator[str]:
    ends = ', '.join(f'{pin}: [{metres(place[0])}, 0 m, 0 m]' if not any(spread) else
                     f'{pin}: {{value: [{metres(place[0])}, 0 m, 0 m], stddev: [5 mm, 0 m, 0 m]}}'
                     for pin, (place, spread) in body.points.items())
    yield f'  {body.link.name}: {{mass: {assumed(mass, "kg", stddev)}, uniform: true,'
    yield f'    points: {{{ends}}}}}'


def _joints(answers: RobotAnswers, chain: RobotChain, layout: RobotLayout) -> Iterator[str]:
    yield 'joints:'
    for body in chain.bodies:
        limits = layout.ranges.get(body.joint.name, body.joint.limits)
        ends = '' if limits is None else ', limits: [' + ', '.join(
            metres(end) if body.slides else f'{math.degrees(end):.7g} deg' for end in limits) + ']'
        start = layout.starts.get(body.joint.name, body.middle)
        yield f'  {body.joint.name}:'
        yield (f'    {{type: {body.joint.type}, parent: {body.parent}.{body.joint.name}, child: {body.name}.pin, '
               f'axis: {_plain(body.axis)},')
        yield f'     {_rpy(body.turned)}start: {_value(body, start)}{ends}}}'
    for joint in layout.joints:
        if joint.name in {body.joint.name for body in chain.bodies}:
            continue
        yield from _bar_joint(joint.name, joint.parent, joint.child, joint.start, layout)
    yield ''


def _bar_joint(name: str, parent: str, child: str, start: float, layout: RobotLayout) -> Iterator[str]:
    """Of rocker and link, whose frames have x along them, and y to the left."""
    nothing = np.eye(3)
    frames = [layout.frames[body].basis if body in layout.frames else nothing
              for body in (parent.partition('.')[0], child.partition('.')[0])]
    turned = frames[0] @ frames[1].T
    begins = '' if math.isnan(start) else f', start: {math.degrees(start):.2f} deg'
    yield f'  {name}: {{type: revolute, parent: {parent}, child: {child},'
    yield f'    {_rpy(turned)}axis: {_plain(-frames[0][:, 1])}{begins}}}'


def _rpy(turned: np.ndarray) -> str:
    angles = [f'{math.degrees(angle) + 0.0:.9g}' for angle in rpy_of(turned)]
    if all(abs(float(angle)) < 1e-7 for angle in angles):
        return ''
    return 'rpy: [' + ', '.join('0' if abs(float(angle)) < 1e-7 else f'{angle} deg' for angle in angles) + '], '


def _actuators(answers: RobotAnswers, layout: RobotLayout) -> Iterator[str]:
    if layout.cylinders:
        owner = _before(answers.chain, layout)
        yield from cylinder_lines(layout.cylinders, lambda pin: pin.replace('ground.', f'{owner}.'),
                                  *answers.values['cylinder_masses'])
    for k, body in enumerate(_driven(answers)):
        if not k:
            yield 'drives:                                      # friction: assumed, some 3 % of the largest effort'
        unit = FORCES['m' if body.slides else 'rad']
        more = _friction(body, answers.values['largest'][k]), _current(answers, body, k), _rotor(answers, body, k)
        yield (f'  {body.joint.name}: {{joint: {body.joint.name}, largest: {answers.values["largest"][k]:g} {unit}'
               + ''.join(more) + '}')
    yield ''


def _driven(answers: RobotAnswers) -> list[ChainBody]:
    return [body for body in answers.chain.bodies if answers.moves[body.joint.name] == 'drive']


def _friction(body: ChainBody, largest: float) -> str:
    """That of the URDF, where it has one."""
    unit, rate = ('N', 'N*s/m') if body.slides else ('N*m', 'N*m*s/rad')
    given = [f'{key}: {{value: {value:g} {what}, stddev: 50 %}}' for key, value, what in (
        ('coulomb', body.motor.friction, unit), ('static', body.motor.friction, unit),
        ('viscous', body.motor.damping, rate)) if value > 0.0]
    return f',\n    friction: {{preset: typical, {", ".join(given)}}}' if given else ''


def _current(answers: RobotAnswers, body: ChainBody, count: int) -> str:
    if answers.values['efforts'] != 'current':
        return ''
    unit = 'N/A' if body.slides else 'N*m/A'
    return (f', gear_ratio: {answers.values["gear_ratios"][count]:g}, '
            f'torque_constant: {answers.values["torque_constants"][count]:g} {unit}')


def _rotor(answers: RobotAnswers, body: ChainBody, count: int) -> str:
    """What the motor accelerates besides: `mbse calibrate` finds it from here."""
    inertia = answers.values['rotor_inertias'][count]
    unit = 'kg' if body.slides else 'kg*m^2'
    return f', rotor_inertia: {{value: {inertia:g} {unit}, stddev: {ROTOR_SPREAD}}}' if inertia > 0.0 else ''


def _payload(answers: RobotAnswers, chain: RobotChain, layout: RobotLayout) -> Iterator[str]:
    last = chain.bodies[-1]
    limits = f'limits: [0 kg, {answers.values["load"]:g} kg]'
    word = answers.moves[last.joint.name]
    if word == 'linkage':
        frame = layout.frames[last.name]
        side = math.copysign(1.0, next(body for body in layout.bodies if body.link.name == last.name
                                       ).points['link_pin'][0][1])
        along, off, spread = (part * frame.length for part in LOAD_CENTER)
        place = _pin(layout, last.name, (along, side * off), (spread, spread), f', {ASSUMED}')
        yield f'payload: {{body: {last.name}, contact: {last.name}.tip, {limits},'
        yield f'  center: {place}}}'
    elif word == 'drive':
        center = chain.tip[0] + chain.tip[1] @ np.array(answers.values['load_center'])
        yield f'payload: {{body: {last.name}, {limits},'
        yield f'  center: {{value: {_vector(center)}, stddev: {metres(LOAD_SPREAD)}, {ASSUMED}}}}}'
    else:
        hanging = answers.values.get('hanging')
        swings = '' if hanging is None else (
            f', hanging: {{value: {metres(hanging)}, stddev: {metres(0.1 * hanging)}}}')
        yield f'payload: {{point: {last.name}.tip, {limits}{swings}}}'
    yield ''


def _sensors(answers: RobotAnswers, layout: RobotLayout) -> Iterator[str]:
    word, stddev = answers.values['positions']
    pistons, drives = {item.name for item in layout.cylinders}, _driven(answers)
    yield 'sensors:'
    for body in answers.chain.bodies:
        joint = body.joint.name
        cylinder = answers.cylinders.get(joint, '')
        if cylinder in pistons:
            yield '  ' + position_line(word, stddev, cylinder, joint, body.name, body.slides)
        elif body in drives:
            own = f'{stddev:.3g} rad' if not pistons else f'{SWING_NOISE:g} deg'
            noise, zero = ('0.1 mm', '1 mm') if body.slides else (own, f'{ENCODER_ZERO:g} deg')
            yield (f'  {joint}_encoder: {{kind: encoder, coordinate: {joint}, stddev: {noise}, '
                   f'bias: {{value: 0, stddev: {zero}, {ASSUMED}}}}}')
        else:
            noise = metres(ZEROS['m']) if body.slides else f'{SWING_NOISE:g} deg'
            yield f'  {joint}_sensor: {{kind: encoder, coordinate: {joint}, stddev: {noise}}}'
    for k, body in enumerate(drives):
        yield from _effort(answers, body, k)
    if pistons:
        yield from pressure_lines(answers.pressures, *answers.values['pressure_sensors'])
    yield ''


def _effort(answers: RobotAnswers, body: ChainBody, count: int) -> Iterable[str]:
    kind, unit = answers.values['efforts'], FORCES['m' if body.slides else 'rad']
    noise = answers.values['effort_stddev'][count]
    unit = 'A' if kind == 'current' else unit
    yield (f'  {body.joint.name}_{kind}: {{kind: {kind}, drive: {body.joint.name}, stddev: {noise:g} {unit}, '
           f'gain: {{value: 1, stddev: {100.0 * answers.values["gain"]:g} %, {ASSUMED}}}}}')


def _sources(answers: RobotAnswers) -> Iterator[str]:
    topic, word = answers.values['joint_states'], answers.values['positions'][0]
    lines = []
    for body in answers.chain.bodies:
        joint, name = body.joint.name, body.motor.written
        if word == 'angles' or joint not in answers.cylinders:
            lines.append(f'    position/{joint}: {{topic: {topic}, path: {_path("position", name)}, '
                         f'unit: {"m" if body.slides else "rad"}}}')
        if body in _driven(answers):
            unit = 'A' if answers.values['efforts'] == 'current' else FORCES['m' if body.slides else 'rad']
            lines.append(f'    effort/{joint}: {{topic: {topic}, path: {_path("effort", name)}, unit: {unit}}}')
    if topic and lines:
        yield from ('sources:        # what it leaves out comes on our own topics; `mbse topics` proposes the others',
                    '  channels:', *lines)


def _path(field: str, name: str) -> str:
    """As a word of YAML; a name with odd letters stands between quotes."""
    return f"'{field}[name={name}]'" if name.replace('_', '').isalnum() else f"'{field}[name=\"{name}\"]'"


def _vector(place: np.ndarray) -> str:
    return f'[{", ".join(metres(float(item)) for item in place)}]'


def _plain(axis: np.ndarray) -> str:
    return '[' + ', '.join(f'{round(float(item), 9) + 0.0:.9g}' for item in axis) + ']'


def _pin(layout: RobotLayout, frame: str, place: Point, spread: Point, source: str = '') -> str:
    """A point in the plane, in the frame of its body."""
    value = _vector(layout.frames[frame].point(*place))
    return f'{{value: {value}, stddev: {_spread(layout, frame, spread)}{source}}}' if any(spread) else value


def _spread(layout: RobotLayout, frame: str, spread: Point) -> str:
    """Deviations along the axes of the body, of those in the plane."""
    stddev = layout.frames[frame].spread(spread)
    return '[' + ', '.join(metres(float(f'{item:.2g}')) for item in np.where(stddev < 1e-6, 0.0, stddev)) + ']'
