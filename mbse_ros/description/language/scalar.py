# SPDX-License-Identifier: Apache-2.0
"""Entries of a mechanism file to numbers in SI: plain, with a unit, arithmetic over the parameters, with a stddev."""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import overload

from ..basics import Scalar, Vector
from .entry import Entry
from .expressions import FUNCTIONS, evaluate, names_in
from .quantity import ValueKind, not_negative, read_number
from .units import Dimension, Measure, fits, is_plain, measure, parse_unit, split_number, unit_factor, unit_text

_LONGEST = 500   # characters


def split_value(text: str) -> tuple[str, str]:
    """Arithmetic and unit ('' where there is none) of e.g. '24 l/min', '2*L' or 'sqrt(13) mm'.

    Raises ValueError with the reason where it is neither.
    """
    if len(text) > _LONGEST:
        raise ValueError(f'longer than {_LONGEST} characters')
    try:
        number, unit = split_number(text)
    except ValueError:
        pass
    else:
        if not unit or _is_unit(unit):
            return repr(number), unit
    try:
        names_in(text)
    except ValueError as error:
        return _split_arithmetic(text, error)
    return text.strip(), ''


def _split_arithmetic(text: str, reason: ValueError) -> tuple[str, str]:
    """At the one blank that has arithmetic before it and a unit behind it."""
    words = text.split()
    for index in range(1, len(words)):
        head, tail = ' '.join(words[:index]), ' '.join(words[index:])
        try:
            names_in(head)
        except ValueError:
            continue
        if tail[0].isalpha() or tail[0] in '°%(':
            parse_unit(tail)
            return head, tail
    raise reason


def _is_unit(text: str) -> bool:
    try:
        parse_unit(text)
    except ValueError:
        if text[0].isalpha() or text[0] in '°%':
            raise
        return False
    return True


class Numbers:
    """Reads numbers with the parameters in scope; all methods raise DescriptionError."""

    def __init__(self) -> None:
        self.parameters: dict[str, Scalar] = {}
        self._measures: dict[str, Measure] = {}

    def read_parameters(self, entry: Entry) -> None:
        """The section `parameters`: in the file's order, each may use those before it."""
        for name, item in entry.named('parameters').items():
            with item.kept():
                if name in FUNCTIONS or name in ('pi', 't') or keyword.iskeyword(name):
                    raise item.error('another name, this one has a meaning in arithmetic', name)
                self._parameter(name, item)

    def scalar(self, entry: Entry, kind: ValueKind) -> Scalar:
        """A number, or {value, stddev, source}; where errors are collected, not a number after one."""
        return entry.tried(lambda: self._scalar(entry, kind), Scalar(math.nan, key=entry.key))

    def _scalar(self, entry: Entry, kind: ValueKind) -> Scalar:
        if not isinstance(entry.value, dict):
            return self._read(entry, kind, entry.key)
        parts = entry.mapping(['value'], ['stddev', 'source'])
        nominal = self._read(parts['value'], kind, entry.key)
        return replace(nominal, stddev=self._stddev(parts, nominal.value, kind), source=_source(parts))

    @overload
    def optional(self, parts: Mapping[str, Entry], key: str, kind: ValueKind) -> Scalar | None: ...

    @overload
    def optional(self, parts: Mapping[str, Entry], key: str, kind: ValueKind, default: Scalar) -> Scalar: ...

    def optional(self, parts: Mapping[str, Entry], key: str, kind: ValueKind, default: Scalar | None = None
                 ) -> Scalar | None:
        """As scalar, of one of the parts; ``default`` where the file leaves it out."""
        return self.scalar(parts[key], kind) if key in parts else default

    def number(self, entry: Entry, kind: ValueKind) -> float:
        """Value alone, of a guess or a tuning number; not a number as of ``scalar``."""
        return entry.tried(lambda: self._read(entry, kind, '').value, math.nan)

    def constant(self, entry: Entry, kind: ValueKind) -> float:
        """As number, for what cannot follow a parameter."""
        found = self._read(entry, kind, '')
        if found.text:
            raise entry.error('a number or arithmetic without parameters')
        return found.value

    def vector(self, entry: Entry, kind: ValueKind, size: int, meaning: str = '') -> Vector:
        """List of `size` numbers, or {value: [...], stddev: one for all or [...], source}."""
        return entry.tried(lambda: self._vector(entry, kind, size, meaning), (Scalar(math.nan, key=entry.key),) * size)

    def _vector(self, entry: Entry, kind: ValueKind, size: int, meaning: str) -> Vector:
        what = f'{meaning or f"{size} numbers " + ", ".join("xyz"[:size])}, each {kind}'
        if not isinstance(entry.value, dict):
            return tuple(self.scalar(item, kind) for item in entry.items(what, size))
        parts = entry.mapping(['value'], ['stddev', 'source'])
        nominal = [self._read(item, kind, f'{entry.key}[{index}]')
                   for index, item in enumerate(parts['value'].items(what, size))]
        spreads = [parts.get('stddev')] * size
        if spreads[0] is not None and isinstance(spreads[0].value, list):
            spreads = list(spreads[0].items('one standard deviation or one for each component', size))
        return tuple(replace(item, stddev=self._component_stddev(spread, item.value, kind), source=_source(parts))
                     for item, spread in zip(nominal, spreads))

    def numbers(self, entry: Entry, kind: ValueKind, size: int) -> tuple[float, ...]:
        """List of `size` values alone."""
        return tuple(item.value for item in self.texts(entry, kind, size))

    def texts(self, entry: Entry, kind: ValueKind, size: int) -> Vector:
        """List of `size` numbers without standard deviations."""
        what = f'{size} numbers, each {kind}'
        return tuple(self._read(item, kind, item.key) for item in entry.items(what, size))

    def direction(self, entry: Entry, size: int) -> tuple[float, ...]:
        """List of `size` numbers, made a unit vector."""
        parts = [self.constant(item, ValueKind('1')) for item in entry.items(f'{size} numbers', size)]
        length = math.hypot(*parts)
        if length < 1e-6:
            raise entry.error('a direction, not a zero vector')
        return tuple(item / length + 0.0 for item in parts)

    def motion(self, entry: Entry, unit: str) -> tuple[str, float]:
        """Arithmetic over the parameters and the time t, and its factor to SI; its value is not looked at."""
        what = f"arithmetic over the parameters and the time t, such as '1.2*(1 - cos(2*t))', in {unit}"
        try:
            text, suffix = split_value(entry.text(what))
            factor = unit_factor(suffix, unit) if suffix else 1.0
            found = measure(text, {**self._measures, 't': Measure(0.0, None)})
        except ValueError as error:
            raise entry.error(f'{what} ({error})') from error
        self._check(entry, found, suffix, unit)
        return text, factor

    def _parameter(self, name: str, entry: Entry) -> None:
        """A parameter has the dimension that its unit says, or any where it says none."""
        parts = entry.mapping(['value'], ['stddev', 'source']) if isinstance(entry.value, dict) else {'value': entry}
        nominal, dimension = self._any_unit(parts['value'], entry.key)
        spread = self._parameter_stddev(parts['stddev'], nominal.value, dimension) if 'stddev' in parts else 0.0
        self.parameters[name] = Scalar(nominal.value, nominal.text, nominal.factor, spread, entry.key, _source(parts))
        self._measures[name] = Measure(nominal.value, dimension or None)

    def _any_unit(self, entry: Entry, key: str) -> tuple[Scalar, Dimension | None]:
        """Number of whatever unit; a percentage and the like is a plain number."""
        what = 'a number, text with a unit, or arithmetic over the parameters before it'
        try:
            text, suffix = split_value(entry.text(what))
            factor, dimension = parse_unit(suffix) if suffix else (1.0, None)
            found = measure(text, self._measures)
        except ValueError as error:
            raise entry.error(f'{what} ({error})') from error
        if suffix:
            self._check(entry, found, suffix, '1')
        value = found.value * factor
        if not math.isfinite(value):
            raise entry.error(f'a finite number instead of {value}')
        return _scalar(value, text, factor, key), dimension if suffix else found.dimension

    def _parameter_stddev(self, entry: Entry, value: float, dimension: Dimension | None) -> float:
        if isinstance(entry.value, str) and entry.value.strip().endswith('%'):
            return _share(entry, value)
        spread, own = self._any_unit(entry, '')
        if spread.value < 0.0 or (own and dimension is not None and own != dimension):
            raise entry.error(f'a standard deviation of 0 or more in {unit_text(dimension)}')
        return spread.value

    def _read(self, entry: Entry, kind: ValueKind, key: str) -> Scalar:
        what = f'{kind}, or arithmetic over the parameters'
        if not isinstance(entry.value, str):
            raise entry.error(what)
        try:
            text, suffix = split_value(entry.value)
            factor = unit_factor(suffix, kind.unit) if suffix else 1.0
            found = measure(text, self._measures)
        except ValueError as error:
            raise entry.error(f'{what} ({error})') from error
        self._check(entry, found, suffix, kind.unit)
        value = found.value * factor + 0.0
        if not kind.holds(value):
            raise entry.error(what if not names_in(text) else f'{what} (it is {value:.6g} {kind.unit})')
        return replace(_scalar(value, text, factor, key), range=kind.ends)

    @staticmethod
    def _check(entry: Entry, found: Measure, suffix: str, unit: str) -> None:
        """Refuse a provably wrong dimension."""
        if suffix and not is_plain(found.dimension):
            raise entry.error(f'no unit behind arithmetic that is in {unit_text(found.dimension)} already')
        if not suffix and not fits(found.dimension, unit):
            wanted = 'a plain number' if unit == '1' else f'a number in {unit}'
            raise entry.error(f'{wanted} instead of arithmetic that gives {unit_text(found.dimension)}')

    def _stddev(self, parts: dict[str, Entry], value: float, kind: ValueKind) -> float:
        return self._component_stddev(parts.get('stddev'), value, kind, alone=True)

    def _component_stddev(self, entry: Entry | None, value: float, kind: ValueKind, alone: bool = False) -> float:
        if entry is None:
            return 0.0
        if isinstance(entry.value, str) and entry.value.strip().endswith('%'):
            return 0.0 if value == 0.0 and not alone else _share(entry, value)
        return self.number(entry, not_negative(kind.unit))


def derived(text: str, scalars: dict[str, Scalar], key: str) -> Scalar:
    """Scalar by arithmetic over others; it stays arithmetic where one of them is, so that it follows the parameters."""
    value = evaluate(text, {name: item.value for name, item in scalars.items()})
    if not any(item.text for item in scalars.values()):
        return Scalar(value, key=key)
    wholes = {name: f'(({item.text})*{item.factor!r})' if item.text else f'({item.value!r})'
              for name, item in scalars.items()}
    text = re.sub(r'\b(' + '|'.join(wholes) + r')\b', lambda match: wholes[match[0]], text)
    return Scalar(value, text, key=key)


def _scalar(value: float, text: str, factor: float, key: str) -> Scalar:
    """Arithmetic without parameters is a number."""
    return Scalar(value, text, factor, key=key) if names_in(text) else Scalar(value, key=key)


def _share(entry: Entry, value: float) -> float:
    """A percentage as standard deviation."""
    share = read_number(entry, not_negative('1'))
    if value == 0.0:
        raise entry.error('a standard deviation with a unit, since a percentage of 0 is 0')
    return share * abs(value)


def _source(parts: dict[str, Entry]) -> str:
    return parts['source'].text('text that names the source') if 'source' in parts else ''
