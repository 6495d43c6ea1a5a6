# SPDX-License-Identifier: Apache-2.0
"""Reads a file of the format mbse/machine/2 for an independent plant. It shares no code with the package on purpose.

Every value becomes a float in SI; deviations, sources, sensors and outlines are passed over. No check of the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

GROUND = 'ground'
EDGES = ('pump_a', 'b_tank', 'pump_b', 'a_tank')
_UNITS = {'m': 1.0, 'mm': 1e-3, 'cm': 1e-2, 'kg': 1.0, 'g': 1e-3, 's': 1.0, 'ms': 1e-3, 'min': 60.0,
          'N': 1.0, 'kN': 1e3, 'Pa': 1.0, 'kPa': 1e3, 'MPa': 1e6, 'GPa': 1e9, 'bar': 1e5, 'l': 1e-3,
          'rad': 1.0, 'deg': np.pi / 180.0, 'V': 1.0}


def factor(unit: str) -> float:
    """SI factor of a unit such as 'N*s/m' or 'kg*m^2'."""
    value, sign = 1.0, 1
    for word in unit.replace('*', ' * ').replace('/', ' / ').split():
        if word in '*/':
            sign = 1 if word == '*' else -1
        else:
            name, _, power = word.partition('^')
            value *= _UNITS[name] ** (sign * int(power or 1))
    return value


def number(entry: Any) -> float:
    """A value in SI: a number, text with a unit, or a mapping with the key ``value``."""
    if isinstance(entry, dict):
        return number(entry['value'])
    words = str(entry).split(None, 1)
    return float(words[0]) * (factor(words[1]) if len(words) > 1 else 1.0)


def vector(entry: Any) -> np.ndarray:
    """A list of values in SI (n,)."""
    return np.array([number(item) for item in (entry['value'] if isinstance(entry, dict) else entry)])


@dataclass(frozen=True)
class Body:
    """Mass kg, centre of mass m, inertia (3, 3) about it kg m2, and points, m, in the frame of the body."""

    mass: float
    center: np.ndarray
    inertia: np.ndarray
    points: dict[str, np.ndarray]


@dataclass(frozen=True)
class Joint:
    """Points as (body, name); ``axis`` in the frame of the parent; ``rpy`` and ``start`` rad; loop: not of the tree."""

    kind: str
    parent: tuple[str, str]
    child: tuple[str, str]
    axis: np.ndarray
    rpy: np.ndarray
    start: float
    loop: bool


@dataclass(frozen=True)
class Cylinder:
    """``count`` equal cylinders: bore, rod, closed length, stroke m; friction and masses (kg) of one of them."""

    base: tuple[str, str]
    eye: tuple[str, str]
    count: int
    bore: float
    rod: float
    closed: float
    stroke: float
    friction: dict[str, float]
    barrel_mass: float
    rod_mass: float

    @property
    def areas(self) -> tuple[float, float]:
        """Piston and rod side of all of them, m2."""
        piston = self.count * np.pi / 4.0 * self.bore ** 2
        return piston, piston - self.count * np.pi / 4.0 * self.rod ** 2


@dataclass(frozen=True)
class Volume:
    """Chambers as (cylinder, 'piston' or 'rod'); moduli Pa; hoses as (m3, Pa)."""

    chambers: tuple[tuple[str, str], ...]
    wall: float
    hoses: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Valve:
    """Orifice valve: supplies Pa, volumes a and b by name, nominal flow m3/s, pressure Pa and command V, lag s."""

    kind: str
    pump: float
    tank: float
    a: str
    b: str
    flow: float
    pressure: float
    command: float
    limit: float
    lag: float
    laminar: float
    dead_band: float
    gains: dict[str, float]


@dataclass(frozen=True)
class Machine:
    """What a plant needs of the file; SI."""

    name: str
    gravity: np.ndarray
    ground: dict[str, np.ndarray]
    bodies: dict[str, Body]
    joints: dict[str, Joint]
    independent: tuple[str, ...]
    initial: dict[str, float]
    cylinders: dict[str, Cylinder]
    oil: float
    volumes: dict[str, Volume]
    valves: dict[str, Valve]
    payload: tuple[str, np.ndarray]

    def point(self, place: tuple[str, str]) -> np.ndarray:
        """Coordinates, m, in the frame of the point's body."""
        return self.ground[place[1]] if place[0] == GROUND else self.bodies[place[0]].points[place[1]]


def read_machine(path: str | Path) -> Machine:
    """The machine of a file."""
    data = yaml.safe_load(Path(path).read_text(encoding='utf-8'))
    if data['format'] != 'mbse/machine/2':
        raise ValueError(f'{path}: format {data["format"]!r}, expected mbse/machine/2')
    gravity = data['gravity']
    bodies = {name: _body(entry) for name, entry in data['bodies'].items()}
    hydraulics, payload = data['hydraulics'], data['payload']
    if 'point' in payload:
        body, point = payload['point'].split('.')
        load = (body, bodies[body].points[point])
    else:
        load = (payload['body'], vector(payload['center']))
    return Machine(
        name=data['name'],
        gravity=vector(gravity) if isinstance(gravity, list) else np.array([0.0, 0.0, -number(gravity)]),
        ground={name: vector(entry['fixed']) for name, entry in data['points'].items()},
        bodies=bodies,
        joints=_joints(data['joints']),
        independent=tuple(data.get('independent', ())),
        initial={name: number(item) for name, item in data.get('initial', {}).get('position', {}).items()},
        cylinders={name: _cylinder(entry) for name, entry in data['cylinders'].items()},
        oil=number(hydraulics['oil_bulk_modulus']),
        volumes={name: _volume(entry) for name, entry in hydraulics['volumes'].items()},
        valves={name: _valve(entry, hydraulics['supplies']) for name, entry in hydraulics['valves'].items()},
        payload=load)


def _place(text: str) -> tuple[str, str]:
    body, point = text.split('.')
    return body, point


def _body(entry: dict) -> Body:
    """Missing moments are set to the largest one: the body turns about one axis only, so they have no effect."""
    moments = {key: number(item) for key, item in entry['inertia'].items()}
    largest = max(moments.values())
    I = np.diag([moments.get(key, largest) for key in ('xx', 'yy', 'zz')])
    for key, (i, j) in {'xy': (0, 1), 'xz': (0, 2), 'yz': (1, 2)}.items():
        I[i, j] = I[j, i] = moments.get(key, 0.0)
    return Body(number(entry['mass']), vector(entry['center_of_mass']), I,
                {name: vector(item) for name, item in entry['points'].items()})


def _joints(entries: dict) -> dict[str, Joint]:
    """In the order of the file; a joint whose child already has a frame closes a loop."""
    joints, placed = {}, {GROUND}
    for name, entry in entries.items():
        parent, child = _place(entry['parent']), _place(entry['child'])
        joints[name] = Joint(entry['type'], parent, child, np.array(entry.get('axis', [0, 0, 1]), float),
                             vector(entry.get('rpy', [0, 0, 0])), number(entry.get('start', 0)), child[0] in placed)
        placed.add(child[0])
    return joints


def _cylinder(entry: dict) -> Cylinder:
    terms = ('coulomb', 'static', 'transition_velocity', 'viscous', 'pressure_difference', 'pressure_rod')
    friction = {key: number(entry['friction'].get(key, 0)) for key in terms}
    friction['scale'] = number(entry['friction'].get('scale', 1))
    return Cylinder(_place(entry['base']), _place(entry['rod_eye']), int(entry.get('count', 1)), number(entry['bore']),
                    number(entry['rod']), number(entry['closed_length']), number(entry['stroke']), friction,
                    number(entry.get('barrel_mass', 0)), number(entry.get('rod_mass', 0)))


def _volume(entry: dict) -> Volume:
    return Volume(tuple(_place(item) for item in entry['chambers']), number(entry['cylinder_bulk_modulus']),
                  tuple((number(hose['volume']), number(hose['bulk_modulus'])) for hose in entry['hoses']))


def _valve(entry: dict, supplies: dict) -> Valve:
    ports = entry['ports']
    gains = {edge: number(entry.get('gains', {}).get(edge, 1)) for edge in EDGES}
    pump, tank = (number(supplies[ports[name]]) for name in ('pump', 'tank'))
    return Valve(entry['kind'], pump, tank, ports['a'], ports['b'], number(entry['nominal_flow']),
                 number(entry['nominal_pressure']), number(entry['nominal_command']), number(entry['command_limit']),
                 number(entry['time_constant']), number(entry['laminar_pressure']),
                 number(entry.get('dead_band', 0)), gains)
