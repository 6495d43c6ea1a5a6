# SPDX-License-Identifier: Apache-2.0
"""Mechanisms made by hand, without the reader of files: every joint, force and named coordinate, in plane and space."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

import numpy as np

from mbse_ros.description.model import (
    Body,
    Coordinate,
    Driver,
    Force,
    Initial,
    Joint,
    MechanismDescription,
    PointRef,
    Scalar,
    Sensor,
    Spring,
    Vector,
)

G = 9.81


def number(value: float, key: str = '', text: str = '', stddev: float = 0.0) -> Scalar:
    return Scalar(float(value), text, 1.0, stddev, key)


def vector(values: Iterable[float], key: str = '') -> Vector:
    return tuple(number(value, f'{key}.{axis}' if key else '') for value, axis in zip(values, 'xyz'))


def turned(angle: float) -> np.ndarray:
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def rotated(rpy: Sequence[float]) -> np.ndarray:
    """Rz(yaw) Ry(pitch) Rx(roll)."""
    roll, pitch, yaw = rpy
    x, y, z = np.eye(3), np.eye(3), np.eye(3)
    x[1:, 1:], z[:2, :2] = turned(roll), turned(yaw)
    y[np.ix_([2, 0], [2, 0])] = turned(pitch)
    return z @ y @ x


def point(text: str) -> PointRef:
    return PointRef(*text.split('.'))


def body(name: str, mass: float, points: dict[str, Sequence[float]], com: Sequence[float] = (),
         inertia: Sequence[float] = (), at: Sequence[float] = (0.0, 0.0), turn: float | Sequence[float] = 0.0) -> Body:
    """A body in a frame at ``at``, turned by an angle or by (roll, pitch, yaw); without ``inertia`` a uniform rod."""
    key = f'bodies.{name}'
    rotation = turned(turn) if len(at) == 2 else rotated(turn or (0.0, 0.0, 0.0))
    return Body(name, number(mass, f'{key}.mass'), vector(com, f'{key}.center_of_mass'),
                tuple(number(value, f'{key}.inertia.{k}') for k, value in enumerate(inertia)),
                {label: vector(place, f'{key}.points.{label}') for label, place in points.items()},
                tuple(at), tuple(map(tuple, rotation)), not inertia)


def bar(name: str, mass: float, ends: Sequence[str], sketch: dict[str, Sequence[float]], **more: object) -> Body:
    """A planar body from a point of a sketch to another, its x axis along it."""
    first, second = (np.array(sketch[end], dtype=float) for end in ends)
    along = second - first
    points = {ends[0]: (0.0, 0.0), ends[1]: (np.hypot(*along), 0.0)}
    return body(name, mass, points, at=tuple(first), turn=float(np.arctan2(along[1], along[0])), **more)


def joint(name: str, kind: str, parent: str, child: str, axis: Sequence[float] = (), rpy: Sequence[float] = (),
          axis2: Sequence[float] = (), length: float | None = None) -> Joint:
    unit = [tuple(np.array(a, dtype=float) / np.linalg.norm(a)) if len(a) else () for a in (axis, axis2)]
    return Joint(name, kind, point(parent), point(child), unit[0],
                 tuple(number(angle, f'joints.{name}.rpy.{k}') for k, angle in enumerate(rpy)), unit[1],
                 None if length is None else number(length, f'joints.{name}.length'))


def pins(*pairs: str) -> list[Joint]:
    """Revolute joints, each written 'parent.point child.point'."""
    return [joint(f'pin{k}', 'revolute', *pair.split()) for k, pair in enumerate(pairs)]


def angle(name: str, *bodies: str, branches: bool = False) -> Coordinate:
    return Coordinate(name, 'angle', bodies, branches=branches)


def along(name: str, joint_name: str) -> Coordinate:
    return Coordinate(name, 'joint', joint=joint_name)


def distance(name: str, first: str, second: str) -> Coordinate:
    return Coordinate(name, 'distance', points=(point(first), point(second)))


def component(name: str, of: str, index: int) -> Coordinate:
    return Coordinate(name, 'component', points=(point(of),), component=index)


def spring(name: str, on: str | tuple[str, str], stiffness: float, free: float, damping: float = 0.0) -> Spring:
    points = None if isinstance(on, str) else (point(on[0]), point(on[1]))
    numbers = (number(value, f'springs.{name}.{key}') for value, key in
               ((stiffness, 'stiffness'), (free, 'free'), (damping, 'damping')))
    return Spring(name, points, on if points is None else '', *numbers)


def force(name: str, on: str, value: Sequence[float] = (), direction: Sequence[float] = (), source: str = '') -> Force:
    """``on``: 'body.point', 'body:' or the name of a coordinate; ``source``: the input."""
    parts = {'point': point(on)} if '.' in on else {'body': on[:-1]} if on.endswith(':') else {'coordinate': on}
    unit = tuple(np.array(direction) / np.linalg.norm(direction)) if len(direction) else ()
    return Force(name, value=vector(value, f'forces.{name}.value'), direction=unit, input=source, **parts)


def mechanism(name: str, bodies: Sequence[Body], joints: Sequence[Joint], ground: dict[str, Sequence[float]],
              coordinates: Sequence[Coordinate] = (), springs: Sequence[Spring] = (), forces: Sequence[Force] = (),
              drivers: Sequence[Driver] = (), sensors: Sequence[Sensor] = (), position: dict[str, float] | None = None,
              parameters: dict[str, Scalar] | None = None, independent: tuple[str, ...] = ()) -> MechanismDescription:
    dimension = len(bodies[0].position)
    gravity = vector((0.3, -G) if dimension == 2 else (0.3, -0.2, -G), 'gravity')

    def named(items: Sequence) -> dict:
        return {item.name: item for item in items}
    return MechanismDescription(
        name, name, 'made by hand', dimension, gravity, parameters or {},
        {label: vector(place, f'points.{label}') for label, place in ground.items()}, named(bodies), named(joints),
        named(coordinates), named(springs), named(forces), named(drivers), named(sensors),
        'natural' if dimension == 2 else 'reference_point', independent,
        Initial({key: number(value) for key, value in (position or {}).items()}), {}, ())


def pendulum() -> MechanismDescription:
    """A uniform rod on a pin."""
    rod = body('rod', 5.0, {'A': (0.0, 0.0), 'P': (2.0, 0.0)}, turn=0.4)
    return mechanism('pendulum', [rod], pins('ground.A rod.A'), {'A': (0, 0)}, [angle('theta', 'rod')],
                     [spring('damper', 'theta', 0.0, 0.0, 0.7)], [force('motor', 'theta', source='torque')])


def reversed_chain() -> MechanismDescription:
    """Two arms with mass off their axes, every joint written from the far side, with a zero of its own."""
    upper = body('upper', 2.0, {'A': (0.1, -0.2), 'B': (1.0, 0.3)}, (0.4, 0.25), (0.3,), (0.0, 0.0), 0.5)
    lower = body('lower', 1.5, {'B': (-0.3, 0.1), 'C': (0.8, 0.0)}, (0.2, -0.3), (0.2,), (0.7, 0.9), -0.9)
    return mechanism(
        'reversed_chain', [upper, lower],
        [joint('shoulder', 'revolute', 'upper.A', 'ground.O', rpy=(0.4,)),
         joint('elbow', 'revolute', 'lower.B', 'upper.B', rpy=(-2.5,))], {'O': (0.2, 0.1)},
        [along('bend', 'elbow'), along('lift', 'shoulder'), angle('total', 'lower'), angle('inner', 'upper', 'lower'),
         component('tip', 'lower.C', 1)],
        [spring('coil', 'bend', 7.0, 0.3, 0.4), spring('shoulder_damper', 'lift', 0.0, 0.0, 0.2)],
        [force('motor', 'inner', source='torque'), force('wrist', 'lower:', (1.3,)),
         force('push', 'tip', (2.5,)), force('drag', 'lower.C', direction=(1, 2), source='drag')])


def elbow(first: Sequence[float], second: Sequence[float], near: float, far: float) -> tuple[float, ...]:
    """The point at a distance from the first and another from the second, to the left of the line between them."""
    base = np.array(second) - first
    length = np.hypot(*base)
    x = (length ** 2 + near ** 2 - far ** 2) / (2 * length)
    y = np.sqrt(max(0.0, near ** 2 - x ** 2))
    return tuple(np.array(first) + (x * base + y * np.array([-base[1], base[0]])) / length)


def four_bar(theta: float = np.pi / 3, **more: object) -> MechanismDescription:
    """Benchmark of Naya et al., review with the crank at an angle, the elbow up, with whatever else."""
    sketch = {'A': (0, 0), 'B': (10, 0), 'P1': (2 * np.cos(theta), 2 * np.sin(theta))}
    sketch['P2'] = elbow(sketch['P1'], sketch['B'], 8.0, 5.0)
    bars = [bar('crank', 2.0, ('A', 'P1'), sketch), bar('coupler', 8.0, ('P1', 'P2'), sketch),
            bar('rocker', 5.0, ('P2', 'B'), sketch)]
    parts = {'coordinates': [angle('theta', 'crank')], 'forces': [force('motor', 'theta', source='torque')]} | more
    return mechanism('four_bar', bars, pins('ground.A crank.A', 'crank.P1 coupler.P1', 'coupler.P2 rocker.P2',
                                            'ground.B rocker.B'), {'A': (0, 0), 'B': (10, 0)}, **parts)


def four_bar_loaded() -> MechanismDescription:
    """Springs, dampers and all kinds of planar forces on the four-bar; the paper's two branches."""
    return four_bar(
        coordinates=[angle('theta', 'crank', branches=True), angle('phi', 'crank', 'coupler', branches=True),
                     distance('d', 'ground.B', 'crank.P1'), component('x', 'coupler.P2', 0)],
        springs=[spring('bend', 'phi', 50.0, -1.0, 3.0), spring('coil', ('ground.B', 'crank.P1'), 20.0, 7.0, 2.0),
                 spring('inner', ('crank.A', 'coupler.P2'), 4.0, 0.0, 0.5)],
        forces=[force('motor', 'theta', source='torque'), force('weight', 'coupler.P2', (3.0, -20.0)),
                force('push', 'crank.P1', direction=(1, 1), source='push'), force('spin', 'rocker:', source='spin'),
                force('cylinder', 'd', source='push'), force('side', 'x', (4.0,))])


def slider_crank() -> MechanismDescription:
    """A block with a single point on a rail that is not level, turned in its joint."""
    rail = 0.3
    sketch = {'O': (0.1, 0.2), 'P': (0.1 + 0.1 * np.cos(1.2), 0.2 + 0.1 * np.sin(1.2))}
    stroke = 0.34
    sketch['S'] = tuple(np.array(sketch['O']) + stroke * np.array([np.cos(rail), np.sin(rail)]))
    crank = bar('crank', 1.2, ('O', 'P'), sketch, com=(0.03, 0.01), inertia=(0.002,))
    rod = bar('rod', 0.9, ('P', 'S'), sketch)
    piston = body('piston', 1.5, {'S': (0.0, 0.0)}, (0.02, -0.01), (1e-3,), sketch['S'], rail + 0.4)
    return mechanism(
        'slider_crank', [crank, rod, piston],
        [*pins('ground.O crank.O', 'crank.P rod.P', 'rod.S piston.S'),
         joint('rail', 'prismatic', 'ground.O', 'piston.S', (np.cos(rail), np.sin(rail)), (rail + 0.4,))],
        {'O': sketch['O']}, [angle('theta', 'crank'), along('stroke', 'rail')],
        [spring('buffer', 'stroke', 90.0, 0.3, 5.0)],
        [force('gas', 'piston.S', direction=(-1, 0), source='gas'), force('push', 'stroke', source='push')])


def inverted_slider() -> MechanismDescription:
    """A crank's pin in the slot of a swinging arm, whose end runs in a slot of the ground through a third bar."""
    sketch = {'A': (0, 0), 'B': (0, -1), 'P': (0.3, 0.25), 'E': (0.35, 0.5), 'F': (1.2, 0.8)}
    crank, link = bar('crank', 1.0, ('A', 'P'), sketch), bar('link', 0.7, ('E', 'F'), sketch)
    arm = bar('arm', 2.0, ('B', 'E'), sketch, com=(0.6, 0.05), inertia=(0.4,))
    return mechanism(
        'inverted_slider', [crank, arm, link],
        [*pins('ground.A crank.A', 'ground.B arm.B', 'arm.E link.E'),
         joint('pin_in_arm', 'slot', 'arm.B', 'crank.P', (1, 0.02)),
         joint('guide', 'slot', 'ground.C', 'link.F', (2, 0.5))], {'A': (0, 0), 'B': (0, -1), 'C': (0.2, 0.55)},
        [angle('theta', 'crank'), along('run', 'pin_in_arm'), along('stroke', 'guide')],
        [spring('return', 'run', 30.0, 1.0, 2.0)], [force('motor', 'crank:', source='torque'),
                                                    force('load', 'stroke', (-3.0,))])


def trammel() -> MechanismDescription:
    """A bar whose ends run in two slots of the ground, the second written from the bar."""
    beam = body('beam', 3.0, {'P': (0.0, 0.0), 'Q': (1.0, 0.0)}, at=(0.6, 0.0), turn=2.2)
    return mechanism('trammel', [beam], [joint('level', 'slot', 'ground.O', 'beam.P', (1, 0)),
                                         joint('upright', 'slot', 'ground.O', 'beam.Q', (0.1, 1))], {'O': (0, 0)},
                     [along('s', 'level'), angle('theta', 'beam')], [spring('coil', 's', 5.0, 0.1, 0.3)],
                     [force('push', 's', source='push')])


def rod_coupled() -> MechanismDescription:
    """Two pendulums tied by a massless rod between points beside their axes."""
    left = body('left', 2.0, {'A': (0.0, 0.0), 'P': (0.5, 0.2)}, (0.3, -0.1), (0.2,), turn=-1.2)
    right = body('right', 1.0, {'B': (0.0, 0.0), 'Q': (0.6, -0.1)}, (0.4, 0.1), (0.1,), (1.5, 0.0), -1.4)
    gap = np.linalg.norm(np.array([1.5, 0.0]) + turned(-1.4) @ [0.6, -0.1] - turned(-1.2) @ [0.5, 0.2])
    return mechanism('rod_coupled', [left, right],
                     [*pins('ground.A left.A', 'ground.B right.B'),
                      joint('rod', 'distance', 'left.P', 'right.Q', length=gap)], {'A': (0, 0), 'B': (1.5, 0)},
                     [angle('a', 'left'), angle('b', 'right')], [spring('s', 'b', 2.0, 0.0, 0.1)],
                     [force('motor', 'a', source='torque')])


def three_legs() -> MechanismDescription:
    """A plate with its three points on three legs; one upper bar has no mass: three degrees of freedom."""
    sketch = {f'A{k}': 1.5 * np.array([np.cos(t), np.sin(t)]) for k, t in enumerate((-2.4, -0.6, 1.6))}
    sketch |= {f'C{k}': 0.4 * np.array([np.cos(t), np.sin(t)]) for k, t in enumerate((-2.5, -0.5, 1.5))}
    sketch |= {f'B{k}': 0.5 * (sketch[f'A{k}'] + sketch[f'C{k}']) + 0.4 * np.array([np.sin(k), np.cos(k)])
               for k in range(3)}
    lower = [bar(f'lower{k}', 1.0 + 0.2 * k, (f'A{k}', f'B{k}'), sketch) for k in range(3)]
    upper = [bar(f'upper{k}', 0.8 * k, (f'B{k}', f'C{k}'), sketch) for k in range(3)]
    plate = body('plate', 2.0, {f'C{k}': turned(-0.2) @ (sketch[f'C{k}'] - sketch['C0']) for k in range(3)},
                 (0.3, 0.2), (0.15,), tuple(sketch['C0']), 0.2)
    joints = [f'ground.A{k} lower{k}.A{k}' for k in range(3)] + [f'lower{k}.B{k} upper{k}.B{k}' for k in range(3)]
    joints += [f'upper{k}.C{k} plate.C{k}' for k in range(3)]
    return mechanism('three_legs', [*lower, *upper, plate], pins(*joints), {f'A{k}': sketch[f'A{k}'] for k in range(3)},
                     [angle(f'drive{k}', f'lower{k}') for k in range(3)] + [angle('heading', 'plate')], (),
                     [force(f'motor{k}', f'drive{k}', source=f'torque{k}') for k in range(3)])


def welded() -> MechanismDescription:
    """An angle welded of two bars, a slide between moving bodies, and a free disc on a spring."""
    first = body('first', 1.0, {'A': (0.0, 0.0), 'B': (0.8, 0.0)}, turn=-0.7)
    corner = np.array(turned(-0.7) @ [0.8, 0.0])
    second = body('second', 0.6, {'B': (0.0, 0.1), 'C': (0.7, 0.0)}, (0.3, 0.1), (0.05,),
                  tuple(corner - turned(0.5) @ [0.0, 0.1]), 0.5)
    slide = (0.6, -0.3)
    place = corner - turned(0.5) @ [0.0, 0.1] + turned(0.5) @ (np.array([0.7, 0.0]) + 0.25 * np.array(slide))
    carriage = body('carriage', 1.1, {'D': (0.05, 0.1), 'E': (0.4, -0.2)}, (0.1, -0.1), (0.08,),
                    tuple(place - turned(1.4) @ [0.05, 0.1]), 1.4)
    disc = body('disc', 0.5, {'M': (0.0, 0.0), 'N': (0.2, 0.1)}, (0.05, 0.02), (0.01,), (1.0, -1.5), 0.6)
    return mechanism(
        'welded', [first, second, carriage, disc],
        [*pins('ground.A first.A'), joint('weld', 'fixed', 'second.B', 'first.B', rpy=(-1.2,)),
         joint('slide', 'prismatic', 'second.C', 'carriage.D', slide, (0.9,))], {'A': (0, 0)},
        [angle('theta', 'first'), along('reach', 'slide'), angle('spin', 'disc'), distance('gap', 'first.A', 'disc.N')],
        [spring('rubber', ('carriage.E', 'disc.N'), 15.0, 0.4, 0.6), spring('bumper', 'reach', 40.0, 0.2, 1.0)],
        [force('push', 'reach', source='push'), force('twist', 'disc:', source='twist'),
         force('hook', 'disc.N', (1.0, 2.0))])


def driven() -> MechanismDescription:
    """A driven crank with a free arm on it."""
    upper = body('upper', 2.0, {'A': (0.0, 0.0), 'B': (1.0, 0.0)}, turn=0.3)
    lower = body('lower', 1.5, {'B': (0.0, 0.0), 'C': (0.8, 0.0)}, (0.3, 0.1), (0.2,), (np.cos(0.3), np.sin(0.3)), -0.4)
    return mechanism('driven', [upper, lower], pins('ground.A upper.A', 'upper.B lower.B'), {'A': (0, 0)},
                     [angle('theta', 'upper'), angle('phi', 'upper', 'lower')], [spring('coil', 'phi', 3.0, 0.1, 0.2)],
                     [force('motor', 'phi', source='torque')],
                     [Driver('motor', 'theta', '0.3 + speed*t + 0.2*sin(3*t)*cos(t)')],
                     parameters={'speed': number(1.4, 'parameters.speed')})


def parallel_cranks() -> MechanismDescription:
    """Three equal cranks under one beam: one of its constraints is redundant."""
    sketch = {f'A{k}': (k, 0.0) for k in range(3)} | {f'B{k}': (k + 0.6, 0.8) for k in range(3)}
    cranks = [bar(f'crank{k}', 1.0, (f'A{k}', f'B{k}'), sketch) for k in range(3)]
    beam = body('beam', 2.0, {f'B{k}': (k, 0.0) for k in range(3)}, (1.2, 0.1), (0.9,), (0.6, 0.8))
    return mechanism('parallel_cranks', [*cranks, beam],
                     pins(*(f'ground.A{k} crank{k}.A{k}' for k in range(3)), *(f'crank{k}.B{k} beam.B{k}'
                                                                               for k in range(3))),
                     {f'A{k}': (k, 0) for k in range(3)}, [angle('theta', 'crank0')], (),
                     [force('motor', 'theta', source='torque')])


PLANAR: dict[str, Callable[[], MechanismDescription]] = {f.__name__: lru_cache(f) for f in (
    pendulum, reversed_chain, four_bar, four_bar_loaded, slider_crank, inverted_slider, trammel, rod_coupled,
    three_legs, welded, driven, parallel_cranks)}

# A linkage of a user's own: a crank that is fast, or that begins at rest
RIG = """
format: mbse/mechanism/1
name: rig
gravity: 9.81 m/s^2
parameters: {crank: 0.1 m, coupler: 0.4 m, rocker: 0.3 m, ground: 0.45 m, start: pi/3}
points: {A: {fixed: [0, 0]}, B: {fixed: [ground, 0]}, P1: [crank*cos(start), crank*sin(start)], P2: [0.38, 0.29]}
bodies:
  crank: {points: [A, P1], length: crank, mass: 0.3 kg, uniform: true}
  coupler: {points: [P1, P2], length: coupler, mass: 0.5 kg, uniform: true}
  rocker: {points: [P2, B], length: rocker, mass: 0.4 kg, uniform: true}
named: {theta: {angle: crank}}
independent: [theta]
initial: {position: {theta: start}, velocity: {theta: 12 rad/s}}
sensors: {encoder: {kind: encoder, coordinate: theta, stddev: 0.01 rad}}
"""
RIG_AT_REST = RIG.replace('velocity: {theta: 12 rad/s}', 'velocity: {theta: 0 rad/s}')
