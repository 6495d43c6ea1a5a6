# SPDX-License-Identifier: Apache-2.0
"""What travels between the stages of the pipeline: the same fields as the messages in ``msg/``, SI units."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np


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


@dataclass(frozen=True)
class Segment:
    """One sensor period of samples on the observer's time grid; step k stands at start_ns + (k + 1) step_ns.

    ``values`` (n, channels), NaN where missing; ``repeats`` (channels,) steps that share one sample's
    information; ``command_values`` (n, commands).
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

    @property
    def stamp_ns(self) -> int:
        """Instant of the last step, ns."""
        return self.start_ns + len(self.values) * self.step_ns


@dataclass(frozen=True)
class StateEstimate:
    """State over one segment: ``mean`` (n, nx) at each step, ``covariance`` (nx, nx) at the last, all SI.

    ``weighing`` (n, 3), or (0, 3) from an observer of the motion alone: what each step tells of the mass of the
    payload: information, 1/kg2, that times the mass, 1/kg, and the logarithm of the share of older information that
    still counts, below 0 where the load changes.
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
    weighing: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))


@dataclass(frozen=True)
class PayloadEstimate:
    """Payload mass, kg, with its standard deviation and 95 % interval at the last step of a segment."""

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
