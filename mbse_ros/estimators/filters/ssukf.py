# SPDX-License-Identifier: Apache-2.0
"""SSUKF: spherical simplex unscented Kalman filter with l + 2 points (paper 001, sections 4.2 and 4.3)."""

from __future__ import annotations

from .problem import Problem
from .sigma_acceleration import acceleration_filter
from .sigma_extended import extended_filter
from .sigma_filter import sigma_filter
from .sigma_points import simplex_points
from .step import Filter


def ssukf(problem: Problem, w0: float = 0.0, reuse: bool = False, transition: str = 'trapezoid') -> Filter:
    """SSUKF with the state ``[z, zd]`` and the weight ``w0`` of the mean; ``reuse`` and ``transition`` as in
    ``sigma_filter``, noise ``acceleration`` (g,). Raises SettingError."""
    return sigma_filter('SSUKF', problem, simplex_points(2 * problem.g, w0), reuse, transition)


def ssukf_acceleration(problem: Problem, w0: float = 0.0, alone: bool = False) -> Filter:
    """SSUKF with the state ``[z, zd, zdd]``, or the accelerations ``alone``; as ``ukf_acceleration``."""
    points = simplex_points(problem.g * (1 if alone else 3), w0)
    return (acceleration_filter if alone else extended_filter)('SSUKF_acceleration', problem, points)
