# SPDX-License-Identifier: Apache-2.0
"""The whole estimator of Pyrhönen et al., mass estimation, from the print alone: NumPy, nothing of the package.

To be read beside the paper; the numbers of equations are the paper's. ``c``: numbers of a crane (``Crane``). State X
(6,): piston position, speed, acceleration (m, s), pressures of both volumes (MPa), spool (V). Where the print leaves a
choice, the line says ``Choice``; where it contradicts itself, ``Misprint``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

# Section 2.2: of one cylinder and one valve, volumes 1 (piston side) and 2 (rod side).
T_sz = np.array([[1.0], [-1.0]])                # chamber heights by the piston's position
T_V, T_pQ = np.eye(2), np.eye(2)                # chambers and flows of each volume
PATH = np.tril(np.ones((4, 4)))                 # T of Eq. 1: cylinder, piston, arm, load, each on the one before it
DEPENDENT, INDEPENDENT = [0, 2, 3], 1           # joints: the piston's position is the independent one


@dataclass(frozen=True)
class Crane:
    """Lengths in m, masses in kg, pressures and moduli in MPa, ``Cv`` in m3/(s V MPa^0.5), friction in N, m, s, m2.

    Points in the plane (x, z): ``base`` of the cylinder, ``pivot`` of the arm; in the arm: ``eye`` of the piston,
    ``tip`` with the load, ``centre`` of mass.
    """

    gravity: float
    base: np.ndarray
    pivot: np.ndarray
    eye: np.ndarray
    tip: np.ndarray
    centre: np.ndarray
    mass: float
    inertia: float
    closed_length: float
    stroke: float
    areas: np.ndarray
    oil: float
    wall: np.ndarray            # moduli of the cylinder at both volumes, (2,)
    hose_volume: np.ndarray
    hose_modulus: np.ndarray
    pump: float
    tank: float
    Cv: float
    laminar: float              # dp_lim
    tau: float
    Fc: float
    Fs: float
    vs: float
    viscous: float
    C_p1: float
    C_p2: float


@dataclass(frozen=True)
class Tuning:
    """``psd`` of acceleration, pressures (MPa), spool (Eq. 44); ``variance`` (3,) of stroke and pressures (MPa);
    ``Kf`` of Eq. 58; ``n`` of Eq. 59; ``sign`` of Eq. 52."""

    dt: float
    psd: tuple[float, float, float]
    variance: np.ndarray
    Kf: float
    n: int
    sign: Callable[[np.ndarray], np.ndarray] = np.sign


def interpolated(stamps: np.ndarray, samples: np.ndarray, grid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Samples (k, m) at the instants of the grid, and when each is known: with the next sample (section 3)."""
    values = np.column_stack([np.interp(grid, stamps, column) for column in samples.T])
    return values, stamps[np.searchsorted(stamps, grid)]


def turned(v: np.ndarray) -> np.ndarray:
    """Vectors (..., 2) turned by 90 degrees."""
    return np.stack([-v[..., 1], v[..., 0]], -1)


def dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Products of vectors (..., n) or matrices (..., m, n) with vectors (..., n)."""
    return np.einsum('...i,...i->...' if a.ndim == b.ndim else '...ji,...i->...j', a, b)


def joint(vector: np.ndarray, turns: float) -> np.ndarray:
    """Joint vector b (k, 3): velocity of the body's point that is at the origin, and the turning rate."""
    return np.concatenate([vector, np.full((len(vector), 1), turns)], -1)


def equations_of_motion(c: Crane, z: np.ndarray, zd: np.ndarray, load: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mass (k,), kg, and force (k,), N, of Eq. 6 in the piston's position, without the cylinder's force (Eqs. 1-6), at
    positions, speeds and loads (k,).

    In the plane: 3 velocities a body where the paper has 6. Cylinder and piston have no mass in the files here.
    """
    length, span = c.closed_length + z, c.base - c.pivot
    a, d = np.linalg.norm(c.eye), np.linalg.norm(span)
    angle = np.arctan2(span[1], span[0]) + np.arccos((a * a + d * d - length ** 2) / (2 * a * d)) \
        - np.arctan2(c.eye[1], c.eye[0])        # Phi(z) = 0, the triangle of pivot, base and eye
    turn = np.moveaxis(np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]), -1, 0)
    eye, tip, centre = (c.pivot + turn @ point for point in (c.eye, c.tip, c.centre))
    axis, slide, base = (eye - c.base) / length[:, None], turn[:, :, 0], np.broadcast_to(c.base, eye.shape)
    b = np.stack([joint(-turned(base), 1.0), joint(axis, 0.0), joint(-turned(eye), 1.0), joint(slide, 0.0)], -1)
    at_pivot = np.column_stack([np.eye(2), turned(c.pivot)])        # velocity of the arm's point there, by Z of the arm
    Phi_z = np.zeros((len(z), 3, 4))
    Phi_z[:, :2, :3], Phi_z[:, 2, 3] = at_pivot @ b[:, :, :3], 1.0  # cut joint; the load does not slide
    inverse, R_z = np.linalg.inv(Phi_z[:, :, DEPENDENT]), np.ones((len(z), 4))
    R_z[:, DEPENDENT] = -dot(inverse, Phi_z[:, :, INDEPENDENT])                                     # Eq. 4
    zd_all, R = R_z * zd[:, None], PATH[:, None, :] * b[:, None]                                    # R: (k, 4, 3, 4)
    s, w = np.split(dot(R, zd_all[:, None]), [2], -1)                                               # Z of Eq. 1
    none, eye_d = np.zeros_like(eye), s[:, 1] + w[:, 1] * turned(eye)
    b_d = np.stack([joint(rate, 0.0) for rate in (
        none, w[:, 0] * turned(axis), -turned(eye_d), w[:, 2] * turned(slide))], -1)
    R_d = PATH[:, None, :] * b_d[:, None]
    M_joint, Q_joint = np.zeros((len(z), 4, 4)), np.zeros((len(z), 4))
    for body, mass, g, inertia in ((2, np.full(len(z), c.mass), centre, c.inertia), (3, load, tip, 0.0)):
        M = np.zeros((len(z), 3, 3))
        M[:, :2, :2], M[:, :2, 2], M[:, 2, :2], M[:, 2, 2] = np.eye(2), turned(g), turned(g), dot(g, g)
        M = mass[:, None, None] * M + np.diag([0.0, 0.0, inertia])
        force = mass[:, None] * ([0.0, -c.gravity] - w[:, body] * turned(s[:, body] + w[:, body] * turned(g)))
        Q = np.column_stack([force, dot(turned(g), force)])
        Rt = np.swapaxes(R[:, body], -1, -2)
        M_joint += Rt @ M @ R[:, body]
        Q_joint += dot(Rt, Q - dot(M, dot(R_d[:, body], zd_all)))                                   # Eq. 3
    bias = np.zeros((len(z), 4))                                                                    # Rdot_z zd
    bias[:, DEPENDENT] = -dot(inverse, joint(dot(at_pivot @ b_d[:, :, :3], zd_all[:, :3]), 0.0))
    return dot(R_z, dot(M_joint, R_z)), dot(R_z, Q_joint - dot(M_joint, bias))                      # Eq. 6


def state_equations(c: Crane, X: np.ndarray, U_in: float) -> tuple[np.ndarray, np.ndarray]:
    """``f`` (6,) of Eq. 18 and its Jacobian ``A`` (6, 6), Eqs. 23, 27-32."""
    z, zd, zdd, p, U = X[0], X[1], X[2], X[3:5], X[5]
    s, s_d = np.array([z, c.stroke - z]), T_sz[:, 0] * zd
    V = c.areas * s + c.hose_volume                                                                 # Eq. 11
    Be = 1 / (1 / c.oil + (c.areas * s / c.wall + c.hose_volume / c.hose_modulus) / V)              # Eq. 10
    source = np.array([c.pump, c.tank] if U > 0 else [c.tank, c.pump])
    drop = source - T_pQ.T @ p
    turbulent = np.abs(drop) > c.laminar
    root = np.where(turbulent, np.sqrt(np.abs(drop)) * np.sign(drop), np.sqrt(c.laminar) * drop / c.laminar)
    K = np.abs(U) * c.Cv                                                                            # Eq. 13
    Q, V_d = K * root, T_V @ (c.areas * s_d)                                                        # Eqs. 15, 16
    net = T_pQ @ Q - V_d
    f = np.concatenate([[zd, zdd, 0.0], Be / V * net, [(U_in - U) / c.tau]])
    A = np.zeros((6, 6))
    A[0, 1] = A[1, 2] = 1.0
    dp_ds = np.diag(-Be ** 2 / V ** 2 * (c.areas / c.oil + c.areas / c.wall) * net)                 # Eq. 27
    dp_dsd = np.diag(-Be * c.areas / V)                                                             # Eq. 28
    dp_dQ = np.diag(Be / V) @ T_pQ                                                                  # Eq. 29
    dQ_drop = np.diag(K * np.where(turbulent, 0.5 / np.sqrt(np.maximum(np.abs(drop), c.laminar)),
                                   np.sqrt(c.laminar) / c.laminar))                                 # Eq. 30
    A[3:5, :1], A[3:5, 1:2], A[3:5, 3:5] = dp_ds @ T_sz, dp_dsd @ T_sz, dp_dQ @ dQ_drop @ -T_pQ.T   # Eq. 31
    A[3:5, 5] = dp_dQ @ (np.sign(U) * c.Cv * root)                                                  # Eq. 32
    A[5, 5] = -1 / c.tau
    return f, A


def transition(A: np.ndarray, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """``F`` and ``dt Psi`` (Eqs. 35-37), the infinite sum until a term adds nothing."""
    term = Psi = np.eye(len(A))
    for n in range(1, 200):
        term = term @ A * (dt / (n + 1))
        Psi = Psi + term
        if np.abs(term).max() < 1e-18 * np.abs(Psi).max():
            break
    return np.eye(len(A)) + A @ Psi * dt, Psi * dt


def plant_noise(A: np.ndarray, psd: tuple[float, float, float], dt: float) -> np.ndarray:
    """Eqs. 45-49."""
    R_a, R_p, R_U = psd[0], psd[1] * np.eye(2), psd[2] * np.eye(1)
    A44, A45, A55 = A[3:5, 3:5], A[3:5, 5:], A[5:, 5:]
    S = np.zeros((6, 6))
    S[1, 1], S[1, 2], S[2, 1], S[2, 2] = R_a * dt ** 3 / 3, R_a * dt ** 2 / 2, R_a * dt ** 2 / 2, R_a * dt
    S[3:5, 3:5] = (dt ** 3 / 3 * (A45 @ R_U @ A45.T + A44 @ R_p @ A44.T) + dt ** 2 / 2 * (A44 @ R_p + R_p @ A44.T)
                   + R_p * dt)                                                                      # Eq. 46
    S[3:5, 5:] = dt ** 3 / 3 * A45 @ R_U @ A55 + dt ** 2 / 2 * A45 @ R_U                            # Eq. 47
    S[5:, 3:5] = dt ** 3 / 3 * A55 @ R_U @ A45.T + dt ** 2 / 2 * R_U @ A45.T                        # Eq. 48
    S[5:, 5:] = dt ** 3 / 3 * A55 @ R_U @ A55 + dt ** 2 * R_U @ A55 + R_U * dt                      # Eq. 49
    return S


H = np.eye(6)[[0, 3, 4]]        # the measurands: piston position, both pressures (section 4)


def observer_step(c: Crane, X: np.ndarray, P: np.ndarray, U_in: float, Y: np.ndarray, tuning: Tuning
                  ) -> tuple[np.ndarray, np.ndarray]:
    """State and covariance one step later (Eqs. 38-42).

    Misprint: Eq. 39 corrects the state of k + 1 by ``Y`` and ``K`` of k; here all are of k + 1.
    """
    f, A = state_equations(c, X, U_in)
    F, dt_Psi = transition(A, tuning.dt)
    X = X + dt_Psi @ f                                                  # Eq. 38; U_in,ref = U_in (Eq. 26)
    P = F @ P @ F.T + plant_noise(A, tuning.psd, tuning.dt)             # Eq. 40
    R_v = np.diag(tuning.variance)
    P = P - P @ H.T @ np.linalg.inv(H @ P @ H.T + R_v) @ H @ P          # Eq. 41
    return X + P @ H.T @ np.linalg.inv(R_v) @ (Y - H @ X), P            # Eqs. 39, 42


def actuator_force(c: Crane, states: np.ndarray, sign: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Force (k,) of the cylinder on the crane, N (Eqs. 50-54)."""
    zd, p = states[:, 1], 1e6 * states[:, 3:5]
    ratio = zd / c.vs
    brown_mcphee = c.Fc * np.tanh(4 * ratio) + (c.Fs - c.Fc) * ratio / (ratio ** 2 / 4 + 3 / 4) ** 2 + c.viscous * zd
    by_pressure = (np.abs(p[:, 0] - p[:, 1]) * c.C_p1 + p[:, 1] * c.C_p2) * sign(zd)                # Eq. 52
    return (c.areas * (p @ T_V)) @ T_sz[:, 0] - brown_mcphee - by_pressure


def load_masses(c: Crane, states: np.ndarray, sign: Callable[[np.ndarray], np.ndarray], epsilon: float = 1e-2
                ) -> np.ndarray:
    """Masses (k,) of the load, kg, by Newton's iteration with forward differences (Eqs. 55-57).

    Choice: until a step is below 1e-12 of the mass; the paper states no tolerance. It starts from the mass of the step
    before; here from 0: g is a line in the mass, so that the root is the same.
    """
    force = actuator_force(c, states, sign)

    def g(m: np.ndarray) -> np.ndarray:
        M, Q = equations_of_motion(c, states[:, 0], states[:, 1], m)
        return M * states[:, 2] - Q - force                                                         # Eq. 55
    mass = np.zeros(len(states))
    for _ in range(10):
        value = g(mass)
        step = value * epsilon / (g(mass + epsilon) - value)                                        # Eq. 57
        mass = mass - step                                                                          # Eq. 56
        if (np.abs(step) < 1e-12 * np.maximum(1.0, np.abs(mass))).all():
            break
    return mass


def low_passed(masses: np.ndarray, Kf: float) -> np.ndarray:
    """Eq. 58. Choice: it starts at the first mass."""
    out = np.array(masses, dtype=float)
    for k in range(1, len(out)):
        out[k] = out[k - 1] * (1 - Kf) + masses[k] * Kf
    return out


def window(x: np.ndarray, n: int) -> np.ndarray:
    """Triangular average of the last 2 n + 1 values (Eq. 59); NaN while there are fewer.

    Misprint: with the indices of Eq. 59 the newest and the oldest value have the weight n, those beside the centre 1;
    by the text values enter and leave 'with close to zero weight'. So x of k + 1 - n +- i has n + 1 - i here.
    """
    ramp = np.arange(1.0, n + 2)
    weights = np.concatenate([ramp, ramp[-2::-1]]) / (2 * ramp[:-1].sum() + n + 1)
    full = np.convolve(x, weights, 'valid')
    return np.concatenate([np.full(len(x) - len(full), np.nan), full])


def held(values: np.ndarray, moving: np.ndarray) -> np.ndarray:
    """Values of the moving steps, each held until the next; NaN before the first (section 3.3)."""
    last = np.cumsum(moving) - 1
    return np.where(last >= 0, np.append(values, np.nan)[last], np.nan)


def masses_of(c: Crane, states: np.ndarray, tuning: Tuning) -> dict[str, np.ndarray]:
    """Raw, low-passed and averaged mass, kg, at each of the states (k, 6) (sections 3.2, 3.3).

    Choice: what is 'not updated' below vs are both filters, and their input is left out.
    """
    raw = load_masses(c, states, tuning.sign)
    moving = np.abs(states[:, 1]) >= c.vs
    low = low_passed(raw[moving], tuning.Kf)
    return {'raw': raw, 'low_passed': held(low, moving), 'mass': held(window(low, tuning.n), moving)}


def observed(c: Crane, X: np.ndarray, P: np.ndarray, U_in: np.ndarray, Y: np.ndarray, tuning: Tuning
             ) -> tuple[np.ndarray, np.ndarray]:
    """States (k, 6) and covariances (k, 6, 6) after each step, from X and P before the first; Y (k, 3) at the steps,
    U_in (k,) over each."""
    states, covariances = np.empty((len(Y), 6)), np.empty((len(Y), 6, 6))
    for k, (u, y) in enumerate(zip(U_in, Y)):
        X, P = observer_step(c, X, P, u, y, tuning)
        states[k], covariances[k] = X, P
    return states, covariances
