# SPDX-License-Identifier: Apache-2.0
"""The forms of answers: each reads one answer and gives it in SI, or raises DescriptionError."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..language.entry import Entry
from ..language.quantity import ValueKind, positive, read_number
from ..language.units import split_number

Form = Callable[[Entry], Any]
LENGTH = positive('m', 100.0)
BORE = ValueKind('m', 1e-3, 5.0)
HANGING = ValueKind('m', 0.1, 100.0)
PLACE = ValueKind('m', -100.0, 100.0)
POSITIONS = {'strokes': ('m', 1e-3), 'angles': ('rad', 1.7e-3), 'inclinations': ('rad', 3.5e-3)}
"""What measures the motion: unit and standard deviation, if none is given."""
REFERENCES = ('absolute', 'gauge')
WORDS = {'above': 1, 'below': -1}
MOST_CYLINDERS = 8      # side by side


def mass(entry: Entry) -> float:
    """kg; a number without a unit may be t as well."""
    found = read_number(entry, positive('kg'))
    if not split_number(entry.value)[1]:
        raise entry.error(f"a mass with its unit, '{entry.value.strip()} kg' or '{entry.value.strip()} t'")
    return found


def length(entry: Entry) -> float:
    """m."""
    return read_number(entry, LENGTH)


def several(what: str, count: int, kind: ValueKind = LENGTH) -> Form:
    """So many numbers in one list."""
    return lambda entry: [read_number(item, kind) for item in entry.items(what, count)]


def point(entry: Entry) -> tuple[list[float], int | None]:
    """Distances from the two pins of a body's line, m, and the side of the line, which a third item may say."""
    what = "two distances, from the first and from the last pin of the body, and, if need be, 'above' or 'below'"
    items = entry.items(what)
    if len(items) not in (2, 3):
        raise entry.error(what)
    side = WORDS[items[2].choice(WORDS, 'a side of the line of the pins')] if len(items) == 3 else None
    return [read_number(item, LENGTH) for item in items[:2]], side


def cylinder(entry: Entry) -> list[float]:
    """Bore, rod, closed and extended length from pin to pin, m."""
    items = entry.items('bore, rod, closed length and extended length, pin to pin', 4)
    bore, rod = (read_number(item, BORE) for item in items[:2])
    closed, extended = (read_number(item, LENGTH) for item in items[2:])
    if rod >= bore:
        raise items[1].error(f'a rod thinner than the bore, {bore:g} m')
    if not closed < extended < 2.0 * closed:
        raise items[3].error(f'more than the closed length, {closed:g} m, and less than twice as much')
    return [bore, rod, closed, extended]


def count(entry: Entry) -> int:
    """Cylinders side by side."""
    return int(entry.choice([str(k + 1) for k in range(MOST_CYLINDERS)], 'how many cylinders work side by side'))


def positions(entry: Entry) -> tuple[str, float]:
    """What measures the motion, and its standard deviation, m or rad."""
    parts = entry.items('a word and a deviation') if isinstance(entry.value, list) else [entry]
    if len(parts) not in (1, 2):
        raise entry.error("a word, or a word and a deviation, such as '[strokes, 1 mm]'")
    word = parts[0].choice(POSITIONS, 'a kind of position sensors')
    unit, stddev = POSITIONS[word]
    return word, read_number(parts[1], positive(unit)) if len(parts) == 2 else stddev


def pressures(cylinders: Sequence[str]) -> Form:
    """Cylinders whose pressures are measured, of all."""
    def read(entry: Entry) -> list[str]:
        if entry.value in ('all', 'none'):
            return list(cylinders) if entry.value == 'all' else []
        items = entry.items('cylinders, or all, or none') if isinstance(entry.value, list) else [entry]
        return [item.choice(cylinders, 'all, none, or cylinders of') for item in items]
    return read


def pressure_sensors(entry: Entry) -> tuple[float, bool]:
    """The end of their range, Pa, and whether they measure from the pressure of the atmosphere."""
    items = entry.items("a range and its reference, such as '[400 bar, gauge]'", 2)
    return read_number(items[0], ValueKind('Pa', 1e6, 2e8)), items[1].choice(REFERENCES, 'a reference') == 'gauge'


def optional(kind: ValueKind) -> Form:
    """A number, or None for the word none."""
    return lambda entry: None if entry.value == 'none' else read_number(entry, kind)


def listed(entry: Entry) -> Entry:
    """Numbers as text, and a text with commas as a list."""
    value = entry.value
    if isinstance(value, str) and ',' in value:
        value = [part.strip() for part in value.strip('[] ').split(',')]
    items = [_plain(item) for item in value] if isinstance(value, (list, tuple)) else _plain(value)
    return Entry(entry.file, entry.key, items, entry.problems)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return repr(float(value))       # also one of NumPy
    return repr(value) if isinstance(value, int) and not isinstance(value, bool) else value
