# SPDX-License-Identifier: Apache-2.0
"""How tests compare printed numbers: neighbours in the last digit agree, all else does not."""

import doctest

import pytest
from printed import Checker, alike, same, within


@pytest.mark.parametrize('one, other, expected', [
    ('0.0701', '0.0702', True), ('0.0701', '0.0703', False), ('0.07', '0.0702', False), ('0.0700', '0.07', True),
    ('1', '0.999', True), ('1', '0.99', True), ('1', '0.9', True), ('1', '0.98', False), ('9.99', '10.0', True),
    ('-1.5', '1.5', False), ('-0.0', '0.0', True), ('1.00e-05', '9.99e-06', True), ('1e-05', '2e-06', False),
    ('3', '4', False), ('1e+03', '1001', False), ('60', '60', True)])
def test_numbers(one, other, expected):
    assert alike(one, other) is alike(other, one) is expected


@pytest.mark.parametrize('printed, expected', [
    ('residual 0.0701, 5 rows', True), ('residual   0.0702,\n5 rows', True), ('residual 0.0700, 5 rows', True),
    ('residual 0.0703, 5 rows', False), ('residual 0.0701, 6 rows', False), ('residual 0.0701, 5 row', False),
    ('residual x0.0701, 5 rows', False), ('residual 0.0701, 5 rows.', False), ('Residual 0.0701, 5 rows', False)])
def test_whole_texts(printed, expected):
    assert same('residual 0.0701, 5 rows', printed) is expected


def test_parts_of_texts():
    assert within('x 1.50 m', 'x 1.47 m x  1.51 m y') and not within('x 1.50 m', 'x 1.47 m y 1.51 m')
    assert not within('P2.x 1.50', 'P2.y 1.50') and not within('q1 0.5', 'q2 0.5')


def test_output_of_sessions():
    check, flags = Checker().check_output, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert check('(-18.83, 2) deg\n', '(-18.84, 2) deg\n', flags) and not check('-18.83 deg\n', '-18.85 deg\n', flags)
    assert check('condition 1.4 ... (0.5)\n', 'condition 1.5 a b\nc (0.5)\n', flags)
    assert not check('condition 1.4 ... (0.5)\n', 'condition 1.6 a b\nc (0.5)\n', flags)
    assert not check('', 'something\n', flags) and not check('something\n', '', flags)
    assert not check('1\n', '2\n', flags)
