# SPDX-License-Identifier: Apache-2.0
"""Quantiles of the chi-squared distribution, as `scipy.special.chdtri` has them, without its import."""

from __future__ import annotations

from ..compiled.of_scipy import compiled_part


def exceeded(freedom: float, probability: float) -> float:
    """What a chi-squared number of so many degrees of freedom exceeds with a probability."""
    special = compiled_part('special', '_special_ufuncs', 'scipy.special', 'gammainccinv')
    return 2.0 * float(special.gammainccinv(0.5 * freedom, probability))
