# SPDX-License-Identifier: Apache-2.0
"""Which numbers of a machine are calibrated, and what is known of them before: the file's deviations, or others."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

import numpy as np

from ..description.age import as_calibrated
from ..description.basics import Scalar, scalars, uncertain
from ..description.edit import Number, in_file, with_numbers
from ..description.language.entry import Entry
from ..description.language.quantity import not_negative, read_number
from ..description.load import parse_mechanism
from ..description.machine_parts import Cylinder
from ..description.model import MechanismDescription
from ..description.sections.load_hydraulics import PARALLEL
from ..errors import DescriptionError, SettingError
from ..machine import Machine

OPTION = 'free'
LATE = 0.01     # s: a usual delay of a sensor
FAR = 5.0       # standard deviations of what was known before, by which no number and no load is off
_SPREADS = ((r'\.friction\.', 0.3, True), (r'\.mass$|_mass$', 0.05, True), (r'center_of_mass', 0.02, False),
            (r'inertia', 0.2, True), (r'\.offset$', 50e3, False), (r'\.gain$', 0.005, False),
            (r'bulk_modulus', 0.1, True), (r'^base\.', 0.0175, False), (r'points\.|^points', 0.002, False),
            (r'\.bias$', 0.002, False), (r'\.delay$', LATE, False))
"""By key: a deviation of a number of which the file says none, SI or a share of the value."""
_UNITS = ((r'\.mass$|_mass$', 'kg'), (r'center_of_mass|points|\.(bore|rod|stroke|closed_length|volume)$', 'm'),
          (r'\.(coulomb|static)$', 'N'), (r'\.viscous$', 'N*s/m'), (r'\.transition_velocity$', 'm/s'),
          (r'\.pressure_(difference|rod)$', 'm^2'), (r'\.offset$|bulk_modulus$', 'Pa'),
          (r'^base\.', 'rad'), (r'inertia', 'kg*m^2'), (r'\.parallel\.constant$', 'N'),
          (r'\.parallel\.linear$', 'N/m'), (r'\.parallel\.cubic$', 'N/m^3'), (r'\.parallel\.damping$', 'N*s/m'),
          (r'\.parallel\.about$', 'm'), (r'\.delay$', 's'))
"""By key: the unit of a deviation that is given with one."""
_GIVEN = {'gravity': 'a number of the machine: gravity is that of the place, and all weights go with it: write it into '
                     'the file',
          'payload.mass': 'a number of the machine: loads are given, or found, as payloads: BAG=KG, '
                          'BAG=KG+-DEVIATION or BAG=unknown'}
"""Keys that are not numbers of the machine, and where the numbers belong."""
BESIDE = 0.05, 20e6, 0.1    # share of the force at this pressure, Pa, and m/s: a usual force beside a piston


def freed(text: str, file: str, free: Sequence[str]) -> str:
    """The file's text with deviations of the numbers ``free``: KEY, with `*` for any part, or KEY=DEVIATION, such as
    `cylinders.*.friction.scale=30 %`, `sensors.lift_piston.offset=50 kPa`.

    Without a deviation that of the file counts, or, where it states none, a usual one. Raises SettingError for a key
    that no number of the file has, or a deviation that is none.
    """
    description = as_calibrated(parse_mechanism(text, file))
    chosen: dict[str, Number] = {}
    for word in free:
        pattern, sign, deviation = word.partition('=')
        for key, scalar in _matching(description, pattern.strip(), word).items():
            stddev = scalar.stddev or _usual(key, scalar)
            if sign:
                stddev = _deviation(key, scalar.value, deviation.strip(), word)
            if not stddev > 0.0:
                raise SettingError(OPTION, word, f'a deviation above 0, KEY=DEVIATION, of {key}'
                                   + ', which is 0 and of which the file states none' * (not sign))
            chosen[in_file(description, key)] = Number(scalar.value, stddev, '' if sign else scalar.source)
    try:
        return with_numbers(text, file, chosen, scalars(description))
    except DescriptionError as error:
        raise SettingError(OPTION, error.key, 'the key of a number in the text of the file itself') from None


def bounds_of(machine: Machine) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and the largest value (k,), SI, that the language allows of each uncertain number of a machine.
    Static friction may not be below Coulomb's: the one is the other's bound, as it is before."""
    found, names = scalars(machine.description), machine.parameters.names
    ends = [found[key].range if key in found else (-np.inf, np.inf) for key in names]
    low, high = np.array(ends, dtype=float).reshape(-1, 2).T
    for owner in (*(f'cylinders.{name}' for name in machine.cylinders),
                  *(f'drives.{name}' for name in machine.description.drives)):
        coulomb, static = (f'{owner}.friction.{name}' for name in ('coulomb', 'static'))
        if coulomb in names and static in found:
            high[names.index(coulomb)] = found[static].value
        if static in names and coulomb in found:
            low[names.index(static)] = found[coulomb].value
    return low, high


def _matching(description: MechanismDescription, pattern: str, word: str) -> dict[str, Scalar]:
    """Numbers whose keys the pattern fits: all that have one, a friction's common factor where it is left out,
    other forms of it, and delays of sensors."""
    for key, expected in _GIVEN.items():
        if pattern.startswith(key):
            raise SettingError(OPTION, word, expected)
    known = {key.removeprefix('parameters.') if key.startswith('parameters.') else key: item
             for key, item in scalars(description).items() if not key.startswith(tuple(_GIVEN))}
    forms: dict[str, Scalar] = {}
    for name in description.sensors if description.hydraulics is not None else ():
        forms[f'sensors.{name}.delay'] = Scalar(0.0, stddev=LATE)
    for name, cylinder in description.cylinders.items():
        known.setdefault(f'cylinders.{name}.friction.scale', Scalar(1.0))
        forms |= forms_of(name, cylinder)
    for name in description.drives:
        forms |= drive_forms(name)
    known = {key: item for key, item in forms.items()       # only a pattern that names a new form asks for it
             if key.rpartition('.')[2] in pattern or '.parallel.' in pattern} | known
    fits = re.compile('.*'.join(map(re.escape, pattern.removeprefix('parameters.').split('*'))))
    found = {key: item for key, item in known.items() if fits.fullmatch(key)}
    if '*' in pattern:      # a part of a number that is 0, as the y of a planar machine's points, stays so
        found = {key: item for key, item in found.items() if item.value or item.stddev or _usual(key, item)
                 and not key.endswith(']')}
    if not found:
        known = forms | known
        if pattern.endswith('.parallel.about'):
            raise SettingError(OPTION, word, 'a number that can be found: the stroke at which the linear and the cubic '
                               'force are 0 is a part of parallel.constant; free that one')
        close = difflib.get_close_matches(pattern, list(known), 3, 0.5)
        raise SettingError(OPTION, word, 'the key of a number of the file, such as '
                           + ', '.join(close or sorted(uncertain(description))[:6]))
    return found


def forms_of(name: str, cylinder: Cylinder) -> dict[str, Scalar]:
    """Numbers by which a file may give the friction of a cylinder another form, with usual deviations."""
    share, pressure, speed = BESIDE
    force, stroke = share * pressure * cylinder.piston_area / cylinder.count, 0.5 * cylinder.stroke.value
    usual = {'constant': force, 'linear': force / stroke, 'cubic': force / stroke ** 3, 'damping': force / speed}
    scales, span = ('scale', 'out_scale', 'in_scale'), not_negative('1').ends
    return {**{f'cylinders.{name}.friction.{key}': Scalar(1.0, stddev=0.3, range=span) for key in scales},
            **{f'cylinders.{name}.parallel.{key}': Scalar(0.0, stddev=stddev, range=PARALLEL[key].ends)
               for key, stddev in usual.items()}}


def drive_forms(name: str) -> dict[str, Scalar]:
    """The same of a drive."""
    span = not_negative('1').ends
    return {**{f'drives.{name}.friction.{key}': Scalar(1.0, stddev=0.3, range=span)
               for key in ('scale', 'forward_scale', 'backward_scale')},
            f'drives.{name}.friction.load': Scalar(0.0, stddev=0.1, range=not_negative('1', 1.0).ends)}


def _deviation(key: str, value: float, text: str, word: str) -> float:
    """In SI; a percentage is of the value."""
    try:
        if text.endswith('%') and not key.endswith('.gain'):
            return read_number(Entry(OPTION, key, text), not_negative('1')) * abs(value)
        return read_number(Entry(OPTION, key, text), not_negative(unit_of(key)))
    except DescriptionError as error:
        raise SettingError(OPTION, word, f'KEY=DEVIATION, {error.expected}') from None


def unit_of(key: str) -> str:
    """Unit in which a number is shown, '1' where it has none."""
    return next((unit for pattern, unit in _UNITS if re.search(pattern, key)), '1')


def _usual(key: str, scalar: Scalar) -> float:
    """Standard deviation of a number of which the file states none."""
    for pattern, spread, share in _SPREADS:
        if re.search(pattern, key):
            return spread * abs(scalar.value) if share else spread
    return 0.1 * abs(scalar.value)
