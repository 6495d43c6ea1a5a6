# SPDX-License-Identifier: Apache-2.0
"""Lanes: the same bits as the virtual machine, whatever the shapes, and nothing else touched."""

from __future__ import annotations

import re
import sys

import casadi as ca
import numpy as np
import pytest

from mbse_ros.compiled import Kernel, have_compiler, lanes
from mbse_ros.compiled.dense import c_source
from mbse_ros.compiled.lanes import with_lanes

needs_compiler = pytest.mark.skipif(not have_compiler(), reason='no C compiler')


def update(rows: int, columns: int, sequential: int) -> ca.Function:
    """Rank-one updates of a matrix, each by what the one before left, as those of a filter."""
    P, h, k = ca.SX.sym('P', rows, columns), ca.SX.sym('h', rows), ca.SX.sym('k')
    M, seen = P, []
    for i in range(sequential):
        row = (h * (i + 1.5)).T @ M - k
        M = M - (h / (ca.sumsqr(row) + 1)) @ row
        seen.append(ca.sin(row[0]) - 2.5)
    return ca.Function('update', [P, h, k], [M, ca.vertcat(*seen), -M[:, 0], 2 * ca.sqrt(M[0, 0] ** 2)], {'cse': True})


@pytest.fixture(autouse=True, params=[lanes.LONGEST, 7])
def short(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short functions are taken, too; in one part and in many."""
    monkeypatch.setattr(lanes, 'LEAST', 1)
    monkeypatch.setattr(lanes, 'LONGEST', request.param)


@needs_compiler
@pytest.mark.parametrize('rows, columns, sequential', [(3, 3, 1), (4, 5, 2), (6, 6, 3), (9, 4, 5), (22, 7, 2)])
def test_same_bits_as_the_virtual_machine(rows: int, columns: int, sequential: int) -> None:
    function, rng = update(rows, columns, sequential), np.random.default_rng(rows)
    arrays = rng.normal(size=(rows, columns)), rng.normal(size=rows), np.array([0.3])
    for found, expected in zip(Kernel(function, 'c')(*arrays), Kernel(function, 'vm')(*arrays)):
        np.testing.assert_array_equal(found, expected)


@needs_compiler
def test_a_nan_stays_one() -> None:
    function, P = update(5, 5, 2), np.ones((5, 5))
    P[2, 2] = np.nan
    found, expected = (Kernel(function, kind)(P, np.ones(5), np.zeros(1))[0] for kind in ('c', 'vm'))
    assert np.isnan(expected).any()
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))


def test_rows_are_taken_in_lanes() -> None:
    source = c_source(update(8, 8, 1))
    assert source.count('const mbse_lanes') > 50 and 'mbse_packed*)(r0+60)' in source


def test_a_long_function_becomes_parts_that_need_little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values and lanes cross from part to part, each place of the store is used again, and no part is too long."""
    monkeypatch.setattr(lanes, 'LONGEST', 40)
    source = c_source(update(8, 8, 6))
    found = re.findall(r'void casadi_f0_\d+\(.*?\) \{\n(.*?)\n\}\n', source, re.S)
    values = [len(re.findall(r'const \w+ [sv]\d+=(?!kept)', part)) for part in found]
    stores = [len(set(re.findall(rf'\b{store}\[\d+\]=', source))) for store in lanes.STORES.values()]
    moved = [len(re.findall(rf'\b{store}\[\d+\]=', source)) for store in lanes.STORES.values()]
    assert len(found) > 5 and max(values) <= 40
    assert all(1 < places < 0.7 * number for places, number in zip(stores, moved))


def test_values_that_wait_for_each_other_are_not_taken_together() -> None:
    """Each output is made of the one before: four of them are no lanes, and the code says what it said."""
    x, chain = ca.SX.sym('x', 4), []
    for i in range(8):
        chain.append((chain[-1] if chain else x[0]) * x[i % 4] + x[0])
    function = ca.Function('chain', [x], [ca.vertcat(*chain)])
    if have_compiler():
        point = np.array([1.1, -0.3, 0.7, 2.0])
        np.testing.assert_array_equal(Kernel(function, 'c')(point)[0], Kernel(function, 'vm')(point)[0])
    body = c_source(function)
    assert 'r0[7]=' in body and 'mbse_packed*)(r0' not in body


@needs_compiler
def test_operands_in_another_order() -> None:
    """Sums and products may be turned round, differences and quotients not."""
    x, y, s = ca.SX.sym('x', 4), ca.SX.sym('y', 4), ca.SX.sym('s')
    turned = [(s, value) if i % 2 else (value, s) for i, value in enumerate(ca.vertsplit(x))]
    function = ca.Function('turned', [x, y, s], [ca.vertcat(*((a - b) * y[i] for i, (a, b) in enumerate(turned))),
                                                 ca.vertcat(*((a / b) + y[i] for i, (a, b) in enumerate(turned))),
                                                 ca.vertcat(*((a * b) - y[i] for i, (a, b) in enumerate(turned)))])
    arrays = np.array([1.1, -0.3, 0.7, 2.0]), np.array([0.4, 3.0, -1.2, 0.9]), np.array([0.1])
    for found, expected in zip(Kernel(function, 'c')(*arrays), Kernel(function, 'vm')(*arrays)):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize('line', ['  a1[0]=a0;', '  goto end;', '  a9=a7;'])
def test_what_is_not_understood_stays(line: str) -> None:
    source = ('/* f:(i0)->(o0) */\nstatic int casadi_f0(const casadi_real** arg) {\n  casadi_real a0, a1;\n'
              f'  a0=arg[0]? arg[0][0] : 0;\n{line}\n  if (res[0]!=0) res[0][0]=a0;\n  return 0;\n}}\n')
    assert with_lanes(source) == source


def test_short_functions_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, 'LEAST', 10_000)
    assert 'mbse_lanes' not in c_source(update(6, 6, 1))


def test_chains_may_be_longer_than_functions_call_each_other() -> None:
    x, k = ca.SX.sym('x', 4), ca.SX.sym('k', 4)
    last = x
    for _ in range(sys.getrecursionlimit()):
        last = last * k + 0.5
    source = c_source(ca.Function('long', [x, k], [last]))
    assert source.count('const mbse_lanes') >= 2 * sys.getrecursionlimit()
