# SPDX-License-Identifier: Apache-2.0
"""A mechanism that is exactly linear, its matrices written by hand, and Kalman's filter in plain NumPy."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy.linalg import expm

from mbse_ros.dynamics.model import Model, load_model

DT = 0.005
SENSORS = ('ex', 'ry', 'gap', 'ay')
TEXT = """
format: mbse/mechanism/1
name: two_masses
gravity: 9.81
points: {O: {fixed: [0, 0]}}
bodies:
  first: {points: {S: [0, 0]}, mass: 2 kg, center_of_mass: [0, 0], inertia: 1}
  second: {points: {S: [0, 0]}, mass: 1 kg, center_of_mass: [0, 0], inertia: 1}
joints:
  rail_1: {type: prismatic, parent: ground.O, child: first.S, axis: [1, 0], start: 1}
  rail_2: {type: prismatic, parent: ground.O, child: second.S, axis: [1, 0], start: 2}
named: {x: {joint: rail_1}, y: {joint: rail_2}}
independent: [x, y]
initial: {position: {x: 1, y: 2}}
springs:
  one: {coordinate: x, stiffness: 300 N/m, free: 1, damping: 5}
  two: {points: [first.S, second.S], stiffness: 200 N/m, free: 1 m, damping: 2 N*s/m}
forces: {push: {coordinate: x, input: F}}
sensors:
  ex: {kind: encoder, coordinate: x, stddev: 0.01}
  ry: {kind: rate, coordinate: y, stddev: 0.02}
  gap: {kind: distance, points: [first.S, second.S], stddev: 0.015}
  ay: {kind: accelerometer, point: second.S, axes: [[1, 0]], stddev: 0.3}
"""
STDDEV = np.array([0.01, 0.02, 0.015, 0.3])
REST = np.array([1.0, 2.0, 0.0, 0.0])                   # of [x, y, xd, yd]
MASS = np.diag([2.0, 1.0])
STIFFNESS = np.array([[500.0, -200.0], [-200.0, 200.0]])
DAMPING = np.array([[7.0, -2.0], [-2.0, 2.0]])
A21, A22 = -np.linalg.solve(MASS, STIFFNESS), -np.linalg.solve(MASS, DAMPING)
A = np.block([[np.zeros((2, 2)), np.eye(2)], [A21, A22]])
B = np.array([0.0, 0.0, 0.5, 0.0])
H = np.array([[1.0, 0, 0, 0], [0, 0, 0, 1], [-1, 1, 0, 0], A[3]])
START = np.array([1.05, 1.9, 0.3, -0.2])
START_STDDEV = np.array([0.05, 0.1, 0.4, 0.3])


@lru_cache(maxsize=1)
def model(folder: str) -> Model:
    """The model, from a file in a folder."""
    path = Path(folder) / 'two_masses.yaml'
    path.write_text(TEXT)
    return load_model(str(path))


def coordinates(model: Model, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``q`` and ``qd`` (n,) of a state (4,)."""
    q = model.position(state[:2], model.start.q)
    return q, model.partition().velocity(q, state[2:])


@dataclass
class Log:
    """Random measurements of the linear system, a fifth of them missing, and inputs."""

    steps: int = 300
    t: np.ndarray = field(init=False)
    u: np.ndarray = field(init=False)
    measured: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        random = np.random.default_rng(4)
        self.t = DT * np.arange(1, self.steps + 1)
        self.u = 20 * np.sin(3 * self.t)
        x, F = REST + [0.1, -0.1, 0, 0], expm(A * DT)
        self.measured = np.empty((self.steps, 4))
        for k in range(self.steps):
            x = REST + F @ (x - REST) + B * self.u[k] * DT
            self.measured[k] = outputs(x) + random.normal(size=4) * STDDEV
        self.measured[random.random(self.measured.shape) < 0.2] = np.nan


def outputs(x: np.ndarray) -> np.ndarray:
    """Sensors of a state (4,)."""
    return H @ (x - REST) + np.array([1.0, 0.0, 1.0, 0.0])


def cayley(A: np.ndarray, dt: float = DT) -> tuple[np.ndarray, np.ndarray]:
    """``F`` and the input's column of the trapezoidal rule."""
    left = np.linalg.inv(np.eye(len(A)) - dt / 2 * A)
    return left @ (np.eye(len(A)) + dt / 2 * A), left @ B[:len(A)] * dt


def double_integrator_noise(density: np.ndarray, dt: float = DT) -> np.ndarray:
    """Noise of density (2,) on the accelerations, over a step."""
    q = np.diag(density)
    return np.block([[q * dt ** 3 / 3, q * dt ** 2 / 2], [q * dt ** 2 / 2, q * dt]])


@dataclass
class Result:
    """Means (k, 4), covariance at the end, NIS (k,)."""

    mean: np.ndarray
    covariance: np.ndarray
    nis: np.ndarray


def update(x: np.ndarray, P: np.ndarray, H: np.ndarray, innovation: np.ndarray,
           variance: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Joint correction with the measurements that are not NaN."""
    there = np.isfinite(innovation)
    C, e = H[there], innovation[there]
    S = C @ P @ C.T + np.diag(variance[there])
    K = P @ C.T @ np.linalg.inv(S)
    keep = np.eye(len(x)) - K @ C
    return x + K @ e, keep @ P @ keep.T + K @ np.diag(variance[there]) @ K.T, float(e @ np.linalg.solve(S, e))


def kalman(log: Log, mean: tuple[np.ndarray, np.ndarray], spread: tuple[np.ndarray, np.ndarray]) -> Result:
    """Kalman's filter with ``mean`` = (F, input's column) and ``spread`` = (F, Sigma) of the covariance."""
    (F, G), (F_P, Sigma) = mean, spread
    x, P = START - REST, np.diag(START_STDDEV ** 2)
    means, nis = [], []
    for o, u in zip(log.measured, log.u):
        x, P = F @ x + G * u, F_P @ P @ F_P.T + Sigma
        x, P, e = update(x, P, H, o - outputs(x + REST), STDDEV ** 2)
        means.append(x + REST)
        nis.append(e)
    return Result(np.array(means), P, np.array(nis))
