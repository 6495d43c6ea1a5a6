# SPDX-License-Identifier: Apache-2.0
"""Steps that repeat a function until it is enough: as the loop in Python, in both backends."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from test_compiled_scan import BACKENDS, own_cache  # noqa: F401, the cache is a fixture

from mbse_ros.compiled import Scan
from mbse_ros.compiled.iterated import Iterated


def cube_roots(kind=ca.SX, most=50):
    """Newton's method for ``r^3 = c``, c the sum of the u so far times p; x = (r, count, left, sum)."""
    x, u, p = kind.sym('x', 4), kind.sym('u'), kind.sym('p')
    total = x[3] + u * p
    better = x[0] - (x[0] ** 3 - total) / (3 * x[0] ** 2)
    iterate = ca.Function('iterate', [x, u, p], [ca.vertcat(better, x[1] + 1, ca.fabs(better - x[0]) - 1e-10)])
    finish = ca.Function('finish', [x, u, p], [ca.vertcat(x[0], 0, 1, total), ca.vertcat(x[0], x[1], x[2])])
    return Iterated(iterate, finish, most)


def by_hand(us, p, most):
    r, total, rows = 1.0, 0.0, []
    for (u,) in us:
        total += u * p
        count, left = 0, 1.0
        while left > 0 and count < most:
            better = r - (r ** 3 - total) / (3 * r ** 2)
            left, r, count = abs(better - r) - 1e-10, better, count + 1
        rows.append((r, count, left))
    return np.array(rows)


@pytest.mark.parametrize('backend', BACKENDS)
@pytest.mark.parametrize('kind', (ca.SX, ca.MX))
@pytest.mark.parametrize('most', (50, 3))
def test_equals_a_loop(backend, kind, most):
    """300 steps, more than a block; with three iterations most steps are not done."""
    us = np.random.default_rng(4).uniform(0.5, 30.0, (300, 1))
    end, rows = Scan(cube_roots(kind, most), backend, in_lanes=False)(np.array([1.0, 0, 1, 0]), us, np.array([0.7]))
    expected = by_hand(us, 0.7, most)
    np.testing.assert_array_equal(rows[:, 1], expected[:, 1])
    np.testing.assert_allclose(rows, expected, rtol=1e-12, atol=1e-12)
    assert end[0] == rows[-1, 0] and end[3] == pytest.approx(0.7 * us.sum(), rel=1e-12)
    assert (rows[:, 2] <= 0).all() if most == 50 else (rows[:, 2] > 0).any()


@pytest.mark.parametrize('backend', BACKENDS)
def test_nan_ends_the_iteration(backend):
    _, rows = Scan(cube_roots(), backend)(np.array([1.0, 0, 1, 0]), np.array([[8.0], [np.nan], [1.0]]), np.array([1.0]))
    assert rows[0, 0] == pytest.approx(2.0) and rows[1, 1] == rows[2, 1] == 1 and np.isnan(rows[1:, 0]).all()


def test_functions_that_do_not_agree_are_refused():
    one, short = cube_roots(), ca.SX.sym('x', 2)
    for iterate in (ca.Function('iterate', [short, ca.SX.sym('u'), ca.SX.sym('p')], [short]),
                    ca.Function('iterate', [ca.SX.sym(name, *size) for name, size in
                                            (('x', (4, 1)), ('u', (1, 1)), ('p', (1, 1)))], [ca.SX.zeros(5)])):
        with pytest.raises(ValueError, match='finish: got .* functions of the same'):
            Iterated(iterate, one.finish, 3)
