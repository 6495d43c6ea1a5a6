# SPDX-License-Identifier: Apache-2.0
"""What a number of the file must be: unit and range; plain numbers and text with a unit to SI."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .entry import Entry
from .units import split_number, unit_factor

_EXAMPLES = {'kg': '1.5 kg', 'm': '100 mm', 'rad': '-5 deg', 'm^2': '5.5e-4 m^2', 'm^3': '0.2 l', 'Pa': '10 MPa',
             'N': '300 N', 'm/s': '5 mm/s', 'N*s/m': '330 N*s/m', 'N/m': '1e7 N/m', 'N/m^3': '2e6 N/m^3',
             'm^3/s': '24 l/min', 'V': '10 V', 's': '4.5 ms', 'm/s^2': '9.81 m/s^2', 'kg*m^2': '67 kg*m^2', '1': '10 %',
             'rad/s': '30 deg/s', 'A': '1.5 A', 'N*m/A': '0.1 N*m/A', 'N/A': '5 N/A',
             'N*m': '2 kN*m', 'N*m/rad': '5000 kN*m/rad', 'N*m*s/rad': '3 N*m*s/rad'}
# A larger number is a forgotten or mistaken unit ('bore: 100').
_LARGEST = {'kg': 1e7, 'm': 1e3, 'rad': 20.0, 'm^2': 1e2, 'm^3': 1e2, 'Pa': 1e13, 'N': 1e10, 'm/s': 1e3, 'N*s/m': 1e12,
            'N/m': 1e13, 'N/m^3': 1e15, 'm^3/s': 1e1, 'V': 1e4, 's': 1e3, 'm/s^2': 1e3, 'kg*m^2': 1e10, '1': 1e6,
            'rad/s': 1e4, 'A': 1e5, 'N*m/A': 1e6, 'N/A': 1e8, 'N*m': 1e11, 'N*m/rad': 1e13, 'N*m*s/rad': 1e12}
# A smaller number above zero is none of a machine: it would only make its equations stiff without end.
_SMALLEST = {'kg': 1e-9, 'm': 1e-6, 'm/s': 1e-9, 'N/m': 1e-6, 'm^3/s': 1e-12, 'm^3': 1e-12, 'V': 1e-6, 's': 1e-5,
             'Pa': 1e2, '1': 1e-6}


@dataclass(frozen=True)
class ValueKind:
    """What a value must be: SI unit and range (`low` itself excluded where `above`); infinite means the unit's own."""

    unit: str
    low: float = -math.inf
    high: float = math.inf
    above: bool = False

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest number, SI."""
        largest, smallest = _LARGEST[self.unit], _SMALLEST.get(self.unit, 1e-15)
        low = max(self.low, -largest)
        return max(low, smallest) if self.above else low, min(self.high, largest)

    def holds(self, value: float) -> bool:
        """Whether the number in SI lies inside."""
        low, high = self.ends
        return low <= value <= high

    def __str__(self) -> str:
        unit = '' if self.unit == '1' else f' {self.unit}'
        low, high = max(self.low, -_LARGEST[self.unit]), min(self.high, _LARGEST[self.unit])
        ends = f'from {low:g} to {high:g}'
        if self.above:
            ends = f'above {low:g} ({_SMALLEST.get(self.unit, 1e-15):g} at least) and up to {high:g}'
        return f'a number {ends}{unit}, or text with a unit such as {_EXAMPLES[self.unit]!r}'


def positive(unit: str, high: float = math.inf) -> ValueKind:
    """Above zero."""
    return ValueKind(unit, 0.0, high, True)


def not_negative(unit: str, high: float = math.inf) -> ValueKind:
    """Zero or more."""
    return ValueKind(unit, 0.0, high)


def read_number(entry: Entry, kind: ValueKind) -> float:
    """A plain number in SI or text with a unit, in SI; raises DescriptionError."""
    if not isinstance(entry.value, str):
        raise entry.error(str(kind))
    try:
        number, unit = split_number(entry.value)
        value = number * unit_factor(unit, kind.unit) if unit else number
    except ValueError as error:
        raise entry.error(f'{kind} ({error})') from error
    if not kind.holds(value):
        raise entry.error(str(kind))
    return value
