# SPDX-License-Identifier: Apache-2.0
"""DEKF: discrete extended Kalman filter with any transition (paper 001 section 5, paper 000 section 4)."""

from __future__ import annotations

from collections.abc import Sequence

from .ekf import Choice, bias_places, ekf, simple
from .problem import Problem
from .step import Filter


def dekf(problem: Problem, transition: str = 'forward_euler', biases: Sequence[str] = ()) -> Filter:
    """DEKF; with 'forward_euler' (paper 001) and 'augmented_euler' the covariance follows ``[[I, dt I], [0, I]]``, with
    the exponential ones (paper 000) the exact Jacobian, which sees what the simple one is blind to. ``biases``:
    channels or sensors whose bias is estimated too."""
    blind = transition in ('forward_euler', 'augmented_euler')
    return ekf('DEKF', problem, Choice(transition, simple if blind else lambda _, F, dt: F,
                                       biases=bias_places(problem, biases)))
