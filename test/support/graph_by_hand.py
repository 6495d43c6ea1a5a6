# SPDX-License-Identifier: Apache-2.0
"""The sliding window of Blanco-Claraco et al., factor graphs, section 7.1, as one dense least squares problem in plain
NumPy, in dependent and in independent coordinates.

Equation numbers are those of the paper. Coordinates ``q = [x1, y1, x2, y2, theta]`` of its four-bar linkage; the
unknowns of an instant are ``x = [q, qd, qdd]`` (15,), in the independent form ``[q, qd, qdd, z, zd, zdd]`` (18,) with
``z = theta``. SI.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from four_bar_by_hand import joints

CRANK, COUPLER, ROCKER, GROUND = 1.0, 2.0, np.sqrt(13.0), 4.0           # figure 6
MASSES, GRAVITY = (1.0, 2.0, 4.0), 9.80665
START = np.array([1.0, 0.0, 1.0, 2.0, 0.0])
INTEGRATOR, DYNAMICS = 0.1, 0.01        # roots of the variances 1e-2 and 1e-4 of Table 2
ZERO, EYE = np.zeros((5, 5)), np.eye(5)

Rows = tuple[np.ndarray, np.ndarray]        # residual (r,) and Jacobian (r, k) by the unknowns of one or two instants


def phi(q: np.ndarray) -> np.ndarray:
    """Constraints (4,): constant distances, Eq. 43, and the angle of the crank, Eqs. 46, 47 as one form."""
    x1, y1, x2, y2, theta = q
    return np.array([x1 ** 2 + y1 ** 2 - CRANK ** 2, (x2 - x1) ** 2 + (y2 - y1) ** 2 - COUPLER ** 2,
                     (x2 - GROUND) ** 2 + y2 ** 2 - ROCKER ** 2, x1 * np.sin(theta) - y1 * np.cos(theta)])


def phi_q(q: np.ndarray) -> np.ndarray:
    """Jacobian (4, 5)."""
    x1, y1, x2, y2, theta = q
    s, c = np.sin(theta), np.cos(theta)
    return np.array([[2 * x1, 2 * y1, 0, 0, 0], [2 * (x1 - x2), 2 * (y1 - y2), 2 * (x2 - x1), 2 * (y2 - y1), 0],
                     [0, 0, 2 * (x2 - GROUND), 2 * y2, 0], [s, -c, 0, 0, x1 * c + y1 * s]])


def phi_q_rate(q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """d(phi_q)/dt (4, 5), Eq. 42."""
    (x1, y1, _, _, theta), (v1, w1, v2, w2, omega) = q, qd
    s, c = np.sin(theta), np.cos(theta)
    return np.array([[2 * v1, 2 * w1, 0, 0, 0], [2 * (v1 - v2), 2 * (w1 - w2), 2 * (v2 - v1), 2 * (w2 - w1), 0],
                     [0, 0, 2 * v2, 2 * w2, 0],
                     [omega * c, omega * s, 0, 0, v1 * c + w1 * s + omega * (y1 * c - x1 * s)]])


def mass_matrix() -> np.ndarray:
    """M (5, 5) of uniform bars; the angle has no mass."""
    crank, coupler, rocker = MASSES
    M = np.zeros((5, 5))
    M[:2, :2], M[2:4, 2:4] = np.eye(2) * (crank + coupler) / 3, np.eye(2) * (coupler + rocker) / 3
    M[:2, 2:4] = M[2:4, :2] = np.eye(2) * coupler / 6
    return M


def accelerations(q: np.ndarray, qd: np.ndarray, torque: float = 0.0) -> np.ndarray:
    """qdd (5,) of ``[M phi_q'; phi_q 0] [qdd; lambda] = [Q; c]``, Eq. 5."""
    crank, coupler, rocker = MASSES
    Q = -GRAVITY / 2 * np.array([0, crank + coupler, 0, coupler + rocker, 0]) + [0, 0, 0, 0, torque]
    J = phi_q(q)
    K = np.block([[mass_matrix(), J.T], [J, np.zeros((4, 4))]])
    return np.linalg.solve(K, np.concatenate([Q, -phi_q_rate(q, qd) @ qd]))[:5]


def constraints(x: np.ndarray) -> Rows:
    """Eqs. 24 and 25 of an instant; their covariance is zero in Table 2, so they hold exactly."""
    q, qd = x[:5], x[5:10]
    J, none = phi_q(q), np.zeros((4, 5))
    return (np.concatenate([phi(q), J @ qd]),
            np.block([[J, none, none], [phi_q_rate(q, qd), J, none]]))       # phi_qq qd is the rate, Eq. 42


def slopes(f: Callable[[np.ndarray], np.ndarray], x: np.ndarray, h: float = 1e-3) -> np.ndarray:
    """Jacobian by differences of fourth order, as in the paper (section 6.6)."""
    return np.array([8 * (f(x + e) - f(x - e)) - f(x + 2 * e) + f(x - 2 * e) for e in h * np.eye(len(x))]).T / (12 * h)


def dynamics(x: np.ndarray, torque: float) -> Rows:
    """Eq. 26 of an instant, over its deviation."""
    def qdd(state: np.ndarray) -> np.ndarray:
        return accelerations(state[:5], state[5:], torque)
    return (qdd(x[:10]) - x[10:]) / DYNAMICS, np.hstack([slopes(qdd, x[:10]), -EYE]) / DYNAMICS


def integrators(x0: np.ndarray, x1: np.ndarray, dt: float) -> Rows:
    """Eq. 23 of positions and of velocities between two instants, over its deviation."""
    half = -dt / 2 * EYE
    J = np.block([[-EYE, half, ZERO, EYE, half, ZERO], [ZERO, -EYE, half, ZERO, EYE, half]]) / INTEGRATOR
    return J @ np.concatenate([x0, x1]), J


def dependent(x: np.ndarray, before: np.ndarray, torque: float, dt: float) -> tuple[list[Rows], list[Rows]]:
    """Figure 2: factors that an instant adds, by the unknowns of the instant before and its own; soft, then exact."""
    after = lambda rows: (rows[0], np.hstack([np.zeros((len(rows[0]), 15)), rows[1]]))         # noqa: E731
    return [after(dynamics(x, torque)), integrators(before, x, dt)], [after(constraints(x))]


def independent(x: np.ndarray, before: np.ndarray, torque: float, dt: float, equality: float = 1e3
                ) -> tuple[list[Rows], list[Rows]]:
    """Figure 3, as ``dependent``; ``equality``: deviation of the soft equality of q (Table 2: 10)."""
    def motion(w: np.ndarray) -> np.ndarray:
        (z0, zd0, zdd0), (z1, zd1, zdd1) = w[:3], w[3:]
        q = np.append(joints(z1, (CRANK, COUPLER, ROCKER, GROUND)).ravel(), z1)
        qd = np.linalg.solve(np.vstack([phi_q(q), [0, 0, 0, 0, 1.0]]), [0, 0, 0, 0, zd1])
        return np.array([(accelerations(q, qd, torque)[4] - zdd1) / DYNAMICS,                   # Eq. 27
                         (z1 - z0 - dt / 2 * (zd0 + zd1)) / INTEGRATOR,                         # Eq. 23
                         (zd1 - zd0 - dt / 2 * (zdd0 + zdd1)) / INTEGRATOR])

    def exact(x: np.ndarray) -> np.ndarray:
        (q, qd, qdd), (z, zd, zdd) = np.split(x[:15], 3), x[15:]
        J = phi_q(q)
        return np.concatenate([phi(q), [q[4] - z], J @ qd, [qd[4] - zd],                        # Eqs. 30, 31
                               phi_q_rate(q, qd) @ qd + J @ qdd, [qdd[4] - zdd]])               # Eq. 32
    places = [15, 16, 17, 33, 34, 35]
    moving, kept, held = np.zeros((3, 36)), np.zeros((5, 36)), np.zeros((15, 36))
    w = np.concatenate([before, x])[places]
    moving[:, places] = slopes(motion, w)
    kept[:, :5], kept[:, 18:23] = -EYE / equality, EYE / equality
    held[:, 18:] = slopes(exact, x)
    return [(motion(w), moving), ((x[:5] - before[:5]) / equality, kept)], [(exact(x), held)]


Form = Callable[[np.ndarray, np.ndarray, float, float], tuple[list[Rows], list[Rows]]]


def linear(form: Form, x: np.ndarray, torques: np.ndarray, dt: float
           ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """All factors of a window (N, k): soft rows A, e and exact rows C, d, of the unknowns after the first instant."""
    size, found = x.shape[1], ([], [])
    for k in range(1, len(x)):
        for rows, some in zip(found, form(x[k], x[k - 1], torques[k], dt)):
            for e, J in some:
                whole = np.zeros((len(e), x.size))
                whole[:, (k - 1) * size:(k + 1) * size] = J
                rows.append((whole[:, size:], e))
    (A, e), (C, d) = ((np.vstack([J for J, _ in rows]), np.concatenate([r for _, r in rows])) for rows in found)
    return A, e, C, d


def solved(form: Form, x: np.ndarray, torques: np.ndarray, dt: float) -> np.ndarray:
    """A window at the minimum of Eq. 18, its oldest instant held: Gauss-Newton steps in the kernel of the exact rows,
    until they are rounding."""
    for _ in range(15):                                 # the paper's limit
        A, e, C, d = linear(form, x, torques, dt)
        kernel = np.linalg.svd(C)[2][len(C):].T
        step = -np.linalg.pinv(C) @ d
        step = step - kernel @ np.linalg.lstsq(A @ kernel, e + A @ step, rcond=None)[0]
        x = np.vstack([x[:1], x[1:] + step.reshape(len(x) - 1, -1)])
        if np.abs(step).max() < 1e-11 * np.abs(x).max():
            return x
    raise ArithmeticError('no convergence')


def sliding(steps: int, dt: float, window: int, torques: np.ndarray, form: Form = dependent) -> np.ndarray:
    """Motion (steps + 1, k) from rest: each instant as it was when it was the newest of ``window`` instants.

    ``torques`` (steps + 1,): of the crank. A new instant begins at Taylor's series from the last one.
    """
    qdd = accelerations(START, np.zeros(5), torques[0])
    begin = np.concatenate([START, np.zeros(5), qdd, *([] if form is dependent else [[0.0, 0.0, qdd[4]]])])
    found = [begin]
    for _ in range(window - 1):
        found.append(ahead(found[-1], dt))
    x = solved(form, np.array(found), torques[:window], dt)
    found = list(x)
    for k in range(window, steps + 1):
        x = solved(form, np.vstack([x[1:], ahead(x[-1], dt)]), torques[k - window + 1:k + 1], dt)
        found.append(x[-1])
    return np.array(found)


def ahead(x: np.ndarray, dt: float) -> np.ndarray:
    """Where the iteration of a new instant begins."""
    q, qd, qdd, (z, zd, zdd) = x[:5], x[5:10], x[10:15], x[[4, 9, 14]]
    new = [q + dt * qd + dt ** 2 / 2 * qdd, qd + dt * qdd, qdd]
    return np.concatenate([*new, *([] if len(x) == 15 else [[z + dt * zd + dt ** 2 / 2 * zdd, zd + dt * zdd, zdd]])])
