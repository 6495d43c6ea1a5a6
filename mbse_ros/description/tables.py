# SPDX-License-Identifier: Apache-2.0
"""Tables of text: numbers in the units people use."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .basics import Scalar, Vector

# Factor from SI to the unit that is shown.
_SHOWN = {'m': (1e3, 'mm'), 'rad': (180.0 / math.pi, 'deg'), 'm^2': (1e4, 'cm^2'), 'Pa': (1e-6, 'MPa'),
          'm/s': (1e3, 'mm/s'), 'm^3': (1e3, 'l'), 'm^3/s': (6e4, 'l/min'), 's': (1e3, 'ms')}


@dataclass(frozen=True)
class TableRow:
    """One line of a table: name, value with unit, and what else there is to say."""

    name: str
    value: str
    note: str = ''


@dataclass(frozen=True)
class Section:
    """One table."""

    title: str
    rows: tuple[TableRow, ...]


def show(number: Scalar | float, unit: str, digits: int = 7) -> str:
    """Value with standard deviation in the unit people use, e.g. '143.66 +- 1.4366 kg'; ``unit`` is that of SI."""
    number = number if isinstance(number, Scalar) else Scalar(number)
    factor, name = _SHOWN.get(unit, (1.0, unit))
    spread = f' +- {number.stddev * factor:.4g}' if number.stddev else ''
    return f'{number.value * factor:.{digits}g}{spread} {name}'.strip()


def row(name: str, number: Scalar | float, unit: str, note: str = '') -> TableRow:
    """A line of one number; the note is its source where there is no other."""
    return TableRow(name, show(number, unit), note or getattr(number, 'text', '') or getattr(number, 'source', ''))


def vector_text(vector: Vector, unit: str) -> str:
    """Components and unit, e.g. '(0, 9810) mm'."""
    parts = [show(item, unit).rpartition(' ') for item in vector]
    return f'({", ".join(number for number, _, _ in parts)}) {parts[0][2]}'


def relative(number: Scalar) -> str:
    """Standard deviation as a share of the value."""
    return f'{100.0 * number.stddev / abs(number.value):.3g} %' if number.value else 'of a value of 0'
