# SPDX-License-Identifier: Apache-2.0
"""The recursion of Orsino, modular modelling, section 4, and its 3RRR mechanism, written from the print in plain NumPy.

Equation numbers are those of the paper. Coordinates ``x, y, angle`` of each body's centre: for each chain the disc of
the motor, the bar on the motor's axle and the coupler; the platform after the first chain. SI; lengths and masses are
those of ``config/mechanisms/three_rrr.yaml``, for the paper gives none.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

BASE, BAR, PLATFORM, DRIVE, DISC = 0.5, 0.3, 0.15, 0.06, 0.08      # m
DISC_MASS, BAR_MASS, PLATFORM_MASS, GRAVITY = 2.0, 1.5, 3.0, 9.81
CHAINS, TOP = ((0, 1, 2), (4, 5, 6), (7, 8, 9)), 3                 # disc, bar, coupler of each chain; the platform
DIRECTIONS = np.pi / 2 + np.array([0.0, 2.0, 4.0]) * np.pi / 3     # of the motors, from the centre
ENDS = np.array([[-BAR / 2, 0.0], [BAR / 2, 0.0]])                 # of a bar, from its centre

Group = tuple[np.ndarray, np.ndarray]           # the rows A~ (k, n) and b~ (k,) that one level adds


def turned(angle: float, s: Sequence[float]) -> np.ndarray:
    """A vector of a body in the plane."""
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) @ s


def point(q: np.ndarray, qd: np.ndarray, body: int | None, s: Sequence[float]
          ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Of a point: position, velocity, its derivative (2, n) by the coordinates, and acceleration for ``qdd = 0``."""
    J = np.zeros((2, len(q)))
    if body is None:                            # the ground
        return np.asarray(s, dtype=float), np.zeros(2), J, np.zeros(2)
    at = slice(3 * body, 3 * body + 2)
    arm = turned(q[3 * body + 2], s)
    J[:, at], J[:, 3 * body + 2] = np.eye(2), [-arm[1], arm[0]]
    return q[at] + arm, J @ qd, J, -qd[3 * body + 2] ** 2 * arm


def pin(q: np.ndarray, qd: np.ndarray, a: int | None, s_a: Sequence[float], b: int, s_b: Sequence[float]) -> Group:
    """Two points stay together."""
    (_, _, J_a, free_a), (_, _, J_b, free_b) = point(q, qd, a, s_a), point(q, qd, b, s_b)
    return J_b - J_a, free_a - free_b


def slot(q: np.ndarray, qd: np.ndarray, bar: int, disc: int) -> Group:
    """The pin of a disc stays on the axis of a bar: ``n' d = 0``, differentiated twice."""
    (p_a, v_a, J_a, free_a), (p_b, v_b, J_b, free_b) = point(q, qd, bar, ENDS[0]), point(q, qd, disc, [DRIVE, 0.0])
    d, relative, rate = p_b - p_a, v_b - v_a, qd[3 * bar + 2]
    along, across = turned(q[3 * bar + 2], [1.0, 0.0]), turned(q[3 * bar + 2], [0.0, 1.0])
    row = across @ (J_b - J_a)
    row[3 * bar + 2] -= along @ d
    return row[None], -np.array([across @ (free_b - free_a) - 2 * rate * along @ relative - rate ** 2 * across @ d])


def levels(q: np.ndarray, qd: np.ndarray) -> list[Group]:
    """The three levels of figure 4: discs and bars on their axles; the chains; the platform."""
    axles, chains, whole = [], [], []
    for direction, (disc, bar, coupler) in zip(DIRECTIONS, CHAINS):
        motor = BASE * np.array([np.cos(direction), np.sin(direction)])
        corner = PLATFORM * np.array([np.cos(direction), np.sin(direction)])
        axles += [pin(q, qd, None, motor, disc, [0.0, 0.0]), pin(q, qd, None, motor, bar, ENDS[0])]
        chains += [pin(q, qd, bar, ENDS[1], coupler, ENDS[0]), slot(q, qd, bar, disc)]
        whole += [pin(q, qd, coupler, ENDS[1], TOP, corner)]
    return [(np.vstack([A for A, _ in level]), np.concatenate([b for _, b in level]))
            for level in (axles, chains, whole)]


def masses() -> np.ndarray:
    """Diagonal (n,) of M."""
    disc = [DISC_MASS, DISC_MASS, DISC_MASS * DISC ** 2 / 2]
    bar = [BAR_MASS, BAR_MASS, BAR_MASS * BAR ** 2 / 12]
    platform = [PLATFORM_MASS, PLATFORM_MASS, PLATFORM_MASS * PLATFORM ** 2 / 4]
    return np.array(disc + 2 * bar + platform + 2 * (disc + 2 * bar))


def forces(torques: Sequence[float]) -> np.ndarray:
    """f (n,): weights, and the motors on their discs."""
    f = -GRAVITY * masses() * np.tile([0.0, 1.0, 0.0], 10)
    f[[3 * disc + 2 for disc, _, _ in CHAINS]] += torques
    return f


def at_once(M: np.ndarray, f: np.ndarray, groups: Sequence[Group]) -> np.ndarray:
    """Accelerations by ``a = a0 + H^+ (b - H a0)``, Eq. 4.9; M is diagonal (n,)."""
    A, b = np.vstack([A for A, _ in groups]), np.concatenate([b for _, b in groups])
    root = 1 / np.sqrt(M)
    H, a0 = A * root, root * f                  # alpha0 = M^-1 f
    return root * (a0 + np.linalg.pinv(H) @ (b - H @ a0))


def recursively(M: np.ndarray, f: np.ndarray, groups: Sequence[Group], clearance: Sequence[np.ndarray] | None = None
                ) -> tuple[np.ndarray, np.ndarray]:
    """Accelerations and P (n, n) by the algorithm after Eq. 4.16, level by level; with a ``clearance`` R of each
    level by Eqs. 4.17 and 4.18."""
    root, n = 1 / np.sqrt(M), len(M)
    a, P = root * f, np.eye(n)
    for r, (A, b) in enumerate(groups):
        H, R = A * root, np.zeros((len(b), len(b))) if clearance is None else clearance[r]
        K = P @ H.T @ np.linalg.inv(H @ P @ H.T + R)                    # Eq. 4.16; 4.17 with R
        a = a + K @ (b - H @ a)                                         # Eq. 4.14
        keep = np.eye(n) - K @ H
        P = keep @ P @ keep.T + K @ R @ K.T                             # Eq. 4.15; 4.18 with R
    return root * a, P


def motion(q: np.ndarray, qd: np.ndarray, torques: Sequence[float], dt: float, steps: int
           ) -> tuple[np.ndarray, np.ndarray]:
    """States (k, n) of a motion by the recursion and the classical Runge-Kutta method, the start included."""
    n, M, f = len(q), masses(), forces(torques)
    x = np.concatenate([q, qd])
    rate = lambda x: np.concatenate([x[n:], recursively(M, f, levels(x[:n], x[n:]))[0]])       # noqa: E731
    found = [x]
    for _ in range(steps):
        k1 = rate(x)
        k2 = rate(x + dt / 2 * k1)
        k3 = rate(x + dt / 2 * k2)
        k4 = rate(x + dt * k3)
        x = x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        found.append(x)
    return np.array(found)[:, :n], np.array(found)[:, n:]
