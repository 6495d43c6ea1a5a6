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
class LinkageEstimate:
    """State of a mechanism at one instant of the grid.

    ``mean`` (l,), ``covariance`` (l, l) of the entries ``names``; ``q``, ``qd``, ``qdd`` (n,) of all coordinates;
    ``force``, ``force_stddev`` (g,) along the independent ones; ``innovation``, ``innovation_stddev`` (s,), NaN where
    missing, ``measured`` (s,). ``revision``: how often late samples corrected it.
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
    force: np.ndarray
    force_stddev: np.ndarray
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
        used = self.used
        return float(np.sum((self.innovation[used] / self.innovation_stddev[used]) ** 2))

    @property
    def used(self) -> np.ndarray:
        """Whether a channel's measurement was used (s,)."""
        return np.array([item is Measured.USED for item in self.measured], dtype=bool)

    @property
    def parameters(self) -> dict[str, tuple[float, float]]:
        """Estimated parameters: name -> (value, standard deviation)."""
        found = [(name.partition('/')[2], i) for i, name in enumerate(self.names) if name.startswith('parameter/')]
        return {name: (float(self.mean[i]), float(max(self.covariance[i, i], 0.0) ** 0.5)) for name, i in found}
