# SPDX-License-Identifier: Apache-2.0
"""Cylinder friction: Brown-McPhee with pressure terms. Numbers or CasADi expressions alike."""

from __future__ import annotations

from typing import Any

import casadi as ca

SPREAD = 5.0        # tanh(4 v / (SPREAD sigma)) rises at 0 as the mean sign of a normally distributed velocity does


def smoothed(transition: Any, deviation: Any) -> Any:
    """Transition velocity, m/s, of the mean friction at a velocity that is known to ``deviation``, m/s."""
    return transition if isinstance(deviation, int) else ca.sqrt(transition ** 2 + (SPREAD * deviation) ** 2)


def brown_mcphee(velocity: Any, coulomb: Any, static: Any, transition: Any, viscous: Any) -> Any:
    """Friction force, N, against ``velocity``, m/s (Pyrhönen et al., mass estimation, Eq. 51)."""
    ratio = velocity / transition
    stribeck = ratio / (ratio ** 2 / 4 + 0.75) ** 2
    return coulomb * ca.tanh(4 * ratio) + (static - coulomb) * stribeck + viscous * velocity


def pressure_friction(velocity: Any, piston: Any, rod: Any, difference: Any, rod_side: Any, transition: Any) -> Any:
    """Part of the friction, N, that grows with the pressures, Pa; coefficients in m2 (Pyrhönen et al., mass estimation,
    Eq. 52).

    The sign of the velocity is smoothed to tanh(4 v / vs), as Pyrhönen et al., mass estimation, section 4 does in its
    plant.
    """
    return (ca.fabs(piston - rod) * difference + rod * rod_side) * ca.tanh(4 * velocity / transition)
