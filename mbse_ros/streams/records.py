# SPDX-License-Identifier: Apache-2.0
"""What the stages take and give: the same fields as the messages in ``msg/``, SI units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ..filters.mass_information import OWN_COLUMNS, MassInformation
from ..filters.weighing import PAUSES
from ..monitor.faults import GATES, JUDGED, NONE, Fault, Health, Measured, ObserverStatus, PayloadStatus
from ..payload.tool_force import ToolForce

__all__ = ['FORGOTTEN', 'GATES', 'JUDGED', 'Health', 'LinkageEstimate', 'Measured', 'ObserverStatus', 'PayloadEstimate',
           'PayloadStatus', 'Sampled', 'Segment', 'StateEstimate']

FORGOTTEN = 10 * PAUSES     # s of a pause of all sensors, after which nothing of what was before it counts


@dataclass(frozen=True)
class Segment:
    """One sensor period of samples on the observer's time grid; step k is at start_ns + (k + 1) step_ns.

    ``values`` (n, channels), NaN where missing; ``repeats`` (channels,) steps that share one sample's
    information; ``command_values`` (n, commands). Several ``periods`` may be joined in one: ``sequence`` is that
    of the last. Messages have single ones.
    """

    sequence: int
    start_ns: int
    step_ns: int
    restart: bool
    channels: tuple[str, ...]
    values: np.ndarray
    repeats: np.ndarray
    commands: tuple[str, ...]
    command_values: np.ndarray
    periods: int = 1

    @property
    def begins(self) -> bool:
        """Whether its stream begins with it."""
        return self.sequence <= self.periods

    def independent(self, before_ns: int) -> bool:
        """Whether nothing counts for it of what was before ``before_ns``, where the segment before it ended."""
        return self.restart and not 0 <= self.start_ns - before_ns < 1e9 * FORGOTTEN

    @property
    def stamp_ns(self) -> int:
        """Instant of the last step, ns."""
        return self.start_ns + len(self.values) * self.step_ns


@dataclass(frozen=True)
class StateEstimate:
    """State over one segment: ``mean`` (n, nx) at each step, ``covariance`` (nx, nx) at the last, all SI.

    ``weighing`` (n, 4 + k), or (0, 3) from an observer of the motion alone: what each step measures of the mass of the
    payload, as ``mass_information`` names it. ``faults``: what ``reason`` says, for whatever decides.
    """

    sequence: int
    stamp_ns: int
    step_ns: int
    restart: bool
    names: tuple[str, ...]
    mean: np.ndarray
    covariance: np.ndarray
    channels: tuple[str, ...]
    measured: np.ndarray
    innovation: np.ndarray
    innovation_stddev: np.ndarray
    nis: float
    nis_dof: int
    status: ObserverStatus
    reason: str = ''
    weighing: np.ndarray = field(default_factory=lambda: np.zeros((0, OWN_COLUMNS)))
    faults: Fault = NONE

    @property
    def weighs(self) -> bool:
        """Whether the observer estimates the mass with the motion."""
        return self.weighing.size > 0

    @property
    def mass_information(self) -> MassInformation[np.ndarray]:
        """What each step measures of the mass."""
        return MassInformation.of(self.weighing)


@dataclass(frozen=True)
class PayloadEstimate:
    """Payload mass, kg, with its standard deviation and 95 % interval at the last step of a segment. Of several
    ``payloads`` those of each by name, and this is the first. ``tool_force``: of a machine whose file has a
    `payload.contact`; it has a message of its own."""

    sequence: int
    stamp_ns: int
    mass: float
    stddev: float
    lower: float
    upper: float
    raw: float
    low_passed: float
    samples: int
    status: PayloadStatus
    reason: str = ''
    faults: Fault = NONE
    payloads: Mapping[str, PayloadEstimate] = field(default_factory=dict)
    tool_force: ToolForce | None = None


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
    faults: Fault = NONE

    @property
    def nis(self) -> float:
        """Normalised innovation squared of the measurements used."""
        return float(sum((v / s) ** 2 for v, s, item in zip(
            self.innovation.tolist(), self.innovation_stddev.tolist(), self.measured) if item is Measured.USED))

    @property
    def used(self) -> np.ndarray:
        """Whether a channel's measurement was used (s,)."""
        return np.array([item is Measured.USED for item in self.measured], dtype=bool)
