# SPDX-License-Identifier: Apache-2.0
"""A two-axis arm in a vertical plane with measured efforts: its file, and its inverse dynamics by hand."""

from __future__ import annotations

import numpy as np

UPPER, FORE = 0.5, 0.4          # m
MASSES, CENTRES, INERTIAS = (4.0, 2.0), (0.25, 0.2), (0.1, 0.04)        # kg, m, kg m2
COULOMB, VISCOUS, ROTOR, RATIO = (2.0, 1.0), (3.0, 1.5), (2e-5, 1e-5), 100.0
NOISE, ANGLE = (0.3, 0.15), 2e-5        # N m, rad
TRANSITION, GRAVITY = 0.02, 9.81
JOINTS = 'shoulder', 'elbow'

TEXT = '''
format: mbse/machine/2
name: small_arm
gravity: 9.81 m/s^2
points:
  base: {fixed: [0, 0]}
bodies:
  upper:
    points: {in: [0, 0], out: [0.5 m, 0]}
    mass: {value: 4 kg, stddev: 2 %}
    center_of_mass: [0.25 m, 0]
    inertia: 0.1
    position: [0, 0]
    angle: 0.4
  fore:
    points: {in: [0, 0], tool: [0.4 m, 0]}
    mass: {value: 2 kg, stddev: 2 %}
    center_of_mass: [0.2 m, 0]
    inertia: 0.04
    position: [0.4605, 0.1947]
    angle: 0.9
joints:
  shoulder: {type: revolute, parent: ground.base, child: upper.in}
  elbow: {type: revolute, parent: upper.out, child: fore.in}
named:
  shoulder_angle: {angle: upper}
  elbow_angle: {angle: [upper, fore]}
drives:
  shoulder:
    joint: shoulder_angle
    largest: 80 N*m
    friction: {coulomb: {value: 2 N*m, stddev: 30 %}, viscous: {value: 3, stddev: 30 %}}
    rotor_inertia: 2e-5 kg*m^2
    gear_ratio: 100
  elbow:
    joint: elbow_angle
    largest: 40 N*m
    friction: {coulomb: {value: 1 N*m, stddev: 30 %}, viscous: {value: 1.5, stddev: 30 %}}
    rotor_inertia: 1e-5 kg*m^2
    gear_ratio: 100
sensors:
  shoulder_encoder: {kind: encoder, coordinate: shoulder_angle, stddev: 2e-5 rad, bias: {value: 0, stddev: 0.05 deg}}
  elbow_encoder: {kind: encoder, coordinate: elbow_angle, stddev: 2e-5 rad, bias: {value: 0, stddev: 0.05 deg}}
  effort_1:
    {kind: effort, drive: shoulder, stddev: 0.3 N*m, offset: {value: 0, stddev: 1 N*m}, gain: {value: 1, stddev: 0.1}}
  effort_2:
    {kind: effort, drive: elbow, stddev: 0.15 N*m, offset: {value: 0, stddev: 1 N*m}, gain: {value: 1, stddev: 0.1}}
payload: {body: fore, center: [0.4 m, 0], limits: [0 kg, 5 kg]}
'''


def torques(q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, load: float = 0.0, coulomb: tuple[float, ...] = COULOMB,
            viscous: tuple[float, ...] = VISCOUS) -> np.ndarray:
    """What the drives give (n, 2), N m, along angles (n, 2), the second relative to the first, with a ``load``, kg, at
    the tool: Lagrange's equations of two bars."""
    m2 = MASSES[1] + load
    c2 = (MASSES[1] * CENTRES[1] + load * FORE) / m2
    inertia = INERTIAS[1] + MASSES[1] * (CENTRES[1] - c2) ** 2 + load * (FORE - c2) ** 2
    (a, b), (ad, bd), (add, bdd) = q.T, qd.T, qdd.T
    h = m2 * UPPER * c2
    m22 = inertia + m2 * c2 ** 2
    m12 = m22 + h * np.cos(b)
    m11 = INERTIAS[0] + MASSES[0] * CENTRES[0] ** 2 + m2 * UPPER ** 2 + m22 + 2 * h * np.cos(b)
    g2 = m2 * GRAVITY * c2 * np.cos(a + b)
    g1 = (MASSES[0] * CENTRES[0] + m2 * UPPER) * GRAVITY * np.cos(a) + g2
    found = np.array([m11 * add + m12 * bdd - h * np.sin(b) * (2 * ad * bd + bd ** 2) + g1,
                      m12 * add + m22 * bdd + h * np.sin(b) * ad ** 2 + g2]).T
    return found + np.multiply(ROTOR, RATIO ** 2) * qdd + np.multiply(viscous, qd) + np.multiply(
        coulomb, np.tanh(4 * qd / TRANSITION))


def motion(duration: float, rate: float = 125.0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Times (n,), s, angles, speeds and accelerations (n, 2) that begin at rest."""
    t = np.arange(0.0, duration, 1.0 / rate)
    rise = np.clip(t / 2.0, 0.0, 1.0)
    phase = np.where(t < 2.0, 2.0 * (rise ** 6 - 3 * rise ** 5 + 2.5 * rise ** 4), t - 1.0)
    rate_of = np.where(t < 2.0, 6 * rise ** 5 - 15 * rise ** 4 + 10 * rise ** 3, 1.0)
    change = np.where(t < 2.0, (30 * rise ** 4 - 60 * rise ** 3 + 30 * rise ** 2) / 2.0, 0.0)
    q, qd, qdd = (np.zeros((len(t), 2)) for _ in range(3))
    for k, waves in enumerate((((0.5, 0.9), (0.25, 2.1)), ((0.7, 1.3), (0.3, 1.9)))):
        q[:, k] = (0.4, 0.5)[k]
        for size, w in waves:
            q[:, k] += size * np.sin(w * phase)
            first = size * w * np.cos(w * phase)
            qd[:, k] += first * rate_of
            qdd[:, k] += first * change - size * w ** 2 * np.sin(w * phase) * rate_of ** 2
    return t, q, qd, qdd


def log(duration: float, load: float = 0.0, seed: int = 0, gain: tuple[float, ...] = (1.0, 1.0),
        offset: tuple[float, ...] = (0.0, 0.0), **friction: tuple[float, ...]) -> dict[str, tuple[np.ndarray, ...]]:
    """Samples by channel, of the arm in motion."""
    rng, (t, q, qd, qdd) = np.random.default_rng(seed), motion(duration)
    found = {}
    efforts = torques(q, qd, qdd, load, **friction)
    for k, name in enumerate(JOINTS):
        found[f'position/{name}_angle'] = t, q[:, k] + ANGLE * rng.standard_normal(len(t))
        found[f'effort/{name}'] = t, gain[k] * efforts[:, k] + offset[k] + NOISE[k] * rng.standard_normal(len(t))
    return found
