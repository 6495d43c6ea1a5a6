# SPDX-License-Identifier: Apache-2.0
"""Small functions of CasADi's C, replaced by faster ones: the same bits as the virtual machine."""

from __future__ import annotations

from itertools import product
from math import inf, nan

import casadi as ca
import numpy as np
import pytest

from mbse_ros.compiled import Kernel, have_compiler, lanes
from mbse_ros.compiled.compiler import compile_library, compiler, flags
from mbse_ros.compiled.dense import c_source, dense

needs_compiler = pytest.mark.skipif(not have_compiler(), reason='no C compiler')
VALUES = 0.0, -0.0, 1.0, -1.0, 5e-324, inf, -inf, nan


def extremes() -> ca.Function:
    x, y = ca.SX.sym('x', len(VALUES) ** 2), ca.SX.sym('y', len(VALUES) ** 2)
    return ca.Function('extremes', [x, y], [ca.fmax(x, y), ca.fmin(x, y)])


@needs_compiler
def test_larger_and_smaller_of_zeros_infinities_and_nan() -> None:
    x, y = np.array(list(product(VALUES, repeat=2))).T.copy()
    for found, expected in zip(Kernel(extremes(), 'c')(x, y), Kernel(extremes(), 'vm')(x, y)):
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def test_both_are_replaced() -> None:
    source = c_source(dense(extremes(), 'extremes'))
    assert 'return x != x || x < y ? y : x;' in source and 'return x != x || x > y ? y : x;' in source


@needs_compiler
def test_copies_of_parts_and_of_nothing() -> None:
    """Outputs that are inputs, one of them empty, and zeros where a function is called without an input."""
    x, y = ca.MX.sym('x', 7), ca.MX.sym('y', 3)
    inner = ca.Function('inner', [x, y], [x + 1, y * 2])
    function = ca.Function('copies', [x, y], [x, ca.vertcat(y, x[2:]), x[:0], *inner(x, ca.MX(3, 1))])
    assert '__builtin_memmove' in c_source(dense(function, 'copies'))
    arrays = np.arange(7.0), np.array([-1.0, np.nan, 4.0])
    for found, expected in zip(Kernel(function, 'c')(*arrays), Kernel(function, 'vm')(*arrays)):
        np.testing.assert_array_equal(found, expected)


@needs_compiler
@pytest.mark.skipif('-mavx2' not in flags(), reason='no AVX')
def test_the_c_library_is_called_with_clean_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    """vzeroupper, c5 f8 77: without it some CPUs take three times as long for a step."""
    monkeypatch.setattr(lanes, 'LEAST', 1)
    x = ca.SX.sym('x', 8)
    source = c_source(ca.Function('wide', [x], [x * x + 2 * x, ca.sin(x[0])]))
    assert 'const mbse_lanes' in source
    command = compiler()
    assert command is not None and b'\xc5\xf8\x77' in compile_library('wide', source, command)
