# SPDX-License-Identifier: Apache-2.0
"""Mechanisms on which the integrators are tried, and how errors fall with the step."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from mbse_ros.description.load import parse_mechanism
from mbse_ros.dynamics.model import Model, load_model

# The crank turns round, the rocker has two dead points.
CRANK_ROCKER = '''
format: mbse/mechanism/1
name: crank_rocker
gravity: 9.81 m/s^2
points: {A: {fixed: [0, 0]}, B: {fixed: [4, 0]}, P: [0.540302, 0.841471], Q: [3, 3]}
bodies:
  crank: {points: [A, P], length: 1, mass: 3 kg, uniform: true}
  coupler: {points: [P, Q], length: 3.5, mass: 1 kg, uniform: true}
  rocker: {points: [Q, B], length: 3, mass: 1 kg, uniform: true}
named:
  theta: {angle: crank}
  psi: {angle: rocker}
initial: {position: {theta: 1.0}, velocity: {theta: 8 rad/s}}
forces:
  motor: {coordinate: theta, input: torque}
'''
DAMPED = CRANK_ROCKER + 'springs:\n  oil: {coordinate: theta, stiffness: 0, free: 0, damping: 0.4 N*m*s/rad}\n'
# The same without the crank's angle: no coordinate serves for a whole turn.
POINTS_ONLY = CRANK_ROCKER.replace('  theta: {angle: crank}\n', '  x: {x: P}\n').replace(
    '{position: {theta: 1.0}, velocity: {theta: 8 rad/s}}',
    '{position: {x: cos(1.0)}, velocity: {x: -8*sin(1.0)}}').split('forces:')[0]
# The rocker is asked to turn on and on.
TOO_FAR = CRANK_ROCKER.replace('initial: {position: {theta: 1.0}, velocity: {theta: 8 rad/s}}',
                               'drivers: {motor: {coordinate: psi, motion: "-0.9 + t"}}')
# A platform on three parallel cranks: one of them, or one of the platform's lengths, is redundant.
PLATFORM = '''
format: mbse/mechanism/1
name: platform
gravity: 9.81 m/s^2
points:
  A: {fixed: [0, 0]}
  B: {fixed: [1, 0]}
  C: {fixed: [2.5, 0]}
  P: [0.6, 0.8]
  Q: [1.6, 0.8]
  R: [3.1, 0.8]
bodies:
  first: {points: [A, P], length: 1, mass: 1 kg, uniform: true}
  second: {points: [B, Q], length: 1, mass: 1 kg, uniform: true}
  third: {points: [C, R], length: 1, mass: 1 kg, uniform: true}
  left: {points: [P, Q], length: 1, mass: 2 kg, uniform: true}
  long: {points: [P, R], length: 2.5, mass: 3 kg, uniform: true}
  right: {points: [Q, R], length: 1.5, mass: 1 kg, uniform: true}
named:
  theta: {angle: first}
independent: [theta]
initial: {position: {theta: 0.9272952180016122}}
'''


@lru_cache
def model(name: str) -> Model:
    """Model by the name of its file, or of one of the texts above."""
    texts = {'crank_rocker': CRANK_ROCKER, 'damped': DAMPED, 'points_only': POINTS_ONLY, 'platform': PLATFORM,
             'too_far': TOO_FAR}
    return load_model(parse_mechanism(texts[name]) if name in texts else name)


def slope(errors: list[float]) -> float:
    """Order of convergence from errors at steps that halve."""
    logs = np.log2(np.abs(errors))
    return float(np.mean(logs[:-1] - logs[1:]))
