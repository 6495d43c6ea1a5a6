# SPDX-License-Identifier: Apache-2.0
"""The section `drives`: motors with gears that move joints, and whose effort is measured."""

from __future__ import annotations

from dataclasses import replace

from ..basics import ZERO, Scalar
from ..language.entry import Entry
from ..language.quantity import ValueKind, not_negative, positive
from ..language.references import References, unit_of
from ..language.scalar import Numbers
from ..machine_parts import BalanceError, Drive, DriveFriction
from ..model import FORCES
from ..typical import NAME, typical_drive_friction

SPEEDS, VISCOUS = {'rad': 'rad/s', 'm': 'm/s'}, {'rad': 'N*m*s/rad', 'm': 'N*s/m'}
CONSTANTS, INERTIA = {'rad': 'N*m/A', 'm': 'N/A'}, {'rad': 'kg*m^2', 'm': 'kg'}
LASTING = ValueKind('s', 1e-3, 60.0)
SHARES = ('scale', 'forward_scale', 'backward_scale')
STEEPEST = 1e-4     # rad/s or m/s: a smaller transition velocity makes the friction stiff without end
WHOLE = ('1', 1e-3, 1e5)        # of a gear's ratio


def read_drives(entry: Entry, references: References) -> dict[str, Drive]:
    """Drives by name; one for a coordinate."""
    found: dict[str, Drive] = {}
    for name, item in entry.named('drives').items():
        with item.kept():
            drive = _drive(name, item, references)
            for other in found.values():
                if other.coordinate == drive.coordinate:
                    raise item.error(f'one drive a joint, {other.name} moves {drive.coordinate} already', name)
            found[name] = drive
    return found


def _drive(name: str, entry: Entry, references: References) -> Drive:
    numbers = references.numbers
    parts = entry.mapping(['joint', 'largest'], ['friction', 'rotor_inertia', 'gear_ratio', 'torque_constant',
                                                 'force_error'])
    coordinate = references.coordinate(parts['joint'])
    unit = unit_of(coordinate, references.joints)
    largest = numbers.number(parts['largest'], positive(FORCES[unit]))
    usual = typical_drive_friction(name, largest)
    friction = parts['friction'].tried(lambda: _friction(parts['friction'], numbers, usual, unit), usual
                                       ) if 'friction' in parts else usual
    ratio = numbers.number(parts['gear_ratio'], ValueKind(*WHOLE)) if 'gear_ratio' in parts else 1.0
    constant = (numbers.number(parts['torque_constant'], positive(CONSTANTS[unit]))
                if 'torque_constant' in parts else 0.0)
    rotor = numbers.optional(parts, 'rotor_inertia', not_negative(INERTIA[unit]))
    error = parts['force_error'].tried(lambda: _force_error(parts['force_error'], numbers, unit), None
                                       ) if 'force_error' in parts else None
    return Drive(name, coordinate.name, unit, largest, friction, rotor, ratio, constant, error)


def _friction(entry: Entry, numbers: Numbers, usual: DriveFriction, unit: str) -> DriveFriction:
    """`typical`, `preset: typical` with other numbers, or `coulomb` and what else there is."""
    if not isinstance(entry.value, dict):
        entry.choice((NAME,), f'a mapping, or {NAME}')
        return usual
    preset = 'preset' in entry.value
    kinds = {'coulomb': not_negative(FORCES[unit]), 'static': not_negative(FORCES[unit]),
             'transition_velocity': ValueKind(SPEEDS[unit], STEEPEST, 10.0), 'viscous': not_negative(VISCOUS[unit]),
             'load': not_negative('1', 1.0), **dict.fromkeys(SHARES, not_negative('1'))}
    parts = entry.mapping(['preset'] if preset else ['coulomb'], [*kinds])
    given = {key: numbers.scalar(parts[key], kind) for key, kind in kinds.items() if key in parts}
    if preset:
        parts['preset'].choice((NAME,), 'a friction')
        return _checked(replace(usual, **given), parts.get('static', entry))
    plain = DriveFriction(given['coulomb'], given['coulomb'], usual.transition_velocity, ZERO, ZERO, Scalar(1.0))
    return _checked(replace(plain, **given), parts.get('static', entry))


def _checked(friction: DriveFriction, entry: Entry) -> DriveFriction:
    if friction.static.value < friction.coulomb.value:
        entry.wrong(f'no less than the Coulomb friction, {friction.coulomb.value:g}')
    return friction


def _force_error(entry: Entry, numbers: Numbers, unit: str) -> BalanceError:
    parts = entry.mapping(['stddev'], ['time'])
    stddev = numbers.number(parts['stddev'], not_negative(FORCES[unit], 1e8))
    return BalanceError(stddev, numbers.number(parts['time'], LASTING) if 'time' in parts else None)
