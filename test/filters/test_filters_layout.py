# SPDX-License-Identifier: Apache-2.0
"""Named parts of flat vectors: expressions, arrays and places say the same."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from mbse_ros.filters.parts.layout import SYMMETRIC, Layout

MIXED = Layout({'x': (3, 1), 'P': (3, SYMMETRIC), 'none': (0, 1), 'T': (2, 3), 'near': (1, 1)})


@pytest.mark.parametrize('name', MIXED.parts)
def test_expressions_arrays_and_indices_of_a_part_agree(name: str) -> None:
    flat, symbol = np.random.default_rng(1).normal(size=MIXED.size), ca.SX.sym('flat', MIXED.size)
    part = MIXED.arrays(flat)[name]
    np.testing.assert_array_equal(flat[MIXED.indices[name]], part)
    written = np.array(ca.Function('part', [symbol], [MIXED.unpack(symbol)[name]])(flat)).reshape(part.shape)
    np.testing.assert_array_equal(written, part)
    assert len(flat[MIXED.span((name,))]) == len(np.unique(MIXED.indices[name]))


def test_all_parts_fill_the_vector() -> None:
    flat = np.arange(float(MIXED.size))
    np.testing.assert_array_equal(MIXED.flat(**MIXED.arrays(flat)), flat)
    assert MIXED.span(('P', 'none', 'T')) == slice(3, 15)
