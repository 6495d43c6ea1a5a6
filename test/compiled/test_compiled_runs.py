# SPDX-License-Identifier: Apache-2.0
"""Runs: as far as the steps hold, the kept ones in their rows, from many threads at once."""

from concurrent.futures import ThreadPoolExecutor

import casadi as ca
import numpy as np
import pytest

from mbse_ros.compiled import Runs, have_compiler

pytestmark = pytest.mark.skipif(not have_compiler(), reason='no C compiler')


@pytest.fixture(scope='module')
def runs():
    """x grows by u p; y = (x, x^2, whether x stays below 10)."""
    x, u, p = (ca.SX.sym(name, 1) for name in 'xup')
    after = x + u * p
    return Runs(ca.Function('mbse_growth', [x, u, p], [after, ca.vertcat(after, after ** 2, after < 10)]))


def test_it_stops_at_the_last_step_that_holds(runs):
    x, kept = np.array([1.0]), np.full((20, 2), np.nan)
    assert runs(x, np.ones((20, 1)), np.array([2.0]), kept) == 4
    assert x.tolist() == [9.0] and kept[:4].tolist() == [[3, 9], [5, 25], [7, 49], [9, 81]] and np.isnan(kept[4:]).all()
    assert runs(x, np.ones((20, 1)), np.array([np.nan]), kept) == 0 and x.tolist() == [9.0]


def test_only_some_steps_are_kept_by_their_number(runs):
    x, kept = np.array([0.0]), np.full((4, 1), np.nan)
    assert runs(x, np.ones((5, 1)), np.array([1.0]), kept, every=3, first=2) == 5       # numbers 2 to 6
    assert np.isnan(kept[[0, 3]]).all() and kept[1:3, 0].tolist() == [2.0, 5.0]


def test_threads_do_not_meet(runs):
    us = np.full((20_000, 1), 1e-4)
    starts = np.linspace(0.0, 7.0, 40)

    def one(start):
        x, kept = np.array([start]), np.zeros((1, 1))
        return runs(x, us, np.ones(1), kept, every=100_000), x[0]
    alone = [one(start) for start in starts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, starts)) == alone


def test_wrong_arrays_are_refused(runs):
    good = [np.zeros(1), np.zeros((5, 1)), np.zeros(1), np.zeros((5, 2))]
    for place, wrong in ((0, np.zeros(2)), (1, np.zeros((5, 2))), (2, np.zeros((1, 1))), (3, np.zeros((4, 2))),
                         (3, np.zeros((5, 4))), (3, np.zeros((2, 5)).T), (1, np.zeros((5, 1), int))):
        with pytest.raises(ValueError, match='mbse_growth'):
            runs(*[wrong if i == place else array for i, array in enumerate(good)])
