# SPDX-License-Identifier: Apache-2.0
"""What the linkage stage tells of one instant: the fields of LinkageState.msg, SI."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from ..records import ObserverStatus


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


@dataclass(frozen=True)
class Sampled:
    """Samples ``values`` (s,) of an instant, NaN where missing, what the filter made of them, and the ``inputs`` (k,)
    there: mean of the steps before and after it."""

    values: np.ndarray
    measured: tuple[Measured, ...]
    innovation: np.ndarray
    innovation_stddev: np.ndarray
    inputs: np.ndarray

    @property
    def used(self) -> np.ndarray:
        """The values (s,) that were used, NaN else."""
        return np.where([item is Measured.USED for item in self.measured], self.values, np.nan)


@dataclass(frozen=True)
class LinkageEstimate:
    """State of a mechanism at one instant of the grid.

    ``mean`` (l,), ``covariance`` (l, l) of the entries ``names``; ``q``, ``qd``, ``qdd`` (n,) of all coordinates;
    ``force``, ``force_stddev`` (f,) along ``force_names``, the independent coordinates or the chosen actuators;
    ``innovation``, ``innovation_stddev`` (s,), NaN where missing, ``measured`` (s,). ``parameters``: estimated ones,
    name -> (value, standard deviation), SI. ``revision``: how often late samples corrected it.
    """

    stamp_ns: int
    sequence: int
    revision: int
    restart: bool
    estimator: str
    names: tuple[str, ...]
    mean: np.ndarray
    covariance: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    force_names: tuple[str, ...]
    force: np.ndarray
    force_stddev: np.ndarray
    parameters: dict[str, tuple[float, float]]
    innovation: np.ndarray
    innovation_stddev: np.ndarray
    measured: tuple[Measured, ...]
    status: ObserverStatus
    reason: str
    health: Health
    dropped: int

    @property
    def nis(self) -> float:
        """Normalised innovation squared of the measurements used."""
        return float(sum((v / s) ** 2 for v, s, item in zip(
            self.innovation.tolist(), self.innovation_stddev.tolist(), self.measured) if item is Measured.USED))

    @property
    def used(self) -> np.ndarray:
        """Whether a channel's measurement was used (s,)."""
        return np.array([item is Measured.USED for item in self.measured], dtype=bool)
