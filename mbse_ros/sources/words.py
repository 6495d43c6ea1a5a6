# SPDX-License-Identifier: Apache-2.0
"""Words in the names of topics, fields and channels: part of a machine, side of a piston, quantity."""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORD = re.compile(r'[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+')
PARTS = {
    'boom': ('boom', 'hoist'), 'lift': ('lift', 'lifting'), 'arm': ('arm', 'stick', 'dipper'),
    'tilt': ('tilt', 'jib'), 'bucket': ('bucket', 'shovel', 'grab', 'tool', 'attachment'),
    'swing': ('swing', 'slew', 'slewing', 'turret', 'cabin', 'house'), 'extension': ('extension', 'telescope'),
    'track': ('track', 'tracks', 'travel', 'crawler'), 'blade': ('blade',), 'assist': ('assist',),
    'pump': ('pump', 'supply'), 'tank': ('tank', 'return', 'reservoir')}
SIDES = {
    'piston': ('piston', 'bottom', 'head', 'cap', 'bore', 'base', 'blind', 'extend', 'crowd', 'crowed', 'up', 'raise'),
    'rod': ('rod', 'annulus', 'annular', 'ring', 'retract', 'dump', 'down', 'lower')}
PORTS = {'a': 'piston', 'b': 'rod'}       # less sure: which port is which is the valve's
QUANTITIES = {
    'position': ('position', 'positions', 'pos', 'angle', 'angles', 'stroke', 'strokes', 'length', 'extension',
                 'degrees', 'deg', 'rad', 'displacement'),
    'velocity': ('velocity', 'velocities', 'vel', 'speed', 'rate', 'rates'),
    'pressure': ('pressure', 'pressures', 'prs', 'press', 'bar', 'mpa', 'kpa'),
    'gyro': ('gyro', 'angular'), 'accelerometer': ('accelerometer', 'linear', 'acceleration', 'accel'),
    'other': ('pilot', 'pi', 'flow', 'temp', 'temperature', 'effort', 'command', 'cmd', 'target', 'setpoint', 'desired',
              'truth', 'estimated', 'estimate', 'torque', 'force', 'rpm', 'voltage', 'current')}
UNITS = ('mpa', 'kpa', 'bar', 'pa', 'psi', 'mm', 'cm', 'deg', 'degrees', 'rad')


def words(text: str) -> list[str]:
    """Words of a name in lower case: 'boomCylinder_bottom2' has boom, cylinder, bottom and 2."""
    return [word.lower() for word in _WORD.findall(text)]


def parts_in(found: Iterable[str]) -> set[str]:
    """Parts of a machine that words name."""
    return _named(found, PARTS)


def sides_in(found: Iterable[str]) -> set[str]:
    """Sides of a piston that words name: 'piston', 'rod'."""
    return _named(found, SIDES)


def quantities_in(found: Iterable[str]) -> set[str]:
    """Quantities that words name."""
    return _named(found, QUANTITIES)


def _named(found: Iterable[str], table: dict[str, tuple[str, ...]]) -> set[str]:
    there = set(found)
    return {name for name, known in table.items() if there & set(known)}
