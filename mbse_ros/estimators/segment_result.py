# SPDX-License-Identifier: Apache-2.0
"""What an observer gives for a segment."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class SegmentResult(NamedTuple):
    """Observer over a segment, SI: ``mean`` (n, nx), ``covariance`` (nx, nx) at the last step:
    of the motion as the sensors measure it, without the errors of their zeros and gains.

    Between two samples ``mean`` is a line from the state at the one to the state at the other.
    ``innovation`` (ny,) and ``innovation_variance`` (ny,): the last samples against what was predicted for them one
    sample (or part of one) earlier; each channel after the ones before it. NaN: no sample in the segment.
    ``rejected`` (ny,): those beyond the gate, which were left out; ``finite`` is false when anything left the finite
    numbers. ``weighing`` (n, 3 + k), or (0, 3) of an observer of the motion alone: what each step measures of the
    mass, see StateEstimate. ``outside``: whether a force acts that the balance does not know. ``rare``: channels whose
    samples are too rare for this motion, the worst first, and by how many of their standard deviations the lines
    between may be off."""

    mean: np.ndarray
    covariance: np.ndarray
    innovation: np.ndarray
    innovation_variance: np.ndarray
    rejected: np.ndarray
    finite: bool
    weighing: np.ndarray
    outside: bool = False
    rare: tuple[tuple[int, float], ...] = ()
