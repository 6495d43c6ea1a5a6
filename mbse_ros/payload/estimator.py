# SPDX-License-Identifier: Apache-2.0
"""What estimates the mass of a payload from states of the observer: one of two, by what the observer gives.

``paper.PaperEstimator`` solves the equations of motion for the mass, where the observer estimates the motion alone;
``joint.JointEstimator`` collects what an observer that weighs reports. Both send samples through the same filters.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ..description.assumptions import is_assumed
from ..description.basics import uncertain
from ..machine import Machine
from .mass import Cause, Mass
from .payload_settings import PayloadSettings

NOISE = 'noise of the sensors and of what no model knows'


class PayloadEstimator(Protocol):
    """Mass of the payload of one machine from states of the observer, segment by segment."""

    @property
    def settings(self) -> PayloadSettings:
        """The tuning in force."""

    @property
    def kept(self) -> float:
        """Logarithm of the share of the first information on the mass that still counts."""

    def configure(self, settings: PayloadSettings) -> None:
        """Take new tuning from the next segment on.

        The mass so far stays; with another gain, window or batch the filters continue from it, and its scatter is
        collected again.
        """

    def reset(self) -> None:
        """Forget the mass, and the errors that all masses have in common."""

    def restart(self, pause: float = 0.0) -> None:
        """The state starts again after a ``pause``, s, of all sensors: joint angles are solved again, the mass stays.

        The longer the pause, the less of what the observer had found counts. 0: the state was wrong, or the clock has
        jumped; what the observer then finds of the mass is all that counts.
        """

    def process(self, mean: np.ndarray, covariance: np.ndarray, dt: float, reported: np.ndarray,
                share: float = 1.0) -> Mass:
        """Take the states (n, nx), SI, of a segment with the covariance (nx, nx) of its last; step ``dt``, s.

        ``reported`` (n, 3 + k), or (0, 3): what an observer that weighs measures of the mass, see MassInformation.
        ``share`` of that information that counts where masses are compared: 1, or less where their errors are alike.
        Raises PositionProblemError where the cylinders cannot reach.
        """

    def hold(self, reported: np.ndarray | None = None) -> Mass:
        """The mass so far, when there is no state to use; of ``reported`` only a change of the load is used."""

    def doubt(self) -> None:
        """Discard what the last half second, or up to a second, has added, of an observer that weighs."""

    def difference(self, new: Mass, old: Mass) -> tuple[float, float]:
        """By how much two masses differ, kg, and the standard deviation of what the uncertain numbers make of it: they
        are as wrong in both, but another pose makes another error of it."""

    def budget(self, noise: float) -> tuple[Cause, ...]:
        """What makes the mass uncertain, the largest first: ``noise``, kg, and the uncertain numbers by their keys."""


def other_filters(new: PayloadSettings, old: PayloadSettings) -> bool:
    """Whether the filters of the mass are others."""
    return any(getattr(new, name) != getattr(old, name) for name in ('low_pass_gain', 'window', 'batch_time'))


def causes(machine: Machine, noise: float, kg: np.ndarray) -> tuple[Cause, ...]:
    """``noise``, and ``kg`` (k,) of the machine's uncertain numbers, those with a deviation, the largest first."""
    names = [machine.parameters.names[place] for place in np.flatnonzero(machine.parameters.stddev)]
    known = uncertain(machine.description)
    found = [Cause(NOISE, noise), *(Cause(name, float(item), name in known and is_assumed(known[name]))
                                    for name, item in zip(names, kg))]
    return tuple(sorted(found, key=lambda cause: -cause.kg))
