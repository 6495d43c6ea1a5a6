# SPDX-License-Identifier: Apache-2.0
"""Dimensional analysis of the file's arithmetic: a length is not taken where a mass belongs.

Only what is certain is refused. A parameter without a unit may have any dimension; a number written into the
arithmetic is a factor in a product and fits anything in a sum; an angle is a plain number inside arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .expressions import FUNCTIONS, evaluate_with, power
from .units import Dimension, parse_unit


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
        return Measure(self.value * _value(other), _product(self, other, 1))

    def __truediv__(self, other: Operand) -> Measure:
        return Measure(self.value / _value(other), _product(self, other, -1))

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


def _product(first: Operand, second: Operand, sign: int) -> Dimension | None:
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
