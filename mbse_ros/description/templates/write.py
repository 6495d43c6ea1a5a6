# SPDX-License-Identifier: Apache-2.0
"""The text of a machine file from a layout, for a person to read: one line a thing, and `assumed` where it is so."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from .forms import POSITIONS
from .geometry import TAPE, Point
from .kinds import (
    BAR,
    CENTER_SPREAD,
    FITTINGS,
    INERTIA_SPREAD,
    LOAD_CENTER,
    MASS_SPREAD,
    STEEL,
    WALL,
)
from .layout import MachineLayout, PinnedBody, PlacedCylinder, Turning

ASSUMED = 'source: assumed'
ZEROS = {'m': 0.005, 'rad': math.radians(1.0)}      # deviation of a position sensor's zero, as mounted
BAR_SPREAD = 0.5
SLIDE = 2e-3        # m: deviation of a sample of a telescope's sensor
UPPER = 0.8, 0.2    # of the mass: all that swings but boom, arm and bucket; radius of gyration, of the boom's length


def text_of(layout: MachineLayout) -> str:
    """The file."""
    swings = _swing(layout) is not None
    return '\n'.join([*_head(layout), *_ground(layout), *_bodies(layout), *_joints(layout), *cylinder_lines(
        layout.cylinders, lambda pin: _owned(pin, swings)), '', *_payload(layout), *_sensors(layout)]) + '\n'


def _swing(layout: MachineLayout) -> float | None:
    return layout.answers.swing()


def _head(layout: MachineLayout) -> list[str]:
    answers = layout.answers
    return [
        f'# {layout.kind.name}, written by `mbse new`: {layout.kind.text}. x forward, y left, z up.',
        '# Frames start at the first pin of a body, x points to its last pin. Joints: 0 where bodies are in line.',
        '# Pins: lengths by tape measure, 5 mm. What says `assumed` is typical of the kind; `mbse calibrate` finds it.',
        'format: mbse/machine/2',
        f'name: {answers.name}',
        f'source: lengths by tape measure, masses assumed from {_rounded(answers.mass):g} kg in all',
        'gravity: 9.81 m/s^2', 'dimension: 3', f'independent: [{", ".join(_independent(layout))}]',
        'initial: {position: {' + ', '.join(f'{name}: {start}' for name, start in zip(
            _independent(layout), _starts(layout))) + '}}', '']


def _independent(layout: MachineLayout) -> list[str]:
    word, _ = layout.answers.positions()
    swing = ['swing_joint'] * (_swing(layout) is not None)
    moved = [joint.name for joint in layout.joints if joint.limits is not None]
    return swing + (moved if word == 'angles' else [cylinder.name for cylinder in layout.cylinders])


def _starts(layout: MachineLayout) -> list[str]:
    """Of the independent coordinates: the middle of all strokes."""
    word, _ = layout.answers.positions()
    swing = ['0 deg'] * (_swing(layout) is not None)
    if word == 'angles':
        return swing + [_start(joint) for joint in layout.joints if joint.limits is not None]
    return swing + [metres(0.5 * (item.sizes[3] - item.sizes[2])) for item in layout.cylinders]


def _ground(layout: MachineLayout) -> list[str]:
    """The first pins, on the ground or on the upper structure."""
    if _swing(layout) is None:
        return ['points:', '  foot: {fixed: [0 m, 0 m, 0 m]}', *(
            f'  {name}: {{fixed: {_place(place, (TAPE, TAPE))}}}' for name, place in layout.ground.items()), '']
    return ['points:', '  swing_axis: {fixed: [0 m, 0 m, 0 m]}', '']


def _bodies(layout: MachineLayout) -> Iterable[str]:
    yield 'bodies:                                      # moments of inertia about the centre of mass'
    mass, ahead = layout.answers.mass, _swing(layout)
    if ahead is not None:
        upper = UPPER[0] * mass
        bases = ''.join(f', {name}: {_place((ahead + x, z), (TAPE, TAPE))}' for name, (x, z) in layout.ground.items())
        yield from ('  upper:                                     # it only swings',
                    f'    mass: {assumed(upper, "kg", MASS_SPREAD)}', '    center_of_mass: [0 m, 0 m, 0 m]',
                    f'    inertia: {{zz: {assumed(upper * (UPPER[1] * layout.bodies[0].length) ** 2, "kg*m^2", 0.5)}'
                    '}',
                    f'    points: {{axis: [0 m, 0 m, 0 m], foot: {_place((ahead, 0.0), (TAPE, 0.0))}{bases}}}')
    for body in layout.bodies:
        yield from _body(body, mass, ahead is not None)
    if (grapple := layout.answers.grapple()) is not None:
        yield (f'  grapple: {{mass: {{value: {_rounded(grapple):g} kg, stddev: 5 %}}, center_of_mass: [0 m, 0 m, 0 m], '
               'inertia: {yy: 1 kg*m^2}, points: {pin: [0 m, 0 m, 0 m]}}  # as if at the tip')
    yield ''


def _body(body: PinnedBody, mass: float, swings: bool) -> Iterable[str]:
    link, length = body.link, body.length
    points = [f'{name}: {_place(place, stddev)}' for name, (place, stddev) in body.points.items()]
    if not link.share:
        yield f'  {link.name}: {{mass: {assumed(BAR * mass, "kg", BAR_SPREAD)}, uniform: true,'
        yield f'    points: {{{", ".join(points)}}}}}'
        return
    own = _rounded(link.share * mass)
    along, off = (part * length for part in link.center)
    center = CENTER_SPREAD * length
    moment = own * (link.gyration * length) ** 2
    moments = f'yy: {assumed(moment, "kg*m^2", INERTIA_SPREAD)}'
    if swings:
        moments = f'xx: {_rounded(0.1 * moment):g} kg*m^2, zz: {_rounded(moment):g} kg*m^2, {moments}'
    yield f'  {link.name}: {{mass: {assumed(own, "kg", MASS_SPREAD)}, outline: [{", ".join(outline(body))}],'
    yield f'    inertia: {{{moments}}},'
    yield f'    center_of_mass: {_place((along, off), (center, center), True)},'
    yield f'    points: {{{points[0]}, {points[1]}{"," if points[2:] else "}}"}'
    yield from (f'      {point}{"," if k < len(points) - 1 else "}}"}' for k, point in enumerate(points[2:], 2))


def outline(body: PinnedBody) -> list[str]:
    """All pins around the body, from the first one back to it."""
    middle = [sum(place[axis] for place, _ in body.points.values()) / len(body.points) for axis in range(2)]
    around = sorted(body.points, key=lambda name: math.atan2(
        body.points[name][0][1] - middle[1], body.points[name][0][0] - middle[0]))
    first = around.index('pin')
    return [*around[first:], *around[:first], 'pin']


def _joints(layout: MachineLayout) -> Iterable[str]:
    yield 'joints:                                      # starts: every cylinder in the middle of its stroke'
    swings = _swing(layout) is not None
    if swings:
        yield ('  swing_joint: {type: revolute, parent: ground.swing_axis, child: upper.axis, axis: [0, 0, 1], '
               'start: 0 deg}')
    for joint in layout.joints:
        if joint.slides and joint.limits is not None:
            low, high = map(metres, joint.limits)
            yield (f'  {joint.name}: {{type: prismatic, parent: {joint.parent}, child: {joint.child}, axis: [1, 0, 0], '
                   f'start: {metres(joint.start)}, limits: [{low}, {high}]}}')
            continue
        start = '' if math.isnan(joint.start) else f', start: {_degrees(joint.start)}'
        limits = '' if joint.limits is None else f', limits: [{math.floor(math.degrees(joint.limits[0]))} deg, ' \
            f'{math.ceil(math.degrees(joint.limits[1]))} deg]'
        yield (f'  {joint.name}: {{type: revolute, parent: {_owned(joint.parent, swings)}, child: {joint.child}, '
               f'axis: [0, -1, 0]{start}{limits}}}')
    if layout.answers.grapple() is not None:
        yield f'  grapple_joint: {{type: fixed, parent: {_last(layout)}.tip, child: grapple.pin}}'
    yield ''


def _last(layout: MachineLayout) -> str:
    """The last body of the chain."""
    return layout.kind.links[-1].name


def _owned(pin: str, swings: bool) -> str:
    """Pins of the ground are those of the upper structure where it swings."""
    return pin.replace('ground.', 'upper.') if swings else pin


def cylinder_lines(cylinders: Iterable[PlacedCylinder], owned: Callable[[str], str], share: float = 1.0,
                   spread: float = MASS_SPREAD) -> Iterable[str]:
    """The section of the cylinders; ``owned``: a pin of the ground by its body; ``share`` of their typical masses that
    counts, and its deviation."""
    yield 'cylinders:                                   # friction, oil, hoses and valves: typical, as nothing is said'
    for item in cylinders:
        barrel, rod = (share * mass for mass in masses_of(item))
        closed, extended = item.sizes[2:]
        count = f', count: {item.count}' if item.count > 1 else ''
        yield (f'  {item.name}: {{base: {owned(item.base)}, rod_eye: {item.eye}{count}, '
               f'bore: {1e3 * item.sizes[0]:g} mm, rod: {1e3 * item.sizes[1]:g} mm, '
               f'closed_length: {metres(closed)}, stroke: {metres(extended - closed)}' + (',' if share else '}'))
        if share:
            yield (f'    barrel_mass: {assumed(barrel, "kg", spread)}, rod_mass: {assumed(rod, "kg", spread)}}}')


def masses_of(cylinder: PlacedCylinder) -> tuple[float, float]:
    """Of barrel and rod, kg: a tube and a bar of steel, with fittings."""
    bore, rod, closed, extended = cylinder.sizes
    metre = STEEL * math.pi * FITTINGS
    return _rounded(metre * WALL * (1 + WALL) * bore ** 2 * (extended - closed)), _rounded(
        metre * 0.25 * rod ** 2 * (extended - closed))


def _payload(layout: MachineLayout) -> Iterable[str]:
    load = layout.answers.load
    limits = f'limits: [0 kg, {_rounded(load):g} kg]'
    if layout.kind.bucket:
        size = layout.bodies[len(layout.kind.links)].length
        along, off, spread = (part * size for part in LOAD_CENTER)
        yield f'payload: {{body: bucket, contact: bucket.teeth, {limits},'
        yield f'  center: {_place((along, off), (spread, spread), True)}}}'
    else:
        hanging = layout.answers.hanging()
        swings = '' if hanging is None else (
            f', hanging: {{value: {metres(hanging)}, stddev: {metres(0.1 * hanging)}}}')
        yield f'payload: {{point: {_last(layout)}.tip, {limits}{swings}}}'
    yield ''


def _sensors(layout: MachineLayout) -> Iterable[str]:
    answers = layout.answers
    (word, stddev), (limit, gauge) = answers.positions(), answers.pressure_sensors()
    yield 'sensors:'
    if _swing(layout) is not None:
        yield '  swing_angle: {kind: encoder, coordinate: swing_joint, stddev: 0.1 deg}'
    moved = [joint for joint in layout.joints if joint.limits is not None]
    for item, joint in zip(layout.cylinders, moved):
        yield '  ' + position_line(word, stddev, item.name, joint.name, joint.child.partition('.')[0], joint.slides)
    yield from pressure_lines(answers.pressures(), limit, gauge)


def position_line(word: str, stddev: float, cylinder: str, joint: str, body: str, slides: bool) -> str:
    """The sensor of one cylinder or its joint: ``word`` of ``POSITIONS``, deviation of a sample, m or rad."""
    unit = POSITIONS[word][0]
    if slides and unit != 'm':
        what = f'encoder, coordinate: {joint}' if word == 'angles' else f'stroke, cylinder: {cylinder}'
        return (f'{cylinder}_stroke: {{kind: {what}, stddev: {_amount(SLIDE, "m")}, '
                f'bias: {{value: 0 m, stddev: {_amount(ZEROS["m"], "m")}, {ASSUMED}}}}}')
    place = {'strokes': f'{cylinder}_stroke: {{kind: stroke, cylinder: {cylinder}',
             'angles': f'{body}_angle: {{kind: encoder, coordinate: {joint}',
             'inclinations': f'{body}_inclination: {{kind: inclinometer, body: {body}'}[word]
    return (f'{place}, stddev: {_amount(stddev, unit)}, bias: {{value: 0 {"m" if unit == "m" else "deg"}, '
            f'stddev: {_amount(ZEROS[unit], unit)}, {ASSUMED}}}}}')


def pressure_lines(cylinders: Iterable[str], limit: float, gauge: bool) -> Iterable[str]:
    """The sensors of both sides of cylinders."""
    kind = (f'stddev: {_rounded(1e-3 * limit) / 1e3:g} kPa, range: [0 MPa, {1e-6 * limit:g} MPa]'
            + ', reference: gauge' * gauge)
    for name in cylinders:
        for side in ('piston', 'rod'):
            yield f'  {name}_{side}: {{kind: pressure, volume: {name}_{side}, {kind}}}'


def assumed(value: float, unit: str, spread: float) -> str:
    """A number with a wide deviation."""
    return f'{{value: {_rounded(value):g} {unit}, stddev: {100.0 * spread:g} %, {ASSUMED}}}'


def _rounded(value: float) -> float:
    """Three digits."""
    return float(f'{value:.3g}')


def _place(place: Point, stddev: Point, assumed: bool = False) -> str:
    """x and z of a point with deviations; one without any is exact."""
    value = f'[{metres(place[0])}, 0 m, {metres(place[1])}]'
    if not any(stddev):
        return value
    source = f', {ASSUMED}' if assumed else ''
    return f'{{value: {value}, stddev: [{_milli(stddev[0])}, 0 m, {_milli(stddev[1])}]{source}}}'


def metres(value: float) -> str:
    """A length to 10 um."""
    return f'{round(value, 5) + 0.0:g} m' if abs(value) < 10 else f'{value:.7g} m'


def _milli(value: float) -> str:
    return f'{float(f"{1e3 * value:.2g}"):g} mm' if value else '0 m'


def _start(joint: Turning) -> str:
    return metres(joint.start) if joint.slides else _degrees(joint.start)


def _degrees(value: float) -> str:
    return f'{math.degrees(value):.2f} deg'


def _amount(value: float, unit: str) -> str:
    return f'{1e3 * value:g} mm' if unit == 'm' else f'{math.degrees(value):.3g} deg'
