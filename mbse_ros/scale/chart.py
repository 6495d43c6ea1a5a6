# SPDX-License-Identifier: Apache-2.0
"""Load charts: what a machine may lift at which radius, and whether a load is more than that."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from enum import IntEnum
from math import isfinite, nan


class Overload(IntEnum):
    """A load against the chart."""

    OK = 0
    NOT_KNOWN = 1
    NEAR = 2
    OVER = 3


@dataclass(frozen=True)
class LoadChart:
    """Limits, kg, up to radii, m, that rise; ``origin``, m: a point of the axis that the radii are measured from, None:
    that of the machine's swing, else the origin of its frame.

    Between two radii the limit of the larger one counts, as on a crane's plate; beyond the last one nothing may be
    lifted.
    """

    radii: tuple[float, ...]
    limits: tuple[float, ...]
    origin: tuple[float, float, float] | None = None

    def limit(self, radius: float) -> float:
        """What may be lifted at a radius, kg; NaN where the radius is not known."""
        if not isfinite(radius):
            return nan
        place = bisect_left(self.radii, radius)
        return self.limits[place] if place < len(self.radii) else 0.0

    def judged(self, radius: float, upper: float, share: float) -> Overload:
        """A load whose interval ends at ``upper``, kg, all that hangs there included; from ``share`` of the limit on it
        is near it."""
        limit = self.limit(radius)
        if not (isfinite(limit) and isfinite(upper)):
            return Overload.NOT_KNOWN
        if upper > limit:
            return Overload.OVER
        return Overload.NEAR if upper > share * limit else Overload.OK
