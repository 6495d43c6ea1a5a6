# SPDX-License-Identifier: Apache-2.0
"""The mass of the payload as the estimator finds it."""

from __future__ import annotations

from dataclasses import dataclass

BEYOND = 1.5        # half-widths of a mass's interval: three standard deviations


@dataclass(frozen=True)
class Mass:
    """Result after a segment, kg; ``gate`` is the gate that rejected the segment's last sample, 'open' if none.

    ``stddev`` is that of ``noise`` and of all uncertain numbers of the machine's file together; ``taken``: samples of
    this segment that went into the mass.
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

    def beyond(self, limits: tuple[float, float]) -> bool:
        """Whether no mass within the limits, kg, explains it, but for one chance in a thousand."""
        room = BEYOND * self.half_width
        return self.mass < limits[0] - room or self.mass > limits[1] + room


@dataclass(frozen=True)
class Cause:
    """What one cause adds to the uncertainty of a mass: a standard deviation, kg; their squares add up.

    ``assumed``: of a number of which the machine's file says nothing.
    """

    cause: str
    kg: float
    assumed: bool = False

    def __str__(self) -> str:
        return self.cause + ' (assumed)' * self.assumed
