# SPDX-License-Identifier: Apache-2.0
"""DEKF: discrete extended Kalman filter with any transition (paper 001 section 5, paper 000 section 4)."""

from __future__ import annotations

from .ekf import Choice, ekf, simple
from .problem import Problem
from .step import Filter


def dekf(problem: Problem, transition: str = 'forward_euler') -> Filter:
    """DEKF; with 'forward_euler' (paper 001) and 'augmented_euler' the covariance follows ``[[I, dt I], [0, I]]``, with
    the exponential ones (paper 000) the exact Jacobian, which sees what the simple one is blind to."""
    blind = transition in ('forward_euler', 'augmented_euler')
    return ekf('DEKF', problem, Choice(transition, simple if blind else lambda _, F, dt: F))
