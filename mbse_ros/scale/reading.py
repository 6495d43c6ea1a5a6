# SPDX-License-Identifier: Apache-2.0
"""What the scale takes of one instant: the mass of the payload stage, what stands behind it, and where the load is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite, nan

import numpy as np

from ..monitor.faults import NONE, Fault
from ..streams.records import PayloadEstimate, PayloadStatus, StateEstimate

# The mass is that of what hangs there, though it may not be measured at this very moment.
KNOWN = (PayloadStatus.UPDATING, PayloadStatus.TOO_SLOW, PayloadStatus.NOT_OBSERVABLE, PayloadStatus.OUTSIDE_STROKE,
         PayloadStatus.ACCELERATING)
HELD = PayloadStatus.NO_DATA, PayloadStatus.IMPLAUSIBLE        # nothing is known of what hangs there
NO_SLOPES = np.zeros(0)


@dataclass(frozen=True)
class Place:
    """Where the load is, x, y, z in the machine's frame, m, and the angle of the swing, rad, NaN without one."""

    x: float
    y: float
    z: float
    swing: float = nan

    def distance(self, other: Place) -> float:
        """To another place, m."""
        return ((self.x - other.x) ** 2 + (self.y - other.y) ** 2 + (self.z - other.z) ** 2) ** 0.5


@dataclass(frozen=True)
class Reading:
    """One instant.

    ``mass``, ``stddev``, kg, NaN where not known; ``information``, 1/kg^2, that this instant adds on the mass, and
    ``slopes`` (k,): that times the derivatives of the mass by the machine's uncertain numbers, for one standard
    deviation of each; 0 and (0,) from an observer that does not report them. ``place``: None where it is not known.
    ``trusted``: false soon after a mass that could not be, as while a machine digs: the payload stage waits for a
    while of motion, in which a bucket may be emptied already. ``faults``: of the payload stage.
    """

    stamp_ns: int
    mass: float
    stddev: float
    status: PayloadStatus
    place: Place | None = None
    trusted: bool = True
    information: float = 0.0
    slopes: np.ndarray = field(default_factory=lambda: NO_SLOPES, compare=False)
    faults: Fault = NONE

    @property
    def held(self) -> bool:
        """Whether the payload stage does not stand for the mass, nor for that it changes."""
        return self.status in HELD

    @property
    def known(self) -> bool:
        """Whether the mass is that of what hangs there, or would be if it was trusted."""
        return (self.status in KNOWN or not self.trusted) and self.finite

    @property
    def finite(self) -> bool:
        """Whether there is a mass."""
        return isfinite(self.mass) and isfinite(self.stddev) and self.stddev > 0.0

    @property
    def measured(self) -> bool:
        """Whether this instant adds to the mass; else it is held."""
        return self.status is PayloadStatus.UPDATING or not self.trusted


def reading(state: StateEstimate | None, payload: PayloadEstimate, place: Place | None = None) -> Reading:
    """Of a payload estimate and the state it was made of; without a state nothing is known of what is common."""
    information, slopes = 0.0, NO_SLOPES
    trusted = Fault.NOT_TRUSTED not in payload.faults
    measured = payload.status is PayloadStatus.UPDATING or not trusted
    if state is not None and state.weighs and measured:
        found = state.mass_information
        some = found.information > 0.0
        information, slopes = float(found.information[some].sum()), found.slopes[some].sum(axis=0)
    return Reading(payload.stamp_ns, payload.mass, payload.stddev, payload.status, place, trusted, information,
                   slopes, payload.faults)


def named_slopes(names: tuple[str, ...], slopes: np.ndarray, size: float) -> Mapping[str, float]:
    """Derivatives (k,) as causes of an error of standard deviation ``size``, kg, together; the sign and the proportions
    are theirs, as the payload stage may know the numbers better by now than the machine's file."""
    norm = float(np.sqrt(slopes @ slopes)) if slopes.size == len(names) else 0.0
    if size <= 0.0:
        return {}
    if not norm > 0.0 or not isfinite(norm):
        return {'': size}
    return {name: float(kg) for name, kg in zip(names, slopes * (size / norm)) if kg != 0.0}
