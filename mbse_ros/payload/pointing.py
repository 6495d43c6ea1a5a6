# SPDX-License-Identifier: Apache-2.0
"""Size and direction of a force that is known with a covariance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

UNDIRECTED = np.radians(10.0)   # standard deviation of a direction, rad, from which on it is not known: two of them are
                                # 20 degrees


class Pointing(NamedTuple):
    """``size``, N, of a force along the axes that are known, and its deviation; ``direction`` (3,): unit vector, NaN
    along an axis that is not known, and all of it where ``direction_stddev``, rad, exceeds UNDIRECTED. NaN where fewer
    than two axes are known."""

    size: float
    size_stddev: float
    direction: np.ndarray
    direction_stddev: float

    @property
    def known(self) -> bool:
        """Whether there is a direction."""
        return bool(np.isfinite(self.direction).any())


def pointing(force: np.ndarray, covariance: np.ndarray) -> Pointing:
    """Of a ``force`` (3,), N, and its ``covariance`` (3, 3), N^2; NaN: an axis that is not known. To first order in the
    error over the size, so that the deviation of a direction is one for a force that is well above its own."""
    axes, direction = np.isfinite(force), np.full(3, np.nan)
    size = float(np.linalg.norm(force[axes]))
    if np.count_nonzero(axes) < 2 or size == 0.0:
        return Pointing(np.nan, np.nan, direction, np.nan)
    along, P = force[axes] / size, covariance[np.ix_(axes, axes)]
    across = np.eye(len(along)) - np.outer(along, along)
    spread = float(np.sqrt(max(np.linalg.eigvalsh(across @ P @ across)[-1], 0.0))) / size
    if spread <= UNDIRECTED:
        direction[axes] = along
    return Pointing(size, float(np.sqrt(max(along @ P @ along, 0.0))), direction, spread)
