# SPDX-License-Identifier: Apache-2.0
"""Mechanisms of the package with sensors of every kind, one of them with a driver, and states on their motion."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
from source_tree import ROOT

from mbse_ros.compiled import Kernel
from mbse_ros.description.load import parse_mechanism
from mbse_ros.description.model import MechanismDescription
from mbse_ros.dynamics.model import Model
from mbse_ros.dynamics.sensor_equations import sensor_function

PLANAR = '''
sensors:
  angle: {{kind: encoder, coordinate: {coordinate}}}
  rate: {{kind: rate, coordinate: {coordinate}}}
  place: {{kind: position, point: {point}}}
  speed: {{kind: velocity, point: {point}}}
  gyro: {{kind: gyro, body: {body}}}
  imu: {{kind: accelerometer, body: {body}, point: {own}, axes: [[0.6, 0.8], [0, 1], [1, 0]]}}
  motion: {{kind: accelerometer, body: {body}, point: {own}, gravity: false}}
  reach: {{kind: distance, points: [{fixed}, {point}]}}
  tilt: {{kind: inclinometer, body: {body}}}
'''
SPATIAL = '''
sensors:
  angle: {kind: encoder, coordinate: swing}
  rate: {kind: rate, coordinate: swing}
  place: {kind: position, point: coupler.Q}
  speed: {kind: velocity, point: coupler.Q}
  gyro: {kind: gyro, body: coupler}
  imu: {kind: accelerometer, body: coupler, point: Q, axes: [[0.6, 0.8, 0], [0, 0, 1]]}
  motion: {kind: accelerometer, body: coupler, point: Q, gravity: false}
  reach: {kind: distance, points: [ground.A, coupler.Q]}
'''
# A beam on three parallel cranks: one of them would do with two, so their forces are not determined.
THREE_CRANKS = '''
format: mbse/mechanism/1
name: three_cranks
gravity: 9.81
points: {A: {fixed: [0, 0]}, B: {fixed: [1, 0]}, C: {fixed: [2, 0]}, P: [0.6, 0.8], Q: [1.6, 0.8], R: [2.6, 0.8]}
bodies:
  crank_a: {points: [A, P], length: 1, mass: 1, uniform: true}
  crank_b: {points: [B, Q], length: 1, mass: 1, uniform: true}
  crank_c: {points: [C, R], length: 1, mass: 1, uniform: true}
  beam: {points: {P: [0, 0], Q: [1, 0], R: [2, 0]}, mass: 3, center_of_mass: [1, 0], inertia: 1}
named: {motor: {angle: crank_a}}
drivers: {motor: {coordinate: motor, motion: '0.9272952180016122 + 0.2*sin(3*t)'}}
sensors: {torque: {kind: force, driver: motor}}
'''
CRANKS = {'four_bar': dict(coordinate='theta', point='P2', own='P2', body='coupler', fixed='A'),
          'five_bar': dict(coordinate='theta2', point='P2', own='P2', body='coupler_1', fixed='A'),
          'slider_crank': dict(coordinate='stroke', point='piston.S', own='S', body='rod', fixed='ground.O')}
DRIVEN = "\ndrivers:\n  motor: {coordinate: theta1, motion: '0.3*sin(2*t) + 0.1*t'}\n"
FORCE = '  torque: {kind: force, driver: motor}\n'
MECHANISMS = ('four_bar', 'five_bar', 'slider_crank', 'spatial_four_bar', 'driven_five_bar')
CASES = [(name, coordinates) for name in MECHANISMS for coordinates in ('natural', 'reference_point', 'relative')
         if (name, coordinates) != ('spatial_four_bar', 'natural')]


def description(name: str) -> MechanismDescription:
    """Description with all kinds of sensors instead of the file's."""
    own = name.removeprefix('driven_')
    text = (ROOT / 'config' / 'mechanisms' / f'{own}.yaml').read_text()
    text = re.sub(r'^sensors:.*?(?=^\S|\Z)', '', text, flags=re.MULTILINE | re.DOTALL)
    text += SPATIAL if own == 'spatial_four_bar' else PLANAR.format(**CRANKS[own])
    if own != name:
        text = text.replace('independent: [theta1, theta2]', 'independent: [theta2]').replace('theta1: 0, ', '')
        text += FORCE + DRIVEN
    return parse_mechanism(text, name)


@cache
def model(name: str, coordinates: str) -> Model:
    """Model in the virtual machine."""
    return Model(description(name), coordinates, backend='vm')


@cache
def sensors(name: str, coordinates: str, scalar: bool | None = None) -> Kernel:
    """Function ``(q, zd, u, t, p) -> (h, H)``."""
    system = model(name, coordinates).partition().system
    return Kernel(sensor_function(system, system.values.symbol, scalar), 'vm')


def states(name: str, coordinates: str, count: int = 3) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, float]]:
    """``(q, zd, u, t)`` on the constraints, the same motion in all coordinates."""
    made, generator = model(name, coordinates), np.random.default_rng(5)
    partition, found, g = made.partition(), [], len(made.z)
    for _ in range(count):
        z, zd = made.start.q[made.z] + generator.uniform(-0.03, 0.03, g), generator.normal(0.0, 2.0, g)
        t = generator.uniform(0.0, 0.02)
        found.append((partition.position(z, made.start.q, t), zd, generator.normal(0.0, 3.0, len(made.inputs)), t))
    return found


def central(f, steps: float) -> np.ndarray:
    """Derivative at 0 of a function of a number, by the central difference of eighth order."""
    weights = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
    return sum(weight * (f(k * steps) - f(-k * steps)) for k, weight in weights.items()) / steps
