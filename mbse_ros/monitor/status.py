# SPDX-License-Identifier: Apache-2.0
"""What a state and a mass are reported with: status, what became of a sample, health of the innovations."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class ObserverStatus(IntEnum):
    """Trust in a state estimate; the values are those of HydraulicState.msg."""

    OK = 0
    STARTING = 1
    COASTING = 2
    LOST = 3


class PayloadStatus(IntEnum):
    """Why the payload mass is or is not updated; the values are those of PayloadEstimate.msg."""

    UPDATING = 0
    TOO_SLOW = 1
    NO_DATA = 2
    NOT_OBSERVABLE = 3
    OUTSIDE_STROKE = 4
    ACCELERATING = 5
    IMPLAUSIBLE = 6
    CHANGING = 7
    CONTACT = 8


JUDGED = PayloadStatus.UPDATING, PayloadStatus.IMPLAUSIBLE     # of a mass that a state has just given


GATES = {
    'open': (PayloadStatus.UPDATING, ''),
    'too slow': (PayloadStatus.TOO_SLOW, 'piston too slow: friction is not known near standstill'),
    'not observable': (PayloadStatus.NOT_OBSERVABLE, 'the mass does not show in the cylinder force here'),
    'outside the stroke': (PayloadStatus.OUTSIDE_STROKE, 'piston at or beyond an end of its stroke'),
    'accelerating': (PayloadStatus.ACCELERATING, 'machine accelerates too much'),
}


class Measured(IntEnum):
    """What became of a channel's sample; the values are those of LinkageState.msg."""

    MISSING = 0
    USED = 1
    REJECTED = 2


@dataclass(frozen=True)
class Health:
    """Over the last innovations: ``mean_nis`` per measurement, ``whiteness`` (p-value of Ljung-Box), NaN while there
    are too few; ``rank`` of ``size`` directions that the sensors see, -1 while not known."""

    mean_nis: float = float('nan')
    whiteness: float = float('nan')
    rank: int = -1
    size: int = -1
