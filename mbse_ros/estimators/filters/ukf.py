# SPDX-License-Identifier: Apache-2.0
"""UKF: unscented Kalman filter with 2 l + 1 points (paper 001, sections 4.1, 4.3 and 4.4)."""

from __future__ import annotations

from .problem import Problem
from .sigma_acceleration import acceleration_filter
from .sigma_extended import extended_filter
from .sigma_filter import sigma_filter
from .sigma_points import symmetric_points
from .step import Filter


def ukf(problem: Problem, alpha: float = 0.1, beta: float = 2.0, kappa: float = 0.0, reuse: bool = False,
        transition: str = 'trapezoid') -> Filter:
    """UKF with the state ``[z, zd]``; spread ``alpha``, weight ``beta`` of the mean, scaling ``kappa``; ``reuse`` and
    ``transition`` as in ``sigma_filter``, noise ``acceleration`` (g,). Raises SettingError."""
    return sigma_filter('UKF', problem, symmetric_points(2 * problem.g, alpha, beta, kappa), reuse, transition)


def ukf_acceleration(problem: Problem, alpha: float = 0.1, beta: float = 2.0, kappa: float = 0.0,
                     alone: bool = False) -> Filter:
    """UKF with the state ``[z, zd, zdd]``, or as published (section 4.3) the accelerations ``alone``; noise
    ``acceleration`` (g,) of ``extended_filter``, or of their random walk. Raises SettingError."""
    points = symmetric_points(problem.g * (1 if alone else 3), alpha, beta, kappa)
    return (acceleration_filter if alone else extended_filter)('UKF_acceleration', problem, points)
