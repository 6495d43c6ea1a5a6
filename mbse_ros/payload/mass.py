# SPDX-License-Identifier: Apache-2.0
"""The mass of the payload as the estimator finds it."""

from __future__ import annotations

from dataclasses import dataclass


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


@dataclass(frozen=True)
class Cause:
    """What one cause adds to the uncertainty of a mass: a standard deviation, kg; their squares add up."""

    cause: str
    kg: float
