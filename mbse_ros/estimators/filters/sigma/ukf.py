# SPDX-License-Identifier: Apache-2.0
"""UKF with 2 l + 1 points and SSUKF, spherical simplex, with l + 2 (Naya et al., review, sections 4.1 to 4.4).

All take the noise ``acceleration`` (g,) and raise SettingError. The state is ``[z, zd]``; of those named after the
accelerations ``[z, zd, zdd]``, or as published (section 4.3) the accelerations ``alone``: the noise is then that of
``extended_filter``, or of the accelerations' random walk.
"""

from __future__ import annotations

from ..parts.problem import Problem
from ..parts.step import Filter
from .sigma_acceleration import acceleration_filter, extended_filter
from .sigma_filter import sigma_filter
from .sigma_points import simplex_points, symmetric_points


def ukf(problem: Problem, alpha: float = 0.1, beta: float = 2.0, kappa: float = 0.0, reuse: bool = False,
        transition: str = 'trapezoid') -> Filter:
    """UKF; spread ``alpha``, weight ``beta`` of the mean, scaling ``kappa``; else as ``sigma_filter``."""
    return sigma_filter('UKF', problem, symmetric_points(2 * problem.g, alpha, beta, kappa), reuse, transition)


def ssukf(problem: Problem, w0: float = 0.0, reuse: bool = False, transition: str = 'trapezoid') -> Filter:
    """SSUKF with the weight ``w0`` of the mean; else as ``sigma_filter``."""
    return sigma_filter('SSUKF', problem, simplex_points(2 * problem.g, w0), reuse, transition)


def ukf_acceleration(problem: Problem, alpha: float = 0.1, beta: float = 2.0, kappa: float = 0.0,
                     alone: bool = False) -> Filter:
    """UKF of the accelerations; options as in ``ukf``."""
    points = symmetric_points(problem.g * (1 if alone else 3), alpha, beta, kappa)
    return (acceleration_filter if alone else extended_filter)('UKF_acceleration', problem, points)


def ssukf_acceleration(problem: Problem, w0: float = 0.0, alone: bool = False) -> Filter:
    """SSUKF of the accelerations; options as in ``ssukf``."""
    points = simplex_points(problem.g * (1 if alone else 3), w0)
    return (acceleration_filter if alone else extended_filter)('SSUKF_acceleration', problem, points)
