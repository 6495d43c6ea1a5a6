# SPDX-License-Identifier: Apache-2.0
"""A 6-axis arm as recursive Newton-Euler in plain NumPy, over a table of Denavit-Hartenberg parameters: an independent
plant, which shares no code with the package (J. J. Craig, Introduction to robotics, 3rd edition, Eqs. 6.46-6.53)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

GRAVITY = 9.81
TRANSITION = 0.02       # rad/s, of Coulomb friction


def _rotations(theta: np.ndarray, alpha: float) -> np.ndarray:
    """Of frame i in frame i-1 (n, 3, 3): about z by theta (n,), then about x by alpha."""
    c, s, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
    one = np.ones_like(theta)
    return np.array([[c, -s * ca, s * sa], [s, c * ca, -c * sa], [0 * one, sa * one, ca * one]]).transpose(2, 0, 1)


def _turned(rotations: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Vectors (n, 3) by rotations (n, 3, 3)."""
    return np.einsum('nij,nj->ni', rotations, vectors)


@dataclass
class Arm:
    """``a``, ``alpha``, ``d`` (6,); masses (6,), kg, their centres (6, 3), m, and inertia about them (6, 3, 3), in the
    frames of the table; ``coulomb``, ``viscous`` (6,), N m and N m s/rad, ``rotor`` (6,), kg m2, at the joints."""

    a: np.ndarray
    alpha: np.ndarray
    d: np.ndarray
    mass: np.ndarray
    centre: np.ndarray
    inertia: np.ndarray
    coulomb: np.ndarray = field(default_factory=lambda: np.zeros(6))
    viscous: np.ndarray = field(default_factory=lambda: np.zeros(6))
    rotor: np.ndarray = field(default_factory=lambda: np.zeros(6))

    def carrying(self, mass: float, centre: np.ndarray) -> Arm:
        """With a point mass at ``centre`` (3,), m, of the last frame."""
        changed = Arm(**{name: np.array(getattr(self, name), dtype=float) for name in self.__dataclass_fields__})
        whole = self.mass[5] + mass
        joint = (self.mass[5] * self.centre[5] + mass * centre) / whole
        tensor = self.inertia[5].copy()
        for m, place in ((self.mass[5], self.centre[5]), (mass, centre)):
            r = place - joint
            tensor += m * (r @ r * np.eye(3) - np.outer(r, r))
        changed.mass[5], changed.centre[5], changed.inertia[5] = whole, joint, tensor
        return changed

    def torques(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """What the drives give (n, 6), N m, along a motion (n, 6)."""
        n = len(q)
        z = np.tile([0.0, 0.0, 1.0], (n, 1))
        w, wd, vd = np.zeros((n, 3)), np.zeros((n, 3)), np.tile([0.0, 0.0, GRAVITY], (n, 1))
        forces, moments, rotations, arms = [], [], [], []
        for i in range(6):
            R = _rotations(q[:, i], self.alpha[i])
            back = R.transpose(0, 2, 1)
            rate, change = z * qd[:, i:i + 1], z * qdd[:, i:i + 1]
            w, wd = _turned(back, w + rate), _turned(back, wd + change + np.cross(w, rate))
            p = np.array([self.a[i], self.d[i] * np.sin(self.alpha[i]), self.d[i] * np.cos(self.alpha[i])])
            vd = _turned(back, vd) + np.cross(wd, p) + np.cross(w, np.cross(w, p))
            acceleration = vd + np.cross(wd, self.centre[i]) + np.cross(w, np.cross(w, self.centre[i]))
            forces.append(self.mass[i] * acceleration)
            moments.append(wd @ self.inertia[i].T + np.cross(w, w @ self.inertia[i].T))
            rotations.append(R)
            arms.append(p)
        f, m, torques = np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((n, 6))
        for i in reversed(range(6)):
            m = m + np.cross(arms[i], f) + np.cross(arms[i] + self.centre[i], forces[i]) + moments[i]
            f, m = _turned(rotations[i], f + forces[i]), _turned(rotations[i], m)
            torques[:, i] = m[:, 2]
        return torques + self.rotor * qdd + self.viscous * qd + self.coulomb * np.tanh(4 * qd / TRANSITION)


def ur10e() -> Arm:
    """By the maker's table."""
    centre = np.array([[0.021, 0, 0.027], [0.38, 0, 0.158], [0.24, 0, 0.068], [0, 0.007, 0.018], [0, 0.007, 0.018],
                       [0, 0, -0.026]])
    moments = np.array([[0.0341, 0.0353, 0.0216, -0.0043], [0.0281, 0.7707, 0.7694, -0.0156],
                        [0.0101, 0.3093, 0.3065, 0.0092], [0.0030, 0.0022, 0.0026, 0], [0.0030, 0.0022, 0.0026, 0],
                        [0.0003, 0.0003, 0.0004, 0]])
    inertia = np.array([[[xx, 0, xz], [0, yy, 0], [xz, 0, zz]] for xx, yy, zz, xz in moments])
    friction = np.array([10.0, 10.0, 4.5, 1.7, 1.7, 1.7])
    return Arm(np.array([0, -0.6127, -0.57155, 0, 0, 0]), np.array([np.pi / 2, 0, 0, np.pi / 2, -np.pi / 2, 0]),
               np.array([0.1807, 0, 0, 0.17415, 0.11985, 0.11655]), np.array([7.369, 13.051, 3.989, 2.1, 1.98, 0.615]),
               centre, inertia, friction, friction.copy(), 101.0 ** 2 * np.array([6e-5, 6e-5, 6e-5, 1e-5, 1e-5, 1e-5]))
