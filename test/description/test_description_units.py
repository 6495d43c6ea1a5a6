# SPDX-License-Identifier: Apache-2.0
"""Units: the table agrees with pint, what is not a unit is refused."""

import pint
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mbse_ros.description.language import units
from mbse_ros.description.language.units import parse_unit, split_number, unit_factor

REGISTRY = pint.UnitRegistry()
NAMES = {'kilogram': 'kg', 'meter': 'm', 'second': 's', 'ampere': 'A', 'radian': 'rad'}


def by_pint(text):
    base = REGISTRY.Quantity(1.0, text).to_base_units()
    return base.magnitude, {NAMES[name]: power for name, power in base.unit_items()}


@pytest.mark.parametrize('symbol', [name for name in units._TABLE if name != '%'])
def test_the_table_agrees_with_pint(symbol):
    factor, dimension = by_pint(symbol)
    assert units._TABLE[symbol] == (pytest.approx(factor, rel=1e-15), dimension)


SYMBOLS = st.sampled_from([name for name in units._TABLE if name not in '%°'] + ['psi', 'inch', 'um', 'daN'])
FACTORS = st.tuples(SYMBOLS, st.sampled_from(['', '^2', '**3', '^-1']), st.sampled_from(['*', '/', ' ']))


@settings(max_examples=150)
@given(st.lists(FACTORS, min_size=1, max_size=4), st.booleans())
def test_products_agree_with_pint(factors, bracket):
    text = ''.join(name + power + sign for name, power, sign in factors)[:-1]
    text = f'N/({text})' if bracket else text
    factor, dimension = by_pint(text)
    assert parse_unit(text) == (pytest.approx(factor, rel=1e-12), pytest.approx(dimension))


@pytest.mark.parametrize('text, unit, value', [
    ('100 mm', 'm', 0.1), ('24 l/min', 'm^3/s', 4e-4), ('330 N*s/m', 'N*s/m', 330.0), ('330 N/(m/s)', 'N*s/m', 330.0),
    ('10 %', '1', 0.1), ('1e7Pa', 'Pa', 1e7), ('-.5e-3 m', 'm', -5e-4), ('3 m²', 'm^2', 3.0),
    ('1 psi', 'Pa', 6894.757293), ('90°', 'rad', 1.5707963267948966), ('60 rpm', 'rad/s', 6.283185307179586),
    ('2 1/s', 'Hz', 2.0)])
def test_numbers_with_units(text, unit, value):
    number, symbol = split_number(text)
    assert number * unit_factor(symbol, unit) == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize('text', ['nan', '.inf', '1e400', '', 'mm', 'true', '.', '٣'])
def test_what_starts_with_no_finite_number_is_refused(text):
    with pytest.raises(ValueError):
        split_number(text)


@pytest.mark.parametrize('text', ['kg', '%', 'foo', 'degC', 'dB', 'm^', 'm^0', 'm^2^2', '/m', 'm*', '(m', 'm)',
                                  '9**9**9', ',5 m', 'm**99', '_000', '.3', 'x10', '__class__', 'm;m', '345 m'])
def test_what_is_no_length_is_refused(text):
    with pytest.raises(ValueError):
        unit_factor(text, 'm')


def test_an_angle_is_no_plain_factor_and_a_percentage_no_angle():
    for text, unit in (('deg', '1'), ('%', 'rad')):
        with pytest.raises(ValueError):
            unit_factor(text, unit)
