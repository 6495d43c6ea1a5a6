# SPDX-License-Identifier: Apache-2.0
"""A double pendulum by its textbook equations in NumPy, with friction that the model lacks, and its sensors."""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp

from mbse_ros.description.load import parse_mechanism
from mbse_ros.dynamics.model import Model

M1, L1, C1, I1 = 0.265, 0.172, 0.0857, 0.0012           # kg, m, m, kg m2
M2, L2, C2, I2 = 0.122, 0.114, 0.0576, 0.00026
G = 9.81
VISCOUS, COULOMB = np.array([2e-4, 5e-5]), np.array([5e-4, 2e-4])      # N m s, N m: the bearings
QUANTUM = 2 * np.pi / 8192
TEXT = f"""
format: mbse/mechanism/1
name: double_pendulum
gravity: {G}
points: {{O: {{fixed: [0, 0]}}, A: [0, {-L1}], B: [0, {-L1 - L2}]}}
bodies:
  upper: {{points: {{O: [0, 0], A: [{L1}, 0]}}, mass: {M1}, center_of_mass: [{C1}, 0], inertia: {I1}}}
  lower: {{points: {{A: [0, 0], B: [{L2}, 0]}}, mass: {{value: {M2}, stddev: 5 %}}, center_of_mass: [{C2}, 0],
          inertia: {I2}}}
named: {{a: {{angle: upper}}, b: {{angle: [upper, lower]}}}}
independent: [a, b]
initial: {{position: {{a: -90 deg, b: 0}}}}
sensors:
  enc_a: {{kind: encoder, coordinate: a, stddev: 1e-3}}
  enc_b: {{kind: encoder, coordinate: b, stddev: 1e-3}}
  elbow: {{kind: accelerometer, body: upper, point: A, axes: [[1, 0], [0, 1]], stddev: 0.05}}
  tip: {{kind: accelerometer, body: lower, point: B, axes: [[1, 0], [0, 1]], stddev: 0.05}}
"""


def model() -> Model:
    """The mechanism as its file has it, in the virtual machine."""
    return Model(parse_mechanism(TEXT), backend='vm')


def accelerations(a: float, b: float, w: float, v: float) -> np.ndarray:
    """Of both absolute angles, rad/s2."""
    d, both = -b, w + v
    mass = np.array([[M1 * C1 ** 2 + I1 + M2 * L1 ** 2, M2 * L1 * C2 * np.cos(d)],
                     [M2 * L1 * C2 * np.cos(d), M2 * C2 ** 2 + I2]])
    right = np.array([-M2 * L1 * C2 * np.sin(d) * both ** 2 - (M1 * C1 + M2 * L1) * G * np.cos(a),
                      M2 * L1 * C2 * np.sin(d) * w ** 2 - M2 * C2 * G * np.cos(a + b)])
    drag = -VISCOUS * [w, v] - COULOMB * np.tanh(np.array([w, v]) / 0.02)
    return np.linalg.solve(mass, right + [drag[0] - drag[1], drag[1]])


def motion(start: list[float], seconds: float, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Times (k,) and ``[a, b, w, v]`` (k, 4) from a start, b the angle between the links."""
    def rates(_: float, y: np.ndarray) -> list[float]:
        up, low = accelerations(*y)
        return [y[2], y[3], up, low - up]
    t = np.arange(round(seconds * rate)) / rate
    return t, solve_ivp(rates, (0.0, seconds), start, t_eval=t, rtol=1e-7, atol=1e-8).y.T


def samples(y: np.ndarray, seed: int = 0, quantum: float = QUANTUM) -> np.ndarray:
    """What encoders with an offset and steps, and the two accelerometers, send (k, 6)."""
    rng = np.random.default_rng(seed)
    angles = y[:, :2] + [5e-4, -5e-4] + 3e-4 * rng.normal(size=(len(y), 2))
    angles = np.round(angles / quantum) * quantum if quantum else angles
    forces = []
    for a, b, w, v in y:
        up, low = accelerations(a, b, w, v)
        elbow = np.array([-L1 * w ** 2 + G * np.sin(a), L1 * up + G * np.cos(a)])
        turned = np.array([[np.cos(b), np.sin(b)], [-np.sin(b), np.cos(b)]]) @ elbow
        forces.append([*elbow, *(turned + [-L2 * (w + v) ** 2, L2 * low])])
    return np.column_stack([angles, np.array(forces) + 0.05 * rng.normal(size=(len(y), 4))])
