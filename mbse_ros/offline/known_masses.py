# SPDX-License-Identifier: Apache-2.0
"""What is known of the masses of loads from elsewhere: one number for each, or a table of a weighbridge."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

from ..description.language.units import split_number, unit_factor
from ..errors import SettingError
from ..resources import regular
from ..scale.comparison import Compared, KnownMass
from ..scale.load import UncertainMass, combined
from .loads import Loads
from .log_loads import WeighedLoad

OPTION = 'known'
HEAVIEST = 1e7      # kg
KEYS = ('load', 'truck', 'bag')
EXPECTED = ('a mass, such as 500 kg or 500+-2.5 kg, of every load; or a CSV table with one of the columns '
            f'{", ".join(KEYS)}, a column mass [kg], and perhaps stddev [kg]')
Weighed = tuple[UncertainMass, int]      # and the stamp, ns
NAMES: dict[str, Callable[[WeighedLoad], str]] = {
    'truck': lambda load: str(load.record.data['truck']), 'bag': lambda load: Path(load.bag).resolve().name}


def check_known(text: str) -> None:
    """Refuse, before the work on bags, what is neither a mass nor a table of masses; raises SettingError."""
    if _mass(text) is None:
        _table(Path(text))


def compared(text: str, found: Loads) -> list[Compared]:
    """What was weighed of the loads that count against what is known; raises SettingError."""
    counted = found.counted
    if not counted:
        raise SettingError(OPTION, text, 'loads to compare: none counts')
    known = _mass(text)
    if known is not None:
        return [Compared(f'load {k}', load.record.stamp_ns, load.record.mass, known)
                for k, load in enumerate(counted, 1)]
    kind, rows = _table(Path(text))
    weighed = _sums(counted, NAMES[kind]) if kind in NAMES else {
        str(k): (load.record.mass, load.record.stamp_ns) for k, load in enumerate(counted, 1)}
    strange = next((name for name in rows if name not in weighed), None)
    if strange is not None:
        raise SettingError(OPTION, f'{text}: {kind} {strange}', f'one of {", ".join(weighed)}')
    return [Compared(f'{kind} {name}', weighed[name][1], weighed[name][0], mass) for name, mass in rows.items()]


def _sums(counted: Sequence[WeighedLoad], name_of: Callable[[WeighedLoad], str]) -> dict[str, Weighed]:
    names = dict.fromkeys(map(name_of, counted))
    parts = {name: [load.record for load in counted if name_of(load) == name] for name in names}
    return {name: (combined((1.0, record.mass) for record in records), records[-1].stamp_ns)
            for name, records in parts.items()}


def _mass(text: str) -> KnownMass | None:
    """One mass; None where the text is none, and so a file's name."""
    value, sign, deviation = text.partition('+-')
    try:
        number, unit = split_number(value.strip())
        stddev, other = split_number(deviation.strip()) if sign else (0.0, '')
        factors = [unit_factor(name or 'kg', 'kg') for name in (unit or other, other or unit)]
    except ValueError:
        return None
    return _checked(number * factors[0], stddev * factors[1], text)


def _checked(mass: float, stddev: float, shown: str) -> KnownMass:
    if not (0.0 < mass <= HEAVIEST and 0.0 <= stddev <= HEAVIEST):
        raise SettingError(OPTION, shown, f'a mass above 0 and a standard deviation of 0 or more, to {HEAVIEST:g} kg')
    return KnownMass(mass, stddev)


def _table(path: Path) -> tuple[str, dict[str, KnownMass]]:
    """What its rows are of, and their masses; raises SettingError, OSError."""
    if not path.is_file():
        raise SettingError(OPTION, str(path), f'{EXPECTED}; there is no file of this name')
    try:
        with open(regular(path), newline='', encoding='utf-8') as file:
            rows = [row for row in csv.reader(file) if any(cell.strip() for cell in row)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise SettingError(OPTION, str(path), f'{EXPECTED}: {error}') from None
    headings = {name.strip(): (place, unit.strip(' ]')) for place, (name, _, unit) in enumerate(
        heading.partition('[') for heading in (rows[0] if rows else ()))}
    kinds = [kind for kind in KEYS if kind in headings]
    unknown = set(headings) - {*KEYS, 'mass', 'stddev'}
    if len(kinds) != 1 or 'mass' not in headings or unknown or len(rows) < 2:
        raise SettingError(OPTION, f'{path}: {", ".join(rows[0]) if rows else "nothing"}', EXPECTED)
    factors = {}
    for name in ('mass', 'stddev'):
        try:
            factors[name] = unit_factor(headings.get(name, (0, 'kg'))[1] or 'kg', 'kg')
        except ValueError as error:
            raise SettingError(OPTION, f'{path}: {name}', f'a unit of mass: {error}') from None
    found: dict[str, KnownMass] = {}
    for line, row in enumerate(rows[1:], 2):
        try:
            name = row[headings[kinds[0]][0]].strip()
            mass, stddev = (float(row[headings[item][0]]) * factors[item] if item in headings else 0.0
                            for item in ('mass', 'stddev'))
        except (IndexError, ValueError):
            raise SettingError(OPTION, f'{path}, row {line}: {", ".join(row)}', 'a name and numbers') from None
        if name in found:
            raise SettingError(OPTION, f'{path}, row {line}: {kinds[0]} {name}', f'each {kinds[0]} once')
        found[name] = _checked(mass, stddev, f'{path}, row {line}: {", ".join(row)}')
    return kinds[0], found
