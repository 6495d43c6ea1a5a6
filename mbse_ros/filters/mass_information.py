# SPDX-License-Identifier: Apache-2.0
"""What the steps of an observer that weighs measure of the mass, and whether the load changes meanwhile.

On the wire, in ``StateEstimate.weighing``, it is an array of rows, a step each; their columns are known here alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import casadi as ca
import numpy as np

from .activity import STEP_TIME

OWN_COLUMNS = 3         # those before the slopes
INFORMATION, WEIGHTED, LOG_KEPT = range(OWN_COLUMNS)
LOG_TRUSTED = -1        # the last
MEMORY = 0.005       # share of the trend of the mass that is forgotten in 1 ms: STEP_TIME
SIGNIFICANT = 2.5   # standard deviations of the trend that are not chance
GROWTH = 0.03       # of the logarithm of the mass's activity in 1 ms, by the square of what is beyond
FADE = 0.004        # decrease of that logarithm in 1 ms
STEP = 0.7          # at most so much in a step: it sees what it has done only in the next
LARGEST_ACTIVITY = 1e6
T = TypeVar('T', np.ndarray, ca.SX)


@dataclass(frozen=True)
class MassInformation(Generic[T]):
    """Of steps (n,), or of one as expressions: ``information``, 1/kg2; ``weighted``, that times the mass measured,
    1/kg; ``log_kept``, logarithm of the share of older information that still counts, below 0 where the load changes;
    ``log_trusted``, the same where the force balance turns out to be less exact than it was taken to be;
    ``slopes`` (n, k), the information times the derivatives of the mass by the consider parameters, 1/kg for one
    standard deviation of each."""

    information: T
    weighted: T
    log_kept: T
    slopes: T
    log_trusted: T

    @staticmethod
    def of(rows: np.ndarray) -> MassInformation[np.ndarray]:
        """Views of the rows (n, 4 + k)."""
        return MassInformation(rows[:, INFORMATION], rows[:, WEIGHTED], rows[:, LOG_KEPT],
                               rows[:, OWN_COLUMNS:LOG_TRUSTED], rows[:, LOG_TRUSTED])

    @property
    def row(self) -> list[T]:
        """The parts of a row in their order."""
        return [self.information, self.weighted, self.log_kept, self.slopes, self.log_trusted]


def columns(parameters: int) -> int:
    """How many there are for so many consider parameters."""
    return OWN_COLUMNS + parameters + 1


def additive_columns(parameters: int) -> np.ndarray:
    """Those (2 + k,) that add up over steps: information, weighted and slopes."""
    return np.delete(np.arange(columns(parameters)), [LOG_KEPT, LOG_TRUSTED])


@dataclass(frozen=True)
class MassStep:
    """``measured``: what a step measures of the mass; ``activity``, the factor on the random walk of the mass, and
    ``trend`` (1 + k,), the sum of its changes over their standard deviations and of their derivatives by the consider
    parameters over the same, older ones forgotten."""

    measured: MassInformation[ca.SX]
    activity: ca.SX
    trend: ca.SX


def mass_information(before: tuple[ca.SX, ca.SX, ca.SX, ca.SX], after: tuple[ca.SX, ca.SX, ca.SX], walk: ca.SX,
                     activity: ca.SX, trend: ca.SX, dt: ca.SX | float = STEP_TIME, unit: float = 1.0) -> MassStep:
    """From a step ``dt``, s, that took mass, its derivatives (k,) and its variance from ``before``, where the variance
    is that before and that after the random walk, to ``after``, all in ``unit``, kg; ``walk``: variance that a calm
    mass walks.

    The changes in a consistent filter are independent of those before; where they keep one direction, and by more
    than what the uncertain numbers do to the mass in another pose, the load has changed, and the activity of the mass
    rises.
    """
    (mass, slopes, known, old), (found, steeper, new) = before, after
    learnt = old - new
    informative = learnt > 1e-12 * old
    changes = ca.vertcat(found - mass, steeper - slopes)
    steps, kept = dt / STEP_TIME, (1 - MEMORY) ** (dt / STEP_TIME)
    trend = kept * trend + ca.if_else(informative, changes / ca.sqrt(ca.fmax(learnt, 1e-300)), 0)
    variance = 1 / (1 - kept ** 2) + ca.sumsqr(trend[1:])
    beyond = ca.fmax(trend[0] ** 2 / variance - SIGNIFICANT ** 2, 0)
    grown = ca.exp(ca.fmin(steps * GROWTH * beyond, STEP) - steps * FADE)
    measured = MassInformation(ca.if_else(informative, learnt / (old * new), 0) / unit ** 2,
                               ca.if_else(informative, found / new - mass / old, 0) / unit,
                               ca.log(known / (old - walk)),
                               ca.if_else(informative, steeper / new - slopes / old, 0) / unit, ca.SX(0))
    return MassStep(measured, ca.fmin(ca.fmax(activity * grown, 1), LARGEST_ACTIVITY), trend)
