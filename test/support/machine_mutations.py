# SPDX-License-Identifier: Apache-2.0
"""A machine that uses all keys of its sections, and what can be wrong with each of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import yaml
from linkage_mutations import LOADER, _places, copy, dump
from source_tree import ROOT

SECTIONS = ('cylinders', 'hydraulics', 'payload', 'base', 'sensors')
WRONG = ('nonsense', '7 furlong', '.nan', '1e300', '-5 kg', '', ['1', '2'], {'a': '1'}, 'é')
EXTRA = '''
base: {roll: 1 deg, pitch: {value: 2 deg, stddev: 1 deg}}
'''
SENSORS = '''
  angle: {kind: encoder, coordinate: boom_joint, stddev: 0.1 deg, resolution: 0.02 deg, wraps: true, bias: 0.1 deg}
  rate: {kind: rate, coordinate: boom_joint, stddev: 1 deg/s}
  gyro: {kind: gyro, body: boom, stddev: 1 deg/s, bias: {value: [0, 0, 0] deg/s, stddev: [1, 1, 1] deg/s}}
  imu: {kind: accelerometer, point: boom.tip, axes: [[1, 0, 0], [0, 0, 1]], gravity: true, stddev: 0.1 m/s^2}
  level: {kind: inclinometer, body: boom, stddev: 0.1 deg}
  rope: {kind: distance, points: [ground.boom_pivot, boom.rod_eye], stddev: 1 mm}
  pitch: {kind: inclination, axis: pitch, stddev: 0.1 deg, bias: 0 deg}
  pump: {kind: pressure, supply: pump, stddev: 10 kPa, gain: 1.01, offset: 0.1 bar, reference: gauge}
'''


def machine_tree() -> dict:
    """The lift crane with every optional key of a machine, to be changed."""
    return copy(_machine_tree())


@cache
def _machine_tree() -> dict:
    text = (ROOT / 'config' / 'machines' / 'patu655_lift.yaml').read_text() + SENSORS + EXTRA
    text = text.replace('bias: {value: [0, 0, 0] deg/s, stddev: [1, 1, 1] deg/s}', 'bias: [0 deg/s, 0 deg/s, 0 deg/s]')
    tree = yaml.load(text, Loader=LOADER)
    cylinder, valve = tree['cylinders']['lift'], tree['hydraulics']['valves']['lift_valve']
    cylinder.update(count='1', barrel_mass='10 kg', rod_mass='5 kg',
                    end_stop={'stiffness': '1e8 N/m', 'damping': '1e5 N*s/m', 'length': '5 mm'},
                    parallel={'constant': '-10 N', 'linear': '1 kN/m', 'cubic': '-2 N/m^3', 'damping': '3 N*s/m',
                              'about': '20 cm'})
    cylinder['friction'].update(out_scale='1.1', in_scale={'value': '0.9', 'stddev': '10 %'})
    valve.update(kind='compensated', dead_band='0.2 V', make_up='1 bar', gains={'pump_a': '1', 'b_tank': '0.5'})
    return tree


def places() -> list[tuple]:
    """Paths into the sections of a machine."""
    tree = machine_tree()
    return [(section, *way) for section in SECTIONS for way in _places(tree[section])]


def key_of(way: tuple) -> str:
    """The dotted key of a path, as errors spell it."""
    return ''.join(f'[{part}]' if isinstance(part, int) else f'.{part}' for part in way).lstrip('.')


def with_value(way: tuple, value: object) -> str:
    """The machine's text with another value at a path."""
    tree = machine_tree()
    _parent(tree, way)[way[-1]] = value
    return dump(tree)


def without(way: tuple) -> str:
    """The machine's text without what is at a path."""
    tree = machine_tree()
    del _parent(tree, way)[way[-1]]
    return dump(tree)


def at(way: tuple) -> object:
    """What the machine has at a path."""
    return _parent(machine_tree(), way)[way[-1]]


def misspelled() -> Iterator[tuple[tuple, str]]:
    """Each mapping with a key too much: the way to it, and the text."""
    for way in [*((section,) for section in SECTIONS), *places()]:
        if isinstance(at(way), dict):
            tree = machine_tree()
            _parent(tree, way)[way[-1]]['Wrong Key'] = '1'
            yield way, dump(tree)


def _parent(tree: object, way: tuple) -> object:
    for part in way[:-1]:
        tree = tree[part]
    return tree
