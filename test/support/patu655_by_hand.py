# SPDX-License-Identifier: Apache-2.0
"""Crane patu655 in its plane, in NumPy, from the table of its public code: closures and what its cylinders hold."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

GRAVITY = 9.8066
PIVOT, LIFT_BASE, LIFT_EYE = np.array([-0.09, 1.4261]), np.array([0.17, 0.386113249]), np.array([0.3025, -0.105])
TILT_BASE, BRACKET, TILT_PIN = np.array([1.263, 0.206702194]), np.array([2.69107, -0.006]), np.array(
    [2.886080943, 0.019892554])
OUTER, TILT_BRACKET, EXTENSION = np.array([0.456, -0.0405]), np.array([-0.095, 0.24043237]), np.array([-0.415, 0.295])
SECOND = 0.48           # m, length of the bracket at the tilt boom
MASSES = {'boom': (143.66, (1.229248, 0.055596)), 'bracket': (11.524039, (0.257068, 0.004)),
          'second': (7.900191, (0.212792, 0.0)), 'tilt': (93.111288, (0.659935, 0.251085)),
          'extension': (58.63, (1.15, 0.06))}
TIP = np.array([2.45, 0.05])


def turn(angle: float) -> np.ndarray:
    """(2, 2), counter-clockwise."""
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def angles(lift: float, tilt: float) -> tuple[float, float, float, float]:
    """Lift boom, tilt boom, bracket at the boom, bracket at the tilt boom; absolute, rad, at cylinder lengths, m."""
    boom = brentq(lambda a: np.linalg.norm(PIVOT + turn(a) @ LIFT_EYE - LIFT_BASE) - lift, -0.5, 1.6, xtol=1e-15)
    bracket = brentq(lambda a: np.linalg.norm(BRACKET + turn(a) @ OUTER - TILT_BASE) - tilt, 0.3, 3.0, xtol=1e-15)
    outer = BRACKET + turn(bracket) @ OUTER
    way = outer - TILT_PIN          # triangle of tilt pin, outer pin, pin of the second bracket
    side, reach = np.linalg.norm(TILT_BRACKET), np.linalg.norm(way)
    corner = np.arccos((side ** 2 + reach ** 2 - SECOND ** 2) / (2 * side * reach))
    inner = np.arctan2(way[1], way[0]) - corner - np.arctan2(TILT_BRACKET[1], TILT_BRACKET[0])
    away = outer - TILT_PIN - turn(inner) @ TILT_BRACKET
    return boom, boom + inner, boom + bracket, boom + float(np.arctan2(away[1], away[0]))


def heights(lift: float, tilt: float) -> dict[str, float]:
    """Of the centres of mass and of the payload, m."""
    boom, inner, bracket, second = angles(lift, tilt)
    pin = PIVOT + turn(boom) @ TILT_PIN
    origins = {'boom': PIVOT, 'bracket': PIVOT + turn(boom) @ BRACKET, 'tilt': pin,
               'second': pin + turn(inner) @ TILT_BRACKET,
               'extension': pin + turn(inner) @ (EXTENSION - [0.0, 0.1])}
    turned = {'boom': boom, 'bracket': bracket, 'tilt': inner, 'second': second, 'extension': inner}
    places = {name: origins[name] + turn(turned[name]) @ np.array(MASSES[name][1]) for name in MASSES}
    places['payload'] = origins['extension'] + turn(inner) @ TIP
    return {name: float(place[1]) for name, place in places.items()}


def holding_forces(lift: float, tilt: float, payload: float, step: float = 1e-5) -> np.ndarray:
    """Forces (2,), N, of lift and tilt cylinder that hold the crane: virtual work, dV = F dl."""
    def energy(a: float, b: float) -> float:
        found = heights(a, b)
        return GRAVITY * (sum(MASSES[name][0] * found[name] for name in MASSES) + payload * found['payload'])
    return np.array([energy(lift + step, tilt) - energy(lift - step, tilt),
                     energy(lift, tilt + step) - energy(lift, tilt - step)]) / (2 * step)
