# SPDX-License-Identifier: Apache-2.0
"""What each remedy makes of the samples, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from mbse_ros.offline.checks.remedies import ATMOSPHERE, Remedy, gauge, negated, reversed_, scaled, swapped

A, B = np.array([1.0, -2.0, 3.5]), np.array([0.5, 0.25, np.nan])


@pytest.mark.parametrize('remedy, a, b', [
    (scaled('a', 1e5, 'bar'), 1e5 * A, B), (negated('a'), -A, B), (gauge('b'), A, B + ATMOSPHERE),
    (swapped('a', 'b'), B, A), (reversed_('b', 0.25, 1.0, 'm'), A, 1.25 - B), (negated('c'), A, B)])
def test_only_what_it_names_is_changed(remedy: Remedy, a: np.ndarray, b: np.ndarray) -> None:
    values = {'a': A, 'b': B}
    mended = remedy.mended(values)
    assert mended.keys() == values.keys() == {'a', 'b'}
    np.testing.assert_array_equal(mended['a'], a)
    np.testing.assert_array_equal(mended['b'], b)
