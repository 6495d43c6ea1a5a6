# SPDX-License-Identifier: Apache-2.0
"""The mass of the payload as the estimator finds it."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import nan, sqrt

import numpy as np

NORMAL = 1.959964       # 95 % quantile, two sides
BEYOND = 1.5        # half-widths of a mass's interval: three standard deviations


@dataclass(frozen=True)
class Mass:
    """Result after a segment, kg; ``gate`` is the gate that rejected the segment's last sample, 'open' if none.

    ``stddev`` is that of ``noise`` and of all uncertain numbers of the machine's file together; ``taken``: samples of
    this segment that went into the mass; ``weighed``: the mass before what is known of the errors that all masses have
    in common is taken off, and ``slopes`` (k,) its derivatives by these errors, for a standard deviation of each; (0,)
    where nothing is taken off; ``contradiction``: what would have to be incredibly wrong, most of all, for the masses
    of all poses to agree, '' where they do; ``surprise``: those of these poses have just contradicted those before;
    ``lean``: by how much the masses of the last second may be others, while it is not certain that the load changes;
    ``settling``: it has changed for a while, and may still.
    """

    mass: float
    stddev: float
    half_width: float
    raw: float
    low_passed: float
    samples: int
    gate: str
    noise: float
    taken: int = 0
    weighed: float = nan
    slopes: np.ndarray = field(default_factory=lambda: np.zeros(0), compare=False)
    contradiction: str = ''
    surprise: bool = False
    lean: float = 0.0
    settling: bool = False

    @property
    def bounds(self) -> tuple[float, float]:
        """The 95 % interval, kg, with the masses of the last second."""
        return (self.mass - self.half_width + min(self.lean, 0.0), self.mass + self.half_width + max(self.lean, 0.0))

    def beyond(self, limits: tuple[float, float]) -> bool:
        """Whether no mass within the limits, kg, explains it, except with a chance of one in a thousand."""
        low, high = limits
        room, before = BEYOND * self.half_width, BEYOND * self._half_before
        return (self.mass < low - room or self.mass > high + room
                or self.weighed < low - before or self.weighed > high + before)

    @property
    def _half_before(self) -> float:
        """Half-width of the interval before anything was taken off: errors have their deviations then."""
        return NORMAL * sqrt(self.noise ** 2 + float(self.slopes @ self.slopes))


@dataclass(frozen=True)
class Cause:
    """What one cause adds to the uncertainty of a mass: a standard deviation, kg; their squares add up.

    ``assumed``: the machine's file does not state the deviation of this number.
    """

    cause: str
    kg: float
    assumed: bool = False

    def __str__(self) -> str:
        return self.cause + ' (assumed)' * self.assumed
