# SPDX-License-Identifier: Apache-2.0
"""Numbers with units to SI: the units of this field from a table, every other unit from pint.

Importing pint and reading its definitions takes about 0.9 s, far more than all the rest of loading a machine, so pint
is asked only for symbols that are not in the table; a test holds the table against pint. An angle is a dimension of
its own here: '5 %' is not an angle, '5 deg' no factor.

``Measure`` is the dimensional analysis of the file's arithmetic: a length is not taken where a mass belongs. Only what
is certain is refused. A parameter without a unit may have any dimension; a number written into the arithmetic is a
factor in a product and fits anything in a sum; an angle is a plain number inside arithmetic.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .expressions import FUNCTIONS, evaluate_with, power

Dimension = dict[str, float]   # exponents of kg, m, s, A, rad (or what pint calls its base units)
Unit = tuple[float, Dimension]

_NUMBER = re.compile(r'\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)')
_TOKEN = re.compile(r'\s*(?:([^\W\d]+|[°%])|(\*\*|[*/^()·])|(-?\d+))')
_FORCE: Dimension = {'kg': 1, 'm': 1, 's': -2}
_PRESSURE: Dimension = {'kg': 1, 'm': -1, 's': -2}
_VOLTAGE: Dimension = {'kg': 1, 'm': 2, 's': -3, 'A': -1}
_POWER: Dimension = {'kg': 1, 'm': 2, 's': -3}
_TABLE: dict[str, Unit] = {
    'kg': (1.0, {'kg': 1}), 'g': (1e-3, {'kg': 1}), 't': (1e3, {'kg': 1}),
    'm': (1.0, {'m': 1}), 'cm': (1e-2, {'m': 1}), 'mm': (1e-3, {'m': 1}), 'km': (1e3, {'m': 1}),
    's': (1.0, {'s': 1}), 'ms': (1e-3, {'s': 1}), 'min': (60.0, {'s': 1}), 'h': (3600.0, {'s': 1}),
    'Hz': (1.0, {'s': -1}), 'A': (1.0, {'A': 1}), 'mA': (1e-3, {'A': 1}), 'V': (1.0, _VOLTAGE), 'mV': (1e-3, _VOLTAGE),
    'rad': (1.0, {'rad': 1}), 'deg': (math.pi / 180.0, {'rad': 1}), '°': (math.pi / 180.0, {'rad': 1}),
    'N': (1.0, _FORCE), 'kN': (1e3, _FORCE), 'W': (1.0, _POWER), 'kW': (1e3, _POWER),
    'Pa': (1.0, _PRESSURE), 'kPa': (1e3, _PRESSURE), 'MPa': (1e6, _PRESSURE), 'GPa': (1e9, _PRESSURE),
    'bar': (1e5, _PRESSURE), 'l': (1e-3, {'m': 3}), 'L': (1e-3, {'m': 3}), 'ml': (1e-6, {'m': 3}),
    '%': (1e-2, {}),
}
_PINT_NAMES = {'kilogram': 'kg', 'meter': 'm', 'second': 's', 'ampere': 'A', 'radian': 'rad'}


def split_number(text: str) -> tuple[float, str]:
    """Number and unit text of e.g. '24 l/min'; the unit is '' where there is none.

    Raises ValueError where the text does not start with a finite decimal number.
    """
    match = _NUMBER.match(text)
    if match is None:
        raise ValueError('no number')
    number = float(match.group(1))
    if not math.isfinite(number):
        raise ValueError('not finite')
    return number, text[match.end():].strip()


@lru_cache(maxsize=512)
def unit_factor(text: str, wanted: str) -> float:
    """Factor from the unit `text` to `wanted`, a coherent SI unit such as 'N*s/m', or '1' for a plain factor.

    Raises ValueError, with the reason, for an unknown unit or another dimension.
    """
    factor, dimension = parse_unit(text)
    if dimension != parse_unit(wanted)[1]:
        raise ValueError(f'{text!r} is not a unit of {wanted}' if wanted != '1' else f'{text!r} is not a plain factor')
    return factor


def parse_unit(text: str) -> Unit:
    """Factor to SI and dimension of a product such as 'kg*m^2', 'l/min', 'N/(m/s)'; ValueError with the reason."""
    factor, dimension = _unit(text)
    return factor, dict(dimension)


@lru_cache(maxsize=512)
def _unit(text: str) -> Unit:
    plain = text.replace('²', '^2').replace('³', '^3')
    tokens, place = [], 0
    while place < len(plain.rstrip()):
        match = _TOKEN.match(plain, place)
        if match is None:
            raise ValueError(f'{text!r} is not a unit')
        tokens.append(match.group().strip())
        place = match.end()
    if tokens == ['1']:
        return 1.0, {}
    unit = _product(tokens, text)
    if tokens:
        raise ValueError(f'{text!r} is not a unit')
    return unit


def _product(tokens: list[str], text: str) -> Unit:
    """Consume factors joined by *, / or a blank."""
    factor, dimension = _power(tokens, text)
    while tokens and tokens[0] != ')':
        sign = -1 if tokens[0] == '/' else 1
        if tokens[0] in '*/·':
            tokens.pop(0)
        other, powers = _power(tokens, text)
        factor *= other ** sign
        dimension = _added(dimension, powers, sign)
    return factor, dimension


def _power(tokens: list[str], text: str) -> Unit:
    """Consume one symbol or bracket and its exponent."""
    token = tokens.pop(0) if tokens else ''
    if token == '(':
        unit = _product(tokens, text)
        if not tokens or tokens.pop(0) != ')':
            raise ValueError(f'{text!r} lacks a closing bracket')
    elif token == '1' and tokens[:1] == ['/']:
        unit = 1.0, {}
    elif token and (token[0].isalpha() or token[0] in '°%_'):
        unit = _symbol(token)
    else:
        raise ValueError(f'{text!r} is not a unit')
    if tokens[:1] in (['^'], ['**']):
        exponent = tokens[1] if len(tokens) > 1 else ''
        if not re.fullmatch(r'-?[1-9]', exponent):
            raise ValueError(f'{text!r} has no exponent from 1 to 9')
        del tokens[:2]
        unit = unit[0] ** int(exponent), _added({}, unit[1], int(exponent))
    return unit


def _added(first: Dimension, second: Dimension, times: int) -> Dimension:
    total = {name: first.get(name, 0) + times * second.get(name, 0) for name in {**first, **second}}
    return {name: power for name, power in total.items() if power}


def _symbol(name: str) -> Unit:
    return _TABLE[name] if name in _TABLE else _from_pint(name)


@lru_cache(maxsize=1)
def _registry() -> Any:
    import pint  # slow to import, seldom needed
    return pint.UnitRegistry()


@lru_cache(maxsize=256)
def _from_pint(name: str) -> Unit:
    """A symbol that is not in the table; ValueError where pint does not know it or it is not a plain multiple of SI."""
    quantity = _registry().Quantity
    try:
        one, two = (quantity(value, name).to_base_units() for value in (1.0, 2.0))
    except Exception as error:   # pint raises its own, AttributeError, TypeError, ... on odd names
        raise ValueError(f'{name!r} is not a known unit') from error
    if not math.isclose(two.magnitude, 2.0 * one.magnitude, rel_tol=1e-12):
        raise ValueError(f'{name!r} is not a multiple of an SI unit')
    powers = {_PINT_NAMES.get(base, base): power for base, power in one.unit_items()}
    return float(one.magnitude), powers


@dataclass(frozen=True)
class Measure:
    """A number in SI with its dimension; None: not known, {}: a plain number."""

    value: float
    dimension: Dimension | None

    def __add__(self, other: Operand) -> Measure:
        return Measure(self.value + _value(other), _common('+', self, other))

    def __sub__(self, other: Operand) -> Measure:
        return Measure(self.value - _value(other), _common('-', self, other))

    def __mul__(self, other: Operand) -> Measure:
        return Measure(self.value * _value(other), _product_dimension(self, other, 1))

    def __truediv__(self, other: Operand) -> Measure:
        return Measure(self.value / _value(other), _product_dimension(self, other, -1))

    def __pow__(self, other: Operand) -> Measure:
        return _raised(self, _value(other), _dimension(other))

    def __rsub__(self, other: float) -> Measure:
        return Measure(other, {}) - self

    def __rtruediv__(self, other: float) -> Measure:
        return Measure(other, {}) / self

    def __rpow__(self, other: float) -> Measure:
        return Measure(other, {}) ** self

    def __neg__(self) -> Measure:
        return Measure(-self.value, self.dimension)

    def __pos__(self) -> Measure:
        return self

    __radd__, __rmul__ = __add__, __mul__

Operand = Measure | float


def measure(text: str, names: Mapping[str, Measure]) -> Measure:
    """Value and dimension of arithmetic over the names; ValueError with the reason, as expressions.evaluate."""
    result = evaluate_with(text, names, _FUNCTIONS)
    if not isinstance(result, (Measure, float)):
        raise ValueError(f'{text!r} is not a finite number')
    return result if isinstance(result, Measure) else Measure(result, {})


def fits(dimension: Dimension | None, unit: str) -> bool:
    """Whether a number of this dimension may be used where the SI unit is wanted; a plain number fits anything."""
    wanted = _plain(parse_unit(unit)[1])
    return not dimension or _plain(dimension) == wanted


def unit_text(dimension: Dimension | None) -> str:
    """The dimension as a unit in SI, e.g. 'kg*m/s^2'."""
    def joined(sign: int) -> str:
        return '*'.join(name + (f'^{abs(exponent):g}' if abs(exponent) != 1 else '')
                        for name, exponent in (dimension or {}).items() if exponent * sign > 0)
    over, under = joined(1), joined(-1)
    return (over or '1') + (f'/({under})' if '*' in under else f'/{under}' if under else '')


def is_plain(dimension: Dimension | None) -> bool:
    """Whether this may be a plain number or an angle."""
    return dimension is None or not _plain(dimension)


def _value(operand: Operand) -> float:
    return operand.value if isinstance(operand, Measure) else operand


def _dimension(operand: Operand) -> Dimension | None:
    return operand.dimension if isinstance(operand, Measure) else {}


def _plain(dimension: Dimension) -> Dimension:
    """Without angles."""
    return {name: exponent for name, exponent in dimension.items() if name != 'rad' and exponent}


def _common(what: str, *operands: Operand) -> Dimension | None:
    """Dimension of a sum."""
    known = [dimension for dimension in map(_dimension, operands) if dimension and _plain(dimension)]
    if any(_plain(item) != _plain(known[0]) for item in known):
        raise ValueError(f'{what} of {" and ".join(unit_text(item) for item in known)}, which do not match')
    if known:
        return known[0]
    dimensions = [_dimension(operand) for operand in operands]
    return None if None in dimensions else next((item for item in dimensions if item), {})


def _product_dimension(first: Operand, second: Operand, sign: int) -> Dimension | None:
    one, two = _dimension(first), _dimension(second)
    if one is None or two is None:
        return None
    total = {name: one.get(name, 0) + sign * two.get(name, 0) for name in {**one, **two}}
    return {name: exponent for name, exponent in total.items() if exponent}


def _raised(base: Measure, exponent: float, dimension: Dimension | None) -> Measure:
    if not is_plain(dimension):
        raise ValueError(f'an exponent in {unit_text(dimension)}')
    powers = base.dimension
    if powers is not None:
        powers = {name: round(item * exponent, 6) for name, item in powers.items() if exponent}
    return Measure(power(base.value, exponent), powers)


def _of_plain(name: str) -> Callable[..., Measure]:
    def call(*operands: Operand) -> Measure:
        for operand in operands:
            if not is_plain(_dimension(operand)):
                raise ValueError(f'{name} of {unit_text(_dimension(operand))}')
        return Measure(FUNCTIONS[name](*map(_value, operands)), {})
    return call


def _of_alike(name: str, plain: bool = False) -> Callable[..., Measure]:
    def call(*operands: Operand) -> Measure:
        dimension = _common(name, *operands)
        return Measure(FUNCTIONS[name](*map(_value, operands)), {} if plain else dimension)
    return call


def _sqrt(*operands: Operand) -> Measure:
    value = FUNCTIONS['sqrt'](*map(_value, operands))
    return Measure(value, _raised(Measure(1.0, _dimension(operands[0])), 0.5, {}).dimension)

_FUNCTIONS = {**{name: _of_plain(name) for name in FUNCTIONS},
              **{name: _of_alike(name) for name in ('abs', 'min', 'max', 'hypot')},
              'atan2': _of_alike('atan2', plain=True), 'sqrt': _sqrt}
