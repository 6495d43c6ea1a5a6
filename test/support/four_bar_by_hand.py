# SPDX-License-Identifier: Apache-2.0
"""The four-bar linkage of Naya et al., review without any multibody code: two circles and an energy in the crank's
angle."""

from __future__ import annotations

import numpy as np

CRANK, COUPLER, ROCKER, GROUND = 2.0, 8.0, 5.0, 10.0
MASSES = (2.0, 8.0, 5.0)


def joints(theta: float, lengths=(CRANK, COUPLER, ROCKER, GROUND)) -> np.ndarray:
    """P1 and P2 (2, 2), m, elbow up."""
    crank, coupler, rocker, ground = lengths
    first, B = crank * np.array([np.cos(theta), np.sin(theta)]), np.array([ground, 0.0])
    d = np.linalg.norm(B - first)
    along = (coupler ** 2 - rocker ** 2 + d ** 2) / (2 * d)
    unit = (B - first) / d
    return np.array([first, first + along * unit + np.sqrt(coupler ** 2 - along ** 2) * np.array([-unit[1], unit[0]])])


def velocities(theta: float, **shape) -> np.ndarray:
    """Of P1 and P2 (2, 2) for one rad/s of the crank: both rods keep their lengths."""
    P1, P2 = joints(theta, **shape)
    B = np.array([shape.get('lengths', (0, 0, 0, GROUND))[3], 0.0])
    v1 = np.array([-P1[1], P1[0]])
    return np.array([v1, np.linalg.solve([P2 - P1, P2 - B], [(P2 - P1) @ v1, 0.0])])


def inertia(theta: float, masses=MASSES, **shape) -> float:
    """I of ``T = I thetad^2 / 2``: uniform rods, m/3 (va^2 + va vb + vb^2) / 2 each."""
    v, zero = velocities(theta, **shape), np.zeros(2)
    return sum(m / 3 * (a @ a + a @ b + b @ b) for m, a, b in zip(masses, (zero, v[0], v[1]), (v[0], v[1], zero)))


def potential(theta: float, masses=MASSES, g: float = 9.81, **shape) -> float:
    """V, J."""
    y = joints(theta, **shape)[:, 1]
    return g * (masses[0] * y[0] / 2 + masses[1] * (y[0] + y[1]) / 2 + masses[2] * y[1] / 2)


def acceleration(theta: float, speed: float, h: float = 1e-5) -> float:
    """Free motion: ``I thetadd + I' thetad^2 / 2 + V' = 0``."""
    slope = (inertia(theta + h) - inertia(theta - h)) / (2 * h)
    force = (potential(theta + h) - potential(theta - h)) / (2 * h)
    return -(slope * speed ** 2 / 2 + force) / inertia(theta)


def forward_euler_error(duration: float, dt: float) -> float:
    """Largest error of the energy, J, from rest at 60 degrees."""
    theta, speed = np.pi / 3, 0.0
    begin, worst = potential(theta), 0.0
    for _ in range(round(duration / dt)):
        theta, speed = theta + dt * speed, speed + dt * acceleration(theta, speed)
        worst = max(worst, abs(potential(theta) + inertia(theta) * speed ** 2 / 2 - begin))
    return worst
