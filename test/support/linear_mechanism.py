# SPDX-License-Identifier: Apache-2.0
"""A mechanism whose motion is linear, with the Kalman filter that its filters must equal."""

from __future__ import annotations

import numpy as np

from mbse_ros.description.load import parse_mechanism
from mbse_ros.dynamics.model import Model, load_model

MASS, STIFFNESS, DAMPING = 2.0, 50.0, 1.5
TEXT = f"""
format: mbse/mechanism/1
name: sprung_block
source: made for this test
gravity: 9.81
coordinates: relative
points: {{O: {{fixed: [0, 0]}}}}
bodies:
  block:
    {{points: {{center: [0, 0]}}, mass: {MASS}, center_of_mass: [0, 0], inertia: 0.1, position: [0.3, 0], angle: 0}}
joints:
  slide: {{type: prismatic, parent: ground.O, child: block.center, axis: [1, 0]}}
named:
  x: {{joint: slide}}
independent: [x]
initial: {{position: {{x: 0.3}}, velocity: {{x: 0.1}}}}
springs:
  coil: {{coordinate: x, stiffness: {STIFFNESS}, free: 0, damping: {DAMPING}}}
forces:
  push: {{coordinate: x, input: F}}
sensors:
  place: {{kind: encoder, coordinate: x, stddev: 0.01}}
  speed: {{kind: rate, coordinate: x, stddev: 0.02}}
  feel: {{kind: accelerometer, body: block, point: center, axes: [[1, 0]], stddev: 0.1}}
"""
A = np.array([[0.0, 1.0], [-STIFFNESS / MASS, -DAMPING / MASS]])
H = {'place': np.array([[1.0, 0.0]]), 'speed': np.array([[0.0, 1.0]]), 'feel': A[1:]}
STDDEV = {'place': 0.01, 'speed': 0.02, 'feel': 0.1}


def linear_model(backend: str = 'vm') -> Model:
    """The sprung block."""
    return load_model(parse_mechanism(TEXT), backend=backend)
