# SPDX-License-Identifier: Apache-2.0
"""A simulated machine as it is asked for: payload, cycle, base and soil, checked against the machine's file."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import fields
from numbers import Real
from pathlib import Path

from ..description.language.document import read_document
from ..description.language.entry import Entry
from ..description.language.units import split_number, unit_factor
from ..errors import SettingError, check_choice
from ..machine import Machine
from ..resources import read_text
from .crane import CraneSettings, SimulatedCrane, cycle_by_name, plant_of
from .physics import PlantPhysics, physics_of
from .plant import Masses

START_NS = 1_700_000_000_000_000_000     # any instant will do, but a fixed one: the same seed gives the same samples
HARDEST = 500e3                          # N
STEEPEST = 45.0                          # deg
USUAL = 50.0                             # kg
LONGEST = 1e6                            # s
FORMAT = 'mbse/physics/1'
SUFFIXES = '.yaml', '.yml'
UNITS = {'': '1', 'm or rad': 'm', 'm/s2': 'm/s^2'}      # as the language of files has them


def working_machine(machine: Machine, payload: Masses | None = None, seed: int = 1, cycle: str = 'lift_hold_lower',
                    ramp: float = 0.2, rate: float = 100.0, base_roll: float | None = None,
                    base_pitch: float | None = None, soil: float = 0.0, swing: float = 0.0,
                    duration: float | None = None, physics: Mapping[str, float] | None = None) -> SimulatedCrane:
    """The machine at work; the same arguments give the same samples.

    ``payload`` in kg (None: 50, or 0 without a section `payload`), of several all of them by their names, ``ramp`` in
    s, ``rate`` in Hz, attitude of the base in deg, ``soil``: force on the payload's contact while the cycle digs, N,
    ``swing``: where a load that hangs is let go, deg from the vertical, ``duration``: how long it works, s, by the
    cycle again and again (None: the cycle once), ``physics``: what it has beyond its file, numbers of ``PlantPhysics``
    by their names. Raises SettingError.
    """
    if seed < 0:
        raise SettingError('seed', seed, 'a whole number from 0')
    hands = cycle_by_name(cycle, machine, seed, ramp)
    if duration is not None:
        if not 0.0 < duration <= LONGEST:
            raise SettingError('duration', duration, f'seconds above 0, up to {LONGEST:g}')
        hands = hands.repeated(math.ceil(duration / hands.duration)) if duration > hands.duration else hands
    payload, base = _payload(machine, payload), _base(machine, roll=base_roll, pitch=base_pitch)
    return SimulatedCrane(machine, payload, seed, hands, CraneSettings(rate=rate), start_ns=START_NS, base=base,
                          soil=_soil(machine, soil, cycle), swing=_swing(machine, swing),
                          plant=plant_of(machine, physics=physics_of(physics)) if physics else None)


def frame_count(crane: SimulatedCrane, duration: float | None = None) -> int:
    """Frames of ``duration``, s (None: of the whole cycle)."""
    return round((duration or crane.cycle.duration) * 1e9) // crane.period_ns + 1


def masses_of(text: str) -> Masses:
    """``200``, or of several payloads ``boom=100,tip=200``, kg. Raises SettingError."""
    try:
        if '=' not in text:
            return float(text)
        pairs = [item.split('=') for item in text.split(',')]
        found = {name.strip(): float(mass) for name, mass in pairs}
    except ValueError:
        raise SettingError('payload', text, 'a mass, kg, or of several payloads NAME=MASS,NAME=MASS') from None
    if len(found) < len(pairs):
        raise SettingError('payload', text, 'each name once')
    return found


def physics_in(text: str) -> dict[str, float]:
    """``bending=2 ripple=3 bar``, SI where there is no unit, or the path of a file .yaml of that. Raises
    SettingError."""
    found, units = dict[str, float](), {item.name: item.metadata['unit'] for item in fields(PlantPhysics)}
    for name, value in (_in_file(Path(text)) if Path(text).suffix in SUFFIXES else _pairs(text)).items():
        check_choice('physics', name, units)
        unit = units[name]
        try:
            number, given = split_number(value)
            found[name] = number * unit_factor(given, UNITS.get(unit, unit)) if given else number
        except ValueError:
            raise SettingError(f'physics: {name}', value, 'one number' + f' {unit}, or with a unit of it' * bool(unit)
                               ) from None
    return found


def _pairs(text: str) -> dict[str, str]:
    """A value goes on to the next name, so that a blank may stand before its unit; raises SettingError."""
    pairs = [item.partition('=') for item in re.split(r'\s+(?=\w+\s*=)', text.strip())]
    found = {name.strip(): value.strip() for name, _, value in pairs}
    if len(found) < len(pairs) or not all((*found, *found.values())) or any('=' in item for item in found.values()):
        raise SettingError('physics', text, "name=value, each name once, such as 'bending=2 ripple=3 bar'")
    return found


def _in_file(path: Path) -> dict[str, str]:
    """Its keys besides the format, and what they are; raises SettingError and DescriptionError."""
    root = Entry(str(path), '', read_document(read_text(path), str(path)))
    named = root.named('numbers of the physics')
    if 'format' not in named:
        raise root.error(f'the key format: {FORMAT}')
    named.pop('format').choice([FORMAT], 'the format')
    return {name: item.text('a number, or text with a unit such as \'2 Hz\'') for name, item in named.items()}


def _payload(machine: Machine, payload: Masses | None) -> Masses:
    """Within the limits of the file; 0 where it has no section `payload`."""
    several = machine.description.payloads
    if several:
        if payload is None:
            return {name: _mass(machine, None, item.limits, f'payloads.{name}') for name, item in several.items()}
        if not isinstance(payload, Mapping):
            raise SettingError('payload', payload, f'masses by name: {" and ".join(several)} ({machine.name} has '
                               '`payloads`)')
        for name in payload:
            check_choice('payload', name, several)
        missing = [name for name in several if payload.get(name) is None]
        if missing:
            raise SettingError('payload', dict(payload), f'a mass of each of {" and ".join(several)}: '
                               f'{" and ".join(missing)} missing')
        return {name: _mass(machine, payload[name], item.limits, f'payloads.{name}')
                for name, item in several.items()}
    if isinstance(payload, Mapping):
        raise SettingError('payload', dict(payload), f'one mass, kg: {machine.name} has no `payloads`')
    described = machine.description.payload
    if described is None:
        if payload is not None and not (isinstance(payload, Real) and payload == 0):
            raise SettingError('payload', payload, f'0 kg: {machine.name} has no section `payload`')
        return 0.0
    return _mass(machine, payload, described.limits, 'payload')


def check_mass(machine: Machine, mass: float) -> None:
    """Raise SettingError for a mass, kg, beyond the limits of the file, of several payloads beyond those of one."""
    d = machine.description
    for name, item in d.payloads.items():
        _mass(machine, mass, item.limits, f'payloads.{name}')
    if d.payload is not None:
        _mass(machine, mass, d.payload.limits, 'payload')


def _mass(machine: Machine, mass: float | None, limits: tuple[float, float], key: str) -> float:
    """A mass, kg, within its limits; None: 50, or the nearest limit."""
    low, high = limits
    mass = min(max(USUAL, low), high) if mass is None else mass
    if not isinstance(mass, Real) or isinstance(mass, bool):
        raise SettingError('payload', mass, f'a number of kg ({key} of {machine.name})')
    if not low <= mass <= high:
        raise SettingError('payload', mass, f'from {low} to {high} kg ({key}.limits of {machine.name})')
    return mass


def _soil(machine: Machine, force: float, cycle: str) -> float:
    """Only where the machine's file says where it pushes, and in a cycle that digs."""
    payload = machine.description.payload
    if force and (cycle != 'dig' or payload is None or not payload.contact):
        raise SettingError('soil', force, '0 N: only the cycle dig of a machine with `payload.contact` touches soil')
    if not 0.0 <= force <= HARDEST:
        raise SettingError('soil', force, f'from 0 to {HARDEST:g} N')
    return force


def _swing(machine: Machine, degrees: float) -> float:
    """Angle, rad; only of a load that hangs."""
    if degrees and not machine.swings:
        raise SettingError('swing', degrees, f'0 deg: the file of {machine.name} has no `payload.hanging`')
    if not abs(degrees) <= STEEPEST:
        raise SettingError('swing', degrees, f'from {-STEEPEST:g} to {STEEPEST:g} deg')
    return math.radians(degrees)


def _base(machine: Machine, **attitude: float | None) -> dict[str, float]:
    """True inclinations, rad; only measured ones can differ from the file's."""
    found = {}
    for axis, degrees in attitude.items():
        if degrees is None:
            continue
        if axis not in machine.inclinations:
            raise SettingError(f'base_{axis}', degrees, f'no such option for {machine.name}: no sensor of kind '
                               f'inclination measures the {axis} of its base')
        if not abs(degrees) <= STEEPEST:
            raise SettingError(f'base_{axis}', degrees, f'from {-STEEPEST:g} to {STEEPEST:g} deg')
        found[axis] = math.radians(degrees)
    return found
