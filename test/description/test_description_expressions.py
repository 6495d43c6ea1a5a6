# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of the mechanism file: values, the same on symbols, and everything that is refused."""

import math

import casadi as ca
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbse_ros.description.language.expressions import evaluate, motion, names_in

NAMES = {'L': 2.0, 'crank': 3.0, 'start': math.pi / 3, 'zero': 0.0}


@pytest.mark.parametrize('text, value', [
    ('2*L', 4.0), ('sqrt(13)', math.sqrt(13)), ('crank*cos(start)', 1.5), ('-L**2', -4.0), ('2**-1', 0.5),
    (' 1 +  2 ', 3.0), ('1e-3', 1e-3), ('.5', 0.5), ('pi/3', math.pi / 3), ('+L', 2.0), ('((L))', 2.0),
    ('sin(1)+tan(1)+asin(.5)+acos(.5)+atan(2)+exp(1)+log(2)',
     math.sin(1) + math.tan(1) + math.asin(.5) + math.acos(.5) + math.atan(2) + math.e + math.log(2)),
    ('atan2(-1, -L)', math.atan2(-1, -2)), ('abs(-3)', 3.0), ('min(3, L, 4) + max(1, crank)', 5.0),
    ('hypot(3, 4)', 5.0), ('radians(180)', math.pi), ('degrees(pi)', 180.0),
])
def test_values_of_numbers_and_of_symbols(text, value):
    assert evaluate(text, NAMES) == pytest.approx(value, rel=1e-15)
    symbols = {name: ca.SX.sym(name) for name in NAMES}
    result = evaluate(text, symbols)
    assert isinstance(result, ca.SX) == bool(names_in(text))
    function = ca.Function('f', list(symbols.values()), [result])
    assert float(function(*NAMES.values())) == pytest.approx(value, rel=1e-15)


def test_derivative_of_the_same_text():
    length = ca.SX.sym('L')
    derivative = ca.Function('d', [length], [ca.jacobian(evaluate('hypot(L, 3) + L**2', {'L': length}), length)])
    assert float(derivative(4.0)) == pytest.approx(0.8 + 8.0)


def test_motion_has_the_time():
    text = '1.2*(1 - cos(2*t))'
    assert motion(text, {}, 0.5) == pytest.approx(1.2 * (1 - math.cos(1.0)))
    assert isinstance(motion(text, {}, ca.SX.sym('t')), ca.SX)
    with pytest.raises(ValueError, match="unknown name 't'"):
        evaluate(text, {})


def test_names_in():
    assert names_in('2*L + sin(start)/pi') == {'L', 'start'}


@pytest.mark.parametrize('text, reason', [
    ('', 'characters'), ('L +', 'not arithmetic'), ('(L', 'not arithmetic'), ('2 3', 'not arithmetic'),
    ('2L', "operator is missing before 'L'"), ('2(3)', 'not arithmetic'), ('L(3)', 'operator is missing before'),
    ('crnk', 'did you mean crank?'), ('sqr(2)', 'did you mean sqrt?'), ('sqrt', 'not a finite number'),
    ('sqrt + 1', 'not arithmetic'), ('sqrt()', 'has 0 arguments'), ('sqrt(1, 2)', 'has 2 arguments'),
    ('hypot(3)', 'has 1 arguments, expected 2'), ('min(*L)', 'not arithmetic'),
    ('sqrt(x=4)', "character '='"),
    ('1/zero', 'divides by zero'), ('0**-1', 'divides by zero'), ('10**99*10**99*10**99*10**99', 'not a finite number'),
    ('exp(1000)', 'too large'), ('9**9**9', 'larger than 100'), ('99**99**99**99', 'larger than 100'),
    ('1e400', 'not a finite number'), ('sqrt(-1)', 'is not a real number'), ('log(0)', 'is not a real number'),
    ('asin(2)', 'is not a real number'), ('(-8)**0.5', 'a negative number'), ('L^2', 'a power is written'),
    ('L.real', "character '.'"), ('().__class__', "character '.'"), ('"a"', 'character'), ('lambda: 1', 'lambda'),
    ('L if L else 1', "'if'"), ('[1, 2]', 'character'), ('L < 3', 'character'), ('1j', 'operator is missing'),
    ('True', "'True'"), ('__import__', 'not allowed'), ('import os', "'import'"), ('L, 2', 'not arithmetic'),
    ('2,430', 'the decimal sign is a point'),
    ('1; 2', 'character'), ('L % 2', 'character'), ('L // 2', 'not arithmetic'), ('2 @ 3', 'character'),
    ('0x10', 'operator is missing'), ('1_000', 'not allowed'),
    ('(' * 300 + '1' + ')' * 300, 'not arithmetic|deep'),
    ('-' * 7000 + '1', 'deep'), ('²', 'character'), ('1' * 9000, 'characters'), ('nan', 'unknown name'),
    ('１', 'char'),
])
def test_refused(text, reason):
    with pytest.raises(ValueError, match=reason):
        evaluate(text, NAMES)


@given(st.one_of(st.text(max_size=30), st.lists(st.sampled_from(
    ['L', 'crank', 'zero', 'pi', 'sqrt', 'log', 'min', '(', ')', '+', '-', '*', '/', '**', ',', ' ', '1e300', '0',
     '7.5', 'lambda', '.', '[', '"'])).map(''.join)))
def test_any_text_is_a_finite_number_or_a_value_error(text):
    try:
        assert math.isfinite(evaluate(text, NAMES))
    except ValueError as error:
        assert str(error)
