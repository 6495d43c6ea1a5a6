# SPDX-License-Identifier: Apache-2.0
"""DEKF, SCKF, DIEKFpm and the errorEKFs of Naya et al., review, on its four-bar linkage, from the print in plain NumPy.

Equation numbers are those of the paper. Coordinates ``q = [x1, y1, x2, y2, theta]`` of the crank's tip, of the
coupler's end and of the crank's angle; one independent coordinate, ``z = theta``. SI.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from math import cos, sin, sqrt

import numpy as np
from four_bar_by_hand import COUPLER, CRANK, GROUND, MASSES, ROCKER

DT = 0.005                                              # s
Q_C = 9.162e-2                                          # section 12.1, rad2/s3
SIGMA = {'encoder': 17.453e-3, 'crank_gyro': 983.943e-6, 'coupler_gyro': 983.943e-6}    # section 12.1
TRANSITION = np.array([[1.0, DT], [0.0, 1.0]])                                          # Eq. 50
PLANT_NOISE = Q_C * np.array([[DT ** 3 / 3, DT ** 2 / 2], [DT ** 2 / 2, DT]])           # Eq. 107, by van Loan
P0 = 0.0076                                             # section 12.1, of every state
SIGMA_FE = 2.291e-3                                     # section 12.1, rad2/s4 a step
LAST = np.array([[0, 0, 0, 0, 1.0]])                    # z of q
SCALES = np.array([2.0, 2.0, 2.0, 0.5])                 # of the constraints in our four-bar, which a tolerance sees
FORCE_NOISE = np.diag([0.0, 0.0, SIGMA_FE])             # Eq. 105
FORCE_WALK = SIGMA_FE * np.array([[DT ** 4 / 20, DT ** 3 / 8, DT ** 2 / 6], [DT ** 3 / 8, DT ** 2 / 3, DT / 2],
                                  [DT ** 2 / 6, DT / 2, 1.0]])      # of a random walk with that variance over a step


@cache
def mass_matrix() -> np.ndarray:
    """M (5, 5) of uniform rods between two points: m/3 of each point, m/6 between them; theta has no mass."""
    crank, coupler, rocker = MASSES
    M = np.zeros((5, 5))
    M[:2, :2] = np.eye(2) * (crank + coupler) / 3
    M[2:4, 2:4] = np.eye(2) * (coupler + rocker) / 3
    M[:2, 2:4] = M[2:4, :2] = np.eye(2) * coupler / 6
    return M


@cache
def weights(gravity: float) -> np.ndarray:
    """Q (5,): half of each rod's weight at each of its points."""
    crank, coupler, rocker = MASSES
    return -gravity / 2 * np.array([0.0, crank + coupler, 0.0, coupler + rocker, 0.0])


def constraints(q: np.ndarray) -> np.ndarray:
    """Phi (4,): three lengths, and the tip of the crank in the direction of theta."""
    (x1, y1, x2, y2, theta) = q
    return np.array([(x1 ** 2 + y1 ** 2 - CRANK ** 2) / 2, ((x2 - x1) ** 2 + (y2 - y1) ** 2 - COUPLER ** 2) / 2,
                     ((x2 - GROUND) ** 2 + y2 ** 2 - ROCKER ** 2) / 2, x1 * np.sin(theta) - y1 * np.cos(theta)])


def jacobian(q: np.ndarray) -> np.ndarray:
    """Phi_q (4, 5)."""
    x1, y1, x2, y2, theta = q
    s, c = sin(theta), cos(theta)
    return np.array([[x1, y1, 0, 0, 0], [x1 - x2, y1 - y2, x2 - x1, y2 - y1, 0], [0, 0, x2 - GROUND, y2, 0],
                     [s, -c, 0, 0, x1 * c + y1 * s]])


def jacobian_rate(q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """d(Phi_q)/dt (4, 5)."""
    (x1, y1, _, _, theta), (v1, w1, v2, w2, omega) = q, qd
    s, c = sin(theta), cos(theta)
    return np.array([[v1, w1, 0, 0, 0], [v1 - v2, w1 - w2, v2 - v1, w2 - w1, 0], [0, 0, v2, w2, 0],
                     [omega * c, omega * s, 0, 0, v1 * c + w1 * s + omega * (y1 * c - x1 * s)]])


def position_problem(theta: float) -> np.ndarray:
    """q (5,) at theta: the coupler's end where two circles meet, above the line between their centres."""
    x, y = CRANK * cos(theta), CRANK * sin(theta)
    d = sqrt((GROUND - x) ** 2 + y ** 2)
    a, b, along = (GROUND - x) / d, -y / d, (COUPLER ** 2 - ROCKER ** 2 + d ** 2) / (2 * d)
    across = sqrt(COUPLER ** 2 - along ** 2)
    return np.array([x, y, x + along * a - across * b, y + along * b + across * a, theta])


def matrix_R(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R (5,) of Eq. 18, ``qd = R zd``, and dR/dz (5,): with one degree of freedom ``Rdot zd`` of Eq. 19 is ``dR/dz
    zd^2``."""
    of_rates = np.linalg.inv(np.vstack([jacobian(q), LAST]))
    R = of_rates[:, 4]
    return R, -of_rates[:, :4] @ (jacobian_rate(q, R) @ R)


def reduced_mass(q: np.ndarray) -> float:
    """``Mbar = R'MR``, Eq. 20."""
    R, _ = matrix_R(q)
    return float(R @ mass_matrix() @ R)


def acceleration(q: np.ndarray, zd: float, gravity: float, force: float = 0.0) -> float:
    """``zdd = (R'MR)^-1 R'(Q - M Rdot zd)``, Eq. 20, with a force along theta."""
    R, slope = matrix_R(q)
    M = mass_matrix()
    return float((R @ (weights(gravity) - M @ slope * zd ** 2) + force) / (R @ M @ R))


def slopes(theta: float, zd: float, gravity: float, force: float, h: float = 1e-3) -> np.ndarray:
    """``[dzdd/dz, dzdd/dzd]`` (2,) by differences of fourth order."""
    def zdd(change: np.ndarray) -> float:
        return acceleration(position_problem(theta + change[0]), zd + change[1], gravity, force)
    return np.array([8 * (zdd(e) - zdd(-e)) - zdd(2 * e) + zdd(-2 * e) for e in h * np.eye(2)]) / (12 * h)


def sensor(name: str, q: np.ndarray, zd: float) -> tuple[float, np.ndarray]:
    """``h(q, qd)`` of Eqs. 51, 71 and h_x (2,) by the independent coordinate and its velocity."""
    if name == 'encoder':
        return q[4], np.array([1.0, 0.0])
    if name == 'crank_gyro':
        return zd, np.array([0.0, 1.0])
    R, slope = matrix_R(q)
    across = np.array([q[1] - q[3], q[2] - q[0]])               # the coupler, turned by 90 degrees
    turn = lambda move: np.array([move[1] - move[3], move[2] - move[0]])     # noqa: E731
    relative = lambda rate: rate[2:4] - rate[:2]                # noqa: E731
    by_speed = across @ relative(R) / COUPLER ** 2
    by_angle = (turn(R) @ relative(R) + across @ relative(slope)) / COUPLER ** 2
    return by_speed * zd, np.array([by_angle * zd, by_speed])


def corrected(P: np.ndarray, innovation: np.ndarray, H: np.ndarray, R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``K y`` (l,) and P (l, l): Eqs. 52 to 55, and 72 to 75."""
    K = P @ H.T @ np.linalg.inv(H @ P @ H.T + R)
    return K @ innovation, (np.eye(len(P)) - K @ H) @ P


def observed(names: Iterable[str], q: np.ndarray, zd: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """h (s,), H (s, 2) and the variances (s, s) of some sensors."""
    h, H = zip(*(sensor(name, q, zd) for name in names))
    return np.array(h), np.array(H), np.diag([SIGMA[name] ** 2 for name in names])


def dekf(samples: np.ndarray, names: tuple[str, ...], theta: float, gravity: float) -> tuple[np.ndarray, np.ndarray]:
    """Means (k, 2) and covariances (k, 2, 2) of the DEKF of section 5, from rest at theta."""
    x, P, found = np.array([theta, 0.0]), P0 * np.eye(2), []
    for o in samples:
        x = x + DT * np.array([x[1], acceleration(position_problem(x[0]), x[1], gravity)])     # Eq. 49
        P = TRANSITION @ P @ TRANSITION.T + PLANT_NOISE                                        # Eq. 47
        h, H, R = observed(names, position_problem(x[0]), x[1])
        change, P = corrected(P, o - h, H, R)                                                  # Eq. 51
        x = x + change                                                                         # Eq. 54
        found.append((x, P))
    return np.array([x for x, _ in found]), np.array([P for _, P in found])


def trapezoid(theta: float, zd: float, gravity: float, start: np.ndarray | None = None, force: float = 0.0
              ) -> tuple[float, float]:
    """The model one step later by the trapezoidal rule, as iterated until it stands. ``start``: q (5,) where that is
    not on the constraints."""
    before = acceleration(position_problem(theta) if start is None else start, zd, gravity, force)
    new, rate = theta + DT * zd, zd + DT * before
    for _ in range(10):      # each takes the error to a hundredth
        after, last = acceleration(position_problem(new), rate, gravity, force), (new, rate)
        new, rate = theta + DT / 2 * (zd + rate), zd + DT / 2 * (before + after)
        if abs(new - last[0]) + abs(rate - last[1]) < 1e-15:
            break
    return new, rate


def projected(M: np.ndarray, J: np.ndarray, vector: np.ndarray, onto: np.ndarray) -> np.ndarray:
    """What is nearest to a vector (5,), in the metric of M, of all x with ``J x = onto``. One projection with a penalty
    of 1e9, as in the authors' toolbox, leaves some 1/6000 of the distance."""
    lhs = np.block([[M, J.T], [J, np.zeros((4, 4))]])
    return np.linalg.solve(lhs, np.concatenate([M @ vector, onto]))[:5]


def ali3p(q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, lam: np.ndarray, gravity: float
          ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """q, qd, qdd (5,) and multipliers (4,) one step later by the augmented Lagrangian of index 3 with projections and
    the trapezoidal rule, with the penalty and the tolerance of section 12.1."""
    M, penalty, scale = mass_matrix(), 1e9, DT ** 2 / 4
    new = q + DT * qd + DT ** 2 / 2 * qdd
    for _ in range(100):
        J, rate, bend = jacobian(new), 2 / DT * (new - q) - qd, 4 / DT ** 2 * (new - q) - 4 / DT * qd - qdd
        tangent = M + scale * penalty * J.T @ J
        change = -np.linalg.solve(tangent, scale * (M @ bend - weights(gravity)
                                                    + J.T @ (lam + penalty * constraints(new))))
        new, lam = new + change, lam + penalty * constraints(new + change)
        if np.linalg.norm(change) < 1e-10:
            break
    J, rate, bend = jacobian(new), 2 / DT * (new - q) - qd, 4 / DT ** 2 * (new - q) - 4 / DT * qd - qdd
    rate = projected(M, J, rate, np.zeros(4))
    return new, rate, projected(M, J, bend, -jacobian_rate(new, rate) @ rate), lam


def error_ekf_ali3p(samples: np.ndarray, names: tuple[str, ...], theta: float, gravity: float, linearised: bool = True,
                    kept: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """As ``error_ekf``, with the model as in section 12.1. ``kept``: the integrator keeps its accelerations, as in the
    authors' toolbox, from zero; else they are those of the corrected state (section 7.3)."""
    zd, q, P, found = 0.0, position_problem(theta), P0 * np.eye(2), []
    qdd, lam = np.zeros(5), np.zeros(4)
    for o in samples:
        R, slope = matrix_R(q)
        if not kept:
            qdd = R * acceleration(q, zd, gravity) + slope * zd ** 2
        q, qd, qdd, lam = ali3p(q, R * zd, qdd, lam, gravity)
        P = TRANSITION @ P @ TRANSITION.T + PLANT_NOISE
        h, H, variances = observed(names, q, qd[4])
        error, P = corrected(P, o - h, H, variances)
        q = q + matrix_R(q)[0] * error[0] if linearised else position_problem(q[4] + error[0])
        zd = qd[4] + error[1]
        found.append(((q[4], zd), P))
    return np.array([x for x, _ in found]), np.array([P for _, P in found])


def error_ekf(samples: np.ndarray, names: tuple[str, ...], theta: float, gravity: float, linearised: bool = False
              ) -> tuple[np.ndarray, np.ndarray]:
    """Means (k, 2) of the model, and covariances (k, 2, 2), of the errorEKF of section 7.1, from rest at theta.

    ``linearised``: the position is corrected by Eq. 76 and the model goes on from there, else by the position problem.
    """
    zd, q, P, found = 0.0, position_problem(theta), P0 * np.eye(2), []
    for o in samples:
        z, zd = trapezoid(q[4], zd, gravity, q)         # the model runs; the error's prediction is zero, Eq. 69
        q = position_problem(z)
        P = TRANSITION @ P @ TRANSITION.T + PLANT_NOISE                                        # Eq. 70
        h, H, R = observed(names, q, zd)
        error, P = corrected(P, o - h, H, R)                                                   # Eqs. 71, 74
        q = q + matrix_R(q)[0] * error[0] if linearised else position_problem(q[4] + error[0])  # Eq. 76
        zd = zd + error[1]                              # the velocity problem is in R
        found.append(((q[4], zd), P))
    return np.array([x for x, _ in found]), np.array([P for _, P in found])


def error_ekf_ej(samples: np.ndarray, names: tuple[str, ...], theta: float, gravity: float
                 ) -> tuple[np.ndarray, np.ndarray]:
    """As ``error_ekf``, with the Jacobian of section 7.2."""
    zd, P, found = 0.0, P0 * np.eye(2), []
    for o in samples:
        F = TRANSITION + np.outer([DT ** 2 / 2, DT], slopes(theta, zd, gravity, 0.0))          # Eq. 77
        theta, zd = trapezoid(theta, zd, gravity)
        P = F @ P @ F.T + PLANT_NOISE
        h, H, R = observed(names, position_problem(theta), zd)
        error, P = corrected(P, o - h, H, R)
        theta, zd = theta + error[0], zd + error[1]
        found.append(((theta, zd), P))
    return np.array([x for x, _ in found]), np.array([P for _, P in found])


def error_ekf_fe(samples: np.ndarray, names: tuple[str, ...], theta: float, gravity: float,
                 noise: np.ndarray = FORCE_NOISE, window: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """As ``error_ekf``, with the acceleration's error as a third state that becomes a force: means and covariances (k,
    3, 3); the third of the means is the force, N m. ``window``: samples of the AerrorEKF_FE of section 10.1."""
    zd, force, P, found, terms = 0.0, 0.0, P0 * np.eye(3), [], []
    for o in samples:
        F = np.array([[1.0, DT, DT ** 2 / 2], [0.0, 1.0, DT], [0.0, 0.0, 1.0]])                # Eq. 79
        F[:2, :2] += np.outer([DT ** 2 / 2, DT], slopes(theta, zd, gravity, force))
        theta, zd = trapezoid(theta, zd, gravity, None, force)
        without = F @ P @ F.T
        h, H, R = observed(names, position_problem(theta), zd)
        error, P = corrected(without + noise, o - h, np.column_stack([H, np.zeros(len(H))]), R)
        if window:
            terms.append(error[2] ** 2 + P[2, 2] - without[2, 2])                              # Eq. 91
            noise = np.diag([0.0, 0.0, abs(sum(terms[-window:])) / window])                    # Eq. 94
        theta, zd = theta + error[0], zd + error[1]
        force += reduced_mass(position_problem(theta)) * error[2]                              # Eq. 80
        found.append(((theta, zd, force), P))
    return np.array([x for x, _ in found]), np.array([P for _, P in found])


def dependent_noise(q: np.ndarray) -> np.ndarray:
    """Plant noise (10, 10) of Eqs. 108 to 112, sigma_b = 1."""
    R, Sigma = matrix_R(q)[0], np.eye(10)
    for first, variance in ((0, Q_C * DT ** 3 / 3), (5, Q_C * DT)):
        Sigma[first + 4, first:first + 5] = Sigma[first:first + 5, first + 4] = R * variance
    return Sigma


def all_constraints(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``[Phi, Phidot]`` (8,) and the derivative (8, 10) by ``[q, qd]``."""
    q, qd = np.split(x, 2)
    J, rate = (SCALES[:, None] * of for of in (jacobian(q), jacobian_rate(q, qd)))     # d(Phi_q qd)/dq is d(Phi_q)/dt
    return np.append(SCALES * constraints(q), J @ qd), np.block([[J, np.zeros((4, 5))], [rate, J]])


def all_observed(names: Iterable[str], x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """h (s,) of encoder or gyros as functions of all coordinates and velocities, and h_x (s, 10)."""
    (x1, y1, x2, y2, theta), (v1, w1, v2, w2, omega) = np.split(x, 2)
    a, b, v, w = x2 - x1, y2 - y1, v2 - v1, w2 - w1
    square = a ** 2 + b ** 2
    turn = (a * w - b * v) / square
    by_a, by_b = w / square - 2 * a * turn / square, -v / square - 2 * b * turn / square
    found = {'encoder': (theta, np.eye(10)[4]), 'crank_gyro': (omega, np.eye(10)[9]), 'coupler_gyro': (turn, np.array(
        [-by_a, -by_b, by_a, by_b, 0, b / square, -a / square, -b / square, a / square, 0]))}
    h, H = zip(*(found[name] for name in names))
    return np.array(h), np.array(H)


def dependent_ekf(samples: np.ndarray, names: tuple[str, ...], theta: float, gravity: float, constrain
                  ) -> tuple[np.ndarray, np.ndarray]:
    """Means (k, 10) and covariances (k, 10, 10) of a filter of section 6, from rest at theta; ``constrain`` gives x, P
    from the predicted ones, h(x) and h_x, R, and the sample."""
    x, P, found = np.append(position_problem(theta), np.zeros(5)), P0 * np.eye(10), []
    F, R = np.eye(10) + DT * np.eye(10, k=5), np.diag([SIGMA[name] ** 2 for name in names])     # Eq. 57
    for o in samples:
        q, qd = np.split(x, 2)
        R_q, slope = matrix_R(q)
        qdd = R_q * acceleration(q, qd[4], gravity) + slope * qd[4] ** 2
        P = F @ P @ F.T + dependent_noise(q)                                                   # Eq. 58
        x = x + DT * np.append(qd, qdd)                                                        # Eq. 56
        x, P = constrain(x, P, lambda x: all_observed(names, x), R, o)
        found.append((x, P))
    return np.array([x for x, _ in found]), np.array([P for _, P in found])


def sckf(x: np.ndarray, P: np.ndarray, see, R: np.ndarray, o: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Section 6.1: the sensors, then the constraints until they hold to 1e-3; alpha 0.1, beta 10."""
    h, H = see(x)
    change, P = corrected(P, o - h, H, R)                                                      # Eqs. 59 to 61
    x, weakening = x + change, None
    for _ in range(5):
        c, C = all_constraints(x)
        if np.linalg.norm(c) < 1e-3:
            break
        weakening = 0.1 * C @ P @ C.T if weakening is None else weakening * np.exp(-10)        # Eqs. 62, 66
        K = P @ C.T @ np.linalg.inv(C @ P @ C.T + weakening)                                   # Eq. 63
        rest = np.eye(10) - K @ C
        x, P = x - K @ c, rest @ P @ rest.T + K @ weakening @ K.T                              # Eqs. 64, 65
    return x, P


def diekfpm(x: np.ndarray, P: np.ndarray, see, R: np.ndarray, o: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Section 6.2: sensors and constraints, always from the a-priori estimate, until these hold to 1e-3."""
    prior, first = x, P
    for i in range(12):
        (h, H), (c, C) = see(x), all_constraints(x)
        if i and np.linalg.norm(c) < 1e-3:
            break
        both, noise = np.vstack([H, C]), np.diag(np.append(np.diag(R), np.full(8, 1e-3 * np.exp(-i))))
        change, P = corrected(first, np.append(o - h, -c) - both @ (prior - x), both, noise)   # Eq. 67
        x = prior + change
    return x, P
