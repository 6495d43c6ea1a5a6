# SPDX-License-Identifier: Apache-2.0
"""An equation that is printed wrongly in Pyrhönen et al., mass estimation."""

from __future__ import annotations

import numpy as np
import pytest

from mbse_ros.payload.filter import triangular_weights

HALF = 4        # n, of a window of 2 n + 1


def weights(of: list[int]) -> np.ndarray:
    """Eq. 59's weights (2n + 1,) from the oldest value to the newest, with the factor ``of`` of the i-th pair."""
    found = np.zeros(2 * HALF + 1)
    for i, factor in enumerate(of, start=1):
        found[[HALF + i, HALF - i]] = factor
    found[HALF] = HALF + 1
    return found / found.sum()


def test_triangular_window() -> None:
    """With ``i`` as printed the newest value enters with nearly the largest weight; the text, and the filter, have
    ``n + 1 - i``."""
    printed, meant = weights(list(range(1, HALF + 1))), weights(list(range(HALF, 0, -1)))
    assert triangular_weights(2 * HALF + 1) == pytest.approx(meant)
    assert printed[-1] == pytest.approx(HALF * printed[HALF + 1]) and meant[-1] == meant.min() == meant[0]
